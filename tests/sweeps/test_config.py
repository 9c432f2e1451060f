"""A sweep as a TOML file, and the command that runs it."""

import io
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from rich.console import Console

from cli_walk import assert_refused
from polyurn import MDM, Partition, Sizes, compare_sweeps, save, save_partition, write_histograms
from polyurn.commands.progress import sweep_progress
from polyurn.errors import FileError, ParameterError
from polyurn.storage.run_log import FinishedRun, read_runs
from polyurn.sweeps.config import parse_config
from polyurn.sweeps.grid import SweepProgress
from polyurn.sweeps.inputs import read_inputs
from polyurn.sweeps.optuna_search import OptunaSearch
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train_columns
from training_cases import tabular

TABLE = {
    "seeds": [0, 1],
    "data": {"file": "points.npz"},
    "clients": {
        "true": {"column": "client"},
        "mdm": {"mdm": "mdm.json", "n_clients": 12},
        "iid": {"iid": "true"},
        "oracle": {"oracle": "true"},
    },
    "fedavg": {"n_rounds": 2, "cohort_size": 3},
    "grid": {"local_learning_rate": [0.01, 0.3]},
}
TOML = """
seeds = [0, 1]
[data]
file = "points.npz"
[clients.true]
column = "client"
[clients.mdm]
mdm = "mdm.json"
n_clients = 12
[clients.iid]
iid = "true"
[clients.oracle]
oracle = "true"
[fedavg]
n_rounds = 2
cohort_size = 3
[grid]
local_learning_rate = [0.01, 0.3]
"""


@pytest.fixture
def folder(tmp_path):
    data = tabular()
    owners = np.random.default_rng(0).integers(0, 15, 400)
    np.savez(
        tmp_path / "points.npz", features=data.features, labels=data.labels, client=owners,
        test_features=data.test_features, test_labels=data.test_labels,
    )  # fmt: skip
    save(MDM([1.0], [[1.0, 2.0, 3.0]], Sizes.constant(20)), tmp_path / "mdm.json")
    (tmp_path / "config.toml").write_text(TOML)
    return tmp_path


def drawn(inputs, name, seed):
    return inputs.populations[name](seed)


def labels_of(inputs, held):
    return held.histograms(inputs.data.labels, 3)


def test_populations_are_what_the_file_says(folder):
    inputs = read_inputs(parse_config(TABLE, folder=folder))
    owners = np.load(folder / "points.npz")["client"]
    true = drawn(inputs, "true", 0)
    assert all(set(owners[true[i]]) == {i} for i in range(15))
    assert sorted(true.indices) == [*range(400)]
    mdm = drawn(inputs, "mdm", 0)
    assert mdm.sizes.tolist() == [20] * 12
    oracle = drawn(inputs, "oracle", 0)
    assert (labels_of(inputs, oracle) == labels_of(inputs, true)).all()
    assert set(drawn(inputs, "iid", 0).sizes) <= set(true.sizes)


def with_clients(folder, n_clients=4_000, **entries):
    """The populations of the file beside its true clients, so many that frequencies can be seen."""
    drawn_ones = {name: entry | {"n_clients": n_clients} for name, entry in entries.items()}
    asked = TABLE | {"clients": {"true": {"column": "client"}, **drawn_ones}}
    return read_inputs(parse_config(asked, folder=folder))


@pytest.fixture
def skewed(folder):
    """The same data, of which the true clients hold the points of classes 0 and 1 mostly."""
    given = dict(np.load(folder / "points.npz"))
    kept = np.flatnonzero((given["labels"] < 2) | (np.arange(400) % 10 == 0))
    owners = np.full(400, 99)
    owners[kept] = np.arange(len(kept)) % 15
    np.savez(folder / "points.npz", **(given | {"client": owners}))
    return folder


def marginals(inputs, *names):
    codes = inputs.data.labels
    for name in names:
        counts = labels_of(inputs, drawn(inputs, name, 0))
        yield counts.sum(axis=0) / counts.sum()
    yield np.bincount(codes, minlength=3) / len(codes)


