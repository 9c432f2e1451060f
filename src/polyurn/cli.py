"""The command line: which commands there are, in the order of the flow, and how errors look.

What a command does is in `commands/`.
"""

import shlex
import sys
from typing import Annotated, NoReturn

import typer
from rich.text import Text

import polyurn
from polyurn.commands import (
    compare,
    datasets,
    demo,
    fit,
    histogram,
    partition,
    report,
    sample,
    score,
    select,
    show,
    sweep,
)
from polyurn.commands._shared.console import INTERRUPTED, talk
from polyurn.commands._shared.every_command import as_command
from polyurn.errors import PolyurnError

app = typer.Typer(
    name="polyurn",
    help="Learn what your federation looks like, then simulate it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


# What typer raises for a usage mistake; the class has changed its module between versions.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main(arguments: list[str] | None = None) -> None:
    """Run the command; mistakes and our own errors become one line and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    talk.quiet = False
    try:
        command = shlex.join(["polyurn", *given])
        arguments = given or ["--help"]
        sys.exit(app(arguments, prog_name="polyurn", obj=command, standalone_mode=False))
    except _UsageError as error:
        _refuse(error.format_message(), _hint(error))  # type: ignore[attr-defined]
    except MemoryError as error:
        _refuse(f"not enough memory: {error}")
    except PolyurnError as error:
        _refuse(str(error))
    except KeyboardInterrupt:  # before there was a command to interrupt
        sys.exit(INTERRUPTED)


def _refuse(message: str, hint: str = "") -> NoReturn:
    talk.quiet = False
    line = Text("error: ", style="bold red") + Text(" ".join(message.split()))
    talk.print(line + Text(hint, style="dim"), soft_wrap=True)
    sys.exit(2)


def _hint(error: Exception) -> str:
    """Where to read on about the command that was misused."""
    context = getattr(error, "ctx", None)
    return f" (try {'polyurn' if context is None else context.command_path} --help)"


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


_START = "Start here"
_LEARN = "Learn what the federation looks like"
_SIMULATE = "Simulate it"
_JUDGE = "See how good that is"

for panel, name, function in (
    (_START, "demo", demo.demo_command),
    (_START, "datasets", datasets.datasets_command),
    (_LEARN, "histogram", histogram.histogram_command),
    (_LEARN, "fit", fit.fit_command),
    (_LEARN, "select", select.select_command),
    (_LEARN, "show", show.show_command),
    (_LEARN, "score", score.score_command),
    (_SIMULATE, "sample", sample.sample_command),
    (_SIMULATE, "partition", partition.partition_command),
    (_JUDGE, "compare", compare.compare_command),
    (_JUDGE, "sweep", sweep.sweep_command),
    (_JUDGE, "report", report.report_command),
):
    app.command(name, rich_help_panel=panel)(as_command(function, keeps_runs=name == "sweep"))
