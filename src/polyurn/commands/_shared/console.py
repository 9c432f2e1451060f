"""Where commands write: talk to stderr, results to stdout.

What a result looks like is the business of the command that shows it.
"""

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C

# Names and paths are the user's: they are shown as they are.
AS_IT_IS: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
talk = Console(stderr=True, **AS_IT_IS)


def say(text: str) -> None:
    """One sentence for the person at the terminal."""
    talk.print(text, soft_wrap=True)


def show(table: "Table") -> None:
    """A table as the command's result."""
    Console(**AS_IT_IS).print(table)


def print_json(record: dict[str, Any]) -> None:
    """A record as the command's result, on one line."""
    typer.echo(json.dumps(record, allow_nan=False))