def test_iid_has_the_categories_of_the_clients_and_iid_proxy_those_of_the_data(skewed):
    # One client holds what is left, so only the others are named.
    given = dict(np.load(skewed / "points.npz"))
    few = given["client"] != 99
    parts = Partition.by_owner(given["client"][few]).renumbered(np.flatnonzero(few))
    save_partition(parts, skewed / "few.parquet")
    asked = TABLE | {"clients": {
        "few": {"partition": "few.parquet"},
        "iid": {"iid": "few", "n_clients": 4000},
        "iid_proxy": {"iid_proxy": "few", "n_clients": 4000},
        "number": {"iid": 20, "n_clients": 4000},
        "number_proxy": {"iid_proxy": 20, "n_clients": 4000},
    }}  # fmt: skip
    inputs = read_inputs(parse_config(asked, folder=skewed))
    few, iid, proxy, number, number_proxy, data = marginals(
        inputs, "few", "iid", "iid_proxy", "number", "number_proxy"
    )
    assert abs(few - data).max() > 0.1
    # More than 80,000 points: the standard error of a frequency is below 0.002.
    assert iid == pytest.approx(few, abs=0.01)
    for one in (proxy, number, number_proxy):
        assert one == pytest.approx(data, abs=0.01)
    true_sizes = set(drawn(inputs, "few", 0).sizes)
    assert set(drawn(inputs, "iid_proxy", 0).sizes) == true_sizes
    assert set(drawn(inputs, "number_proxy", 0).sizes) == {20}
    assert len(drawn(inputs, "iid", 0)) == 4000  # more than there are true clients


def test_a_dirichlet_has_all_categories_of_the_data_and_the_sizes_that_were_asked_for(folder):
    inputs = with_clients(folder, dir={"dirichlet": 5.0, "sizes": "true"})
    found, _ = marginals(inputs, "dir")
    assert found == pytest.approx(np.full(3, 1 / 3), abs=0.01)
    assert set(drawn(inputs, "dir", 0).sizes) <= set(drawn(inputs, "true", 0).sizes)


def test_a_small_dirichlet_gives_clients_of_almost_one_category(folder):
    inputs = with_clients(folder, n_clients=200, dir={"dirichlet": 0.01, "sizes": 20})
    counts = labels_of(inputs, drawn(inputs, "dir", 0))
    assert (counts.max(axis=1) >= 19).mean() > 0.9
    even = with_clients(folder, n_clients=200, dir={"dirichlet": 1e6, "sizes": 20})
    assert (labels_of(even, drawn(even, "dir", 0)).max(axis=1) >= 19).mean() == 0


def test_weighted_accuracy_is_weighted_to_the_classes_of_the_population(run, folder):
    (folder / "config.toml").write_text(f'weighted_to = "true"\nnoise_floor = false\n{TOML}')
    ran = run("sweep", folder / "config.toml", "-o", folder / "runs", "--jobs", 1, "--json")
    assert ran.code == 0, ran.err
    verdicts = ran.json()["verdicts"]
    assert [verdict["metric"] for verdict in verdicts] == ["accuracy", "weighted accuracy"]
    assert {p["population"] for p in verdicts[1]["populations"]} == {"mdm", "iid", "oracle"}
    inputs = read_inputs(parse_config(TABLE | {"weighted_to": "true"}, folder=folder))
    held = np.bincount(inputs.data.labels[drawn(inputs, "true", 0).indices])
    assert (inputs.class_counts == 2 * held).all()  # the same under both seeds
    tested = np.bincount(inputs.data.test_labels) / len(inputs.data.test_labels)
    expected = held / held.sum() / tested
    assert inputs.metrics()["weighted accuracy"].weights == pytest.approx(expected)
    again = run("compare", folder / "runs", "--metric", "weighted accuracy", "--json")
    assert again.json() == verdicts[1]


def test_a_class_that_the_test_lacks_cannot_be_weighted_to(run, folder):
    given = dict(np.load(folder / "points.npz"))
    chosen = given["test_labels"] != 2
    changes = {name: given[name][chosen] for name in ("test_features", "test_labels")}
    np.savez(folder / "points.npz", **(given | changes))
    (folder / "config.toml").write_text(f'weighted_to = "true"\n{TOML}')
    ran = run("sweep", folder / "config.toml", "-o", folder / "runs", "--jobs", 1)
    assert_refused(ran, "weighted_to: expected test points of every class that the clients hold")
    assert not (folder / "runs").exists()


