"""What the commands work on: a table of clients, played in this process.

Each function takes `say`, because what was taken from the table instead of being declared is said.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from polyurn import files
from polyurn.aggregate.local import LocalAggregator
from polyurn.aggregate.recorded import RecordedAggregator
from polyurn.client.histogram import Histograms
from polyurn.client.tables import observed_categories, table_histograms
from polyurn.counts import check_counts, client_sizes, drop_empty
from polyurn.journal import Journal
from polyurn.wire import Aggregator

Say: TypeAlias = Callable[[str], None]

# Options that may differ between a run and its continuation.
_NO_MATTER = ("output", "checkpoint", "as_json", "threads")


def read_clients(
    path: Path,
    client: str,
    category: str,
    count: str | None,
    declared: int | tuple[str, ...] | None,
    drop: bool,
    say: Say,
) -> Histograms:
    """The histograms of a table's clients, checked."""
    table = files.read_table(path)
    if count is None and "count" in table.column_names:
        count = "count"
    if declared is None:
        declared = observed_categories(table, category=category)
        n = declared if isinstance(declared, int) else len(declared)
        say(f"{n} categories, from the table; declare them with --categories")
    read = table_histograms(
        table, categories=declared, client=client, category=category, count=count
    )
    if drop:
        counts, kept = drop_empty(read.counts)
        say(f"left out {read.shape[0] - len(kept)} clients without points")
        read = Histograms(counts, read.clients[kept], read.categories)  # type: ignore[arg-type]
    check_counts(read.counts)
    return read


def largest_size(declared: int | None, read: Histograms, say: Say) -> int:
    """The declared largest size, or the table's, and then it is said."""
    if declared is not None:
        return declared
    largest = int(client_sizes(read.counts).max())
    say(f"max_size {largest}, from the table; declare it with --max-size")
    return largest


def recorded(
    aggregator: LocalAggregator, folder: Path | None, settings: Mapping[str, object], say: Say
) -> Aggregator:
    """The same clients, with a record of what they say if there is a folder for it."""
    if folder is None:
        return aggregator
    journal = Journal(folder, {k: str(v) for k, v in settings.items() if k not in _NO_MATTER})
    if len(journal):
        say(f"going on after {len(journal)} rounds from {folder}")
    return RecordedAggregator(aggregator, journal)
