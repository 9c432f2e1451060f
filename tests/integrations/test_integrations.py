"""Partitions where people work: each adapter against the real library."""

import sys

import numpy as np
import pytest

from polyurn import IID, MDM, Sizes, partition
from polyurn.errors import CountsError, ParameterError, PartitionError

LABELS = np.tile([0, 1, 2, 0], 50)
COUNTS = np.array([[5, 1, 0], [0, 2, 7], [1, 1, 1]])
NAMES = ["cat", "dog", "owl"]
MIXTURE = MDM([0.5, 0.5], [[9.0, 1.0, 1.0], [1.0, 3.0, 9.0]], Sizes.constant(12, n_components=2))


@pytest.fixture
def parts():
    return partition(LABELS, COUNTS, rng=0)


# ---------------------------------------------------------------------------- Hugging Face


@pytest.fixture
def proxy(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    features = datasets.Features(
        {"row": datasets.Value("int64"), "label": datasets.ClassLabel(names=NAMES)}
    )
    columns = {"row": np.arange(len(LABELS)), "label": LABELS}
    return datasets.Dataset.from_dict(columns, features=features)


def test_labels_come_from_a_class_label_with_its_names(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    found = dataset_labels(proxy)
    assert np.array_equal(found.labels, LABELS)
    assert found.categories == tuple(NAMES)
    assert np.array_equal(
        dataset_labels(proxy.shuffle(seed=1)).labels, proxy.shuffle(seed=1)["label"]
    )
    with pytest.raises(ParameterError, match="the 3 categories of the ClassLabel 'label'"):
        dataset_labels(proxy, categories=4)


def test_labels_come_from_text_and_from_numbers(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    named = proxy.add_column("text", [NAMES[j] for j in LABELS])
    assert dataset_labels(named, "text").categories == tuple(NAMES)
    turned = dataset_labels(named, "text", categories=NAMES[::-1])
    assert np.array_equal(turned.labels, 2 - LABELS)
    assert dataset_labels(named, "row").categories[-1] == str(len(LABELS) - 1)
    with pytest.raises(CountsError, match="not in the declared categories"):
        dataset_labels(named, "text", categories=["cat", "dog"])
    with pytest.raises(CountsError, match="expected a column 'breed', got row, label, text"):
        dataset_labels(named, "breed")


def test_missing_labels_are_refused(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    holes = proxy.remove_columns("label").add_column("label", [None, *LABELS[1:]])
    with pytest.raises(CountsError, match="1 missing values, the first in row 0"):
        dataset_labels(holes)


def test_each_client_becomes_a_dataset_with_its_histogram(proxy, parts, tmp_path):
    from datasets import DatasetDict, load_from_disk
    from polyurn.integrations.huggingface import client_datasets

    federation = client_datasets(proxy, parts, clients=["ann", "bob", "eve"])
    assert isinstance(federation, DatasetDict)
    for name, mine, counts in zip(federation, parts, COUNTS, strict=True):
        assert federation[name]["row"][:] == mine.tolist()
        assert np.bincount(federation[name]["label"][:], minlength=3).tolist() == counts.tolist()
    federation.save_to_disk(tmp_path / "federation")
    assert load_from_disk(tmp_path / "federation")["bob"]["row"][:] == parts[1].tolist()


def test_a_client_column_goes_out_and_comes_back_as_histograms(proxy, parts):
    from polyurn.integrations.huggingface import dataset_histograms, with_clients

    flat = with_clients(proxy, parts, clients=["ann", "bob", "eve"])
    back = dataset_histograms(flat)
    assert back.clients.tolist() == ["ann", "bob", "eve"]
    assert back.categories == tuple(NAMES)
    assert np.array_equal(back.counts.toarray(), COUNTS)
    with pytest.raises(ParameterError, match="has a column 'row' already"):
        with_clients(proxy, parts, column="row")
    with pytest.raises(ParameterError, match="expected 3 different client ids, got 2"):
        with_clients(proxy, parts, clients=["ann", "bob"])


@pytest.mark.parametrize("ids", [["ann", "ann", "eve"], np.array([1, "1", 2], dtype=object)])
def test_two_clients_of_the_same_name_are_refused_and_none_is_lost(proxy, parts, ids):
    from polyurn.integrations.huggingface import client_datasets, with_clients

    for function in (client_datasets, with_clients):
        with pytest.raises(ParameterError, match="expected 3 different client ids, got 3, 2 of"):
            function(proxy, parts, clients=ids)


def test_the_partition_of_another_dataset_is_refused(proxy, parts):
    from polyurn.integrations.huggingface import client_datasets

    with pytest.raises(ParameterError, match="but the dataset has 5"):
        client_datasets(proxy.select(range(5)), parts)


# ----------------------------------------------------------------------------------- flwr


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

    federated = flower(MDMPartitioner(MIXTURE, num_partitions=7, seed=3))
    partitioner = federated.partitioners["train"]
    assert isinstance(partitioner, Partitioner)
    assert partitioner.num_partitions == 7
    asked = MIXTURE.sample(7, rng=np.random.default_rng(3))
    for i in range(7):
        mine = federated.load_partition(i)
        assert np.bincount(mine["label"][:], minlength=3).tolist() == asked[i].tolist()
        assert len(set(mine["row"][:])) == 12
    again = flower(MDMPartitioner(MIXTURE, num_partitions=7, seed=3))
    assert again.load_partition(4)["row"][:] == federated.load_partition(4)["row"][:]
    assert partitioner.partition.report.exact


def test_without_a_number_the_partitioner_uses_every_row_once(flower):
    from polyurn.integrations.flwr_datasets import MDMPartitioner

    federated = flower(MDMPartitioner(MIXTURE, partition_by="label"))
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

    partitioner = flower(MDMPartitioner(MIXTURE, num_partitions=5)).partitioners["train"]
    figure, _, frame = plot_label_distributions(
        partitioner, label_name="label", verbose_labels=True
    )
    assert frame.sum(axis=1).tolist() == [12] * 5
    assert list(frame.columns) == NAMES
    other = MDMPartitioner(IID([2, 1, 1], sizes=[12]), num_partitions=5)
    other.dataset = partitioner.dataset
    compared, _, _ = plot_comparison_label_distribution([partitioner, other], label_name="label")
    import matplotlib.pyplot as plt

    plt.close(figure)
    plt.close(compared)


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
    with pytest.raises(ParameterError, match=r"expected a population, .* got function"):
        MDMPartitioner(lambda n, rng: rng.multinomial(5, [0.5, 0.5], size=n))
    with pytest.raises(ParameterError, match="at least one partition, got 0"):
        MDMPartitioner(MIXTURE, num_partitions=0)
    two = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    with pytest.raises(
        ParameterError, match=r"the population has 2 categories, but .* 'label' has 3"
    ):
        made(two, num_partitions=2)
    with pytest.raises(CountsError, match="expected a column 'breed'"):
        made(MIXTURE, "breed", num_partitions=2)
    with pytest.raises(PartitionError, match="short of"):
        made(MIXTURE, num_partitions=90, replace=False, shortfall="refuse")
    tight = made(MIXTURE, num_partitions=16, replace=False, shortfall="resample")
    assert tight.report.n_reused == 0
    numbers = proxy.remove_columns("label").add_column("label", LABELS % 2)
    assert len(made(MIXTURE, num_partitions=9, shortfall="resample", dataset=numbers)) == 9


# ---------------------------------------------------------------------------------- torch


def test_clients_become_torch_subsets_when_they_are_asked_for(parts):
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, Subset, TensorDataset

    from polyurn.integrations.torch import ClientSubsets

    proxy = TensorDataset(torch.arange(len(LABELS)), torch.tensor(LABELS))
    clients = ClientSubsets(proxy, parts)
    assert len(clients) == 3
    assert isinstance(clients[1], Subset)
    for client, mine, counts in zip(clients, parts, COUNTS, strict=True):
        rows, labels = next(iter(DataLoader(client, batch_size=100)))
        assert rows.tolist() == mine.tolist()
        assert torch.bincount(labels, minlength=3).tolist() == counts.tolist()
    assert [len(client) for client in clients[1:]] == [9, 3]
    assert len(clients[-1]) == 3
    with pytest.raises(ParameterError, match="but the dataset has 5"):
        ClientSubsets(TensorDataset(torch.arange(5)), parts)


# ------------------------------------------------------------------------------------ pfl


def test_clients_become_users_of_a_pfl_simulation(parts):
    pytest.importorskip(
        "pfl", reason="pfl needs an environment of its own: pip install polyurn[pfl]"
    )
    from polyurn.integrations.pfl import federated_dataset

    np.random.seed(0)  # noqa: NPY002 - pfl draws from the global state
    users = federated_dataset([np.arange(len(LABELS)), LABELS], parts)
    seen = {user.user_id: user for user, _ in users.get_cohort(3)}
    assert sorted(seen) == ["0", "1", "2"]  # each once before any twice
    for name, user in seen.items():
        rows, labels = user.raw_data
        assert rows.tolist() == parts[int(name)].tolist()
        assert np.bincount(labels, minlength=3).tolist() == COUNTS[int(name)].tolist()
        assert len(user) == COUNTS[int(name)].sum()
    again, _ = next(federated_dataset([LABELS], parts, sampling="random"))
    assert again.user_id in seen
    with pytest.raises(ParameterError, match="got 5, 200"):
        federated_dataset([LABELS, LABELS[:5]], parts)


def test_without_pfl_the_message_names_the_extra_to_install(parts, monkeypatch):
    from polyurn.errors import MissingDependencyError
    from polyurn.integrations.pfl import federated_dataset

    monkeypatch.setitem(sys.modules, "pfl.data.dataset", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'polyurn\[pfl\]'"):
        federated_dataset([LABELS], parts)
