"""Where commands write: talk to stderr, data to stdout.

What results look like is `terminal.py`.
"""

import json
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from polyurn.errors import ParameterError

INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C

# Names and paths are the user's: they are shown as they are.
AS_IT_IS: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
talk = Console(stderr=True, **AS_IT_IS)


def say(text: str) -> None:
    """One sentence for the person at the terminal."""
    talk.print(text, soft_wrap=True)


def show(table: Table) -> None:
    """A table as the command's result."""
    Console(**AS_IT_IS).print(table)


def print_json(record: dict[str, Any]) -> None:
    """A record as the command's result, on one line."""
    typer.echo(json.dumps(record, allow_nan=False))


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
        place = Path(str(thing).split("=", 1)[-1])  # some are NAME=FILE
        if output.is_file() and place.is_file() and output.samefile(place):
            raise ParameterError(f"{output} is read by this command; write to another file")


def settings(context: typer.Context) -> dict[str, object]:
    """What a command was asked for, as it is compared when it is resumed."""
    return {"command": context.info_name, **context.params}
