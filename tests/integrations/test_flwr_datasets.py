"""The partitioner inside flwr-datasets, with the real library."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu
from datasets import ClassLabel, Dataset
from partition_cases import LABELS, MIXTURE, NAMES
from polyurn import IID, MDM, Dirichlet, Pathological, QuantitySkew, Shards, Sizes, load, save
from polyurn.errors import CountsError, ParameterError, PartitionError
from style_cases import plain_style, style_rest

NAMED = replace(MIXTURE, categories=NAMES)


@pytest.fixture
def flower(monkeypatch, proxy, tmp_path):
    """FederatedDataset on a local Parquet file; telemetry off."""
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    flwr_datasets = pytest.importorskip("flwr_datasets")
    proxy.to_parquet(tmp_path / "train.parquet")

    def federated(partitioner):
        return flwr_datasets.FederatedDataset(
            dataset="parquet",
            partitioners={"train": partitioner},
            data_files={"train": str(tmp_path / "train.parquet")},
            cache_dir=str(tmp_path / "cache"),
        )

    return federated


def test_the_partitioner_works_inside_federated_dataset(flower):
    from flwr_datasets.partitioner import Partitioner

    from polyurn.integrations.flwr_datasets import MDMPartitioner

    federated = flower(MDMPartitioner(NAMED, num_partitions=7, seed=3))
    partitioner = federated.partitioners["train"]
    assert isinstance(partitioner, Partitioner)
    assert partitioner.num_partitions == 7
    asked = MIXTURE.sample(7, rng=np.random.default_rng(3))
    for i in range(7):
        mine = federated.load_partition(i)
        assert np.bincount(mine["label"][:], minlength=3).tolist() == asked[i].tolist()
        assert len(set(mine["row"][:])) == 12
    again = flower(MDMPartitioner(NAMED, num_partitions=7, seed=3))
    assert again.load_partition(4)["row"][:] == federated.load_partition(4)["row"][:]
    assert partitioner.partition.report.exact


def test_six_lines_of_the_first_page_make_a_federated_dataset(flower, tmp_path):
    """Run as they stand, but for a file in the place of a download."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = readme.split("```python\n")[1].split("```")[0]
    assert len([line for line in block.splitlines() if line]) <= 6
    files = (
        f'data_files={{"train": {str(tmp_path / "train.parquet")!r}}}, cache_dir={str(tmp_path)!r}'
    )
    found = {}
    exec(block.replace('dataset="uoft-cs/cifar10"', f'dataset="parquet", {files}'), found)
    assert 5 <= len(found["client"]) <= 35
    assert found["like_celebrities"].num_partitions == 500
    assert found["like_celebrities"].partition.report.exact


def test_a_federation_of_the_zoo_has_the_datas_labels_in_their_order(flower):
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    like = {"match": "marginal", "mean_size": 60, "seed": 4}
    federated = flower(MDMPartitioner.like("flights", num_partitions=300, **like))
    partitioner = federated.partitioners["train"]
    federated.load_partition(0)
    held = partitioner.partition.histograms(LABELS, 3).sum(axis=0)
    shares = np.bincount(LABELS, minlength=3) / len(LABELS)
    np.testing.assert_allclose(held / held.sum(), shares, atol=0.05)


def test_without_a_number_the_partitioner_uses_every_row_once(flower):
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    federated = flower(MDMPartitioner(NAMED, partition_by="label"))
    partitioner = federated.partitioners["train"]
    rows = [
        row for i in range(partitioner.num_partitions) for row in federated.load_partition(i)["row"]
    ]
    assert sorted(rows) == list(range(len(LABELS)))


@pytest.mark.filterwarnings("ignore:The figure layout has changed")  # by flwr-datasets itself
def test_the_plots_of_flwr_datasets_draw_the_partitioner(flower):
    import matplotlib as mpl

    mpl.use("Agg")
    from flwr_datasets.visualization import (
        plot_comparison_label_distribution,
        plot_label_distributions,
    )

    from polyurn.integrations.flwr_datasets import MDMPartitioner

    partitioner = flower(MDMPartitioner(NAMED, num_partitions=5)).partitioners["train"]
    figure, _, frame = plot_label_distributions(
        partitioner, label_name="label", verbose_labels=True
    )
    assert frame.sum(axis=1).tolist() == [12] * 5
    assert list(frame.columns) == NAMES
    other = MDMPartitioner(IID([2, 1, 1], sizes=[12], categories=NAMES), num_partitions=5)
    other.dataset = partitioner.dataset
    compared, _, _ = plot_comparison_label_distribution([partitioner, other], label_name="label")
    import matplotlib.pyplot as plt

    plt.close(figure)
    plt.close(compared)


