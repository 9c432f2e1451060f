"""What every command has: an end to Ctrl-C."""

import pytest
import typer

from cli_walk import assert_refused
from polyurn.commands.console import say
from polyurn.commands.declare import as_command


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_ctrl_c_ends_with_a_sentence_if_something_was_kept_and_else_in_silence(
    capsys, tmp_path, monkeypatch, keeps, there
):
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / "runs").mkdir()

    def busy(output: str = "runs/") -> None:
        """Work."""
        say("working")
        raise KeyboardInterrupt

    one = typer.Typer()
    one.command()(as_command(busy, keeps_runs=keeps))
    assert one([], standalone_mode=False) == 130
    said = "interrupted; what was finished is in runs/: repeat the command to go on\n"
    assert capsys.readouterr().err == "working\n" + (said if keeps and there else "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "clients.csv", "--components", 2),
        ("fit", "clients.csv", "--components", "1:2"),
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
