"""What a command was asked: as a file records it, and as a resumed run compares it.

Nothing is read, fitted or printed here.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from polyurn.errors import FileError, ParameterError


def made_by(context: typer.Context, seed: int) -> dict[str, Any]:
    """How a file came about."""
    return {"seed": seed, "command": context.obj}


def check_output(context: typer.Context, output: Path) -> None:
    """Refuse to write over a file that the command reads."""
    read: list[Any] = []
    for name, value in context.params.items():
        if name not in ("output", "checkpoint"):
            read += value if isinstance(value, list | tuple) else [value]
    for thing in read:
        place = str(thing).split("=", 1)[-1]  # some are NAME=FILE
        # os.path takes a name that is too long for a file's as none; pathlib stops there.
        if os.path.isfile(output) and os.path.isfile(place) and os.path.samefile(output, place):
            raise ParameterError(f"{output} is read by this command; write to another file")


def check_json_place(context: typer.Context, output: Path | None, what: str) -> None:
    """Refuse to write JSON to a file of another kind, or over one that is read; None is no file."""
    from polyurn.storage.files import check_place

    if output is None:
        return
    if output.suffix != ".json":
        raise FileError(f"expected a .json file for {what}, got {output.name!r}")
    check_output(context, output)
    check_place(output)


def refuse_options(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options that were given and would have no effect: better than to leave them unheard.

    Parameters
    ----------
    context : typer.Context
    names : iterable of str
        Parameters of the command.
    why : str
        Ends the sentence "--option has no effect ...".
    """
    options = {option.name: option.opts[0] for option in context.command.params}
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ParameterError(f"{options[name]} has no effect {why}: leave it out")


def settings(context: typer.Context) -> dict[str, object]:
    """What a command was asked for, as it is compared when it is resumed."""
    return {"command": context.info_name, **context.params}
