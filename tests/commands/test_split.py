"""`polyurn split`: two tables, and no client in both."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_walk import assert_refused
from polyurn import read_table


@pytest.fixture
def records(tmp_path):
    """Rows of 40 planes, not in the order of the planes, with a column besides the label."""
    rng = np.random.default_rng(0)
    rows = {
        "plane": [f"p{i}" for i in rng.integers(40, size=300)],
        "label": rng.integers(3, size=300),
        "delay": rng.normal(size=300),
    }
    table = pa.table(rows)
    pyarrow.parquet.write_table(table, tmp_path / "records.parquet")
    return table


SPLIT = ("split", "records.parquet", "fitted.parquet", "held-out.parquet", "--client", "plane")


@pytest.mark.parametrize(("share", "n_held_out"), [(0.2, 8), (0.5, 20), (0.001, 1), (0.999, 39)])
def test_no_client_is_in_both_tables_and_no_row_is_lost(run, records, share, n_held_out):
    ran = run(*SPLIT, "--held-out", share)
    assert ran.code == 0
    fitted, held_out = map(read_table, SPLIT[2:4])
    assert f"wrote {40 - n_held_out} client" in ran.err
    assert f"wrote {n_held_out} client" in ran.err
    owners = [set(part["plane"].to_pylist()) for part in (fitted, held_out)]
    assert [len(one) for one in owners] == [40 - n_held_out, n_held_out]
    assert owners[0].isdisjoint(owners[1])
    for part, names in zip((fitted, held_out), owners, strict=True):
        mine = [row for row in records.to_pylist() if row["plane"] in names]
        assert part.to_pylist() == mine


def test_the_same_seed_never_gives_another_split(run, records, tmp_path):
    seen = []
    for seed in (1, 1, 2):
        run(*SPLIT, "--seed", seed)
        seen.append(set(read_table("held-out.parquet")["plane"].to_pylist()))
    assert seen[0] == seen[1] != seen[2]


def test_texts_of_a_csv_file_do_not_become_numbers(run, tmp_path):
    (tmp_path / "t.csv").write_text("client,label,note\n" + '01,cat,NA\n1,dog,""\n' * 3)
    assert run("split", "t.csv", "a.csv", "b.csv", "--held-out", 0.5).code == 0
    rows = sorted(
        tuple(row.values()) for path in ("a.csv", "b.csv") for row in read_table(path).to_pylist()
    )
    assert rows == [("01", "cat", "NA")] * 3 + [("1", "dog", "")] * 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("clients.csv", "a.csv"), "takes 3 values"),
        (("clients.csv", "a.csv", "a.csv"), "three different files"),
        (("clients.csv", "a.csv", "./clients.csv"), "three different files"),
        (("clients.csv", "a.csv", "b.json"), ".parquet, .csv or .tsv file, got 'b.json'"),
        (("clients.csv", "a.csv", "b.csv", "--held-out", 1), "held_out between 0 and 1"),
        (("clients.csv", "a.csv", "b.csv", "--held-out", "nan"), "held_out between 0 and 1"),
        (("clients.csv", "a.csv", "b.csv", "--client", "x"), "clients.csv: expected a column 'x'"),
        (("one.csv", "a.csv", "b.csv"), "one.csv: expected at least two clients"),
        (("none.csv", "a.csv", "b.csv"), "cannot read none.csv"),
        (("folder", "a.csv", "b.csv"), "got the folder 'folder'"),
    ],
    ids=str,
)
def test_what_cannot_be_split_is_refused_and_nothing_is_written(run, tmp_path, arguments, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "one.csv").write_text("client,category\na,0\na,1\n")
    before = (tmp_path / "clients.csv").read_bytes()
    assert_refused(run("split", *arguments), words)
    assert not (tmp_path / "a.csv").exists()
    assert (tmp_path / "clients.csv").read_bytes() == before
