"""What the commands work on: a table of clients, played in this process.

Each function takes `say`, because what was taken from the table instead of being declared is said.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn import files
from polyurn.aggregate.local import LocalAggregator
from polyurn.aggregate.recorded import RecordedAggregator
from polyurn.client.histogram import Histograms, category_names
from polyurn.client.tables import category_codes, observed_categories, table_histograms
from polyurn.counts import check_counts, client_sizes, drop_empty
from polyurn.errors import FileError
from polyurn.journal import Journal
from polyurn.populations import oracle_counts
from polyurn.redraws import Population
from polyurn.wire import Aggregator

Say: TypeAlias = Callable[[str], None]
Declared: TypeAlias = int | tuple[str, ...] | None

# Options that may differ between a run and its continuation.
_NO_MATTER = ("output", "checkpoint", "as_json", "threads", "quiet")


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


@dataclass(frozen=True)
class Proxy:
    """Proxy data and the clients that are to hold them.

    Attributes
    ----------
    labels : int array of shape (n_points,)
    categories : tuple of str
    population : MDM, or function (n_clients, rng) -> counts
        For a table of clients, a random choice of them.
    counts : csr_array of shape (n_clients, n_categories), or None for an MDM
    clients : array of shape (n_clients,), or None for an MDM
        Their ids.
    """

    labels: NDArray[np.int64]
    categories: tuple[str, ...]
    population: Population
    counts: Any = None
    clients: NDArray[Any] | None = None


def read_proxy(
    labels: Path,
    label_column: str,
    clients: Path,
    client: str,
    category: str,
    count: str | None,
    declared: Declared,
    drop: bool,
    may_be_mdm: bool,
    say: Say,
) -> Proxy:
    """The proxy data's labels, and clients with the same categories."""
    points = files.read_table(labels)
    if clients.suffix == ".json":
        if not may_be_mdm:
            raise FileError(
                f"{clients} is not a table of clients; draw them with `polyurn sample`, or use --cover"
            )
        saved = files.load_saved(clients)
        known = saved.categories or saved.mdm.n_categories
        codes = category_codes(points, known, category=label_column)
        return Proxy(codes, category_names(known), saved.mdm)
    if declared is None:
        declared = _both(
            observed_categories(points, category=label_column),
            observed_categories(files.read_table(clients), category=category),
        )
        n = declared if isinstance(declared, int) else len(declared)
        say(f"{n} categories, from the tables; declare them with --categories")
    codes = category_codes(points, declared, category=label_column)
    read = read_clients(clients, client, category, count, declared, drop, say)

    def population(n_clients: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return oracle_counts(read.counts, n_clients, rng=rng)

    return Proxy(codes, read.categories, population, read.counts, read.clients)


def _both(a: int | tuple[str, ...], b: int | tuple[str, ...]) -> int | tuple[str, ...]:
    """The categories of two tables together: numbers with numbers, names with names."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    names = [names for names in (a, b) if not isinstance(names, int)]
    return tuple(sorted(set().union(*names)))


def data_record(path: Path, read: Histograms) -> dict[str, object]:
    """What was read, for the file that is made of it: a name and three sums, no client."""
    n_clients, n_categories = read.shape
    n_points = int(client_sizes(read.counts).sum())
    return {
        "file": path.name,
        "n_clients": n_clients,
        "n_categories": n_categories,
        "n_points": n_points,
    }


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
