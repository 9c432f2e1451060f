"""The owner's log of what a node was asked: a text file, one line per message, for people to read.

After a restart, the node counts `NodePolicy.rounds_per_day` from it, and finds which stages of secure
sums it has answered. Whole lines are appended in the order of their times; nothing is ever rewritten.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from polyurn.errors import FileError
from polyurn.federation.messages import Refusal
from polyurn.storage.json_log import AppendedFile

_TIME = "%Y-%m-%d %H:%M:%S UTC"
_SENDS_NUMBERS = ("plain", "mask")
_OF, _LEDGER = " of round ", " | ledger "
_BLOCK = 2**16  # bytes that are read at a time, from the end
_DAY = timedelta(days=1)
_STEP = timedelta(minutes=10)  # by which a clock may be put right: lines are in order but for that


@dataclass
class LogEntry:
    """One message and its outcome.

    >>> entry = LogEntry(datetime(2026, 11, 17, 9, 30, tzinfo=UTC), "plain", "survey", 31)
    >>> entry.line()
    '2026-11-17 09:30:00 UTC | plain | survey | 31 numbers sent | answered'
    >>> LogEntry.parse(entry.line()) == entry
    True
    >>> LogEntry(entry.when, "share", "survey", round_name="5f0c").line()
    '2026-11-17 09:30:00 UTC | share of round 5f0c | survey | 0 numbers sent | answered'
    >>> LogEntry(entry.when, "plain", "noised survey", 31, ledger="7:0d1e").line()
    '2026-11-17 09:30:00 UTC | plain | noised survey | 31 numbers sent | answered | ledger 7:0d1e'
    """

    when: datetime
    stage: str  # "plain", or one of the five of a secure sum
    kind: str = "unknown"  # of question, as `Query.text` names it
    n_numbers: int = 0  # sent, in "plain" and "mask"
    refusal: Refusal | None = None
    round_name: str = ""  # of a secure sum: the same in all its stages
    ledger: str = ""  # the mark of the owner's ledger after the answer was charged

    @property
    def is_round(self) -> bool:
        """Whether clients' data were looked at: it counts among the rounds of a day."""
        looked = self.refusal in (None, Refusal.NO_ANSWER, Refusal.FAILED)
        return looked and self.stage in _SENDS_NUMBERS

    def line(self) -> str:
        """The entry as a line, without its end."""
        why = "answered" if self.refusal is None else f"refused: {self.refusal.text}"
        when = self.when.astimezone(UTC).strftime(_TIME)
        stage = self.stage + (_OF + self.round_name if self.round_name else "")
        line = " | ".join([when, stage, self.kind, f"{self.n_numbers} numbers sent", why])
        return f"{line}{_LEDGER}{self.ledger}" if self.ledger else line

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """The entry that `line` wrote; None for a line that was cut off, or is a user's own note."""
        try:
            line, _, ledger = line.partition(_LEDGER)
            when, stage, kind, sent, why = line.split(" | ")
            refusals = {f"refused: {refusal.text}": refusal for refusal in Refusal}
            refusal = None if why == "answered" else refusals[why]
            time = datetime.strptime(when, _TIME).replace(tzinfo=UTC)
            stage, _, name = stage.partition(_OF)
            n_numbers = int(sent.removesuffix(" numbers sent"))
            return cls(time, stage, kind, n_numbers, refusal, name, ledger)
        except (ValueError, KeyError):
            return None


class NodeLogFile:
    """The log of one node; several processes of it may use one file, made with mode 0600."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = AppendedFile(path)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keeps other processes waiting until it is left; an error without room for a line."""
        with self._file.turn():
            end = self._file.path.stat().st_size
            self._file.append_bytes(b"\n" * 512, after=end, keep=False)  # no line is longer
            yield

    def n_rounds_since(self, when: datetime) -> int:
        """How many rounds there were; `when` is a day ago by a clock that was not set back."""
        self._check_clock(when + _DAY)
        return sum(entry.is_round for entry in self._since(when))

    def n_lines_since(self, when: datetime) -> int:
        """How many lines there are."""
        oldest, n_lines = LogEntry(when, "", "").line(), 0
        for line in filter(None, self._backwards()):
            if line < oldest and LogEntry.parse(line) is not None:
                break
            n_lines += 1
        return n_lines

    def has_answered(self, stage: str, round_name: str, *, since: datetime) -> bool:
        """Whether a line says so, or the round began before `since`: then it cannot be known."""
        for entry in self._since(since, containing=round_name):
            is_its = (entry.round_name, entry.refusal) == (round_name, None)
            if is_its and entry.stage in (stage, "advertise"):
                return entry.stage == stage
        return stage != "advertise"

    @property
    def last_ledger(self) -> str:
        """The mark of the ledger after the last answer that was charged to it; empty without one."""
        parsed = (LogEntry.parse(line) for line in self._backwards() if _LEDGER in line)
        return next((entry.ledger for entry in parsed if entry is not None), "")

    def append(self, entry: LogEntry) -> None:
        """One more line, on disk when this returns; a line that a crash cut off is ended first."""
        self._check_clock(entry.when)
        with self._file.opened() as descriptor:
            before = os.fstat(descriptor).st_size
            cut_off = before > 0 and _read(descriptor, 1, before - 1) != b"\n"
        text = ("\n" if cut_off else "") + entry.line() + "\n"
        self._file.append_bytes(text.encode(), after=before)

    def _check_clock(self, now: datetime) -> None:
        """Refuse a clock that says an earlier time than the last line."""
        last = next(filter(None, map(LogEntry.parse, self._backwards())), None)
        if last is not None and now < last.when - _STEP:
            raise FileError(
                f"{self._file.path}: expected a clock that says at least {last.when:{_TIME}}, as the "
                f"last line, got {now.astimezone(UTC):{_TIME}}: set it right; if that line is wrong, "
                "move the log away, and the rounds of a day begin anew"
            )

    def _since(self, when: datetime, *, containing: str = "") -> Iterator[LogEntry]:
        """The entries since then, the last one first, that contain a text."""
        # Lines begin with their time, so that hardly any of them has to be parsed.
        oldest = LogEntry(when - _STEP, "", "").line()
        for line in self._backwards():
            if line < oldest or containing in line:
                entry = LogEntry.parse(line)
                if entry is not None and entry.when < when - _STEP:
                    return
                if entry is not None and entry.when >= when:
                    yield entry

    def _backwards(self) -> Iterator[str]:
        with self._file.opened() as descriptor:
            at, tail = os.fstat(descriptor).st_size, b""
            while at:
                start = max(0, at - _BLOCK)
                tail = _read(descriptor, at - start, start) + tail
                first, *lines = tail.split(b"\n")
                yield from (line.decode(errors="replace") for line in reversed(lines))
                at, tail = start, first
            yield tail.decode(errors="replace")


def _read(descriptor: int, n_bytes: int, start: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, n_bytes)
