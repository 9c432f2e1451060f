import gzip
import os

import numpy as np
import pytest

import polyurn as pu
from full_disk import full_disk
from polyurn.errors import CountsError, FileError, ParameterError
from polyurn.storage import packing
from polyurn.storage.shards import open_shards
from shard_cases import COUNTS, MDM, long_file, packed, unpacked

HEAD = "client,category,count\n"


@pytest.fixture
def sorting():
    """Packing rows that are not in order needs the engine that sorts them."""
    return pytest.importorskip("duckdb", reason="the extra shards is not installed")


def shuffled(folder, n_files=3):
    """The rows of COUNTS in any order, over several files, some cells in two rows."""
    rng = np.random.default_rng(1)
    clients, categories = np.nonzero(COUNTS)
    counts = COUNTS[clients, categories]
    split = counts > 3  # such a cell becomes two rows
    rows = np.concatenate(
        [
            np.stack([clients, categories, counts - split], axis=1),
            np.stack([clients, categories, split], axis=1)[split],
        ]
    )
    rng.shuffle(rows)
    files = [
        long_file(folder / f"{i}.parquet", *part.T)
        for i, part in enumerate(np.array_split(rows, n_files))
    ]
    return files, int(split.sum())


def test_rows_in_any_order_over_several_files_pack_to_the_same_shards(tmp_path, sorting):
    files, n_duplicates = shuffled(tmp_path)
    said = []
    mixed = pu.pack_shards(
        files, tmp_path / "mixed", categories=10, clients_per_shard=90, on_remark=said.append
    )
    assert mixed.digest == packed(tmp_path).digest
    assert (mixed.totals.n_duplicates, mixed.totals.n_clients) == (n_duplicates, 2_000)
    assert any("sorted first" in text for text in said)
    shards = {f"shard-{i:06d}.rows" for i in range(len(mixed.shards))}
    assert set(os.listdir(tmp_path / "mixed")) == {*shards, "shards.jsonl"}  # nothing else is left


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_shards_do_not_depend_on_the_number_of_threads(tmp_path, n_threads):
    known = packed(tmp_path)
    again = pu.pack_shards(
        tmp_path / "clients.parquet", tmp_path / "again", categories=10, clients_per_shard=90,
        n_threads=n_threads,
    )  # fmt: skip
    assert again.digest == known.digest


def test_a_client_whose_rows_go_over_two_files_is_one(tmp_path):
    one = long_file(tmp_path / "1.parquet", [1, 1, 2], [0, 1, 0], [1, 2, 3])
    two = long_file(tmp_path / "2.parquet", [2, 2, 5], [1, 0, 2], [4, 5, 6])
    found = pu.pack_shards([one, two], tmp_path / "packed", categories=3)
    assert unpacked(found).tolist() == [[1, 2, 0], [8, 4, 0], [0, 0, 6]]
    assert (found.totals.n_duplicates, found.totals.max_size) == (1, 12)


def test_text_files_with_names_pack_as_tables_do(tmp_path):
    rows = "ann,b,2\nann,a,1\nbob,b,3\n"
    (tmp_path / "1.csv").write_text(HEAD + rows)
    with gzip.open(tmp_path / "2.csv.gz", "wt") as file:
        file.write(HEAD + "bob,a,1\n")
    found = pu.pack_shards(tmp_path, tmp_path / "packed")
    assert found.categories == ("a", "b")
    assert unpacked(found).tolist() == [[1, 2], [1, 3]]


def test_records_are_points_and_no_duplicates(tmp_path):
    (tmp_path / "1.csv").write_text("client,income\na,10\na,12\nb,95\n")
    bins = pu.Bins.of_width(50, stop=100)
    found = pu.pack_shards(
        tmp_path / "1.csv", tmp_path / "packed", category="income", categories=bins
    )
    assert unpacked(found)[:, :2].tolist() == [[2, 0], [0, 1]]
    assert found.totals.n_duplicates == 0