def test_the_partitioner_gives_points_by_the_names_of_the_categories(proxy):
    pytest.importorskip("flwr_datasets")
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    def held(categories, **match):
        named = replace(MIXTURE, categories=categories)
        partitioner = MDMPartitioner(named, num_partitions=6, **match)
        partitioner.dataset = proxy
        return partitioner.partition.histograms(np.array(LABELS), 3)

    asked = MIXTURE.sample(6, rng=np.random.default_rng(42))
    assert np.array_equal(held(NAMES), asked)
    assert np.array_equal(held(NAMES[::-1]), asked[:, ::-1])
    assert np.array_equal(held(["x", "y", "z"], match="position"), asked)
    with pytest.raises(CountsError, match="x, y, z, got the 3 categories cat, dog, owl"):
        held(["x", "y", "z"])


def test_the_partitioner_never_gives_one_name_the_share_of_another(proxy, tmp_path):
    """The MDM file has its names, and the ClassLabel has the same in reverse order."""
    pytest.importorskip("flwr_datasets")
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    save(NAMED, tmp_path / "mdm.json")
    turned = proxy.cast_column("label", ClassLabel(names=NAMES[::-1]))
    names = [NAMES[::-1][j] for j in LABELS]
    for n_clients in (400, None):
        partitioner = MDMPartitioner(load(tmp_path / "mdm.json"), num_partitions=n_clients)
        partitioner.dataset = turned
        held = [name for mine in partitioner.partition for name in np.take(names, mine)]
        if n_clients is None:
            assert sorted(held) == sorted(names)
            continue
        shares = [held.count(name) / len(held) for name in NAMES]
        assert shares == pytest.approx(MIXTURE.mean() / MIXTURE.mean().sum(), abs=0.05)
    for match in (None, "position"):
        nameless = MDMPartitioner(MIXTURE, num_partitions=3, match=match)
        nameless.dataset = turned
        if match is None:
            with pytest.raises(CountsError, match=r"3 categories without names.*match='position'"):
                _ = nameless.partition
        else:
            assert len(nameless.partition) == 3


def test_the_partitioner_says_what_does_not_fit(proxy):
    pytest.importorskip("flwr_datasets")
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    def made(*arguments, dataset=proxy, **settings):
        partitioner = MDMPartitioner(*arguments, **settings)
        partitioner.dataset = dataset
        return partitioner.partition

    with pytest.raises(ParameterError, match="leave out replace and shortfall"):
        MDMPartitioner(MIXTURE, shortfall="refuse")
    with pytest.raises(ParameterError, match="leave out replace and shortfall"):
        MDMPartitioner(MIXTURE, replace=False)
    two_of_them = MDMPartitioner(MIXTURE, num_partitions=2)
    two_of_them.dataset = proxy
    for number in (-1, 2):
        with pytest.raises(ParameterError, match=f"a partition from 0 to 1, got {number}"):
            two_of_them.load_partition(number)
    with pytest.raises(ParameterError, match="at least one partition, got 0"):
        MDMPartitioner(MIXTURE, num_partitions=0)
    two = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    with pytest.raises(ParameterError, match=r"expected a population, .* got function"):
        MDMPartitioner(lambda n, rng: rng.multinomial(5, [0.5, 0.5], size=n))
    with pytest.raises(CountsError, match=r"2 categories without names, .* the 3 .* cat, dog, owl"):
        made(two, num_partitions=2)
    with pytest.raises(CountsError, match="expected a column 'breed'"):
        made(MIXTURE, "breed", num_partitions=2)
    with pytest.raises(PartitionError, match="short of"):
        made(NAMED, num_partitions=90, replace=False, shortfall="refuse")
    tight = made(NAMED, num_partitions=16, replace=False, shortfall="resample")
    assert tight.report.n_used == tight.report.n_given
    numbers = proxy.remove_columns("label").add_column("label", LABELS % 2)
    assert len(made(MIXTURE, num_partitions=9, shortfall="resample", dataset=numbers)) == 9


def test_the_partitioner_crosses_columns(flower):
    from datasets import Dataset
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    routes = ["EWR × ATL", "EWR × BOS", "JFK × ATL"]
    data = Dataset.from_dict({"origin": ["EWR", "JFK"] * 5, "dest": ["ATL"] * 10})
    alike = IID([1.0, 0.0, 1.0], [4])
    named = replace(alike, categories=routes)
    partitioner = MDMPartitioner(named, ["origin", "dest"], num_partitions=3, seed=0)
    partitioner.dataset = data
    asked = alike.sample(3, rng=np.random.default_rng(0))
    for i in range(3):
        mine = partitioner.load_partition(i)
        assert mine["origin"][:].count("EWR") == asked[i][0]
    shown_only = MDMPartitioner(alike, ["origin", "dest"], num_partitions=3)
    shown_only.dataset = data
    with pytest.raises(CountsError, match=r"3 categories without names, .* EWR × ATL, JFK × ATL"):
        _ = shown_only.partition


