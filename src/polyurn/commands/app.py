"""The commands: which there are, in the order of the flow, and how errors look.

What a command does is in its own module.
"""

import io
import shlex
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.text import Text

import polyurn
from polyurn.commands import (
    compare,
    datasets,
    demo,
    features,
    fit,
    histogram,
    pack,
    partition,
    privacy,
    report,
    sample,
    score,
    show,
    style,
    sweep,
)
from polyurn.commands.console import leave_stdout, talk, visible
from polyurn.commands.declare import as_command
from polyurn.commands.federation import init, join, up
from polyurn.commands.federation import run as federation_run
from polyurn.commands.federation import style as federation_style
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


_END = 200  # characters of a long message that are shown, at either end


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; mistakes and our own errors become one line and 2."""
    talk.quiet = False
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # what a terminal cannot show must not end a command
        sys.stdout.reconfigure(errors="replace")
    if any("\0" in word for word in arguments):  # no shell passes one
        return _refuse("expected words and names of files without zero characters, got one")
    try:
        command = shlex.join(["polyurn", *arguments])
        code = app(arguments or ["--help"], prog_name="polyurn", obj=command, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except _UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]
        # A group without a command has shown its help already, and says nothing more.
        return _refuse(_shortened(message), _hint(error)) if message else 2
    except MemoryError as error:
        return _refuse(f"not enough memory: {error}")
    except PolyurnError as error:
        return _refuse(str(error))
    except BrokenPipeError:  # whoever reads has seen enough
        leave_stdout()
        return 1
    except OSError as error:
        if error.filename is not None:
            raise
        leave_stdout()
        return _refuse(f"cannot write to the standard output: {error.strerror}")
    return int(code or 0)


def _refuse(message: str, hint: str = "") -> int:
    talk.quiet = False
    line = Text("error: ", style="bold red") + Text(visible(" ".join(message.split())))
    talk.print(line + Text(hint, style="dim"), soft_wrap=True)
    return 2


def _shortened(message: str) -> str:
    """A message with both its ends: what was typed may be long, and is in the middle."""
    if len(message) <= 2 * _END:
        return message
    return f"{message[:_END]} … {message[-_END:]}"


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

_COMMANDS: tuple[tuple[str, str, Callable[..., None]], ...] = (
    (_START, "demo", demo.demo_command),
    (_START, "datasets", datasets.datasets_command),
    (_LEARN, "features", features.features_command),
    (_LEARN, "histogram", histogram.histogram_command),
    (_LEARN, "pack", pack.pack_command),
    (_LEARN, "fit", fit.fit_command),
    (_LEARN, "show", show.show_command),
    (_LEARN, "score", score.score_command),
    (_LEARN, "style", style.style_command),
    (_SIMULATE, "sample", sample.sample_command),
    (_SIMULATE, "partition", partition.partition_command),
    (_JUDGE, "compare", compare.compare_command),
    (_JUDGE, "sweep", sweep.sweep_command),
    (_JUDGE, "report", report.report_command),
)
_KEEP_FILES = ("pack", "sample", "sweep")  # in a folder, with which they go on
for panel, name, function in _COMMANDS:
    app.command(name, rich_help_panel=panel)(as_command(function, keeps_runs=name in _KEEP_FILES))

_GROUPS: tuple[tuple[str, str, tuple[tuple[str, Callable[..., None]], ...]], ...] = (
    (
        "privacy",
        "See what differential privacy would cost, before anything is spent.",
        (("plan", privacy.plan_command),),
    ),
    (
        "federation",
        "Learn from live nodes: set a federation up, join it, ask it.",
        (
            ("init", init.init_command),
            ("keys", init.keys_command),
            ("up", up.up_command),
            ("join", join.join_command),
            ("run", federation_run.run_command),
            ("style", federation_style.style_command),
            ("status", up.status_command),
            ("down", up.down_command),
        ),
    ),
)
for group, help_line, commands in _GROUPS:
    group_app = typer.Typer(help=help_line, no_args_is_help=True)
    for name, function in commands:
        group_app.command(name)(as_command(function))
    app.add_typer(group_app, name=group, rich_help_panel=_LEARN)
