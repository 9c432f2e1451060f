"""What the commands work on: a table of clients, played in this process.

Each function takes `say`, because what was taken from the table instead of being declared is said.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.local import LocalAggregator
from polyurn.aggregate.replay import RecordedAggregator
from polyurn.client.bins import Bins
from polyurn.client.histogram import Histograms, category_names
from polyurn.client.tables import category_codes, observed_categories, table_histograms
from polyurn.counts import check_counts, client_sizes, digest, drop_empty
from polyurn.errors import CountsError, FileError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.populations import Oracle, Population
from polyurn.storage import files
from polyurn.storage.journal import Journal
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


@dataclass(frozen=True)
class Proxy:
    """Proxy data and the clients that are to hold them.

    Attributes
    ----------
    labels : int array of shape (n_points,)
    categories : tuple of str
    population : Population
        For a table of clients, a random choice of them, unless others are to take their place.
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
    covers: bool,
    redraw_from: Path | None,
    say: Say,
) -> Proxy:
    """The proxy data's labels, and clients with the same categories.

    `clients` may be an MDM file if they are drawn (`covers`); `redraw_from` is one.
    """
    points = files.read_table(labels)
    if clients.suffix == ".json":
        if not covers:
            raise FileError(
                f"{clients} is not a table of clients; draw them with `polyurn sample`, or use --cover"
            )
        if drop:
            raise ParameterError("an MDM has no clients without points: leave out --drop-empty")
        mdm, known = _mdm_and_categories(clients, declared)
        with naming(labels):
            codes = category_codes(points, known, category=label_column)
        return Proxy(codes, category_names(known), mdm)
    others: Population | None = None
    if redraw_from is not None:
        others, declared = _mdm_and_categories(redraw_from, declared)
    if declared is None:
        declared = _both(
            observed_categories(points, category=label_column),
            observed_categories(files.read_table(clients), category=category),
        )
        n = declared if isinstance(declared, int) else len(declared)
        say(f"{n} categories, from the tables; declare them with --categories")
    with naming(labels):
        codes = category_codes(points, declared, category=label_column)
    read = read_clients(clients, client, category, count, declared, drop, say)
    population = Oracle(read.counts) if others is None else others
    return Proxy(codes, read.categories, population, read.counts, read.clients)


def _mdm_and_categories(path: Path, declared: Declared) -> tuple[MDM, int | tuple[str, ...]]:
    """An MDM file, whose categories are its own."""
    if declared is not None:
        raise ParameterError(f"{path} has its own categories: leave out --categories")
    saved = files.load_saved(path)
    return saved.mdm, saved.categories or saved.mdm.n_categories


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
        say(f"going on after {len(journal)} rounds from {folder}")
    return RecordedAggregator(aggregator, journal)