@pytest.mark.parametrize("columns", ["both", ["a", "b"]])
@pytest.mark.parametrize("n_clients", [None, 50])
def test_the_partitioner_gives_clients_a_style(monkeypatch, columns, n_clients):
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    pytest.importorskip("flwr_datasets")
    from datasets import Dataset
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    rng = np.random.default_rng(0)
    labels, features = rng.integers(3, size=2000), rng.normal(size=(2000, 2))
    named = {"a": features[:, 0], "b": features[:, 1], "both": features.tolist()}
    partitioner = MDMPartitioner(
        MIXTURE, num_partitions=n_clients, style=plain_style(n_labels=3), features=columns
    )
    partitioner.dataset = Dataset.from_dict({"label": labels} | named)
    assert style_rest(features, partitioner.partition) > 2.5
    assert len(partitioner.load_partition(0)) == 12


# ------------------------------------------------------------------------- from the environment


def from_environment(*arguments):
    from polyurn.integrations.flwr_datasets import partitioner_from_environment

    return partitioner_from_environment(*arguments)


def test_a_partition_that_the_environment_names_is_that_of_the_file(tmp_path, monkeypatch):
    from datasets import Dataset

    parts = pu.Partition.from_lists([[3, 1], [0]])
    pu.save_partition(parts, tmp_path / "clients.json")
    monkeypatch.setenv("POLYURN_PARTITION", str(tmp_path / "clients.json"))
    partitioner = from_environment(object())
    partitioner.dataset = Dataset.from_dict({"row": [0, 1, 2, 3]})
    assert partitioner.num_partitions == 2
    assert [partitioner.load_partition(i)["row"][:] for i in range(2)] == [[3, 1], [0]]
    with pytest.raises(ParameterError, match="from 0 to 1, got 2"):
        partitioner.load_partition(2)


def test_a_population_that_the_environment_names_is_drawn_with_its_seed(tmp_path, monkeypatch):
    from datasets import Dataset

    mdm = pu.MDM([1.0], [[1.0, 1.0]], pu.Sizes.constant(5, n_components=1))
    pu.save(mdm, tmp_path / "mdm.json")
    monkeypatch.setenv("POLYURN_POPULATION", str(tmp_path / "mdm.json"))
    monkeypatch.setenv("POLYURN_CLIENTS", "3")
    rows = []
    for seed in ("7", "7", "8"):
        monkeypatch.setenv("POLYURN_SEED", seed)
        partitioner = from_environment()
        partitioner.dataset = Dataset.from_dict({"label": [0, 1] * 50})
        rows.append(partitioner.partition.indices.tolist())
    assert (len(rows[0]), partitioner.num_partitions) == (15, 3)
    assert rows[0] == rows[1] != rows[2]
    monkeypatch.setenv("POLYURN_CLIENTS", "many")
    with pytest.raises(ParameterError, match="POLYURN_CLIENTS"):
        from_environment()


def test_without_an_environment_the_apps_own_partitioner_is_taken_or_there_is_an_error(monkeypatch):
    for name in ("POLYURN_PARTITION", "POLYURN_POPULATION"):
        monkeypatch.delenv(name, raising=False)
    own = object()
    assert from_environment(own) is own
    with pytest.raises(ParameterError, match="POLYURN_PARTITION"):
        from_environment()


def test_the_opponents_of_a_mixture_are_partitioned_by_the_same_class():
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    labels = np.repeat(np.arange(3), 40)
    available = np.bincount(labels)
    opponents = {
        "pathological": Pathological(2, available, [10]),
        "shards": Shards(2, available),
        "quantity skew": QuantitySkew(0.5, available),
        "hsu": Dirichlet.hsu(available, [10], alpha=1.0),
        "fitted": pu.fitted_dirichlet([[8, 2, 0], [0, 1, 9], [4, 4, 2], [9, 0, 1]]),
    }
    for name, population in opponents.items():
        partitioner = MDMPartitioner(population, num_partitions=6, seed=1)
        partitioner.dataset = Dataset.from_dict({"label": labels.tolist()})
        held = [partitioner.load_partition(i)["label"][:] for i in range(6)]
        drawn = population.sample(6, rng=np.random.default_rng(1))
        assert [np.bincount(one, minlength=3).tolist() for one in held] == drawn.tolist(), name
