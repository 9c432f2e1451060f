"""Data of a sweep that cannot be trained on: one line with the position, from a file and in Python."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from torch import nn

from cli_walk import assert_refused
from polyurn import IID, Examples, FedAvg, Partition, sweep
from polyurn.errors import FileError, InputError, ParameterError
from polyurn.sweeps.config import parse_config
from polyurn.sweeps.inputs import read_inputs

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
    with pytest.raises(ParameterError, match=message) as error:
        read_inputs(parse_config(TABLE, folder=folder))
    assert_refused(run("sweep", "sweep.toml", "-o", "runs"), str(error.value)[-30:])
    assert not (folder / "runs").exists()


def test_owners_may_be_texts(folder):
    owners = np.array([f"user {i // 4}" for i in range(40)])
    np.savez(folder / "points.npz", **(POINTS | {"client": owners}))
    assert len(read_inputs(parse_config(TABLE, folder=folder)).populations["true"](0)) == 10


def test_arrays_that_would_need_a_pickle_are_not_read(folder):
    np.savez(folder / "points.npz", **(POINTS | {"client": np.array([{}] * 40, dtype=object)}))
    with pytest.raises(FileError, match=r"is not an \.npz file of plain arrays: Object arrays"):
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
