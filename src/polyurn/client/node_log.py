"""The owner's record of what a node was asked: one line per message, for a person to read.

It is also what `NodePolicy.rounds_per_day` is counted by, and what says that a stage of a secure sum was
answered, so that a restart does not forget. The file is `storage/node_log_file.py`.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, Self

from polyurn.wire.node_messages import Refusal

_TIME = "%Y-%m-%d %H:%M:%S UTC"
_SENDS_NUMBERS = ("plain", "mask")
_OF = " of round "


@dataclass(frozen=True)
class LogEntry:
    """One message and what became of it.

    Attributes
    ----------
    when : datetime
    stage : str
        "plain", or one of the five of a secure sum; numbers are sent in "plain" and "mask".
    kind : str
        What was asked, as `Query.text` has it.
    n_numbers : int
        How many were sent.
    refusal : Refusal, optional
        None if it was answered.
    round_name : str
        Of a secure sum: the same in the lines of all its stages.

    Examples
    --------
    >>> entry = LogEntry(datetime(2026, 11, 17, 9, 30, tzinfo=UTC), "plain", "survey", 31)
    >>> entry.line()
    '2026-11-17 09:30:00 UTC | plain | survey | 31 numbers sent | answered'
    >>> LogEntry.parse(entry.line()) == entry
    True
    >>> LogEntry(entry.when, "share", "survey", round_name="5f0c").line()
    '2026-11-17 09:30:00 UTC | share of round 5f0c | survey | 0 numbers sent | answered'
    """

    when: datetime
    stage: str
    kind: str
    n_numbers: int = 0
    refusal: Refusal | None = None
    round_name: str = ""

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
        return " | ".join([when, stage, self.kind, f"{self.n_numbers} numbers sent", why])

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """The entry that `line` wrote; None of a line that was cut off, or is somebody's own note."""
        try:
            when, stage, kind, sent, why = line.split(" | ")
            refusals = {f"refused: {refusal.text}": refusal for refusal in Refusal}
            refusal = None if why == "answered" else refusals[why]
            time = datetime.strptime(when, _TIME).replace(tzinfo=UTC)
            stage, _, name = stage.partition(_OF)
            return cls(time, stage, kind, int(sent.removesuffix(" numbers sent")), refusal, name)
        except (ValueError, KeyError):
            return None


class NodeLog(Protocol):
    """Where a node's entries are kept."""

    def turn(self) -> AbstractContextManager[object]:
        """Keeps other processes of the node waiting, from the limits to the entry."""

    def n_rounds_since(self, when: datetime) -> int:
        """How many entries since then are rounds."""

    def has_answered(self, stage: str, round_name: str, *, since: datetime) -> bool:
        """Whether this stage of this secure sum was answered since then."""

    def append(self, entry: LogEntry) -> None:
        """Keeps an entry, on disk when it returns."""
