"""Data of a sweep that cannot be trained on: one line with the position, from a file and in Python."""

import re
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from torch import nn

from cli_walk import assert_refused
from polyurn import IID, MDM, Examples, FedAvg, Partition, Sizes, fit, save, sweep
from polyurn.errors import CountsError, FileError, InputError, ParameterError, StyleWarning
from polyurn.sweeps.config import parse_config
from polyurn.sweeps.inputs import read_inputs
from style_cases import plain_style, style_rest

TOML = """
seeds = [0]
[data]
file = "points.npz"
[clients.true]
column = "client"
[clients.iid]
iid = "true"
[fedavg]
n_rounds = 1
cohort_size = 2
[grid]
local_learning_rate = [0.1]
"""
TABLE = {
    "seeds": [0],
    "data": {"file": "points.npz"},
    "clients": {"true": {"column": "client"}, "iid": {"iid": "true"}},
    "fedavg": {"n_rounds": 1, "cohort_size": 2},
    "grid": {"local_learning_rate": [0.1]},
}
POINTS = {
    "features": np.random.default_rng(0).normal(size=(40, 2)),
    "labels": np.arange(40) % 2,
    "client": np.arange(40) // 4,
}


def with_value(name, position, value):
    """The points, where one value of an array is another."""
    changed = POINTS[name].astype(np.result_type(POINTS[name], type(value)))
    changed[position] = value
    return {name: changed}


BAD = {
    "label -1": (with_value("labels", 7, -1), "labels as classes .* got -1 at position 7"),
    "label NaN": (with_value("labels", 7, np.nan), "labels as classes .* got nan at position 7"),
    "a label with a fraction": (with_value("labels", 7, 0.5), "got 0.5 at position 7"),
    "a huge label": (with_value("labels", 7, 10**15), "got 10{15} at position 7"),
    "floats as labels": ({"labels": POINTS["labels"] * 1.0}, "labels as integers, got float64"),
    "2-D labels": ({"labels": np.zeros((40, 2), int)}, r"\(n_points,\), got shape \(40, 2\)"),
    "texts as labels": ({"labels": np.array(["a", "b"] * 20)}, "labels as numbers, got texts"),
    "too few labels": ({"labels": np.zeros(39, int)}, "'labels' with 40 rows, .* got shape"),
    "a 2-D owner column": (
        {"client": np.zeros((40, 2), int)},
        r"\[clients.true\] expected the column 'client' as a list, one for each, got shape \(40, 2\)",
    ),
    "an owner NaN": (with_value("client", 9, np.nan), "column 'client' .* NaN at position 9"),
    "too few owners": ({"client": np.zeros(39, int)}, "'client' with 40 rows, .* got shape"),
    "test points without labels": (
        {"test_features": np.zeros((4, 2))},
        "expected both test_features and test_labels, or neither",
    ),
    "test label -1": (
        {"test_features": np.zeros((2, 2)), "test_labels": np.array([0, -1])},
        "test_labels as classes .* got -1 at position 1",
    ),
    "more test labels than test points": (
        {"test_features": np.zeros((2, 2)), "test_labels": np.zeros(3, int)},
        "expected a label for each point, got 2 test_features and 3 test_labels",
    ),
    "test points of another shape": (
        {"test_features": np.zeros((2, 5)), "test_labels": np.zeros(2, int)},
        r"expected test points of the same shape as the others, \(2,\), got \(5,\)",
    ),
    "a test point that is a number": (
        {"test_features": np.array(3), "test_labels": np.zeros(2, int)},
        "expected 'test_features' as an array, got a single value",
    ),
    "small floats as labels": (  # float16 has no number as large as the number of classes
        {"labels": np.full(40, np.inf, np.float16)},
        "labels as classes .* got inf at position 0",
    ),
    "features that are infinite as float32": (
        with_value("features", (7, 1), 1e300),
        r"expected features of at most 3.4e\+38, .* got 1e\+300 at position \(\d+, 1\)",
    ),
    "features that torch has no type for": (
        {"features": POINTS["features"].astype(np.longdouble)},
        "expected features as float64 or smaller, got",
    ),
    "texts as features": ({"features": np.full((40, 2), "a")}, "features as numbers, got texts"),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sweep.toml").write_text(TOML)
    return tmp_path


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_sweep_data_with_label_minus_1_or_a_2_d_owner_column_is_one_line_with_the_position(
    folder, run, changes, message
):
    np.savez(folder / "points.npz", **(POINTS | changes))
    said = run("sweep", "sweep.toml", "-o", "runs", "--jobs", 1)
    assert_refused(said, "expected")
    assert re.search(message, " ".join(said.err.split()))
    assert not (folder / "runs").exists()


def test_owners_may_be_texts(folder):
    owners = np.array([f"user {i // 4}" for i in range(40)])
    np.savez(folder / "points.npz", **(POINTS | {"client": owners}))
    assert len(read_inputs(parse_config(TABLE, folder=folder)).populations["true"](0)) == 10


@pytest.mark.parametrize("name", ["features", "labels", "notes.txt"])
def test_an_entry_of_an_npz_that_is_no_array_is_refused_by_its_name(folder, name):
    np.savez(folder / "points.npz", **{n: part for n, part in POINTS.items() if n != name})
    with zipfile.ZipFile(folder / "points.npz", "a") as archive:
        archive.writestr(name, b"no array")
    with pytest.raises(FileError, match=f"'{name}' is not an array"):
        read_inputs(parse_config(TABLE, folder=folder))


def test_a_table_without_columns_of_numbers_is_told_what_it_has(folder):
    columns = {"x": ["a"] * 40, "labels": POINTS["labels"], "client": POINTS["client"]}
    pa.parquet.write_table(pa.table(columns), folder / "points.parquet")
    with pytest.raises(ParameterError, match=r"at least one column of numbers .* got \['x', "):
        read_inputs(parse_config(TABLE | {"data": {"file": "points.parquet"}}, folder=folder))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data": {"file": "points.npz", "test_share": 0.001}},
            "test_share = 0.001 holds out 0 of 40 points; expected at least one to test on",
        ),
        (
            {"clients": {"iid": {"iid": "true"}, "true": {"column": "client"}}},
            r"\[clients.iid\] no population 'true' stands before it .* expected one that stands above",
        ),
        (
            {"clients": {"true": {"column": "client"}, "iid": {"iid": "iid"}}},
            "no population 'iid' stands before it in the file; expected one of true",
        ),
    ],
)
def test_what_a_file_asks_of_the_data_in_vain_is_said_with_what_they_have(folder, changes, message):
    np.savez(folder / "points.npz", **POINTS)
    with pytest.raises(ParameterError, match=message):
        read_inputs(parse_config(TABLE | changes, folder=folder))


