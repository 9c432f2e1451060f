"""Columns that might be modelled beside the label: each client's histogram of label × column.

The values of a column of texts or of few whole numbers are its categories; columns of many numbers are
put into bins. This is only for the caller's own tables: the categories of live clients are declared.
`server/feature_choice.py` estimates how much clients differ in a column.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.bins import Bins
from polyurn.client.columns import (
    as_arrow,
    column_counts,
    column_ids,
    distinct_values,
    numbers_of,
    plain_column,
)
from polyurn.client.counting import Categories, tally
from polyurn.client.layout import Layout, column_text, find_column
from polyurn.client.record_tables import record_columns, table_records
from polyurn.client.records import Records
from polyurn.client.tables import observed_codes
from polyurn.errors import CountsError, InputError, ParameterError
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import RecordColumn
from polyurn.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

# A column with more distinct numbers is a measurement: hours and months are categories, minutes are not.
_MOST_NUMBERS = 50


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """A column that might be modelled beside the label.

    `counts`, of shape (n_clients, n_labels * n_values), have the code y * n_values + f for label y and
    value f. `bins` are those of a column of numbers; `at_own_quantiles` says whether their edges are
    quantiles of the clients' own table.
    """

    name: str
    counts: sparse.csr_array = field(repr=False)
    n_labels: int
    n_values: int
    bins: Bins | None = None
    at_own_quantiles: bool = False


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """Columns that might be modelled beside the label, and `remarks` on those left out or cut."""

    found: tuple[FeatureColumn, ...]
    remarks: tuple[str, ...]


def label_by_column(
    table: object, layout: Layout, names: Sequence[str] | None = None, *,
    edges: Mapping[str, Bins] | None = None, n_bins: int = 10, proxy: object = None,
) -> FeatureColumns:  # fmt: skip
    """The histograms of label × column, for each column that might be modelled beside the label.

    The layout's `category` is the label. Candidates are the columns `names`, by default all columns that
    the layout does not read. A column that cannot be modelled is an error if it was named; otherwise it
    is left out. Columns of many numbers are cut at the declared `edges`, or into `n_bins` at quantiles
    of the proxy table if it has the column, else of the table itself.

    >>> import pyarrow as pa
    >>> flights = pa.table({
    ...     "client": ["a", "a", "b"], "dest": ["ATL", "BOS", "ATL"], "hour": [7, 9, 9], "n": [1, 2, 3]
    ... })
    >>> (hour,) = label_by_column(flights, Layout("client", "dest"), ["hour"]).found
    >>> hour.counts.toarray().tolist()  # ATL at 7 and 9, BOS at 7 and 9
    [[1, 0, 0, 1], [0, 1, 0, 0]]
    """
    arrow = as_arrow(table)
    points = _points(arrow, layout)
    cutting = _Cutting(edges or {}, n_bins, None if proxy is None else as_arrow(proxy))
    asked = _asked(arrow.column_names, layout, names)
    unasked = next((name for name in cutting.edges if name not in asked), None)
    if unasked is not None:
        raise CountsError(f"expected bins of candidates, got those of {unasked!r}")
    found, remarks = [], []
    for name in asked:
        try:
            found.append(_candidate(arrow, name, points, cutting))
        except InputError as error:
            if names is not None:
                raise
            remarks.append(f"left out {name!r}: {error}")
    if not found:
        raise CountsError("; ".join(["expected at least one candidate column, got none", *remarks]))
    measured = [candidate.name for candidate in found if candidate.at_own_quantiles]
    if measured:
        remarks.append(_about_own_quantiles(measured, cutting))
    return FeatureColumns(tuple(found), tuple(remarks))


def declared_records(
    table: object, layout: Layout, names: Sequence[str] | None = None, *, categories: Categories,
    values: Mapping[str, Sequence[str]], bins: Mapping[str, Bins],
) -> tuple[Records, dict[str, RecordColumn]]:  # fmt: skip
    """The records of a table's clients, and how candidates are cut: nothing is taken from the table.

    Candidates are the columns `names`, by default all that have declared values or bins.
    """
    arrow = as_arrow(table)
    if layout.category is None or layout.count is not None:
        raise CountsError(
            "expected one row per point with epsilon, got counts; if there are none, --count 1"
        )
    asked = _asked(arrow.column_names, layout, [*values, *bins] if names is None else names)
    columns = record_columns(asked, asked, values=values, bins=bins)
    records = table_records(
        arrow, label=layout.category, categories=categories, features=asked, client=layout.client,
        values=values,
    )  # fmt: skip
    return records, columns


def lacking(
    table: object, proxy: object, label: Sequence[str], found: Sequence[FeatureColumn],
    chosen: FeatureColumn | None,
) -> tuple[tuple[str, ...], int]:  # fmt: skip
    """Columns that the proxy data should have, and lack; of label and chosen column, how many pairs."""
    held, offered = as_arrow(table), as_arrow(proxy)
    pair = [*label] if chosen is None else [*label, chosen.name]
    needed = [*label, *(one.name for one in found if one.at_own_quantiles), *pair]
    columns = tuple(n for n in dict.fromkeys(needed) if n not in offered.column_names)
    if chosen is None or chosen.bins is not None or not {*pair}.isdisjoint(columns):
        return columns, 0
    with _of_proxy():
        known = observed_codes(offered, pair)[0]
    return columns, len(set(map(str, observed_codes(held, pair)[0])) - set(map(str, known)))


@dataclass(frozen=True, eq=False)
class _Points:
    """The client of each row, its label, and its number of points."""

    clients: NDArray[Any]
    owner: NDArray[np.integer[Any]]
    label: NDArray[np.integer[Any]]
    n_labels: int
    count: Ints


def _points(table: "pa.Table", layout: Layout) -> _Points:
    if layout.category is None:
        raise CountsError("expected one row per point or with a count, got one row per client")
    clients, owner = distinct_values(column_ids(table, layout.client))
    labels, label = observed_codes(table, layout.category)
    _check_label(table, layout.category, len(labels), len(clients))
    n = layout.count
    count = np.ones(len(owner), np.int64) if n is None else column_counts(table, n)
    return _Points(clients, owner, label, len(labels), count)


def _check_label(
    table: "pa.Table", category: str | tuple[str, ...], n_labels: int, n_clients: int
) -> None:
    if n_labels < 2:
        raise CountsError("expected at least two labels, got one: nothing to model")
    # Whole numbers may be labels, however many; crossed columns are not measured.
    if isinstance(category, str) and _measured(table, category, 0, declared=False) is not None:
        raise CountsError(
            f"expected a label of categories, got continuous numbers in column {category!r}; put them "
            "into bins first"
        )
    if n_labels > n_clients:
        raise CountsError(
            f"expected at most as many labels as clients ({n_clients:,}), got {n_labels:,} in "
            f"{column_text(category)!r}; merge labels, or put numbers into bins"
        )


@dataclass(frozen=True)
class _Cutting:
    """How columns of many numbers are cut; see `label_by_column`."""

    edges: Mapping[str, Bins]
    n_bins: int
    proxy: "pa.Table | None"


def _asked(all_names: Sequence[str], layout: Layout, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return layout.unread
    category = layout.category if isinstance(layout.category, tuple) else (layout.category,)
    roles = {layout.count: "count", **dict.fromkeys(category, "label"), layout.client: "client"}
    found = [find_column(all_names, name, option="--candidates") for name in names]
    taken = next((name for name in found if name in roles), None)
    if taken is not None:
        raise CountsError(
            f"expected candidates beside the {roles[taken]}, got {taken!r}, which is the "
            f"{roles[taken]}'s own column"
        )
    return list(dict.fromkeys(found))


def _candidate(table: "pa.Table", name: str, points: _Points, cutting: _Cutting) -> FeatureColumn:
    """The histograms of label × column; many numbers are put into bins."""
    shown, codes = distinct_values(plain_column(table, name))
    n, bins, own, n_clients = len(shown), None, False, len(points.clients)
    numbers = _measured(table, name, n, declared=name in cutting.edges)
    if numbers is not None:
        bins, own = _bins(numbers, name, cutting)
        codes, n = bins.locate(numbers), bins.n_bins
        if (codes < 0).any():
            raise CountsError(f"expected every number of column {name!r} within its bins")
    elif n < 2:
        raise CountsError(f"expected different values in column {name!r}, got one")
    elif n > n_clients:
        raise CountsError(
            f"expected at most as many values as clients ({n_clients:,}) in column {name!r}, got {n:,}"
        )
    crossed, n_labels = points.label * n + codes.astype(np.int64), points.n_labels
    tallied = tally(
        points.owner, crossed, points.count, clients=points.clients, categories=n_labels * n
    )
    return FeatureColumn(name, tallied.counts, n_labels, n, bins, own)


def _about_own_quantiles(names: Sequence[str], cutting: _Cutting) -> str:
    advice = (
        "declare a range, or take the quantiles of proxy data (--range, --proxy)"
        if cutting.proxy is None
        else "declare a range (--range), as the proxy data have no such column"
    )
    return (
        f"cut into {counted(cutting.n_bins, 'bin')} at quantiles of this table: {', '.join(names)}; "
        f"only for a table at hand, as no server may measure quantiles of live clients: {advice}"
    )


def _measured(table: "pa.Table", name: str, n_distinct: int, *, declared: bool) -> Floats | None:
    """The numbers of a column of measurements; None for a column of categories."""
    try:
        numbers = numbers_of(table, name).astype(np.float64)
    except CountsError:
        if declared:
            raise
        return None
    is_measurement = bool((numbers != np.rint(numbers)).any()) or n_distinct > _MOST_NUMBERS
    return numbers if declared or is_measurement else None


def _bins(numbers: Floats, name: str, cutting: _Cutting) -> tuple[Bins, bool]:
    """Declared bins, or bins at quantiles of the server's data, else of the table's; if the latter."""
    if name in cutting.edges:
        return cutting.edges[name], False
    if cutting.proxy is None or name not in cutting.proxy.column_names:
        return Bins.at_quantiles(numbers, n_bins=cutting.n_bins), True
    with _of_proxy():
        return Bins.at_quantiles(numbers_of(cutting.proxy, name), n_bins=cutting.n_bins), False


@contextmanager
def _of_proxy() -> Iterator[None]:
    """Report an error as one in the proxy data, not in the clients' table."""
    try:
        yield
    except CountsError as error:
        raise ParameterError(f"the proxy data: {error}") from None
