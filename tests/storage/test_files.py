import contextlib
import json
import os
import resource
import sys

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

import polyurn
from polyurn import MDM, SizeBins, Sizes
from polyurn.client.tables import table_histograms
from polyurn.errors import FileError, MissingDependencyError, ParameterError
from polyurn.storage.files import (
    check_place,
    check_table_place,
    load,
    load_saved,
    long_table,
    read_table,
    save,
    write_histograms,
)
from polyurn.storage.provenance import Made
from strategies import counts, mdms_with_zeros

BINNED = MDM([0.6, 0.4], [[1.0, 2.0], [3.0, 0.1]], Sizes(SizeBins([1, 3, 9]), [[0.5, 0.5]] * 2))
EXACT = MDM([1.0], [[0.1, 0.2, 0.7]], Sizes.constant(1_000_000))
TABLE = np.array([[3, 0, 1], [0, 2, 0]])
not_for_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write anything")
each_suffix = pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("files")


@contextlib.contextmanager
def full_disk(n_bytes):
    """Writing more than `n_bytes` to a file fails, for root too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def damaged(tmp_path):
    """A function that saves an MDM, changes its record and returns the path."""

    def damage(change):
        save(BINNED, tmp_path / "mdm.json")
        record = json.loads((tmp_path / "mdm.json").read_text())
        change(record)
        (tmp_path / "mdm.json").write_text(json.dumps(record))
        return tmp_path / "mdm.json"

    return damage


# ------------------------------------------------------------------------------ MDM: all is well


@settings(max_examples=50)
@given(mdm=mdms_with_zeros())
def test_an_mdm_comes_back_equal_to_the_last_bit(folder, mdm):
    save(mdm, folder / "mdm.json")
    assert load(folder / "mdm.json") == mdm


@settings(max_examples=50)
@given(names=st.lists(st.text(), min_size=2, max_size=2, unique=True), seed=st.integers())
def test_category_names_and_provenance_come_back_as_they_were(folder, names, seed):
    save(BINNED, folder / "named.json", categories=names, made={"seed": seed, "command": "x y"})
    saved = load_saved(folder / "named.json")
    assert saved.categories == tuple(names)
    assert saved.made == Made(polyurn=polyurn.__version__, seed=seed, command="x y")


def test_sizes_are_stored_sparsely(tmp_path):
    save(EXACT, tmp_path / "mdm.json")
    record = json.loads((tmp_path / "mdm.json").read_text())
    assert record["components"][0]["sizes"] == {"1000000": 1.0}
    assert load(tmp_path / "mdm.json") == EXACT


def test_saving_twice_leaves_the_second_and_nothing_else(tmp_path):
    for mdm in (EXACT, BINNED):
        save(mdm, tmp_path / "mdm.json")
    assert load(tmp_path / "mdm.json") == BINNED
    assert os.listdir(tmp_path) == ["mdm.json"]


# ------------------------------------------------------------------------------- MDM: damage


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    save(BINNED, tmp_path / "whole.json", categories=["ä", "b"])
    whole = (tmp_path / "whole.json").read_bytes()
    for end in range(0, len(whole) - 1, 7):  # the last byte is only a newline
        (tmp_path / "cut.json").write_bytes(whole[:end])
        with pytest.raises(FileError, match=r"cut\.json"):
            load(tmp_path / "cut.json")


@pytest.mark.parametrize(
    ("version", "message"),
    [(2, "version 2, newer than 1: upgrade polyurn"), (0, "no valid"), ("1", "no valid")],
)
def test_a_file_of_a_later_or_no_version_is_refused(damaged, version, message):
    with pytest.raises(FileError, match=message):
        load(damaged(lambda record: record.update(version=version)))


@pytest.mark.parametrize(
    "content",
    [b"[]", b"3", b"null", b"{}", b'{"format": "other"}', b"", b"PAR1\x00\xff", b"[" * 200_000],
    ids=lambda content: repr(content[:12]),
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "mdm.json").write_bytes(content)
    with pytest.raises(FileError, match="is not an MDM file"):
        load(tmp_path / "mdm.json")


@pytest.mark.parametrize(
    "key",
    ["made", "n_components", "n_categories", "max_size", "categories", "components", "size_edges"],
)
def test_a_missing_key_is_refused(damaged, key):
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record.pop(key)))


@pytest.mark.parametrize("key", ["weight", "alpha", "sizes"])
@pytest.mark.parametrize(
    "value",
    [None, "x", -1, float("nan"), 10**400, [], [1.0, -2.0], {"9": 1.0}, {"one": 1.0}],
    ids=lambda value: str(value)[:12],
)
def test_a_component_with_a_malformed_parameter_is_refused(damaged, key, value):
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record["components"][1].update({key: value})))


@pytest.mark.parametrize(
    "change",
    [
        *({"components": value} for value in ([], 3, [1, 2])),
        *({"size_edges": value} for value in ([1, 9, 3], "x")),
        *({"size_edges": None, "max_size": value} for value in (-3, "x", 10**30)),
        *({"categories": value} for value in (["only one"], "ab", [1, 2])),
        *({key: 7} for key in ("made", "n_components", "n_categories", "max_size")),
    ],
    ids=str,
)
def test_contents_that_are_malformed_or_contradict_each_other_are_refused(damaged, change):
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record.update(change)))


@pytest.mark.parametrize("reader", [load, read_table])
@pytest.mark.parametrize("place", ["missing.csv", "folder.csv", "file.csv/below.csv"])
def test_a_path_that_cannot_be_read_is_refused_by_its_name(tmp_path, reader, place):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file.csv").write_text("a\n1\n")
    with pytest.raises(FileError, match=place):
        reader(tmp_path / place)


# ------------------------------------------------------------------------------------ writing


WRITERS = {
    "mdm.json": lambda path: save(BINNED, path),
    "clients.parquet": lambda path: write_histograms(TABLE, path),
    "clients.csv": lambda path: write_histograms(TABLE, path),
}
each_writer = pytest.mark.parametrize(("name", "write"), WRITERS.items(), ids=WRITERS)


@each_writer
def test_a_full_disk_leaves_nothing_behind_and_loses_no_earlier_file(tmp_path, name, write):
    for earlier in (None, b"what was there"):
        if earlier is not None:
            (tmp_path / name).write_bytes(earlier)
        before = os.listdir(tmp_path)
        with full_disk(10), pytest.raises(FileError, match=f"cannot write .*{name}"):
            write(tmp_path / name)
        assert os.listdir(tmp_path) == before
    assert (tmp_path / name).read_bytes() == earlier


@each_writer
def test_a_place_that_cannot_be_written_is_refused_and_left_alone(tmp_path, name, write):
    (tmp_path / name).mkdir()
    for place in (tmp_path / name, tmp_path / "nowhere" / name, tmp_path / name / "no" / name):
        with pytest.raises(FileError, match=f"cannot write {place}"):
            write(place)
    assert os.listdir(tmp_path) == [name]
    assert os.listdir(tmp_path / name) == []


@not_for_root
@each_writer
def test_a_folder_without_permission_loses_no_earlier_file(tmp_path, name, write):
    (tmp_path / name).write_bytes(b"what was there")
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="cannot write"):
        write(tmp_path / name)
    tmp_path.chmod(0o700)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"what was there"


@each_writer
def test_a_pipe_is_written_to_and_not_replaced_by_a_file(tmp_path, name, write):
    write(tmp_path / f"whole.{name}")
    os.mkfifo(tmp_path / name)
    reader = os.open(tmp_path / name, os.O_RDONLY | os.O_NONBLOCK)  # a writer need not wait
    try:
        write(tmp_path / name)
        assert os.read(reader, 100_000) == (tmp_path / f"whole.{name}").read_bytes()
        assert (tmp_path / name).is_fifo()
    finally:
        os.close(reader)


@each_writer
def test_a_link_stays_a_link_and_its_file_keeps_its_permissions(tmp_path, name, write):
    (tmp_path / "folder").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "folder" / "file")
    for mode in (0o600, 0o640):
        write(tmp_path / name)  # the first time there is no file yet
        (tmp_path / "folder" / "file").chmod(mode)
        written = (tmp_path / "folder" / "file").read_bytes()
    write(tmp_path / name)
    assert (tmp_path / name).is_symlink()
    assert (tmp_path / "folder" / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder" / "file").read_bytes() == written
    assert os.listdir(tmp_path / "folder") == ["file"]


@pytest.mark.parametrize("place", ["", "nowhere/clients.csv", "file/clients.csv"])
def test_a_place_can_be_checked_before_there_is_anything_to_write(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"):
        check_place(tmp_path / place)
    check_place(tmp_path / "file")
    check_table_place(tmp_path / "clients.csv")
    with pytest.raises(FileError, match=r"expected a \.parquet, \.csv or \.tsv file"):
        check_table_place(tmp_path / "clients.txt")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["one"], "got 1 names"),
        (["a", "b", "b"], "2 of them different"),
        ("abc", "list of texts"),
        ([1, 2, 3], "list of texts"),
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


# --------------------------------------------------------------------------- tables of clients


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
    write_histograms(TABLE, tmp_path / "clients.parquet", made={"seed": 3, "command": "x y"})
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
    with pytest.raises(FileError, match=r"Row #3: Expected 2 columns, got 3$") as caught:
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