def test_a_cap_leaves_a_random_part_of_the_points(tmp_path):
    pu.write_histograms(COUNTS, tmp_path / "clients.parquet")
    capped = pu.pack_shards(
        tmp_path / "clients.parquet", tmp_path / "packed", categories=10, cap=7, rng=1
    )
    kept = unpacked(capped)
    assert (kept.sum(axis=1) == 7).all()
    assert (kept <= COUNTS).all()
    assert capped.totals.n_capped == 2_000


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            "b,1,-3",
            r"2.csv: expected whole numbers of at least 0 in column 'count', got -3 in line 4",
        ),
        ("b,7,1", r"2.csv: column 'category': 1 of 3 values are not in .* in line 4"),
        ("b,,1", r"2.csv: 1 value is missing from column 'category', the first in line 4"),
    ],
)
def test_a_bad_row_names_its_file_and_line(tmp_path, row, words):
    (tmp_path / "1.csv").write_text(HEAD + "a,0,1\na,1,2\n")
    (tmp_path / "2.csv").write_text(HEAD + f"b,0,1\nb,1,2\n{row}\n")
    files = [tmp_path / "1.csv", tmp_path / "2.csv"]
    with pytest.raises(CountsError, match=words):
        pu.pack_shards(files, tmp_path / "packed", categories=2)


def test_a_bad_row_among_rows_that_are_sorted_first_names_its_place_too(tmp_path, sorting):
    one = long_file(tmp_path / "1.parquet", [2, 1], [0, 1], [1, 2])
    two = long_file(tmp_path / "2.parquet", [2, 1, 3], [0, 1, 1], [1, 2, -9])
    with pytest.raises(CountsError, match=r"2.parquet: .* got -9 in row 2, counted from 0"):
        pu.pack_shards([one, two], tmp_path / "packed", categories=2)


def test_ctrl_c_while_rows_are_sorted_is_ctrl_c_and_the_same_call_sorts_again(
    tmp_path, sorting, monkeypatch
):
    files, _ = shuffled(tmp_path)
    settings = {"categories": 10, "clients_per_shard": 90}

    class Interrupted:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def execute(self, _):
            raise RuntimeError("Query interrupted")  # as DuckDB 2.0 does

    with monkeypatch.context() as patched:
        patched.setattr(sorting, "connect", lambda **_: Interrupted())
        with pytest.raises(KeyboardInterrupt):
            pu.pack_shards(files, tmp_path / "mixed", **settings)
    assert pu.pack_shards(files, tmp_path / "mixed", **settings).digest == packed(tmp_path).digest


def test_clients_without_points_are_an_error_unless_they_are_left_out(tmp_path):
    table = long_file(tmp_path / "1.parquet", [1, 2, 3], [0, 1, 1], [1, 0, 4])
    with pytest.raises(CountsError, match="1 of 3 clients hold no points; leave them out"):
        pu.pack_shards(table, tmp_path / "packed", categories=2)
    found = pu.pack_shards(table, tmp_path / "other", categories=2, drop_empty=True)
    assert (found.n_clients, found.totals.n_empty) == (2, 1)


class Stopped(BaseException):
    pass


def stopped_after(n_shards):
    def on_progress(done):
        if done.n_shards == n_shards:
            raise Stopped

    return on_progress


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_run_that_was_stopped_goes_on_to_the_same_shards(tmp_path, order, request):
    known = packed(tmp_path)
    files = [tmp_path / "clients.parquet"]
    if order == "shuffled":
        request.getfixturevalue("sorting")
        files, _ = shuffled(tmp_path)
    settings = {"categories": 10, "clients_per_shard": 90}
    with pytest.raises(Stopped):
        pu.pack_shards(files, tmp_path / "other", on_progress=stopped_after(7), **settings)
    with pytest.raises(FileError, match="was not packed to its end; repeat"):
        open_shards(tmp_path / "other")
    written = []
    made = pu.pack_shards(
        files,
        tmp_path / "other",
        on_progress=lambda done: written.append(done.n_shards),
        **settings,
    )
    assert written[0] == 8
    assert made.digest == known.digest
    assert made.totals.n_clients == known.totals.n_clients


@pytest.mark.parametrize("damage", [b"{", b"[]", b"\xff", b'{"step": 3}'], ids=repr)
def test_a_run_goes_on_ahead_of_a_line_that_is_damaged(tmp_path, damage):
    known, table = packed(tmp_path), tmp_path / "clients.parquet"
    settings = {"categories": 10, "clients_per_shard": 90}
    with pytest.raises(Stopped):
        pu.pack_shards(table, tmp_path / "other", on_progress=stopped_after(7), **settings)
    log = tmp_path / "other" / "shards.jsonl"
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([*lines[:4], damage, *lines[5:]]))
    seen = []
    made = pu.pack_shards(table, tmp_path / "other", on_progress=seen.append, **settings)
    assert seen[0].n_shards == 4
    assert (made.digest, made.totals) == (known.digest, known.totals)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_folder_that_lost_the_end_of_its_log_is_packed_again_to_the_same(
    tmp_path, order, request
):
    known, files = packed(tmp_path), [tmp_path / "clients.parquet"]
    if order == "shuffled":
        request.getfixturevalue("sorting")
        files, _ = shuffled(tmp_path)
    settings = {"categories": 10, "clients_per_shard": 90}
    made = pu.pack_shards(files, tmp_path / "other", **settings)
    log = tmp_path / "other" / "shards.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-2]))
    again = pu.pack_shards(files, tmp_path / "other", **settings)
    assert again.digest == known.digest
    assert again.totals == made.totals


