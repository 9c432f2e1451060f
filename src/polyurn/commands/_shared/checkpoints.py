"""Runs that can go on: the clients of a table, with a record of what they said.

What is kept is a sum per round; the format is `storage/journal.py`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from polyurn.aggregate.replay import RecordedAggregator
from polyurn.commands._shared.client_tables import Say
from polyurn.storage.journal import Journal
from polyurn.wire import Aggregator
from polyurn.wording.numbers import counted

# Options that may differ between a run and its continuation.
_NO_MATTER = ("output", "checkpoint", "as_json", "threads", "scheduler", "quiet")


class HasDigest(Protocol):
    """Clients whose histograms have a name of their own."""

    @property
    def digest(self) -> str: ...


def recorded(
    aggregator: Aggregator,
    folder: Path | None,
    settings: Mapping[str, object],
    read: HasDigest,
    say: Say,
) -> Aggregator:
    """The same clients, with a record of what they say if there is a folder for it."""
    if folder is None:
        return aggregator
    matter = {k: str(v) for k, v in settings.items() if k not in _NO_MATTER}
    if matter["command"] == "fit":
        del matter["rounds"]  # a fit that was to take fewer rounds begins in the same way
    journal = Journal(folder, {**matter, "histograms": read.digest})
    if len(journal):
        say(f"going on after {counted(len(journal), 'round')} from {folder}")
    return RecordedAggregator(aggregator, journal)
