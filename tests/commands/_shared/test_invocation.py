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
