"""Columns that might be modelled beside the label: each client's histogram of label × column.

A column of few whole numbers or texts has the categories that it shows; one of many numbers is put into
bins. For tables that belong to whoever asks: the categories of live clients are declared. How much
clients differ in a column is `server/features.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
from polyurn.client.histogram import tally
from polyurn.client.layout import Layout, find_column
from polyurn.client.tables import observed_codes
from polyurn.errors import CountsError, InputError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    import pyarrow as pa

# A column of more different numbers is a measurement: hours and months are categories, minutes are not.
_MOST_NUMBERS = 50


@dataclass(frozen=True, eq=False)
class Candidate:
    """A column that might be modelled beside the label.

    Attributes
    ----------
    name : str
    counts : csr_array of shape (n_clients, n_labels * n_values)
        Category y * n_values + f for label y and value f.
    n_labels, n_values : int
    bins : Bins or None
        How its numbers were cut.
    """

    name: str
    counts: sparse.csr_array = field(repr=False)
    n_labels: int
    n_values: int
    bins: Bins | None = None


@dataclass(frozen=True, eq=False)
class Candidates:
    """Columns that might be modelled beside the label, and what there is to say about the others.

    Attributes
    ----------
    found : tuple of Candidate
    remarks : tuple of str
        What was left out, and why; what was cut into bins at the table's own quantiles.
    """

    found: tuple[Candidate, ...]
    remarks: tuple[str, ...]


def label_by_column(
    table: object,
    layout: Layout,
    names: Sequence[str] | None = None,
    *,
    edges: Mapping[str, Bins] | None = None,
    n_bins: int = 10,
    proxy: object = None,
) -> Candidates:
    """The histograms of label × column, for each column that might be modelled beside the label.

    Parameters
    ----------
    table : pyarrow.Table, pandas.DataFrame, polars.DataFrame or any Arrow stream
    layout : Layout
        Whose `category` is the label.
    names : sequence of str, optional
        The candidates; all columns that the layout does not read by default. A column that cannot be one
        is an error if it was named, and else left out.
    edges : mapping of str to Bins, optional
        The declared bins of some columns.
    n_bins : int
        Into how many bins other columns of many numbers are cut, at quantiles.
    proxy : data frame, optional
        The server's own table, whose quantiles are taken where it has the column.

    Raises
    ------
    CountsError
        There is no such column, no candidate, or a label that all points share.

    Examples
    --------
    >>> import pyarrow as pa
    >>> flights = pa.table({
    ...     "client": ["a", "a", "b"], "dest": ["ATL", "BOS", "ATL"], "hour": [7, 9, 9], "n": [1, 2, 3]
    ... })
    >>> (hour,) = label_by_column(flights, Layout("client", "dest"), ["hour"]).found
    >>> hour.counts.toarray().tolist()  # ATL at 7 and 9, BOS at 7 and 9
    [[1, 0, 0, 1], [0, 1, 0, 0]]
    """
    arrow = as_arrow(table)
    if layout.category is None:
        raise CountsError("expected one row per point or with a count, got one row per client")
    clients, owner = distinct_values(column_ids(arrow, layout.client))
    labels, label = observed_codes(arrow, layout.category)
    if len(labels) < 2:
        raise CountsError("expected at least two labels, got one: nothing to model")
    count = (
        np.ones(len(owner), np.int64)
        if layout.count is None
        else column_counts(arrow, layout.count)
    )
    cutting = _Cutting(edges or {}, n_bins, None if proxy is None else as_arrow(proxy))
    asked = _asked(arrow.column_names, layout, names)
    unasked = next((name for name in cutting.edges if name not in asked), None)
    if unasked is not None:
        raise CountsError(f"expected bins of candidates, got those of {unasked!r}")
    found, remarks, measured = [], [], []
    for name in asked:
        try:
            values = _values(arrow, name, cutting, len(clients))
            codes = label * values.n + values.codes
            made = tally(owner, codes, count, clients=clients, categories=len(labels) * values.n)
        except InputError as error:
            if names is not None:
                raise
            remarks.append(f"left out {name!r}: {error}")
            continue
        found.append(Candidate(name, made.counts, len(labels), values.n, values.bins))
        measured += [name] if values.at_own_quantiles else []
    if not found:
        raise CountsError("; ".join(["expected at least one candidate column, got none", *remarks]))
    if measured:
        remarks.append(
            f"cut into {counted(n_bins, 'bin')} at quantiles of this table: {', '.join(measured)}; only "
            "for a table at hand, as no server may measure quantiles of live clients: declare a range, "
            "or take the quantiles of proxy data (--range, --proxy)"
        )
    return Candidates(tuple(found), tuple(remarks))


def n_lacking(table: object, proxy: object, columns: Sequence[str]) -> int | None:
    """How many combinations of columns the clients have and the proxy data have not.

    None if the proxy data have not all of the columns.
    """
    of_clients, of_proxy = as_arrow(table), as_arrow(proxy)
    if not set(columns) <= set(of_proxy.column_names):
        return None
    held = observed_codes(of_clients, columns)[0]
    return len(set(map(str, held)) - set(map(str, observed_codes(of_proxy, columns)[0])))


@dataclass(frozen=True)
class _Cutting:
    """How columns of many numbers are cut; see `label_by_column`."""

    edges: Mapping[str, Bins]
    n_bins: int
    proxy: "pa.Table | None"


@dataclass(frozen=True, eq=False)
class _Values:
    """The value of each row as a number below n."""

    codes: NDArray[np.int64]
    n: int
    bins: Bins | None = None
    at_own_quantiles: bool = False


def _asked(all_names: Sequence[str], layout: Layout, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return layout.unread
    return list(
        dict.fromkeys(find_column(all_names, name, option="--candidates") for name in names)
    )


def _values(table: "pa.Table", name: str, cutting: _Cutting, n_clients: int) -> _Values:
    """The values of a column: as they are, or in bins if they are many numbers."""
    shown, codes = distinct_values(plain_column(table, name))
    numbers = _measured(table, name, len(shown), declared=name in cutting.edges)
    if numbers is not None:
        return _cut(numbers, name, cutting)
    if len(shown) < 2:
        raise CountsError(f"expected different values in column {name!r}, got one")
    if len(shown) > n_clients:
        raise CountsError(
            f"expected at most as many values as clients ({n_clients:,}) in column {name!r}, got "
            f"{len(shown):,}"
        )
    return _Values(codes.astype(np.int64), len(shown))


def _measured(
    table: "pa.Table", name: str, n_distinct: int, *, declared: bool
) -> NDArray[np.float64] | None:
    """The numbers of a column that is a measurement; None where it has categories."""
    try:
        numbers = numbers_of(table, name).astype(np.float64)
    except CountsError:
        if declared:
            raise
        return None
    whole = bool((numbers == np.rint(numbers)).all())
    return numbers if declared or not whole or n_distinct > _MOST_NUMBERS else None


def _cut(numbers: NDArray[np.float64], name: str, cutting: _Cutting) -> _Values:
    """Numbers in declared bins, or in those of quantiles: the server's, or else the table's own."""
    has_proxy = cutting.proxy is not None and name in cutting.proxy.column_names
    if name in cutting.edges:
        bins = cutting.edges[name]
    else:
        known = numbers_of(cutting.proxy, name) if has_proxy else numbers
        bins = Bins.at_quantiles(known, n_bins=cutting.n_bins)
    codes = bins.locate(numbers)
    if (codes < 0).any():
        raise CountsError(f"expected every number of column {name!r} within its bins")
    return _Values(codes, bins.n_bins, bins, not has_proxy and name not in cutting.edges)
