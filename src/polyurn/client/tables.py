"""Data frames → histograms, through Arrow: pandas, polars, pyarrow and whatever else speaks it.

Two layouts: long tables (client, category, count) and raw records (client, value). Columns are
handed over without a copy where the frame's own memory allows.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.bins import Bins
from polyurn.client.histogram import Categories, Histograms, category_names, encode, tally
from polyurn.errors import CountsError, MissingDependencyError

if TYPE_CHECKING:
    import pyarrow as pa


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
    ids = _column(arrow, client).dictionary_encode().combine_chunks()
    values = _column(arrow, category)
    owner = np.asarray(ids.indices)
    weights = np.ones(len(owner), np.int64) if count is None else _counts(_column(arrow, count))
    return tally(
        owner,
        _codes(values, categories),
        weights,
        clients=np.asarray(ids.dictionary),
        categories=categories,
    )


def observed_categories(table: object, *, category: str = "category") -> int | tuple[str, ...]:
    """The categories that a table at hand shows: C for whole numbers, else the sorted names.

    For tables that belong to whoever asks; the categories of live clients are declared.
    """
    values = _column(as_arrow(table), category)
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(values) == 0:
        raise CountsError("expected at least one row, got an empty table")
    if pa.types.is_integer(values.type) and pc.min(values).as_py() >= 0:
        return int(pc.max(values).as_py()) + 1
    return tuple(sorted(str(v) for v in pc.unique(values).to_pylist()))


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
    column = table[name]
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise CountsError(
            f"column {name!r} has {column.null_count} missing values, the first in row {row}; "
            "drop or fill them"
        )
    return column


def _codes(values: "pa.ChunkedArray", categories: Categories) -> NDArray[np.int64]:
    if isinstance(categories, Bins | int | np.integer):
        return encode(_numbers(values), categories)
    coded = values.dictionary_encode().combine_chunks()
    names = {name: j for j, name in enumerate(category_names(categories))}
    lookup = np.array([names.get(str(v), -1) for v in coded.dictionary.to_pylist()], np.int64)
    codes = lookup[np.asarray(coded.indices)] if len(coded) else np.empty(0, np.int64)
    if (codes < 0).any():
        # `encode` words the error; it gets positions, not values.
        return encode(np.where(codes < 0, np.nan, codes), len(names))
    return codes


def _counts(values: "pa.ChunkedArray") -> NDArray[np.int64]:
    counts = _numbers(values)
    bad = np.flatnonzero(~np.isfinite(counts) | (counts != np.rint(counts)) | (counts < 0))
    if len(bad):
        raise CountsError(
            f"expected whole numbers of at least 0 in column of counts, got {counts[bad[0]]} "
            f"in row {bad[0]}"
        )
    if counts.size and counts.max() > 2**31 - 1:
        raise CountsError(
            f"a count of {counts.max()} in row {counts.argmax()} is beyond the largest supported, "
            f"{2**31 - 1}"
        )
    return counts.astype(np.int64)


def _numbers(values: "pa.ChunkedArray") -> NDArray[Any]:
    import pyarrow as pa

    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise CountsError(f"expected a column of numbers, got {values.type}")
    return np.asarray(values.to_numpy())
