"""A privacy ledger on disk: a chained log of budgets and charges, which only its owner may read.

A charge is on disk before its question is asked. A last line that was cut off is not a charge: its
question was not asked. `privacy/ledger.py` says what entries mean, `json_log.py` what a log is.
"""

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass

from polyurn.errors import ParameterError
from polyurn.privacy.ledger import Budget, Charge, Entry, PrivacyLedger
from polyurn.storage.json_log import JsonLog
from polyurn.typed.arguments import checked


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
    path: str | os.PathLike[str], *, epsilon: float | None, delta: float, first: float
) -> PrivacyLedger:
    """The ledger in a file, with the budget that its keeper has decided on.

    An `epsilon` above that of the file raises the budget and adds a line to the file. With None the file
    keeps its budget, and a new ledger begins with `first`. A smaller `epsilon`, or another `delta`, is a
    ParameterError.
    """
    entries = LedgerFile(path)
    budgets = [entry for entry in entries.read() if isinstance(entry, Budget)]
    if not budgets:
        return PrivacyLedger(first if epsilon is None else epsilon, delta, entries=entries)
    was = budgets[-1]
    if delta != was.delta:
        raise ParameterError(f"expected delta {was.delta:g}, that of {path}, got {delta:g}")
    ledger = PrivacyLedger(was.epsilon, was.delta, entries=entries)
    if epsilon is not None and epsilon < was.epsilon:
        raise ParameterError(
            f"expected a budget of at least epsilon {was.epsilon:g}, that of {path}, got {epsilon:g}: "
            "a budget is raised, never lowered"
        )
    if epsilon is not None and epsilon > was.epsilon:
        ledger.raise_to(epsilon)
    return ledger


@dataclass(frozen=True)
class _Line:
    """An entry: either a budget or a charge."""

    budget: Budget | None = None
    charge: Charge | None = None


class LedgerFile:
    """The entries of a ledger in a file; several processes may use it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._log = JsonLog(
            path, _Line, kind="ledger", name="a privacy ledger",
            advice="what was spent is not known: restore a copy that is whole, or take its budget as "
            "used up",
        )  # fmt: skip
        with self.turn():
            self.read()

    def turn(self) -> AbstractContextManager[None]:
        """Make other processes wait until the block ends."""
        return self._log.turn()

    def read(self) -> list[Entry]:
        """All entries, without a last line that was cut off."""
        both = ((line.budget, line.charge) for line in self._log.read())
        return [entry for pair in both for entry in pair if entry is not None]

    def append(self, entry: Entry) -> None:
        """One more line, on disk when this returns."""
        is_budget = isinstance(entry, Budget)
        line = _Line(budget=entry) if is_budget else _Line(charge=entry)  # type: ignore[arg-type]
        self._log.append(line, consequence="; nothing was asked")
