"""Command lines that are defective on purpose, one for each class of defect that the harness knows."""

import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from fuzz.case import Case
from fuzz.harness import Outcome, run

CASE = Case(
    ("show", "in.txt"),
    {"in.txt": b"given"},
    outputs=("out.json",),
    keeps=("kept",),
    oracle=lambda ran: None if ran.out == "right\n" else "not what was given",
)


def works(arguments: list[str]) -> None:
    sys.stdout.write("right\n")
    sys.exit(0)


def refuses(arguments: list[str]) -> None:
    _refuse("expected a table, got in.txt; take another file")


def _raises(arguments: list[str]) -> None:
    raise KeyError("weights")


def _prints_a_traceback(arguments: list[str]) -> None:
    sys.stderr.write("Traceback (most recent call last):\nKeyError: 'weights'\n")
    sys.exit(0)


def _warns(arguments: list[str]) -> None:
    warnings.warn("divide by zero", RuntimeWarning, stacklevel=1)
    works(arguments)


def _ends_with_another_code(arguments: list[str]) -> None:
    sys.exit(7)


def _works_after_an_error(arguments: list[str]) -> None:
    sys.stderr.write("error: expected a table\n")
    works(arguments)


def _says_two_lines(arguments: list[str]) -> None:
    _refuse("expected a table\ngot in.txt")


def _says_nothing(arguments: list[str]) -> None:
    sys.exit(2)


def _gives_no_advice(arguments: list[str]) -> None:
    _refuse("the file is strange")


def _speaks_of_the_inside(arguments: list[str]) -> None:
    _refuse("expected a table: 'NoneType' object is not subscriptable")


def _sends_an_escape(arguments: list[str]) -> None:
    _refuse("expected a table, got \x1b[31mred")


def _shows_all_of_it(arguments: list[str]) -> None:
    _refuse("expected a table, got " + "9" * 5000)


def _ignores(arguments: list[str]) -> None:
    sys.stdout.write("wrong\n")
    sys.exit(0)


def _changes_its_input(arguments: list[str]) -> None:
    Path("in.txt").write_text("changed")
    works(arguments)


def _removes_its_input(arguments: list[str]) -> None:
    Path("in.txt").unlink()
    works(arguments)


def _leaves_a_file(arguments: list[str]) -> None:
    Path("more.txt").write_text("more")
    works(arguments)


def _leaves_a_neighbour(arguments: list[str]) -> None:
    Path(".polyurn-0123").write_text("half")
    works(arguments)


def _leaves_an_empty_folder(arguments: list[str]) -> None:
    Path("kept").mkdir()
    refuses(arguments)


def _writes_before_it_refuses(arguments: list[str]) -> None:
    Path("out.json").write_text("{}")
    refuses(arguments)


def _prints_before_it_refuses(arguments: list[str]) -> None:
    sys.stdout.write("half of it")
    refuses(arguments)


def _writes_half(arguments: list[str]) -> None:
    Path("out.json").write_text('{"format": "polyurn.mdm", ')
    works(arguments)


def _has_not_enough_memory(arguments: list[str]) -> None:
    _refuse("not enough memory: ask for less")


def _refuse(text: str) -> None:
    sys.stderr.write(f"error: {text}\n")
    sys.exit(2)


# What each of them does wrong, as the harness calls it.
DEFECTIVE: dict[Callable[[list[str]], None], str] = {
    _raises: "traceback",
    _prints_a_traceback: "traceback",
    _warns: "warning",
    _ends_with_another_code: "exit code",
    _works_after_an_error: "exit code",
    _says_two_lines: "message",
    _says_nothing: "message",
    _gives_no_advice: "message",
    _speaks_of_the_inside: "message",
    _sends_an_escape: "message",
    _shows_all_of_it: "message",
    _ignores: "ignored",
    _changes_its_input: "changed input",
    _removes_its_input: "changed input",
    _leaves_a_file: "left over",
    _leaves_a_neighbour: "left over",
    _leaves_an_empty_folder: "left over",
    _writes_before_it_refuses: "half-written",
    _prints_before_it_refuses: "half-written",
    _writes_half: "half-written",
    _has_not_enough_memory: "memory",
}


def judge(name: str) -> Outcome:
    """What a worker makes of a case of this name: it dies, hangs, is mistaken, or has an outcome."""
    match name:
        case "deadly/0":
            os.abort()
        case "endless/0":
            signal.pause()
        case "mistaken/0":
            raise IndexError("a mistake of the generator")
    return run(CASE, main=works)
