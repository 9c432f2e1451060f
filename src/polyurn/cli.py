"""The command line: which commands there are, in the order of the flow, and how errors look.

What a command does is in `commands/`.
"""

import shlex
import sys
from typing import Annotated

import typer
from rich.text import Text

import polyurn
from polyurn.commands import (
    compare,
    demo,
    fit,
    histogram,
    model,
    partition,
    report,
    sweep,
)
from polyurn.commands.console import talk
from polyurn.errors import PolyurnError

app = typer.Typer(
    name="polyurn",
    help="Learn what your federation looks like, then simulate it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; our own errors become one line and exit code 2."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        app(given, obj=shlex.join(["polyurn", *given]))
    except (PolyurnError, MemoryError) as error:
        cause = "not enough memory: " if isinstance(error, MemoryError) else ""
        message = cause + " ".join(str(error).split())
        talk.print(Text("error: ", style="bold red") + Text(message), soft_wrap=True)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyurn {polyurn.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


app.command("demo")(demo.demo_command)
app.command("histogram")(histogram.histogram_command)
app.command("fit")(fit.fit_command)
app.command("select")(fit.select_command)
app.command("show")(model.show_command)
app.command("score")(model.score_command)
app.command("sample")(model.sample_command)
app.command("partition")(partition.partition_command)
app.command("sweep")(sweep.sweep_command)
app.command("compare")(compare.compare_command)
app.command("report")(report.report_command)
