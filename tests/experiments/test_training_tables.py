"""The parts of the training experiments, on data made on the spot; what they find is docs/results.md."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyurn.datasets.dataset import Records

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import census
import cifar10
import digits_by_writer
import training_tables as tables

SMALL = replace(
    census.SETTINGS,
    n_clients=12,
    train_share=0.7,
    test_share=0.3,
    n_rounds=2,
    learning_rates=(0.1, 1.0),
    epochs=(1,),
    cohort_sizes=(3,),
    components=(1,),
)


def people(n_clients: int = 30, size: int = 40) -> tuple[Records, dict[str, np.ndarray]]:
    """Clients that differ in their income, which the first feature tells."""
    rng = np.random.default_rng(0)
    clients = np.repeat(np.arange(n_clients), size)
    income = rng.binomial(40, rng.uniform(0.1, 0.9, n_clients)[clients])
    features = np.stack([income / 40, rng.random(len(income))], axis=1).astype(np.float32)
    names = np.array([f"{i:02d}" for i in range(n_clients)])
    records = Records((income > 20).astype(np.int64), features, clients, names)
    return records, {"income": income, "race": rng.integers(0, 9, len(income))}


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "PICTURES", tmp_path)
    return tmp_path


def test_simulated_clients_are_what_their_names_say(results):
    made, (income, _) = census.federation(*people(), SMALL, disjoint=False)
    model = tables.learned("made", made, income)
    counts = tables.histograms(made.true, income.codes, 41)
    oracle = tables.oracle(made, income, model)(0)
    drawn = tables.histograms(oracle, income.codes, 41)
    assert sorted(drawn.tolist()) == sorted(counts.tolist())
    assert {tuple(sorted(held)) for held in oracle} != {tuple(sorted(held)) for held in made.true}
    sizes = {len(held) for held in made.true}
    assert {len(held) for held in tables.iid(made, income)(0)} <= sizes
    again = tables.again(made)(0)
    assert sorted(map(tuple, again)) == sorted(map(tuple, made.true))
    assert len(tables.mdm(made, income, model)(0)) == len(made.true)


def test_a_population_is_another_one_under_another_seed(results):
    made, (income, _) = census.federation(*people(), SMALL, disjoint=False)
    draw = tables.mdm(made, income, tables.learned("made", made, income))
    first, same, other = ([held.tolist() for held in draw(seed)] for seed in (0, 0, 1))
    assert first == same
    assert first != other


def test_the_server_of_the_disjoint_experiment_has_no_true_point(results):
    made, (income, race) = census.federation(*people(), SMALL, disjoint=True)
    mine = set(np.concatenate(made.true).tolist())
    assert len(made.true) == SMALL.n_clients
    assert not mine & set(made.proxy.tolist())
    for modelled in (income, race):
        model = tables.learned("made", made, modelled)
        for population in (tables.mdm, tables.oracle):
            held = np.concatenate(population(made, modelled, model)(0))
            assert set(held.tolist()) <= set(made.proxy.tolist())


def test_iid_clients_differ_by_one_and_sorted_ones_by_more():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 6_000)
    features = rng.normal(size=(6_000, 2)) + labels[:, None]
    shuffled = tables.differences(np.split(rng.permutation(6_000), 300), labels, features)
    # The means of 300 clients: five standard errors are 5 * sqrt(2 / 2 / 300) = 0.29 at most.
    assert shuffled["labels"] == pytest.approx(1, abs=0.3)
    assert shuffled["rest"] == pytest.approx(1, abs=0.3)
    by_label = np.split(np.argsort(labels, kind="stable"), 300)
    by_feature = np.split(np.argsort(features[:, 0] - labels, kind="stable"), 300)
    assert tables.differences(by_label, labels, features)["labels"] > 10
    assert tables.differences(by_feature, labels, features)["rest"] > 5


def test_a_sweep_is_kept_and_its_table_and_curves_are_made_from_the_records(results, capsys):
    made, (_, race) = census.federation(*people(), SMALL, disjoint=False)
    populations = census.populations("made", made, [race])
    experiment = replace(census.experiment("made", SMALL), seeds=(0, 1))
    tables.run_sweep(experiment, made, populations, n_jobs=1)
    kept = (results / "made" / "runs.jsonl").read_bytes()
    tables.run_sweep(experiment, made, populations, n_jobs=1)
    assert (results / "made" / "runs.jsonl").read_bytes() == kept
    capsys.readouterr()
    tables.print_verdict("made", "race")
    printed = capsys.readouterr().out
    rows = [line.split("|")[1].strip() for line in printed.splitlines() if line.startswith("|")]
    assert rows[2] == "true"
    assert sorted(rows[3:]) == ["again", "iid", "mdm", "oracle"]
    assert "mdm is closer than iid by" in printed
    tables.print_signed("made", ("local_learning_rate",), "race")
    assert capsys.readouterr().out.splitlines()[1].startswith("| learning rate | true, % | again |")
    pytest.importorskip("matplotlib")
    picture = tables.draw("made", x="local_learning_rate", panels=("cohort_size",), feature="race")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("script", "file"),
    [(census, "persons.parquet"), (digits_by_writer, "images.npz"), (cifar10, "images.npz")],
)
def test_a_missing_file_is_named(script, file, results, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", results)
    monkeypatch.setattr(sys, "argv", ["experiment"])
    with pytest.raises(SystemExit, match=file):
        tables.or_exit(script.main)