def test_compare_averages_the_share_and_counts_the_rounds_that_it_is_told(run, folder):
    assert run("sweep", folder / "config.toml", "-o", folder / "runs", "--jobs", 1).code == 0
    runs = read_runs(folder / "runs")
    for options in ({"last": 1.0}, {"target": 0.4}, {"metric": "loss", "last": 0.1}):
        words = [f"--{name}={value}" for name, value in options.items()]
        told = run("compare", folder / "runs", *words, "--json").json()
        expected = compare_sweeps(runs, **options)["iid"]
        (iid,) = (p for p in told["populations"] if p["population"] == "iid")
        assert iid["difference"]["value"] == pytest.approx(expected.difference.value)
        assert (iid["rounds_to_target"] is None) == ("target" not in options)
    pairs = {(p["first"], p["second"]) for p in told["pairs"]}
    assert len(pairs) == 6
    assert "scores" not in told
    assert_refused(run("compare", folder / "runs", "--last=2"), "last as a number from 0 to 1")
    assert_refused(
        run("compare", folder / "points.npz", "a=mdm.json", "--target=0.5"),
        "--target has no effect with the table",
    )


@pytest.mark.parametrize(
    ("entry", "holds"),
    [
        ({"fitted": "true"}, lambda held: len(held) == 15),
        ({"hsu": 0.3, "sizes": 12, "n_clients": 9}, lambda held: set(held.sum(axis=1)) == {12}),
        ({"pathological": 2, "sizes": "true"}, lambda held: {*(held > 0).sum(axis=1)} == {2}),
        ({"shards": 2, "n_clients": 20}, lambda held: set(held.sum(axis=1)) == {20}),
        ({"quantity_skew": 0.2, "n_clients": 20}, lambda held: held.sum() == 400),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_opponents_of_other_papers_are_cut_from_the_data(folder, entry, holds):
    asked = TABLE | {"clients": {"true": {"column": "client"}, "other": entry}}
    inputs = read_inputs(parse_config(asked, folder=folder))
    held = labels_of(inputs, drawn(inputs, "other", 0))
    assert holds(held)
    assert (labels_of(inputs, drawn(inputs, "other", 1)) != held).any()


def test_the_counts_of_an_oracle_table_are_used(folder):
    counts = np.random.default_rng(1).integers(1, 9, (5, 3))
    write_histograms(counts, folder / "true.csv")
    asked = TABLE | {"clients": {"oracle": {"oracle": "true.csv"}}}
    inputs = read_inputs(parse_config(asked, folder=folder))
    assert (labels_of(inputs, drawn(inputs, "oracle", 0)) == counts).all()


def test_clients_are_drawn_anew_for_each_seed_and_differently_for_each_population(folder):
    twice = TABLE | {
        "clients": {"a": {"iid": 20, "n_clients": 30}, "b": {"iid": 20, "n_clients": 30}}
    }
    inputs = read_inputs(parse_config(twice, folder=folder))
    first, again = (drawn(inputs, "a", 0).indices for _ in range(2))
    assert (first == again).all()
    assert (first != drawn(inputs, "a", 1).indices).any()
    assert (first != drawn(inputs, "b", 0).indices).any()


def test_a_parquet_table_has_its_features_in_the_other_columns(folder):
    rng = np.random.default_rng(0)
    columns = {
        "income": rng.normal(size=50),
        "age": rng.integers(0, 90, 50),
        "rich": rng.integers(0, 2, 50),
        "place": [["x", "y"][i] for i in rng.integers(0, 2, 50)],
        "writer": np.arange(50) % 7,
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "points.parquet")
    asked = TABLE | {
        "data": {"file": "points.parquet", "label": "rich", "category": "place"},
        "clients": {"true": {"column": "writer"}, "oracle": {"oracle": "true"}},
    }
    inputs = read_inputs(parse_config(asked, folder=folder))
    assert inputs.data.features.shape == (40, 2)
    assert len(inputs.data.test_features) == 10
    assert len(drawn(inputs, "oracle", 0)) == 7


def test_digits_are_images_and_can_be_given_another_shape():
    asked = TABLE | {"data": {"builtin": "digits"}, "clients": {"a": {"iid": 9, "n_clients": 4}}}
    assert read_inputs(parse_config(asked)).data.features.shape[1:] == (1, 8, 8)
    flat = asked | {"data": {"builtin": "digits", "shape": [64]}}
    assert read_inputs(parse_config(flat)).data.features.shape[1:] == (64,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sedes": [1]}, "the file has no 'sedes'; did you mean 'seeds'?"),
        ({"data": {"fil": "x"}}, r"\[data\] has no 'fil'; did you mean 'file'?"),
        ({"data": {}}, r"\[data\] needs either builtin or file"),
        ({"data": 3}, r"expected \[data\] as a table"),
        ({"data": {"builtin": "mnist"}}, "expected builtin as 'digits', got 'mnist'"),
        ({"data": {"file": "x.npz", "test_share": 2}}, "test_share as a number from 0 to 1, got 2"),
        (
            {"clients": {"a": {"clumn": "x"}}},
            r"\[clients.a\] has no 'clumn'; did you mean 'column'",
        ),
        (
            {"clients": {"a": {}}},
            r"\[clients.a\] needs one of column, partition, mdm, iid, iid_proxy,",
        ),
        ({"clients": {"a": {"mdm": "x.json"}}}, r"\[clients.a\] needs n_clients"),
        ({"clients": {"a": {"column": "c", "n_clients": 3}}}, "has no meaning with column"),
        ({"clients": {"a": {"iid_proxy": 5}}}, r"\[clients.a\] needs n_clients"),
        ({"clients": {"a": {"dirichlet": 0.1}}}, "needs sizes"),
        ({"clients": {"a": {"dirichlet": 0.1, "sizes": 5}}}, "needs n_clients"),
        (
            {"clients": {"a": {"dirichlet": 0, "sizes": "b"}}},
            "dirichlet as a number above 0 and finite, got 0",
        ),
        (
            {"clients": {"a": {"dirichlet": "x", "sizes": "b"}}},
            "dirichlet as a number above 0 and finite, got 'x'",
        ),
        ({"clients": {"a": {"iid": "b", "sizes": "b"}}}, "sizes has no meaning with iid"),
        ({"clients": {"a": {"shards": 2}}}, "needs n_clients: how many clients to draw"),
        ({"clients": {"a": {"pathological": 2}}}, "needs sizes: a population above it"),
        ({"noise_floor": 0}, "noise_floor as True or False, got 0"),
        ({"weighted_to": "nobody"}, "one of true, mdm, iid, oracle, got 'nobody'"),
        ({"weighted_to": [1]}, "weighted_to as a text, got list"),
        ({"fedavg": {"n_rounds": 1}}, r"\[fedavg\] needs cohort_size"),
        ({"fedavg": {"n_rouns": 1}}, r"\[fedavg\] has no 'n_rouns'; did you mean 'n_rounds'?"),
        (
            {"search": {"n_trials": 3, "space": {"local_epochs": {"choices": [1]}}}},
            r"either \[grid\] or \[search\]",
        ),
        ({"seeds": 3}, "seeds as a list"),
        (
            {"seeds": [-1]},
            "seeds as a list, got -1 at position 0, in place of an integer of at least 0",
        ),
        ({"model": 5}, "model as a text, got 5"),
        ({"data": {"file": 7}}, r"\[data\] expected file as a text, got 7"),
        ({"data": {"file": "x.npz", "label": ["a"]}}, "expected label as a text"),
        (
            {"data": {"file": "x.npz", "test_share": "x"}},
            "test_share as a number from 0 to 1, got 'x'",
        ),
        ({"data": {"file": "x.npz", "shape": "x"}}, "expected shape as a list, got"),
        ({"data": {"file": "x.npz", "shape": 4}}, "expected shape as a list, got"),
        ({"clients": {"a": {"column": 3}}}, r"\[clients.a\] expected column as a text, got 3"),
        (
            {"clients": {"a": {"iid": True, "n_clients": 3}}},
            "iid as a text, an integer of at least 1, got True",
        ),
        ({"clients": {"a": {"iid": "b", "n_clients": "5"}}}, "n_clients as an integer"),
        (
            {"clients": {"a": {"iid": "b", "n_clients": 0}}},
            "n_clients as an integer of at least 1, got 0",
        ),
        ({"grid": [1]}, "grid as a mapping, got list"),
    ],
)
def test_mistakes_name_the_nearest_that_exists(changes, message):
    with pytest.raises(ParameterError, match=message):
        parse_config(TABLE | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": {"a": {"column": "owner"}}}, r"\[clients.a\] .* has no 'owner'"),
        ({"clients": {"a": {"iid": "true"}}}, "no population 'true' stands before it"),
        (
            {"data": {"file": "points.npz", "shape": [7]}},
            "shape for points of 5 numbers each, got .7.",
        ),
        ({"data": {"file": "points.npz", "label": "y"}}, "has no array 'y'; it has"),
    ],
)
def test_what_the_data_do_not_have_is_named(folder, changes, message):
    with pytest.raises(ParameterError, match=message):
        read_inputs(parse_config(TABLE | changes, folder=folder))


