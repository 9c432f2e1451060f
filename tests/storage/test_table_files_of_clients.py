"""Tables of clients as CSV, TSV and Parquet."""

import json
import os
import sys

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from scipy import sparse

import polyurn
from polyurn import MDM, Sizes
from polyurn.client.tables import table_histograms
from polyurn.errors import CountsError, FileError, MissingDependencyError, ParameterError
from polyurn.storage.models import save
from polyurn.storage.table_files import csv_text, long_table, read_table, write_histograms
from strategies import counts

TABLE = np.array([[3, 0, 1], [0, 2, 0]])
each_suffix = pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["one"], "got 1 names"),
        (["a", "b", "b"], "2 of them different"),
        ("abc", "categories as a list or None, got 'abc'"),
        ([1, 2, 3], "got 1 at position 0, in place of a text"),
    ],
    ids=str,
)
def test_names_that_do_not_fit_are_refused_before_anything_is_written(tmp_path, names, message):
    with pytest.raises(ParameterError, match=message):
        save(MDM([1.0], [[1.0, 2.0, 3.0]], Sizes.constant(2)), tmp_path / "m", categories=names)
    with pytest.raises(ParameterError, match=message):
        write_histograms(TABLE, tmp_path / "clients.csv", categories=names)
    with pytest.raises(ParameterError, match="expected 2 client ids, got 3"):
        write_histograms(TABLE, tmp_path / "clients.csv", clients=["a", "b", "c"])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.7, 2.0]], "got fractions"),
        ([[-3, 2]], "at least 0, got -3"),
        ([[np.nan, 2.0]], "got NaN or infinity"),
        ([["1", "2"]], "counts as numbers, got texts"),
        (sparse.csr_array(np.array([[-3.5, 2.0]])), "got fractions"),
        ([[2**40, 1]], "beyond the largest supported"),
    ],
    ids=str,
)
def test_write_histograms_refuses_what_are_no_counts(tmp_path, table, message):
    """Of the report: it wrote 1.7 as 1, -3 as -3 and NaN as a huge negative number."""
    for write in (
        lambda: write_histograms(table, tmp_path / "clients.csv"),
        lambda: write_histograms(table, tmp_path / "clients.parquet"),
        lambda: csv_text(table),
    ):
        with pytest.raises(CountsError, match=message):
            write()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "ids", [["a", None], [1.0, np.nan], ["a", np.nan], [["a"], ["b"]], "ab"], ids=str
)
def test_client_ids_that_are_missing_or_nested_are_refused(tmp_path, ids):
    with pytest.raises(ParameterError, match="client"):
        write_histograms(TABLE, tmp_path / "clients.csv", clients=ids)
    assert os.listdir(tmp_path) == []


def test_a_client_without_points_has_no_row():
    assert long_table([[0, 0], [0, 4]], clients=["a", "b"]).to_pylist() == [
        {"client": "b", "category": 1, "count": 4}
    ]


@each_suffix
@settings(max_examples=25)
@given(table=counts(n_categories=3))
def test_histograms_come_back_as_they_were(folder, suffix, table):
    path = folder / f"clients{suffix}"
    for stored in (table, sparse.csr_array(table)):
        write_histograms(stored, path)
        back = table_histograms(read_table(path), categories=3, count="count")
        assert_array_equal(back.counts.toarray(), table)
        assert [int(client) for client in back.clients] == list(range(len(table)))


@each_suffix
@pytest.mark.parametrize(
    "names",
    [["[0, 5)", 'a "quoted" one', "日本"], ["01", "02", "1"], ["NA", "null", ""]],
    ids=["punctuation", "like numbers", "like nothing"],
)
def test_names_of_clients_and_categories_come_back_as_the_same_text(tmp_path, suffix, names):
    path = tmp_path / f"clients{suffix}"
    write_histograms(TABLE, path, clients=names[:2], categories=names)
    back = table_histograms(read_table(path), categories=names, count="count")
    assert_array_equal(back.counts.toarray(), TABLE)
    assert back.clients.tolist() == names[:2]


def test_a_compressed_table_can_be_read_back(tmp_path):
    path = tmp_path / "clients.csv.gz"
    write_histograms(TABLE, path)
    back = table_histograms(read_table(path), categories=3, count="count")
    assert_array_equal(back.counts.toarray(), TABLE)


def test_text_is_read_as_it_stands_and_only_an_empty_cell_is_missing(tmp_path):
    (tmp_path / "table.csv").write_text('client,category\n01,NA\nnull," x"\n"",\n')
    table = read_table(tmp_path / "table.csv")
    assert table["client"].to_pylist() == ["01", "null", ""]
    assert table["category"].to_pylist() == ["NA", " x", None]


def test_a_parquet_file_records_how_it_was_made(tmp_path):
    write_histograms(TABLE, tmp_path / "clients.parquet", provenance={"seed": 3, "command": "x y"})
    metadata = pyarrow.parquet.read_schema(tmp_path / "clients.parquet").metadata
    made = json.loads(metadata[b"polyurn"])
    assert made == {"polyurn": polyurn.__version__, "seed": 3, "command": "x y"}


def test_a_parquet_file_cut_off_anywhere_is_refused(tmp_path):
    write_histograms(TABLE, tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for end in range(0, len(whole), 7):
        (tmp_path / "cut.parquet").write_bytes(whole[:end])
        with pytest.raises(FileError, match=r"cut\.parquet"):
            read_table(tmp_path / "cut.parquet")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty: expected a header"),
        ("really.parquet", b"client,category\na,0\n", "not a readable parquet file"),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00\x00", r"cannot read .*cut\.csv\.gz"),
        ("plain.csv.gz", b"client,category\na,0\n", r"plain\.csv\.gz"),
        ("latin.csv", "client,category\na,café\n".encode("latin-1"), "expected UTF-8"),
        ("head.csv", "client,café\na,0\n".encode("latin-1"), "expected UTF-8"),
        ("table.txt", b"client,category\na,0\n", r"\.parquet, \.csv or \.tsv file"),
        ("table", b"client,category\na,0\n", r"\.parquet, \.csv or \.tsv file"),
    ],
)
def test_a_table_that_is_not_what_its_name_says_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_table(tmp_path / name)


def test_a_row_of_the_wrong_length_is_refused_and_its_values_are_not_shown(tmp_path):
    (tmp_path / "ragged.csv").write_text("client,category\na,0\nalice,1,classified\n")
    with pytest.raises(FileError, match=r"expected 2 columns, got 3 in line 3") as caught:
        read_table(tmp_path / "ragged.csv")
    assert "classified" not in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        read_table,
        lambda path: long_table(TABLE),
        lambda path: write_histograms(TABLE, path),
        lambda path: table_histograms(object(), categories=3),
    ],
    ids=["read_table", "long_table", "write_histograms", "table_histograms"],
)
def test_without_pyarrow_the_message_names_the_extra_to_install(tmp_path, monkeypatch, use):
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    with pytest.raises(MissingDependencyError, match=r"pip install 'polyurn\[tables\]'"):
        use(tmp_path / "clients.csv")


def test_a_folder_is_called_one_and_the_line_says_what_reads_it(tmp_path):
    (tmp_path / "simulated").mkdir()
    with pytest.raises(FileError, match=r"got the folder 'simulated'.*`polyurn pack`"):
        read_table(tmp_path / "simulated")
