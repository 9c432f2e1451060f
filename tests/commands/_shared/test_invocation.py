"""What a command was asked, and what it must not write over."""

import pytest

from cli_walk import assert_refused


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


@pytest.mark.parametrize("where", ["table", "output"])
def test_a_file_name_that_is_too_long_is_one_line(run, tmp_path, where):
    table, output = (
        ("a" * 300 + ".csv", "mdm.json") if where == "table" else ("clients.csv", "a" * 300)
    )
    (tmp_path / "mdm.json").write_text("{}")
    said = run("fit", table, "--components", 1, "-o", output)
    assert_refused(said, "File name too long")