def test_what_a_stopped_run_left_is_not_continued_with_other_tables(tmp_path):
    packed(tmp_path)
    table = tmp_path / "clients.parquet"
    with pytest.raises(Stopped):
        pu.pack_shards(
            table, tmp_path / "other", categories=10, clients_per_shard=90,
            on_progress=stopped_after(2),
        )  # fmt: skip
    with pytest.raises(FileError, match="that differs in settings"):
        pu.pack_shards(table, tmp_path / "other", categories=10, clients_per_shard=80)


def test_a_full_disk_is_one_line_and_what_was_written_is_kept(tmp_path):
    known = packed(tmp_path)
    settings = {"categories": 10, "clients_per_shard": 700, "n_threads": 1}
    with (
        full_disk(15_000),
        pytest.raises(FileError, match=r"cannot write .*large; the shards .* kept"),
    ):
        pu.pack_shards(tmp_path / "clients.parquet", tmp_path / "other", **settings)
    made = pu.pack_shards(tmp_path / "clients.parquet", tmp_path / "other", **settings)
    np.testing.assert_array_equal(unpacked(made), unpacked(known))


def test_nothing_is_written_over(tmp_path):
    packed(tmp_path)
    with pytest.raises(FileError, match="holds packed clients already"):
        packed(tmp_path)
    os.unlink(tmp_path / "packed" / "shard-000003.rows")
    with pytest.raises(FileError, match="holds packed clients already"):
        packed(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("mine")
    with pytest.raises(FileError, match="holds something else; take an empty folder"):
        pu.pack_shards(tmp_path / "clients.parquet", tmp_path / "other", categories=10)


def test_what_cannot_be_packed_is_refused(tmp_path):
    pu.write_histograms(MDM.sample(5, rng=0), table := tmp_path / "clients.parquet")
    with pytest.raises(
        ParameterError, match="clients_per_shard as an integer of at least 1, got 0"
    ):
        pu.pack_shards(table, tmp_path / "packed", clients_per_shard=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"files in .*empty, got none"):
        pu.pack_shards(tmp_path / "empty", tmp_path / "packed")
    (tmp_path / "wide.csv").write_text("client,a,b,c\nx,1,2,3\ny,0,1,1\n")
    with pytest.raises(CountsError, match="got one row per client"):
        pu.pack_shards(tmp_path / "wide.csv", tmp_path / "packed")


def test_rows_of_very_many_categories_make_smaller_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("polyurn.storage.packing._MOST_ROWS", 100)
    monkeypatch.setattr("polyurn.storage.packing._ROWS_PER_CLIENT", 0)
    pu.write_histograms(COUNTS[:200], tmp_path / "clients.parquet")
    found = pu.pack_shards(tmp_path / "clients.parquet", tmp_path / "packed", categories=10)
    np.testing.assert_array_equal(unpacked(found), COUNTS[:200])
    assert len(found.shards) > 1
    assert packing.CLIENTS_PER_SHARD > 200


def test_a_table_among_thousands_is_not_packed_twice(tmp_path):
    paths = [tmp_path / f"{i}.csv" for i in range(5_000)]
    with pytest.raises(FileError, match=r"7\.csv twice"):
        pu.pack_shards([*paths, paths[7]], tmp_path / "packed", categories=2)


def test_a_full_disk_does_not_cost_the_record_of_a_stopped_run(tmp_path):
    packed(tmp_path)

    def pack(**more):
        return pu.pack_shards(
            tmp_path / "clients.parquet",
            tmp_path / "p",
            categories=10,
            clients_per_shard=90,
            **more,
        )

    with pytest.raises(Stopped):
        pack(on_progress=stopped_after(5))
    record = (tmp_path / "p" / "shards.jsonl").read_bytes()
    with full_disk(0), pytest.raises(FileError):
        pack()
    assert (tmp_path / "p" / "shards.jsonl").read_bytes() == record
