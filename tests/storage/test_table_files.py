"""Any table to a file and back, whatever kind its name says it is."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from polyurn.errors import FileError
from polyurn.storage.table_files import (
    check_table_writable,
    csv_text,
    read_table,
    table_kind,
    write_histograms,
    write_table,
)

TABLE = pa.table({"client": ["ann", "bob"], "code": ["a × other", "b, or × style 0"]})


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz"])
def test_a_table_comes_back_with_its_columns_and_texts(tmp_path, suffix):
    write_table(TABLE, tmp_path / f"table{suffix}", provenance={"seed": 3})
    assert read_table(tmp_path / f"table{suffix}").to_pylist() == TABLE.to_pylist()


def test_a_parquet_file_says_how_it_came_about(tmp_path):
    write_table(TABLE, tmp_path / "table.parquet", provenance={"seed": 3})
    note = pyarrow.parquet.read_schema(tmp_path / "table.parquet").metadata[b"polyurn"]
    assert json.loads(note)["seed"] == 3


def test_the_text_of_a_table_is_that_of_its_csv_file(tmp_path):
    write_histograms([[2, 0], [1, 3]], tmp_path / "table.csv", categories=["a", "b, c"])
    text = csv_text([[2, 0], [1, 3]], categories=["a", "b, c"])
    assert text == (tmp_path / "table.csv").read_bytes()


def test_a_name_that_is_too_long_for_a_file_is_refused_by_its_suffix():
    with pytest.raises(FileError, match=r"expected a \.parquet, \.csv or \.tsv file"):
        table_kind(Path("a" * 300 + ".json"))


def test_a_place_for_no_kind_of_table_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"expected a \.parquet, \.csv or \.tsv file"):
        check_table_writable(tmp_path / "table.json")