def test_arrays_that_would_need_a_pickle_are_not_read(folder):
    np.savez(folder / "points.npz", **(POINTS | {"client": np.array([{}] * 40, dtype=object)}))
    with pytest.raises(FileError, match=r"\.npz file of plain arrays: Object arrays"):
        read_inputs(parse_config(TABLE, folder=folder))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("client", ["a", None] * 20, r"column 'client' .* at position 1"),
        ("labels", [0, None] * 20, "labels as classes .* got nan at position 1"),
        ("labels", [[0, 1]] * 40, r"labels of shape \(n_points,\), got shape \(40, 2\)"),
        ("labels", ["yes", "no"] * 20, "labels as numbers, got texts"),
    ],
)
def test_missing_and_nested_values_of_a_table_are_refused_with_their_position(
    folder, column, values, message
):
    columns = {
        "x": POINTS["features"][:, 0],
        "labels": POINTS["labels"],
        "client": POINTS["client"],
    }
    pa.parquet.write_table(pa.table(columns | {column: values}), folder / "points.parquet")
    with pytest.raises(ParameterError, match=message):
        read_inputs(parse_config(TABLE | {"data": {"file": "points.parquet"}}, folder=folder))


@pytest.mark.parametrize("model", ["softmax", lambda: nn.Linear(2, 2)], ids=["named", "function"])
@pytest.mark.parametrize("label", [-1, 10**7])
def test_a_label_that_the_model_has_no_output_for_is_refused_before_a_run(model, label):
    features, labels = POINTS["features"], with_value("labels", 7, label)["labels"]
    data = Examples(features, labels, features[:4], POINTS["labels"][:4])
    clients = Partition.by_owner(POINTS["client"])
    with pytest.raises(ParameterError, match=rf"got {label} at position 7"):
        sweep(
            FedAvg(n_rounds=1, cohort_size=2), model, data,
            populations={"true": clients}, seeds=[0], grid={"local_epochs": [1]}, n_jobs=1,
        )  # fmt: skip


