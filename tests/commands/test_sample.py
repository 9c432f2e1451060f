"""`polyurn sample`: simulated clients as a table."""

import csv
import io
import os

import pytest

from cli_walk import EXAMPLE, assert_refused
from polyurn.storage.models import save


def test_category_names_with_commas_and_quotes_are_printed_as_csv(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["[0, 5)", 'say "x"'])
    printed = run("sample", "mdm.json", "--clients", 20).out
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert {row["category"] for row in rows} == {"[0, 5)", 'say "x"'}
    assert sum(int(row["count"]) for row in rows) == 20 * 9
    run("sample", "mdm.json", "--clients", 20, "-o", "simulated.csv")
    assert (tmp_path / "simulated.csv").read_text() == printed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--clients", 0, "-o", "out.csv"], ["'--clients': 0 is not in the range"]),
        (["--clients", 3, "-o", "out.txt"], [".parquet, .csv or .tsv", "out.txt"]),
        (["--clients", 3, "-o", "nowhere/out.csv"], ["cannot write nowhere/out.csv", "No such"]),
        (["--clients", 3, "-o", "out.csv", "--seed", -1], ["seed", "-1"]),
        (["--clients", 10**15, "-o", "out.csv"], ["expected 0 to 2**31 - 1 clients"]),
    ],
    ids=str,
)
def test_a_bad_setting_of_sample_is_one_line_and_no_file(run, tmp_path, options, words):
    save(EXAMPLE, "mdm.json")
    before = sorted(os.listdir(tmp_path))
    assert_refused(run("sample", "mdm.json", *options), *words)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_name_without_a_suffix_is_a_folder_of_parquet_files(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["a", "b"])
    ran = run("sample", "mdm.json", "--clients", 30, "-o", "simulated/", "--seed", 1)
    assert "wrote 30 clients to 1 file in simulated" in ran.err
    ran = run("histogram", "simulated/clients-000000.parquet", "--json")
    assert ran.json()["n_clients"] == 30
    refused = run("sample", "mdm.json", "--clients", 31, "-o", "simulated/", "--seed", 1)
    assert_refused(refused, "simulated holds something else")
    assert_refused(run("sample", "mdm.json", "--clients", 3, "-o", "x", "--json"), "--json has no")
