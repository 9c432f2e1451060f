"""The table of commands, in the order in which they are used, and how errors are shown.

A new command is a function in a module of `commands` and a row of `_COMMANDS`.
"""

import io
import re
import shlex
import sys
from importlib import import_module
from typing import Annotated

import typer
from rich.text import Text

import polyurn
from polyurn.commands.console import leave_stdout, talk, visible
from polyurn.commands.declare import as_command
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
    except BrokenPipeError:  # the reader has closed the pipe
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
    """A message with one suggestion, shortened in its middle, which may be long text of the user."""
    # click and typer both add the suggestion.
    message = re.sub(r"( Did you mean [^?]*[?])\1", r"\1", message)
    if len(message) <= 2 * _END:
        return message
    return f"{message[:_END]} … {message[-_END:]}"


def _hint(error: Exception) -> str:
    """A hint at the help of the command that was misused."""
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

# The command, the section of the help, and the module under `commands`; `fit` is its `fit_command`.
_COMMANDS = (
    ("demo", _START, "demo"),
    ("zoo", _START, "zoo"),
    ("zoo show", _START, "zoo"),
    ("describe", _LEARN, "looks"),
    ("features", _LEARN, "features"),
    ("histogram", _LEARN, "tables"),
    ("split", _LEARN, "tables"),
    ("pack", _LEARN, "tables"),
    ("fit", _LEARN, "fit"),
    ("show", _LEARN, "show"),
    ("score", _LEARN, "looks"),
    ("style", _LEARN, "style"),
    ("sample", _SIMULATE, "sample"),
    ("partition", _SIMULATE, "sample"),
    ("compare", _JUDGE, "compare"),
    ("compare-to-zoo", _JUDGE, "zoo"),
    ("sweep", _JUDGE, "sweep"),
    ("report", _JUDGE, "report"),
    ("privacy plan", _LEARN, "privacy"),
    ("federation init", _LEARN, "federation.server"),
    ("federation keys", _LEARN, "federation.server"),
    ("federation up", _LEARN, "federation.server"),
    ("federation join", _LEARN, "federation.join"),
    ("federation describe", _LEARN, "federation.looks"),
    ("federation features", _LEARN, "federation.looks"),
    ("federation run", _LEARN, "federation.run"),
    ("federation score", _LEARN, "federation.looks"),
    ("federation style", _LEARN, "federation.run"),
    ("federation status", _LEARN, "federation.server"),
    ("federation down", _LEARN, "federation.server"),
)
_GROUPS = {
    "zoo": "List the models of real federations, or show the card of one.",
    "privacy": "See what differential privacy would cost, before anything is spent.",
    "federation": "Learn from live nodes: set up a federation, join it, and ask it.",
}
_KEEP_FILES = {"pack", "sample", "sweep"}  # in a folder, with which they go on


def _add_commands() -> None:
    groups = {"": app}
    for words, section, module in _COMMANDS:
        group, _, name = words.rpartition(" ")
        function = getattr(
            import_module(f"polyurn.commands.{module}"), f"{name.replace('-', '_')}_command"
        )
        command = as_command(function, keeps_runs=words in _KEEP_FILES)
        if words in _GROUPS:  # a command by itself
            groups[words] = typer.Typer(help=_GROUPS[words])
            groups[words].callback(invoke_without_command=True)(command)
            app.add_typer(groups[words], name=words, rich_help_panel=section)
            continue
        if group not in groups:
            groups[group] = typer.Typer(help=_GROUPS[group], no_args_is_help=True)
            app.add_typer(groups[group], name=group, rich_help_panel=section)
        groups[group].command(name, rich_help_panel=None if group else section)(command)


_add_commands()
