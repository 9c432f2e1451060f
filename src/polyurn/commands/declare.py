"""How a function becomes a command: groups of options, options without effect, `--quiet`, Ctrl-C.

The default of a parameter declares it: `option` or `argument`. A parameter whose type is a dataclass is
a group, and its fields are options. An option states what it has no effect without (`Needs`) or with
(`Unless`).
"""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Any

import typer
from typer.models import OptionInfo

from polyurn.commands.console import INTERRUPTED, say, talk
from polyurn.errors import ParameterError


@dataclass(frozen=True)
class Needs:
    """An option has no effect without another, or without this value of another."""

    option: str
    value: str | None = None


@dataclass(frozen=True)
class Unless:
    """An option has no effect with another, or with this value of another."""

    option: str
    value: str | None = None
    because: str = ""


def option(default: Any, help: str, *more: str | Needs | Unless, **settings: Any) -> Any:  # noqa: A002
    """Declare a parameter as an option, with its default; with `...` it has to be given.

    `more` are its names, if they differ from the parameter's, and its rules (`Needs`, `Unless`).
    """
    names = [one for one in more if isinstance(one, str)]
    declared = typer.Option(default, *names, help=help, **settings)
    declared.rules = [one for one in more if not isinstance(one, str)]
    return declared


def also(declared: Any, *rules: Needs | Unless, default: Any = ...) -> Any:
    """A shared option with more rules: what else it has no effect without, or with, in this command."""
    changed = copy(declared)
    changed.rules = [*declared.rules, *rules]
    changed.default = declared.default if default is ... else default
    return changed


def argument(metavar: str, help: str, default: Any = ...) -> Any:  # noqa: A002
    """Declare a parameter as an argument of the command."""
    return typer.Argument(default, metavar=metavar, help=help)


def as_command(function: Callable[..., None], *, keeps_runs: bool = False) -> Callable[..., None]:
    """The command that a function describes, as typer takes it.

    With `keeps_runs`, `output` is a folder that keeps what was finished before Ctrl-C; other files are
    written whole or not at all.
    """
    own = inspect.signature(function, eval_str=True).parameters
    groups: Any = {n: p.annotation for n, p in own.items() if is_dataclass(p.annotation)}
    options = [option for p in own.values() for option in _options(p)]
    rules = {one.name: getattr(one.default, "rules", ()) for one in options}

    @wraps(function)
    def command(*, context: typer.Context, quiet: bool, **arguments: Any) -> None:
        talk.quiet = quiet
        refuse_ineffective(context, rules)
        refuse_overwriting(context)
        for name, group in groups.items():
            arguments[name] = group(**{f.name: arguments.pop(f.name) for f in fields(group)})
        if "context" in own:
            arguments["context"] = context
        try:
            function(**arguments)
        except KeyboardInterrupt:
            folder = context.params.get("output")
            if keeps_runs and os.path.isdir(str(folder)):
                say(f"interrupted; what was finished is in {folder}: repeat the command to go on")
            raise typer.Exit(INTERRUPTED) from None

    quietly = option(False, "Say nothing but results and errors.", "--quiet", "-q")
    shown = [_option("context", typer.Context), *options, _option("quiet", bool, quietly)]
    # typer reads the options from the signature.
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in shown}
    del command.__wrapped__
    return command


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """A parameter, or the fields of a group; none for the context, which every command has."""
    if parameter.annotation is typer.Context:
        return []
    if not is_dataclass(parameter.annotation):
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    title = (inspect.getdoc(parameter.annotation) or "").partition("\n")[0].rstrip(".")
    found = [_option(f.name, f.type, copy(f.default)) for f in fields(parameter.annotation)]
    for one in found:
        if isinstance(one.default, OptionInfo):
            one.default.rich_help_panel = title
    return found


def _option(name: str, kind: Any, default: Any = MISSING) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def refuse_ineffective(
    context: typer.Context, rules: Mapping[str, Iterable[Needs | Unless]]
) -> None:
    """Refuse options that were given and, by the rules they state, have no effect."""
    words = {p.name: p.opts[0] for p in context.command.params}
    for name, declared in rules.items():
        for rule in declared:
            if rule.option not in context.params:
                continue
            other = words[rule.option]
            if rule.value is not None:
                other += f" {rule.value}"
            if isinstance(rule, Needs) and not _is_set(context, rule):
                refuse_options(context, [name], f"without {other}")
            elif isinstance(rule, Unless) and _is_set(context, rule):
                refuse_options(context, [name], f"with {other}{rule.because}")


def _is_set(context: typer.Context, rule: Needs | Unless) -> bool:
    value = context.params[rule.option]
    if rule.value is None:
        return value is not None and value is not False
    return str(value).partition(":")[0] == rule.value  # paper:pooled is a kind of paper


def refuse_options(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options that were given; `why` ends the sentence "--option has no effect ..."."""
    words = {p.name: p.opts[0] for p in context.command.params}
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ParameterError(f"{words[name]} has no effect {why}: leave it out")


def refuse_overwriting(context: typer.Context) -> None:
    """Refuse to write over a file that the command reads."""
    output = context.params.get("output")
    if output is None or not os.path.isfile(output):
        return
    read: list[Any] = []
    for name, value in context.params.items():
        if name not in ("output", "checkpoint"):
            read += value if isinstance(value, list | tuple) else [value]
    for thing in read:
        path = str(thing).split("=", 1)[-1]  # some are NAME=FILE
        # For a name that is too long, os.path says that there is no file; pathlib raises.
        if os.path.isfile(path) and os.path.samefile(output, path):
            raise ParameterError(f"{output} is read by this command; write to another file")


def provenance_of(context: typer.Context, seed: int) -> dict[str, Any]:
    """How a file came about."""
    return {"seed": seed, "command": context.obj}
