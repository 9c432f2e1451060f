import os
import shutil

import pytest

from cli_walk import EXAMPLE, HEAD, assert_leaves_no_trace, assert_refused, fit
from polyurn.storage.mdm_json import save
from polyurn.storage.tables import write_histograms

BAD_TABLES = {
    "negative": (HEAD + "a,0,5\nb,1,-2\n", ["at least 0", "-2", "row 1"]),
    "fractional": (HEAD + "a,0,5\nb,1,2.5\n", ["whole numbers", "2.5", "row 1"]),
    "nan": (HEAD + "a,0,5\nb,1,nan\n", ["'count'", "whole numbers", "nan in row 1"]),
    "missing": (HEAD + "a,0,5\nb,1,\n", ["'count'", "missing", "row 1", "drop or fill"]),
    "infinite": (HEAD + "a,0,5\nb,1,inf\n", ["whole numbers", "row 1"]),
    "overflow": (HEAD + "a,0,5\nb,1,4294967296\n", ["4294967296", "largest supported"]),
    "huge": (HEAD + "a,0,5\nb,1,99999999999999999999999\n", ["largest supported"]),
    "sum overflow": (HEAD + "a,0,2147483647\na,0,1\nb,1,1\n", ["2147483648", "largest supported"]),
    "text": (HEAD + "a,0,many\nb,1,few\n", ["numbers in column 'count', got string"]),
    "no category": (HEAD + "a,,5\nb,1,2\n", ["'category'", "missing", "row 0"]),
    "no rows": (HEAD, ["empty"]),
    "no bytes": ("", ["empty", "header"]),
    "no points": (HEAD + "a,0,5\nb,1,0\nc,1,1\n", ["1 of 3 clients", "--drop-empty"]),
    "one category": (HEAD + "a,0,5\nb,0,2\n", ["at least two categories, got 1"]),
    "one name": (HEAD + "a,x,5\nb,x,2\n", ["at least two categories, got 1"]),
    "no client column": ("who,category,count\na,0,1\n", ["'client'", "who, category, count"]),
    "twice": ("client,category,count,count\na,0,1,1\nb,1,2,2\n", ["one column 'count', got 2"]),
    "ragged": (HEAD + "a,0,5\nb,1,2,9\n", ["table.csv", "Row #3: Expected 3 columns, got 4"]),
    "ids": (HEAD + f"a,0,5\nb,{10**12},2\n", ["at most 1000000 categories", "--categories"]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_is_one_line_and_no_file(run, tmp_path, content, words):
    (tmp_path / "table.csv").write_text(content)
    assert_leaves_no_trace(tmp_path, run, fit(table="table.csv"), *words)


@pytest.mark.parametrize("categories", [[], ["--categories", 2], ["--categories", "x,y"]], ids=str)
def test_a_table_without_rows_is_empty_whatever_is_declared(run, tmp_path, categories):
    (tmp_path / "table.csv").write_text(HEAD)
    assert_refused(run(*fit(*categories, table="table.csv")), "empty table")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--components", 0], ["n_components of 1 to 65535, got 0"]),
        (["--components", -1], ["n_components of 1 to 65535, got -1"]),
        (["--components", 7], ["7 components", "cohort of 6"]),
        (["--components", 6, "--method", "paper"], ["received no client", "use fewer components"]),
        (["--components", 10**14], ["n_components of 1 to 65535"]),
        (["--cohort", 7], ["cohort of 1 to 6 clients, got 7"]),
        (["--cohort", 0], ["cohort of 1 to 6 clients, got 0"]),
        (["--rounds", -1], ["max_rounds of at least 3, got -1"]),
        (["--max-size", 9], ["holds 10 points but max_size is 9", "larger max_size"]),
        (["--max-size", 0], ["max_size from 1 to", "got 0"]),
        (["--max-size", 10**20], ["max_size from 1 to", "got 1000"]),
        (["--max-size", 10**9, "--sizes", "exact"], ["max_size of at most", "--sizes binned"]),
        (["--size-prior", -1], ["prior"]),
        (["--size-prior", "nan"], ["prior"]),
        (["--category-prior", "inf"], ["prior"]),
        (["--threads", 0], ["n_threads of at least 1, got 0"]),
        (["--seed", -1], ["seed", "-1"]),
        (["--categories", 2], ["not in the declared categories", "position"]),
        (["--categories", "0,0"], ["names that differ"]),
        (["--categories", "²"], ["at least two categories, got 1"]),
        (["--categories", 10**30], ["at most 1000000 categories"]),
        (["--client", "who"], ["expected a column 'who', got client, category, count"]),
        (["--category", "what"], ["expected a column 'what', got client, category, count"]),
        (["--count", "times"], ["expected a column 'times', got client, category, count"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if "--" in str(value[0]) else "",
)
def test_a_bad_setting_of_a_fit_is_one_line_and_no_file(run, tmp_path, options, words):
    assert_leaves_no_trace(tmp_path, run, fit(*options), *words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.csv", ["cannot read missing.csv", "No such file"]),
        ("folder.csv", ["cannot read folder.csv", "is a directory"]),
        ("clients.txt", [".parquet, .csv or .tsv", "clients.txt"]),
        ("parquet.csv", ["parquet.csv is not a readable csv"]),
        ("csv.parquet", ["csv.parquet is not a readable parquet"]),
        ("cut.parquet", ["cut.parquet is not a readable parquet"]),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line_and_no_file(run, tmp_path, name, words):
    (tmp_path / "folder.csv").mkdir()
    shutil.copy("clients.csv", "csv.parquet")
    write_histograms(EXAMPLE.sample(50, rng=0), "whole.parquet")
    shutil.copy("whole.parquet", "parquet.csv")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-9])
    assert_leaves_no_trace(tmp_path, run, fit(table=name), *words)


@pytest.mark.parametrize(
    "command",
    [("show",), ("score",), ("sample", "--clients", 3, "-o", "out.csv")],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.json", ["cannot read missing.json", "No such file"]),
        ("folder", ["cannot read folder", "directory"]),
        ("cut.json", ["cut.json is not an MDM file, or was cut off"]),
        ("future.json", ["version 99", "upgrade polyurn"]),
        ("clients.csv", ["clients.csv is not an MDM file"]),
        ("damaged.json", ["damaged.json is damaged"]),
    ],
)
def test_an_mdm_that_cannot_be_read_is_one_line_and_no_file(run, tmp_path, command, name, words):
    (tmp_path / "folder").mkdir()
    save(EXAMPLE, "whole.json")
    whole = (tmp_path / "whole.json").read_text()
    (tmp_path / "cut.json").write_text(whole[: len(whole) // 2])
    (tmp_path / "future.json").write_text(whole.replace('"version": 1', '"version": 99'))
    (tmp_path / "damaged.json").write_text(whole.replace('"weight": 0.5', '"weight": 0.6'))
    first, *rest = command
    table = ["clients.csv"] if first == "score" else []
    assert_refused(run(first, name, *table, *rest), *words)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--clients", 0, "-o", "out.csv"], ["at least one client, got 0"]),
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


def test_a_client_larger_than_the_mdm_knows_is_one_line(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["0", "1"])
    (tmp_path / "large.csv").write_text(HEAD + "a,0,10\n")
    assert_refused(run("score", "mdm.json", "large.csv"), "holds 10 points", "max_size is 9")


def test_a_fit_that_cannot_be_written_is_refused_before_it_is_run(run):
    ran = run(*fit("-o", "nowhere/mdm.json"))
    assert_refused(ran, "cannot write nowhere/mdm.json", "No such file or directory")
    assert "round" not in ran.err


@pytest.mark.parametrize("arguments", [["fit"], ["sample", "mdm.json"], ["nonsense"]], ids=str)
def test_a_usage_mistake_is_exit_code_2_without_a_traceback(run, arguments):
    ran = run(*arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_a_checkpoint_of_other_clients_is_refused(run, tmp_path):
    asked = fit("--checkpoint", "kept")
    assert run(*asked).code == 0
    table = tmp_path / "clients.csv"
    table.write_text(table.read_text().replace("a,0,5", "a,0,4"))
    assert_refused(run(*asked), "kept holds a run with other settings")


def test_a_checkpoint_goes_on_with_more_rounds(run, tmp_path):
    short = run("fit", "clients.csv", "--components", 2, "--rounds", 4, "--checkpoint", "kept")
    assert "stopped at max_rounds=4" in short.err
    more = run("fit", "clients.csv", "--components", 2, "--rounds", 40, "--checkpoint", "kept")
    assert "going on after 4 rounds" in more.err
    assert "converged" in more.err


def test_a_damaged_round_of_a_checkpoint_is_named(run, tmp_path):
    asked = fit("--checkpoint", "kept")
    run(*asked)
    (tmp_path / "kept" / "round-0002.npy").write_bytes(b"")
    assert_refused(run(*asked), "round-0002.npy: delete it to ask again")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "clients.csv", "--components", 2),
        ("select", "clients.csv", "--components", "1:2"),
        ("histogram", "clients.csv", "--count", "count"),
        ("report", "true=clients.csv"),
    ],
)
def test_no_command_writes_over_what_it_reads(run, tmp_path, arguments):
    table = tmp_path / "clients.csv"
    before = table.read_bytes()
    assert_refused(run(*arguments, "-o", "clients.csv"), "clients.csv is read by this command")
    assert table.read_bytes() == before


def test_a_quote_without_an_end_is_refused(run, tmp_path):
    rows = "".join(f"c{i},{'a' if i % 2 else 'b'}\n" for i in range(40))
    (tmp_path / "open.csv").write_text("client,category\n" + rows.replace("c9,a", 'c9,"a'))
    assert_refused(run("histogram", "open.csv", "-o", "out.csv"), "a quote that does not end?")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("components", "words"), [("6:1", "from few to many, got '6:1'"), ("a", "1:6, 2,4,8 or auto")]
)
def test_components_that_are_none_are_said(run, components, words):
    assert_refused(run("select", "clients.csv", "--components", components), words)
