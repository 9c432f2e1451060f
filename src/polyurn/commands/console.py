r"""Where commands write: messages to stderr, results to stdout; no foreign name controls the terminal.

Names and paths may come from files of other people: letters are shown as they are, control characters as
escapes such as \x1b. Each command decides what its result looks like.
"""

import json
import os
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.text import Text

from polyurn.errors import FileError

if TYPE_CHECKING:
    from rich.table import Table

T = TypeVar("T")

INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C

# Controls, formats (such as the overrides of direction), halves of surrogate pairs, ends of lines.
_NOT_SENT = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_NO_BOUND = 1_000_000  # columns, more than a table has
_JOINERS = "\u200c\u200d"  # formats that belong to the writing of Persian, of Hindi and of emoji


def visible(text: str) -> str:
    r"""The text with control characters as escapes, on one line.

    >>> print(visible("caf\xe9\x1b[31m\n"))
    café\x1b[31m\n
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in _NOT_SENT and c not in _JOINERS
        else c
        for c in text
    )


class _Terminal(Console):
    """A console to which only rich itself sends control characters."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:  # before widths are measured
        return super().render_str(visible(text), **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_shown(segment.text), segment.style)


talk = _Terminal(stderr=True)


def say(text: str) -> None:
    """One sentence for the person at the terminal."""
    talk.print(text, soft_wrap=True)


def warn(text: str) -> None:
    """A sentence about something that the result lacks; `--quiet` does not silence it."""
    quiet, talk.quiet = talk.quiet, False
    say(text)
    talk.quiet = quiet


@contextmanager
def warnings_as_sentences(kind: type[Warning]) -> Iterator[None]:
    """Show warnings of a kind as sentences, each once, when the work ends."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", kind)
            yield
    finally:
        for text in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, kind)):
            warn(text)
        for other in (w for w in caught if not issubclass(w.category, kind)):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def show(table: "Table | Text") -> None:
    """A table, or a line, as the command's result."""
    _Terminal(file=_stdout()).print(table)


def parts_that_fit(items: Iterable[T], table: "Callable[[list[T]], Table]") -> Iterator[list[T]]:
    """The items in order, as many at a time as their table fits the terminal with, and at least one.

    A table fits if nothing of it is folded and nothing cut.
    """
    terminal, part = _Terminal(file=_stdout()), list[T]()
    unbounded = terminal.options.update(max_width=_NO_BOUND)
    for item in items:
        whole = table([*part, item])
        if part and Measurement.get(terminal, unbounded, whole).maximum > terminal.width:
            yield part
            part = []
        part.append(item)
    yield part


def print_json(document: dict[str, Any]) -> None:
    """A document as the command's result, on one line."""
    print_data([json.dumps(document, allow_nan=False).encode(), b"\n"])


def print_data(pieces: Iterable[bytes]) -> None:
    """A file as the command's result: its bytes, or its text on a terminal."""
    stream = _stdout()
    for piece in pieces:
        if stream.isatty():
            stream.write(_shown(piece.decode()))
            continue
        left = memoryview(piece)
        while left:  # without a buffer (PYTHONUNBUFFERED) a write may be a part of it
            left = left[stream.buffer.write(left) :]  # type: ignore[attr-defined]


def leave_stdout() -> None:
    """Discard unwritten output, so that Python does not try to write it again when it exits."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _stdout() -> IO[str]:
    if sys.stdout is None:
        raise FileError("cannot write the result: the standard output is closed")
    return sys.stdout


def _shown(text: str) -> str:
    """What is visible of each line."""
    return "\n".join(map(visible, text.split("\n")))
