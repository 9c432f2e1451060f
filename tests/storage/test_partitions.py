"""Partitions on disk."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyurn
from polyurn import load_partition, partition, save_partition
from polyurn.errors import FileError, ParameterError
from strategies import counts as tables

LABELS = [0, 1, 2, 1, 0]
PARTS = partition(LABELS, [[2, 1, 0], [0, 1, 1]], rng=0)


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
@given(tables(3), st.integers(0, 99))
def test_a_partition_comes_back_as_it_was(tmp_path_factory, suffix, counts, seed):
    path = tmp_path_factory.mktemp("written") / f"partition{suffix}"
    parts = partition(LABELS, counts, rng=seed)
    save_partition(parts, path)
    back = load_partition(path)
    assert back == parts
    assert [int(client) for client in back.ids] == list(range(len(counts)))


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_client_ids_are_kept(tmp_path, suffix):
    save_partition(PARTS, tmp_path / f"p{suffix}", clients=['say "x"', "Zoë"])
    back = load_partition(tmp_path / f"p{suffix}")
    assert back.ids.tolist() == ['say "x"', "Zoë"]
    save_partition(back, tmp_path / f"again{suffix}")
    assert load_partition(tmp_path / f"again{suffix}").ids.tolist() == ['say "x"', "Zoë"]


def test_the_json_is_plain_json(tmp_path):
    save_partition(PARTS, tmp_path / "p.json", clients=["a", "b"])
    record = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert record == {"a": PARTS[0].tolist(), "b": PARTS[1].tolist()}


def test_the_parquet_file_is_a_table_that_says_how_it_was_made(tmp_path):
    save_partition(PARTS, tmp_path / "p.parquet", provenance={"seed": 3})
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
    assert table.to_pydict() == {
        "client": PARTS.clients.tolist(),
        "index": PARTS.indices.tolist(),
    }
    made = json.loads(table.schema.metadata[b"polyurn"])
    assert made == {"polyurn": polyurn.__version__, "seed": 3}


def test_rows_in_another_order_are_the_same_clients(tmp_path):
    table = pa.table({"client": ["b", "a", "b"], "index": pa.array([4, 0, 2], pa.int32())})
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet")
    back = load_partition(tmp_path / "p.parquet")
    assert back.ids.tolist() == ["b", "a"]
    assert [mine.tolist() for mine in back] == [[4, 2], [0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cut off"),
        ("[1, 2]", "expected {client: "),
        ('{"a": 3}', "expected {client: "),
        ('{"a": [1.5]}', "whole numbers"),
        ('{"a": [true]}', "whole numbers"),
        ('{"a": [-1]}', "at least 0"),
        ('{"a": [1], "b": []}', "client 1 holds no points"),
        ("{}", "at least one client, got none"),
    ],
)
def test_what_is_no_partition_is_refused(tmp_path, text, message):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(FileError, match=message):
        load_partition(tmp_path / "p.json")


def test_tables_that_are_no_partitions_are_refused(tmp_path):
    path = tmp_path / "p.parquet"
    for columns, message in [
        ({"client": [1], "point": [2]}, "columns client and index"),
        ({"client": [1], "index": [None]}, "missing values"),
        ({"client": [1], "index": [0.5]}, "whole numbers"),
        ({"client": pa.array([], pa.int64()), "index": pa.array([], pa.int64())}, "got none"),
    ]:
        pyarrow.parquet.write_table(pa.table(columns), path)
        with pytest.raises(FileError, match=message):
            load_partition(path)
    with pytest.raises(FileError, match=r"\.parquet or \.json file, got 'p\.csv'"):
        load_partition(tmp_path / "p.csv")
    with pytest.raises(FileError, match="cannot read"):
        load_partition(tmp_path / "absent.json")


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_nothing_is_half_written(tmp_path, suffix):
    with pytest.raises(ParameterError, match="2 different client ids, got 2, 1 of them"):
        save_partition(PARTS, tmp_path / f"p{suffix}", clients=["a", "a"])
    with pytest.raises(FileError, match="cannot write"):
        save_partition(PARTS, tmp_path / "absent" / f"p{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_ids_with_half_a_surrogate_pair_are_refused(tmp_path, suffix):
    with pytest.raises(ParameterError, match="client ids in Unicode"):
        save_partition(PARTS, tmp_path / f"p{suffix}", clients=["\udcff", "b"])
    assert list(tmp_path.iterdir()) == []


def test_numpy_ids_are_ids(tmp_path):
    save_partition(PARTS, tmp_path / "p.parquet", clients=np.array([7, 9]))
    assert load_partition(tmp_path / "p.parquet").ids.tolist() == [7, 9]


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_ids_that_are_the_same_as_text_are_refused(tmp_path, suffix):
    parts = partition([0, 1], [[1, 0], [0, 1]], rng=0)
    for ids, message in (
        (["1", "1"], "2 different client ids, got 2, 1 of them different"),
        (np.array([1, "1"], dtype=object), "client ids as numbers or as texts, got a mixture"),
    ):
        with pytest.raises(ParameterError, match=message):
            save_partition(parts, tmp_path / f"p.{suffix}", clients=ids)
    assert list(tmp_path.iterdir()) == []


def test_a_client_that_is_in_a_file_twice_is_refused(tmp_path):
    (tmp_path / "p.json").write_text('{"a": [0], "b": [1], "a": [2]}')
    with pytest.raises(FileError, match="the client 'a' is there more than once"):
        load_partition(tmp_path / "p.json")
