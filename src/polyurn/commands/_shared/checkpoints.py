"""Runs that can go on: the clients of a table, with a record of what they said.

What is kept is a sum per round; the format is `storage/journal.py`.
"""

from collections.abc import Mapping
from pathlib import Path

from polyurn.aggregate.local import LocalAggregator
from polyurn.aggregate.replay import RecordedAggregator
from polyurn.client.histogram import Histograms
from polyurn.commands._shared.client_tables import Say
from polyurn.counts import digest
from polyurn.storage.journal import Journal
from polyurn.wire import Aggregator
from polyurn.wording.numbers import counted

# Options that may differ between a run and its continuation.
_NO_MATTER = ("output", "checkpoint", "as_json", "threads", "quiet")


def recorded(
    aggregator: LocalAggregator,
    folder: Path | None,
    settings: Mapping[str, object],
    read: Histograms,
    say: Say,
) -> Aggregator:
    """The same clients, with a record of what they say if there is a folder for it."""
    if folder is None:
        return aggregator
    matter = {k: str(v) for k, v in settings.items() if k not in _NO_MATTER}
    if matter["command"] == "fit":
        del matter["rounds"]  # a fit that was to take fewer rounds begins in the same way
    journal = Journal(folder, {**matter, "histograms": digest(read.counts)})
    if len(journal):
        say(f"going on after {counted(len(journal), 'round')} from {folder}")
    return RecordedAggregator(aggregator, journal)