def test_clients_of_a_population_need_labels_that_are_categories():
    labels = with_value("labels", 7, -1)["labels"]
    data = Examples(POINTS["features"], labels, POINTS["features"][:4], POINTS["labels"][:4])
    with pytest.raises(InputError, match="got -1 at position 7"):
        sweep(
            FedAvg(n_rounds=1, cohort_size=2), lambda: nn.Linear(2, 2), data,
            populations={"iid": IID([1, 1], [4])}, seeds=[0], n_clients=3,
            grid={"local_epochs": [1]}, n_jobs=1,
        )  # fmt: skip


# ----------------------------------------------------------------------------- crossed columns

ORIGIN = np.array(["EWR", "JFK", "LGA", "JFK"] * 10)


@pytest.mark.parametrize("category", ["origin,labels", ["origin", "labels"]])
@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_clients_match_crossed_columns(tmp_path, category, suffix):
    if suffix == "npz":
        np.savez(tmp_path / "points.npz", **POINTS, origin=ORIGIN)
    else:
        columns = {"x": POINTS["features"][:, 0], "labels": POINTS["labels"], "origin": ORIGIN}
        table = pa.table({**columns, "client": POINTS["client"]})
        pyarrow.parquet.write_table(table, tmp_path / "points.parquet")
    data = {"file": f"points.{suffix}", "category": category}
    clients = {"true": {"column": "client"}, "oracle": {"oracle": "true"}}
    config = parse_config({**TABLE, "data": data, "clients": clients}, folder=tmp_path)
    inputs = read_inputs(config)
    true, oracle = (inputs.populations[name](0) for name in ("true", "oracle"))
    # Whoever has the same routes has as many of each label; EWR and LGA have only the label 0.
    assert (
        true.histograms(inputs.data.labels, 2) == oracle.histograms(inputs.data.labels, 2)
    ).all()
    assert inputs.data.features.shape[1] == (2 if suffix == "npz" else 1)


@pytest.mark.parametrize(
    ("category", "said"),
    [
        ("origin,lables", "expected a column 'lables'"),
        (["origin", 3], "category as a text, a list, got 3 at position 1, in place of a text"),
        ("x,labels", "points.npz: expected texts or whole numbers to cross"),
        ("client", "another column for .data. category than the clients', got 'client'"),
        ("labels,client", "another column for .data. category than the clients', got 'client'"),
        (["labels", "labels"], "expected different columns to cross, got 'labels' twice"),
    ],
)
def test_columns_that_cannot_be_crossed_are_refused(tmp_path, category, said):
    np.savez(tmp_path / "points.npz", **POINTS, origin=ORIGIN, x=POINTS["features"][:, 0])
    data = {"file": "points.npz", "category": category}
    with pytest.raises(InputError, match=said):
        read_inputs(parse_config({**TABLE, "data": data}, folder=tmp_path))


def test_combinations_that_no_fitted_client_had_stay_with_the_true_clients(tmp_path):
    np.savez(tmp_path / "points.npz", **POINTS, origin=ORIGIN)
    mdm = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    save(mdm, tmp_path / "mdm.json", categories=["EWR × 0", "JFK × 1"])  # not LGA × 0
    clients = {
        "true": {"column": "client"}, "mdm": {"mdm": "mdm.json", "n_clients": 9},
        "iid": {"iid": "true"},
    }  # fmt: skip
    data = {"file": "points.npz", "category": "origin,labels"}
    config = parse_config({**TABLE, "data": data, "clients": clients}, folder=tmp_path)
    made = {name: of(0) for name, of in read_inputs(config).populations.items()}
    test_points = 40 - len(made["true"].indices)
    assert test_points == 8
    assert made["mdm"].sizes.tolist() == [3] * 9
    assert len(made["iid"]) == len(made["true"])


