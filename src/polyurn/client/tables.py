"""Data frames → histograms, through Arrow: pandas, polars, pyarrow and whatever else speaks it.

Two layouts: long tables (client, category, count) and raw records (client, value). Columns are
handed over without a copy where the frame's own memory allows. Text may spell numbers, as it does in
a CSV file.
"""

import contextlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.bins import Bins
from polyurn.client.histogram import Categories, Histograms, category_names, encode, tally
from polyurn.errors import CountsError, MissingDependencyError

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = ("string", "large_string", "string_view")
_WHOLE_NUMBER = re.compile("0|[1-9][0-9]*")  # "01" is a name


def table_histograms(
    table: object,
    *,
    categories: Categories,
    client: str = "client",
    category: str = "category",
    count: str | None = None,
) -> Histograms:
    """The histograms of many clients from a data frame.

    Parameters
    ----------
    table : pyarrow.Table, pandas.DataFrame, polars.DataFrame or any Arrow stream
    categories : int, sequence of str, or Bins
        C for values 0 to C - 1; the category names, compared as text; or bins.
    client, category : str
        The columns that say whose row it is, and the modelled feature.
    count : str, optional
        The column of counts of a long table; without it every row is one point.

    Examples
    --------
    >>> import pyarrow as pa
    >>> long = pa.table({"client": ["a", "a", "b"], "category": [0, 2, 1], "count": [5, 1, 2]})
    >>> table_histograms(long, categories=3, count="count").counts.toarray().tolist()
    [[5, 0, 1], [0, 2, 0]]
    """
    arrow = as_arrow(table)
    clients, owner = _distinct(_column(arrow, client))
    codes = _codes(arrow, category, categories)
    weights = np.ones(len(owner), np.int64) if count is None else _counts(arrow, count)
    return tally(owner, codes, weights, clients=clients, categories=categories)


def category_codes(
    table: object, categories: Categories, *, category: str = "category"
) -> NDArray[np.int64]:
    """The category number of each row of a data frame.

    Parameters
    ----------
    table : pyarrow.Table, pandas.DataFrame, polars.DataFrame or any Arrow stream
    categories : int, sequence of str, or Bins
    category : str
        The column with the modelled feature.

    Examples
    --------
    >>> import pyarrow as pa
    >>> category_codes(pa.table({"category": ["b", "a"]}), ["a", "b"]).tolist()
    [1, 0]
    """
    return _codes(as_arrow(table), category, categories)


def column_numbers(table: object, name: str) -> NDArray[Any]:
    """A column of numbers, none of them missing; text may spell them."""
    return _numbers(as_arrow(table), name)


def observed_categories(table: object, *, category: str = "category") -> int | tuple[str, ...]:
    """The categories that a table at hand shows: C for whole numbers, else the sorted names.

    For tables that belong to whoever asks; the categories of live clients are declared.
    """
    values, _ = _distinct(_column(as_arrow(table), category))
    names = sorted(str(value) for value in values)
    if any("\n" in name for name in names):
        raise CountsError(
            f"a value in column {category!r} goes over several lines: a quote that does not end?"
        )
    if all(_WHOLE_NUMBER.fullmatch(name) for name in names):
        return max(int(name) for name in names) + 1
    return tuple(names)


def as_arrow(table: object) -> "pa.Table":
    """Any frame as an Arrow table."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", "reading tables") from error
    if isinstance(table, pa.Table):
        return table
    if not hasattr(table, "__arrow_c_stream__"):
        raise CountsError(f"expected a pandas, polars or pyarrow table, got {type(table).__name__}")
    return pa.table(table)


def _column(table: "pa.Table", name: str) -> "pa.ChunkedArray":
    if name not in table.column_names:
        raise CountsError(
            f"expected a column {name!r}, got {', '.join(table.column_names[:8]) or 'no columns'}"
        )
    if table.column_names.count(name) > 1:
        raise CountsError(
            f"expected one column {name!r}, got {table.column_names.count(name)}; rename the others"
        )
    column = table[name]
    if len(column) == 0:
        raise CountsError("expected at least one row, got an empty table")
    missing = np.flatnonzero(np.asarray(column.is_null()))
    if len(missing):
        raise CountsError(
            f"column {name!r} has {len(missing)} missing values, the first in row {missing[0]}; "
            "drop or fill them"
        )
    return column


def _distinct(column: "pa.ChunkedArray") -> tuple[NDArray[Any], NDArray[np.integer[Any]]]:
    """The values that occur, in the order in which they first do, and which of them each row has."""
    import pyarrow as pa

    coded = column.dictionary_encode().combine_chunks()
    values, which = np.asarray(coded.dictionary), np.asarray(coded.indices)
    if pa.types.is_dictionary(column.type):  # a categorical column may list levels that no row has
        seen = coded.indices.dictionary_encode()
        values, which = values[np.asarray(seen.dictionary)], np.asarray(seen.indices)
    return values, which


def _codes(table: "pa.Table", name: str, categories: Categories) -> NDArray[np.int64]:
    if isinstance(categories, Bins | int | np.integer):
        return _encoded(_numbers(table, name), categories, name)
    known = {text: j for j, text in enumerate(category_names(categories))}
    shown, which = _distinct(_column(table, name))
    numbers = np.array([known.get(str(value), -1) for value in shown], np.int64)
    codes: NDArray[np.int64] = numbers[which]
    if (codes < 0).any():
        # `encode` words the error; it gets positions, not values.
        return _encoded(np.where(codes < 0, np.nan, codes), len(known), name)
    return codes


def _encoded(values: NDArray[Any], categories: Categories, name: str) -> NDArray[np.int64]:
    try:
        return encode(values, categories)
    except CountsError as error:
        raise CountsError(f"column {name!r}: {error}") from None


def _counts(table: "pa.Table", name: str) -> NDArray[np.int64]:
    counts = _numbers(table, name)
    bad = np.flatnonzero(~np.isfinite(counts) | (counts != np.rint(counts)) | (counts < 0))
    if len(bad):
        raise CountsError(
            f"expected whole numbers of at least 0 in column {name!r}, got {counts[bad[0]]} "
            f"in row {bad[0]}"
        )
    if counts.size and counts.max() > 2**31 - 1:
        raise CountsError(
            f"a count of {counts.max()} in row {counts.argmax()} is beyond the largest supported, "
            f"{2**31 - 1}"
        )
    return counts.astype(np.int64)


def _numbers(table: "pa.Table", name: str) -> NDArray[Any]:
    import pyarrow as pa

    values = _column(table, name)
    if str(values.type) in _TEXT:
        values = _parsed(values)
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise CountsError(f"expected numbers in column {name!r}, got {values.type}")
    return np.asarray(values.to_numpy())


def _parsed(text: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Whole numbers where all of the text spells them, else numbers, else the text."""
    import pyarrow as pa

    for kind in (pa.int64(), pa.float64()):
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return text.cast(kind)
    return text
