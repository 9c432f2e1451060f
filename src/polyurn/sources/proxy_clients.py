"""Proxy points and the clients that will hold them: read from files, with the same categories.

Clients are those of a table, or drawn from an MDM file. `partitioning/assign.py` gives them points.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.client.columns import column_counts
from polyurn.client.counting import category_names
from polyurn.client.layout import category_columns, column_text
from polyurn.client.tables import (
    category_codes,
    known_codes,
    observed_codes,
    table_layout,
    with_names,
)
from polyurn.errors import CountsError, RowError
from polyurn.memory import check_memory
from polyurn.model.mdm import MDM
from polyurn.model.names import missing_remark
from polyurn.model.populations import Oracle, Population
from polyurn.sources.clients import Declared, Reading, Say, read_clients, shown_categories
from polyurn.sources.points import PointFile
from polyurn.storage.models import Saved, is_model
from polyurn.storage.table_files import naming, parquet_rows, read_table, table_batches
from polyurn.typed.declared import Ints
from polyurn.wording import counted, listed

# Bytes of peak memory of `partition` for each proxy point, and for each point that a client asks for
# (measured with 2 and 8 million of either, 20 points and 6.4 rows per client).
_BYTES_PER_PROXY_POINT = 27
_BYTES_PER_ASKED_POINT = 43
# Bytes for each feature of a proxy point, with a style (200,000 and 800,000 points of 16 features in a
# column of lists: 41; in columns of their own they take 29).
_BYTES_PER_FEATURE = 41
# Less memory needs no message.
_LARGE = 2**29

# A mixture with these labels, which points have so often as these codes occur.
Relabel: TypeAlias = Callable[[Saved[MDM], int | tuple[str, ...], Ints], Saved[MDM]]


@dataclass(frozen=True)
class ProxyClients:
    """Proxy data and the clients that will hold them.

    `labels` and `positions`, of shape (n_points,), are the category of each point that a client can
    hold and its row. `counts`, of shape (n_clients, n_categories), and the ids in `clients` are None
    for an MDM. `population` is who is drawn: the MDM, or clients of the table at random.
    """

    file: PointFile
    labels: Ints
    positions: Ints
    categories: tuple[str, ...]
    population: Population
    counts: Any = None
    clients: NDArray[Any] | None = None

    def drawn(self, n_clients: int, *, rng: int) -> "ProxyClients":
        """The proxy data with this many clients, drawn from the population."""
        return replace(self, counts=self.population.sample(n_clients, rng=rng))


def read_proxy(
    file: PointFile, clients: Path | Saved[MDM], reading: Reading, declared: Declared,
    relabelled: Relabel | None = None,
) -> ProxyClients:  # fmt: skip
    """The labels of the proxy data, and clients of a table or of an MDM with the same categories.

    The category's column is asked for in the proxy data and in the table, either of which may lack it.
    `relabelled` lays an MDM over the labels that the points have.
    """
    if isinstance(clients, Saved):
        file.refuse_names({"--category": reading.asked.category})
        declared, reading = clients.declared, reading.like(clients)
    with naming(file.path):
        column, is_asked = _category_column(file, reading, clients)
        parts = (column,) if isinstance(column, str) else column
        points, kept = reading.whole_rows(file.table, parts)
    if relabelled is not None and isinstance(clients, Saved):
        shown = replace(file, table=points)
        declared = shown.shown_labels(column)
        if remark := missing_remark(declared):
            reading.say(remark)
        clients = relabelled(clients, declared, shown.codes(declared, column))
    of_clients = reading.with_other_category() if is_asked else reading
    if declared is None:
        assert isinstance(clients, Path)
        declared = _categories_of_both(replace(file, table=points), column, clients, of_clients)
    with naming(file.path, kept):
        if reading.match:
            points, column = with_names(points, column, declared, reading.match, reading.say)
        codes, positions = _held(points, declared, column, len(parts) > 1, reading.say)
    positions = positions if kept is None else kept[positions]
    if isinstance(clients, Saved):
        # Labels are codes from here on, and have no names.
        drawn_from = replace(clients.model, categories=None)
        return ProxyClients(file, codes, positions, category_names(declared), drawn_from)
    read = read_clients(clients, replace(of_clients, match=None, over=True), declared)
    return ProxyClients(
        file, codes, positions, read.categories, Oracle(read.counts), read.counts, read.clients,
    )  # fmt: skip


def _categories_of_both(
    file: PointFile, column: str | tuple[str, ...], clients: Path, reading: Reading
) -> int | tuple[str, ...]:
    """The categories of the proxy data and the clients together, with a message."""
    with naming(clients):
        table = read_table(clients)
        layout = table_layout(table, reading.asked, remembered=reading.remembered)
        table, _ = replace(reading, say=lambda _: None).whole_rows(table, layout.read)
        of_clients = shown_categories(table, layout)
    if reading.match:  # points get the clients' names
        return of_clients
    of_points = file.shown_labels(column)
    if isinstance(of_points, int) and isinstance(of_clients, int):
        found: int | tuple[str, ...] = max(of_points, of_clients)
    else:  # numbers with numbers, names with names
        names = [names for names in (of_points, of_clients) if not isinstance(names, int)]
        found = tuple(sorted(set().union(*names)))
    n = counted(len(category_names(found)), "category")
    reading.say(f"{n}, from the tables; declare them with --categories")
    return found


def _category_column(
    file: PointFile, reading: Reading, clients: Path | Saved[MDM]
) -> tuple[str | tuple[str, ...], bool]:
    """The column of the proxy data with the category, or those that are crossed.

    It is that of the option, which a table of clients may have instead, of the MDM file, or "label".
    With it, whether it is that of the option.
    """
    asked, kept = reading.asked.category, reading.remembered.category
    names = file.columns
    if file.array is not None:
        return "label", False
    with suppress(CountsError):
        if asked is not None:
            return category_columns(names, asked), True
    with suppress(CountsError):
        if kept is not None and (asked is None or isinstance(clients, Path)):
            found = category_columns(names, kept)
            reading.say(f"the category is in column {column_text(found)!r}")
            return found, False
    if asked is not None and (isinstance(clients, Saved) or "label" not in names):
        return category_columns(names, asked), True  # which says what is there
    return category_columns(names, "label"), False


def _held(
    points: Any, categories: int | tuple[str, ...], column: str | tuple[str, ...], crossed: bool,
    say: Say,
) -> tuple[Ints, Ints]:  # fmt: skip
    """The category of each proxy point that a client can hold, and the rows of these points.

    Points of crossed columns that are no category are left out; another value that is none is an error.
    """
    if not crossed:
        try:
            codes = category_codes(points, categories, category=column)
        except RowError as error:  # the points are the server's own: their labels may be shown
            before, row, after = error.args
            labels = sorted(map(str, observed_codes(points, column)[0]))
            raise RowError(before, row, f"; its values are {listed(labels)}{after}") from None
        return codes, np.arange(len(codes))
    codes = known_codes(points, categories, category=column)
    positions = np.flatnonzero(codes >= 0)
    if len(positions) == 0:
        category_codes(points, categories, category=column)  # which says why
    if len(positions) < len(codes):
        left_out = counted(len(codes) - len(positions), "proxy point")
        say(f"left out {left_out} of combinations that are not categories of the clients")
    return codes[positions], positions


def say_memory(
    labels: Path, clients: Path, count: str | None, say: Say, *, n_features: int = 0,
    n_asked: int | None = None,
) -> None:  # fmt: skip
    """Say, before Parquet files are read, how much memory a partition takes, if it is much.

    Clients of an MDM file ask for `n_asked` points; by default, for every proxy point once.
    """
    if labels.suffix != ".parquet" or not (clients.suffix == ".parquet" or is_model(clients)):
        return
    n_proxy = parquet_rows(labels) or 0
    if n_asked is None:
        n_asked = n_proxy if is_model(clients) else _n_points(clients, count)
    per_point = _BYTES_PER_PROXY_POINT + _BYTES_PER_FEATURE * n_features
    n_bytes = per_point * n_proxy + _BYTES_PER_ASKED_POINT * n_asked
    if n_bytes < _LARGE:
        return
    points = counted(n_proxy, "proxy point")
    if n_features:
        points += f" of {counted(n_features, 'feature')}"
    what = f"{points} and {counted(n_asked, 'point')} that clients ask for"
    say(f"{what} take about {n_bytes / 2**30:.1f} GiB of memory")
    check_memory(n_bytes, what, "partition fewer clients at a time")


def _n_points(clients: Path, count: str | None) -> int:
    """The number of points that the clients of a Parquet file ask for."""
    name, total = count or "count", 0
    with naming(clients):
        try:
            for _, table in table_batches(clients, columns=[name]):
                if name not in table.column_names:
                    return parquet_rows(clients) or 0  # every row is one point
                total += int(np.sum(column_counts(table, name)))
        except ValueError:  # not a column of counts: reading the table will report the error
            return parquet_rows(clients) or 0
    return total
