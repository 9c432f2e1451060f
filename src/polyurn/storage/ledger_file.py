"""A privacy ledger on disk: a chained log of budgets and charges, which only its owner may read.

A charge is on disk before its question is asked. A last line that was cut off is a charge that was never
made: nothing was asked for it. A file that was emptied, deleted or put back is no fresh budget to
whoever has kept its mark. What entries mean is `privacy/ledger.py`, what a log is `json_log.py`.
"""

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from polyurn.errors import FileError, ParameterError
from polyurn.privacy.ledger import (
    Budget,
    Charge,
    Entry,
    ExactRelease,
    PrivacyLedger,
    Renewal,
    last_budget,
)
from polyurn.storage.json_log import JsonLog
from polyurn.typed.arguments import checked

_ADVICE = "what was spent is not known: restore a copy that is whole, or take its budget as used up"


@checked
def open_ledger(path: str | os.PathLike[str], *, epsilon: float, delta: float) -> PrivacyLedger:
    """The ledger in a file; a new file is begun if there is none.

    Parameters
    ----------
    path : path
        Keep it beside the model. Use one ledger for the same clients, whatever is asked of them.
    epsilon, delta : float
        The budget of a new ledger; a file that exists keeps its own.

    Raises
    ------
    FileError
        The file cannot be used, is damaged, or is not a ledger.
    """
    return PrivacyLedger(epsilon, delta, entries=LedgerFile(path))


def raised_ledger(
    path: str | os.PathLike[str],
    *,
    epsilon: float | None,
    delta: float,
    first: float,
    renew: str | None = None,
    key: bytes = b"",
    mark: str = "",
) -> PrivacyLedger:
    """The ledger in a file, with the budget that its keeper has decided on.

    An `epsilon` beyond that of the file raises its budget, and a line of the file says so; None leaves
    it as it is, and a new ledger begins with `first`. Less, or another `delta`, is a ParameterError.
    `renew` is as in `Renewal.of`, with `first`; `key` and `mark` are as in `LedgerFile`. A refused call
    changes nothing.
    """
    entries = LedgerFile(path, key=key, mark=mark)
    kept = entries.read()
    was, renewal = last_budget(kept), Renewal.of(renew, first, kept)
    if was is None:
        most = first if epsilon is None else epsilon
        return PrivacyLedger(most, delta, entries=entries, renewal=renewal)
    if delta != was.delta:
        raise ParameterError(f"expected delta {was.delta:g}, that of {path}, got {delta:g}")
    if epsilon is not None and epsilon < was.epsilon:
        raise ParameterError(
            f"expected a budget of at least epsilon {was.epsilon:g}, that of {path}, got {epsilon:g}: "
            "a budget is raised, never lowered"
        )
    ledger = PrivacyLedger(was.epsilon, was.delta, entries=entries, renewal=renewal)
    if epsilon is not None and epsilon > was.epsilon:
        ledger.raise_to(epsilon)
    return ledger


@dataclass(frozen=True)
class _Line:
    """An entry: one of them is there."""

    budget: Budget | None = None
    charge: Charge | None = None
    exact: ExactRelease | None = None


class LedgerFile:
    """The entries of a ledger in a file; several processes may use it.

    With a secret `key`, nobody else can write lines that are taken for its own. The file has to have the
    entries of `mark`, and all that were ever seen here; otherwise it is a FileError.
    """

    def __init__(self, path: str | os.PathLike[str], *, key: bytes = b"", mark: str = "") -> None:
        self._path, self._seen = path, mark
        if mark and not os.path.lexists(path):
            raise self._is_older()
        self._log = JsonLog(
            path, _Line, kind="ledger", name="a privacy ledger", advice=_ADVICE, key=key
        )
        with self.turn():
            self.read()

    def turn(self) -> AbstractContextManager[None]:
        """Make other processes wait until the block ends."""
        return self._log.turn()

    def read(self) -> list[Entry]:
        """All entries; a last line that was cut off is none."""
        lines = [(line.budget, line.charge, line.exact) for line in self._log.read()]
        if self._seen and not self._log.has(self._seen):
            raise self._is_older()
        self._seen = self.mark
        return [entry for line in lines for entry in line if entry is not None]

    def append(self, entry: Entry) -> None:
        """One more line, on disk when this returns."""
        name = {Budget: "budget", Charge: "charge", ExactRelease: "exact"}[type(entry)]
        line: Any = {name: entry}
        self._log.append(_Line(**line), consequence="; nothing was asked")
        self._seen = self.mark

    @property
    def mark(self) -> str:
        """Names the entries so far."""
        return self._log.mark

    def _is_older(self) -> FileError:
        n_charged = self._seen.partition(":")[0]
        return FileError(
            f"{self._path} does not have the {n_charged} entries that it had: {_ADVICE}"
        )