@pytest.mark.parametrize("measured", [None, "embedding"])
def test_a_population_of_a_file_may_have_a_style(tmp_path, measured):
    rng = np.random.default_rng(0)
    points = {
        "features": rng.normal(size=(3000, 2)),
        "embedding": rng.normal(size=(3000, 2)),
        "labels": rng.integers(2, size=3000),
    }
    np.savez(tmp_path / "points.npz", **points)
    save(plain_style(n_labels=2), tmp_path / "style.json")
    entry = {"iid": 20, "n_clients": 60, "style": "style.json"}
    entry |= {} if measured is None else {"style_features": measured}
    asked = TABLE | {"clients": {"plain": {"iid": 20, "n_clients": 60}, "styled": entry}}
    read = read_inputs(parse_config(asked, folder=tmp_path))
    styled, plain = (read.populations[name](0) for name in ("styled", "plain"))
    assert styled.sizes.tolist() == [20] * 60
    trained = read.data.features
    kept = np.sort(np.random.default_rng(0).permutation(3000)[600:])  # the others are to test on
    where = trained if measured is None else points[measured][kept]
    assert style_rest(where, styled) > 3
    assert style_rest(where, plain) < 1.5


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"column": "client", "style": "style.json"}, "style has no meaning with column"),
        ({"iid": 20, "n_clients": 9, "style_features": "x"}, "no meaning without style"),
        ({"iid": 20, "n_clients": 9, "style": 3}, "expected style as a text, got 3"),
    ],
)
def test_a_style_that_has_no_effect_is_refused(entry, said):
    with pytest.raises(ParameterError, match=said):
        parse_config(TABLE | {"clients": {"a": entry}})


def test_a_style_that_the_data_cannot_serve_is_told_with_its_population(tmp_path):
    rng = np.random.default_rng(0)
    points = {"features": rng.normal(size=(100, 2)), "labels": rng.integers(2, size=100)}
    np.savez(tmp_path / "points.npz", **points)
    save(plain_style(n_labels=2), tmp_path / "style.json")
    entry = {"iid": 60, "n_clients": 20, "style": "style.json"}
    read = read_inputs(parse_config(TABLE | {"clients": {"styled": entry}}, folder=tmp_path))
    with pytest.warns(StyleWarning, match=r"^\[clients\.styled\] .* find fewer") as told:
        read.populations["styled"](0)
    assert len(told) == 1


def test_files_of_one_sweep_have_the_same_categories_in_the_same_order(tmp_path):
    np.savez(tmp_path / "points.npz", **POINTS)
    mdm = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    save(mdm, tmp_path / "mdm.json", categories=["cat", "dog"])
    clients = {"mdm": {"mdm": "mdm.json", "n_clients": 4}}
    table = TABLE | {"data": TABLE["data"] | {"match": "position"}}
    clients["styled"] = clients["mdm"] | {"style": "style.json"}
    config = parse_config(table | {"clients": clients}, folder=tmp_path)
    save(plain_style(n_labels=2), tmp_path / "style.json", categories=["cat", "dog"])
    assert len(read_inputs(config).populations) == 2
    save(plain_style(n_labels=2), tmp_path / "style.json", categories=["dog", "cat"])
    said = (
        r"^\[clients\.styled\] expected style\.json with .* mdm\.json, .* cat, dog, got .* dog, cat"
    )
    with pytest.raises(ParameterError, match=said):
        read_inputs(config)


def test_what_is_wrong_with_an_oracles_table_is_said_with_its_file_and_line(folder):
    np.savez(folder / "points.npz", **POINTS)
    (folder / "held.csv").write_text("client,category,count\na,0,1\nb,1,-2\n")
    table = {**TABLE, "clients": {"oracle": {"oracle": "held.csv"}}}
    with pytest.raises(CountsError, match=r"held\.csv.*-2 in line 3"):
        read_inputs(parse_config(table, folder=folder))


def test_plausible_mixtures_are_populations_of_their_own(folder):
    fitted = fit([[3, 9], [8, 2], [5, 5], [9, 1]] * 20, n_components=1, rng=0).mdm
    save(fitted, folder / "mdm.json")
    save(MDM(fitted.weights, fitted.alphas, fitted.sizes), folder / "bare.json")
    np.savez(folder / "points.npz", **POINTS)

    def drawn(**entry):
        clients = {**TABLE["clients"], "mdm": {"n_clients": 3, **entry}}
        return read_inputs(parse_config({**TABLE, "clients": clients}, folder=folder)).populations

    found = drawn(mdm="mdm.json", plausible=2)
    assert [*found] == ["true", "iid", "mdm", "mdm~1", "mdm~2"]
    assert found["mdm~1"](0).sizes.tolist() == found["mdm"](0).sizes.tolist()  # the same streams
    for entry, line in (
        ({"mdm": "bare.json", "plausible": 2}, r"\[clients.mdm\] plausible: .* standard errors"),
        ({"mdm": "mdm.json", "plausible": 0}, "plausible as an integer of at least 1"),
        ({"iid": 3, "plausible": 2}, "plausible has no meaning with iid"),
    ):
        with pytest.raises(ParameterError, match=line):
            drawn(**entry)
