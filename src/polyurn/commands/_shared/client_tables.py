"""Tables of clients as the commands take them: their histograms, and the bounds that were not declared.

Each function takes `say`, because it says what it took from the table instead of being told.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from polyurn.client.bins import Bins
from polyurn.client.histogram import Histograms
from polyurn.client.tables import observed_categories, table_histograms
from polyurn.counts import check_counts, client_sizes, drop_empty
from polyurn.errors import CountsError
from polyurn.storage.provenance import DataRecord
from polyurn.storage.tables import read_table

Say: TypeAlias = Callable[[str], None]
Declared: TypeAlias = int | tuple[str, ...] | None


def read_clients(
    path: Path,
    client: str,
    category: str,
    count: str | None,
    declared: Declared,
    drop: bool,
    say: Say,
) -> Histograms:
    """The histograms of a table's clients, checked."""
    table = read_table(path)
    read = histograms_of(table, path, client, category, count, declared, say)
    if drop:
        counts, kept = drop_empty(read.counts)
        say(f"left out {read.shape[0] - len(kept)} clients without points")
        read = Histograms(counts, read.clients[kept], read.categories)  # type: ignore[arg-type]
    check_counts(read.counts)
    return read


def histograms_of(
    table: Any,
    path: Path,
    client: str,
    category: str,
    count: str | None,
    declared: Declared | Bins,
    say: Say,
) -> Histograms:
    """The histograms of a table that was read from `path`; without `declared`, of what it shows."""
    with naming(path):
        return table_histograms(
            table,
            categories=shown_categories(table, category, say) if declared is None else declared,
            client=client,
            category=category,
            count=count_column(table, count),
        )


def count_column(table: Any, named: str | None) -> str | None:
    """The column of counts: the one that was named, or `count` when it is there."""
    return "count" if named is None and "count" in table.column_names else named


def shown_categories(table: Any, category: str, say: Say) -> int | tuple[str, ...]:
    """The categories that a table shows, which is said."""
    shown = observed_categories(table, category=category)
    n = shown if isinstance(shown, int) else len(shown)
    say(f"{n} categories, from the table; declare them with --categories")
    return shown


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What is wrong with a table, with the name of its file."""
    try:
        yield
    except CountsError as error:
        raise CountsError(f"{path}: {error}") from None


def data_record(path: Path, read: Histograms) -> DataRecord:
    """What was read, for the file that is made of it: a name and three sums, no client."""
    n_clients, n_categories = read.shape
    n_points = int(client_sizes(read.counts).sum())
    return DataRecord(
        file=path.name, n_clients=n_clients, n_categories=n_categories, n_points=n_points
    )


def largest_size(declared: int | None, read: Histograms, say: Say) -> int:
    """The declared largest size, or the table's, and then it is said."""
    if declared is not None:
        return declared
    largest = int(client_sizes(read.counts).max())
    say(f"max_size {largest}, from the table; declare it with --max-size")
    return largest
