"""What every command has: an end to Ctrl-C."""

import pytest
import typer

from polyurn.commands._shared.console import say
from polyurn.commands._shared.every_command import as_command


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