def test_files_that_are_damaged_or_hold_single_numbers_are_refused(folder):
    whole = (folder / "points.npz").read_bytes()
    for length in (10, len(whole) // 2):
        (folder / "points.npz").write_bytes(whole[:length])
        with pytest.raises(FileError, match="file of plain arrays"):
            read_inputs(parse_config(TABLE, folder=folder))
    with open(folder / "points.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(FileError, match="is not a readable"):
        read_inputs(parse_config(TABLE, folder=folder))
    for name in ("features", "labels"):
        arrays = {"features": np.zeros((9, 2)), "labels": np.zeros(9, int)} | {name: np.array(3)}
        np.savez(folder / "points.npz", **arrays)
        with pytest.raises(ParameterError, match=f"expected '{name}' as an array"):
            read_inputs(parse_config(TABLE, folder=folder))


def test_a_search_is_read_from_the_file():
    space = {"local_learning_rate": {"low": 0.01, "high": 1.0, "log": True}}
    table = {name: part for name, part in TABLE.items() if name != "grid"}
    found = parse_config(table | {"search": {"space": space, "n_trials": 3}})
    assert found.search == OptunaSearch(space, n_trials=3)
    with pytest.raises(ParameterError, match=r"\[search\] needs n_trials"):
        parse_config(table | {"search": {"space": space}})


# ----------------------------------------------------------------------------- the command


def test_sweep_trains_keeps_and_gives_its_verdict(run, folder):
    ran = run("sweep", folder / "config.toml", "-o", folder / "runs", "--jobs", 1, "--json")
    assert ran.code == 0, ran.err
    (verdict,) = ran.json()["verdicts"]
    assert {p["population"] for p in verdict["populations"]} == {"again", "mdm", "iid", "oracle"}
    assert verdict["populations"][0]["n_settings"] == 2
    assert "run 20 of 20 (0:00:00 left): " in ran.err
    lines = (folder / "runs" / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 20
    assert json.loads(lines[0])["format"] == "polyurn.runs"
    again = run("sweep", folder / "config.toml", "-o", folder / "runs", "--jobs", 1)
    assert "run 1" not in again.err
    assert "less mdm's" in again.out
    assert "in other cohorts" in again.out
    assert not re.search(r"\d…", again.out)  # no number is cut off at 80 columns
    assert run("compare", folder / "runs", "--json").json() == verdict
    assert_refused(run("compare", folder / "runs", "mdm=mdm.json"), "nothing but the folder")
    assert_refused(run("compare", folder / "mdm.json"), "data first, then models")
    for option, word in (("--true=tru", "'tru'"), ("--metric=recall", "'recall'")):
        assert_refused(run("compare", folder / "runs", option, "--json"), word)
    for option in ("--seed=1", "--draws=splits=5", "--drop-empty", "-ox.json"):
        assert_refused(run("compare", folder / "runs", option), "has no effect with the folder")
    assert_refused(
        run("compare", folder / "points.npz", "a=mdm.json", "--true=x"),
        "--true has no effect with the table",
    )


def test_a_sweep_without_a_verdict_says_so(run, folder):
    (folder / "config.toml").write_text(TOML.replace("clients.true", "clients.tru")
                                        .replace('"true"', '"tru"'))  # fmt: skip
    ran = run("sweep", folder / "config.toml", "-o", folder / "runs", "--jobs", 1, "--json")
    assert ran.code == 0
    assert "no verdict" in ran.err
    assert ran.json()["verdicts"] == []


def test_an_interrupted_sweep_says_what_it_kept_and_goes_on(run, folder, monkeypatch):
    asked = ("sweep", folder / "config.toml", "-o", folder / "runs", "--jobs", 1)
    n_tasks = []

    def interrupted(*arguments, **named):
        n_tasks.append(arguments)
        if len(n_tasks) == 3:
            raise KeyboardInterrupt
        return train_columns(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr("polyurn.sweeps.own_engines.train_columns", interrupted)
        ran = run(*asked)
    assert ran.code == 130
    assert "Traceback" not in ran.err
    assert ran.err.splitlines()[-1].startswith("interrupted; what was finished is in")
    assert len(read_runs(folder / "runs")) == 4
    assert run(*asked).code == 0
    assert len(read_runs(folder / "runs")) == 20


def test_progress_on_a_terminal_counts_runs_and_shows_the_time_left():
    settings = {"n_rounds": 1}
    done = FinishedRun("mdm", 3, settings, "workers", [1], [1.0], {}, {"accuracy": 0.5}, None, 0.1)
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with sweep_progress(console) as on_run:
        on_run(SweepProgress(2, 4, None))
        on_run(SweepProgress(3, 4, done, seconds_left=3600.0))  # runs may take an hour each
    shown = console.file.getvalue()
    assert "3/4" in shown
    assert "mdm, seed 3: accuracy 0.5000" in shown
    assert "1:00:00" in shown.split("3/4")[-1]
    piped = Console(file=io.StringIO())
    with sweep_progress(piped) as on_run:
        on_run(SweepProgress(3, 4, done, seconds_left=90.0))
    assert piped.file.getvalue().startswith("run 3 of 4 (0:01:30 left): mdm, seed 3")


def test_sweep_refuses_in_one_line(run, folder):
    place = folder / "runs"
    assert_refused(run("sweep", folder / "nothing.toml", "-o", place), "cannot read")
    (folder / "bad.toml").write_text("seeds = [")
    assert_refused(run("sweep", folder / "bad.toml", "-o", place), "expected TOML")
    (folder / "bad.toml").write_bytes(b"model = '\xed'")
    assert_refused(run("sweep", folder / "bad.toml", "-o", place), "save it as UTF-8")
    (folder / "bad.toml").write_text("seeds = " + "[" * 5000)
    assert_refused(run("sweep", folder / "bad.toml", "-o", place), "expected TOML")
    (folder / "bad.toml").write_text(TOML.replace("n_rounds", "rounds"))
    assert_refused(run("sweep", folder / "bad.toml", "-o", place), "did you mean 'n_rounds'")
    assert_refused(run("sweep", folder / "config.toml", "-o", place, "--jobs", 0), "n_jobs")
    assert not place.exists()


@pytest.mark.parametrize("digits", ["1" * 400, "1" * 5000, "0x" + "f" * 5000], ids=len)
def test_a_number_without_end_is_one_short_line(run, folder, digits):
    (folder / "bad.toml").write_text(TOML.replace("seeds = [0, 1]", f"seeds = [{digits}]"))
    said = run("sweep", folder / "bad.toml", "-o", folder / "runs")
    assert_refused(said, "128 bits" if "0x" in digits or len(digits) == 400 else "4300 digits")
    assert digits[:100] not in said.err


# ------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rounds": 0}, "n_rounds as an integer of at least 1"),
        ({"batch_size": 1.5}, "batch_size as an integer"),
        ({"local_learning_rate": 0}, "local_learning_rate as a number from 1e-38 to 1e"),
        ({"local_learning_rate": float("nan")}, "local_learning_rate as a number from 1e-38 to 1e"),
        ({"server_learning_rate": "fast"}, r"server_learning_rate as a number .* got 'fast'"),
        ({"proximal": -1}, "proximal as a number from 0 to 1e"),
        ({"weighting": "size"}, "'points' or 'uniform'"),
        ({"server_options": {"lr": 1}}, "without 'lr'"),
        ({"server_optimizer": 3}, "server_optimizer as a text, got 3"),
        ({"rounds": 3}, "did you mean 'n_rounds'"),
        ({"zzz": 3}, "expected one of n_rounds"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        FedAvg(n_rounds=2, cohort_size=3).with_changes(changes)


def test_settings_come_back_from_their_record():
    asked = FedAvg(n_rounds=2, cohort_size=3, server_options={"momentum": 0.9}, proximal=0.1)
    assert FedAvg.from_json(json.loads(json.dumps(asked.to_json()))) == asked


def test_evaluation_falls_on_multiples_and_on_the_last_round():
    asked = FedAvg(n_rounds=7, cohort_size=1, evaluate_every=3)
    assert [r for r in range(1, 8) if asked.evaluates(r)] == [3, 6, 7]


@pytest.mark.parametrize("name", ["train", "sweep"])
def test_without_torch_the_extra_is_named(name):
    code = f"import sys; sys.modules['torch'] = None; import polyurn; polyurn.{name}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "needs torch: pip install 'polyurn[train]'" in ran.stderr


def test_the_verdict_needs_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None; import polyurn; "
        "print(polyurn.compare_sweeps.__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "compare_sweeps"), ran.stderr
