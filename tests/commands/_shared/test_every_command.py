"""What every command has: an end to Ctrl-C."""

import pytest
import typer

from polyurn.commands._shared.console import say
from polyurn.commands._shared.every_command import as_command


@pytest.mark.parametrize(("keeps", "said"), [(True, "is in runs/: repeat"), (False, "nothing was")])
def test_ctrl_c_ends_with_a_sentence(capsys, keeps, said):
    def busy(output: str = "runs/") -> None:
        """Work."""
        say("working")
        raise KeyboardInterrupt

    one = typer.Typer()
    one.command()(as_command(busy, keeps_runs=keeps))
    assert one([], standalone_mode=False) == 130
    assert said in capsys.readouterr().err
