"""What every command has besides its own: `--quiet`, and an end to Ctrl-C that says what was kept.

What a command does is in its own module.
"""

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from polyurn.commands._shared.console import INTERRUPTED, say, talk

_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]


def as_command(function: Callable[..., None], *, keeps_runs: bool = False) -> Callable[..., None]:
    """The same command with `--quiet`, and an end to Ctrl-C: silent if nothing was kept.

    Parameters
    ----------
    function : callable
        A command, as typer takes it.
    keeps_runs : bool
        Whether its `output` is a folder that keeps what was finished. Otherwise files are written whole
        or not at all.
    """

    @wraps(function)
    def command(*, quiet: bool, **arguments: Any) -> None:
        talk.quiet = quiet
        try:
            function(**arguments)
        except KeyboardInterrupt:
            folder = arguments.get("output")
            if keeps_runs and os.path.isdir(str(folder)):
                say(f"interrupted; what was finished is in {folder}: repeat the command to go on")
            raise typer.Exit(INTERRUPTED) from None

    own = inspect.signature(function, eval_str=True).parameters
    quiet = inspect.Parameter(
        "quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Quiet
    )
    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.values()]
    # typer reads the options from the signature.
    command.__signature__ = inspect.Signature([*keywords, quiet])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*keywords, quiet)}
    del command.__wrapped__
    return command
