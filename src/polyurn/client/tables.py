"""Data frames → histograms, through Arrow: pandas, polars, pyarrow and whatever else speaks it.

Long tables (client, category, count), raw records (client, value) and wide tables (one row per client).
Columns are handed over without a copy where the frame's own memory allows. Text may spell numbers, as it
does in a CSV file. Which column means what is found by `layout.py`.
"""

import contextlib
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.bins import Bins
from polyurn.client.histogram import Categories, Histograms, category_names, located, tally
from polyurn.client.layout import UNSAID, Columns, Layout, find_layout, missing_column
from polyurn.errors import CountsError, MissingDependencyError, RowError
from polyurn.typed.arguments import checked
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = ("string", "large_string", "string_view")
_WHOLE_NUMBER = re.compile("0|[1-9][0-9]*")  # "01" is a name
_INTEGER = "^[-+]?[0-9]+$"
_DECIMAL = "^[-+]?([0-9]+[.]?[0-9]*([eE][-+]?[0-9]+)?|[.][0-9]+|inf|nan|infinity|Inf|NaN)$"
_SEPARATED = re.compile("[0-9]{1,3}([,. '’_][0-9]{3})+")
_LARGEST = 2**31 - 1


@checked
def table_histograms(
    table: object,
    *,
    categories: Categories,
    client: str | None = None,
    category: str | None = None,
    count: str | None = None,
) -> Histograms:
    """The histograms of many clients from a data frame.

    Parameters
    ----------
    table : pyarrow.Table, pandas.DataFrame, polars.DataFrame or any Arrow stream
        One row per client and category, per point, or per client with a column for each category.
    categories : int, sequence of str, or Bins
        C for values 0 to C - 1; the category names, compared as text; or bins.
    client, category : str, optional
        The columns that say whose row it is, and the modelled feature: "client" and "category".
    count : str, optional
        The column of counts of a long table: "count" if there is one, else every row is one point. "1"
        says that every row is one point, whatever else stands there.

    Examples
    --------
    >>> import pyarrow as pa
    >>> long = pa.table({"client": ["a", "a", "b"], "category": [0, 2, 1], "count": [5, 1, 2]})
    >>> table_histograms(long, categories=3).counts.toarray().tolist()
    [[5, 0, 1], [0, 2, 0]]
    """
    arrow = as_arrow(table)
    layout = table_layout(arrow, Columns(client, category, count), declared=categories)
    return layout_histograms(arrow, layout, categories)


def table_layout(
    table: object,
    asked: Columns,
    *,
    remembered: Columns = UNSAID,
    declared: Categories | None = None,
) -> Layout:
    """How a data frame says who holds what; `find_layout` with the frame's columns."""
    arrow = as_arrow(table)
    found = find_layout(
        arrow.column_names,
        asked,
        remembered=remembered,
        declared=None if isinstance(declared, Bins) else declared,
        is_whole=partial(_is_whole, arrow),
        is_distinct=partial(_is_distinct, arrow),
    )
    if not isinstance(table, type(arrow)) or table.column_names == arrow.column_names:
        return found
    return replace(found, remarks=("spaces around names and texts are left out", *found.remarks))


def layout_histograms(table: object, layout: Layout, categories: Categories) -> Histograms:
    """The histograms of a data frame whose layout is known.

    Raises
    ------
    CountsError
        A cell is not what its column should hold; or no (client, category) occurs twice and a column of
        whole numbers was not read, so that it may hold the counts.
    """
    arrow = as_arrow(table)
    if layout.category is None:
        return _wide_histograms(arrow, layout, categories)
    clients, owner = _distinct(_ids(arrow, layout.client))
    codes = category_codes(arrow, categories, category=layout.category)
    given = np.ones(len(owner), np.int64) if layout.count is None else _counts(arrow, layout.count)
    made = tally(owner, codes, given, clients=clients, categories=categories)
    if layout.count is None and not layout.certain and made.counts.nnz == len(owner):
        _refuse_unread_counts(arrow, layout)
    return made


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
    arrow = as_arrow(table)
    if isinstance(categories, Bins | int | np.integer):
        codes = located(_numbers(arrow, category), categories)
    else:
        known = {text: j for j, text in enumerate(category_names(categories))}
        shown, which = _distinct(_column(arrow, category))
        codes = np.array([known.get(str(value), -1) for value in shown], np.int64)[which]
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise RowError(
            f"column {category!r}: {len(unknown):,} of {len(codes):,} values are not in the declared "
            "categories, the first",
            int(unknown[0]),
            "; declare all categories (--categories), or map the others to one of them",
        )
    return codes


def column_numbers(table: object, name: str) -> NDArray[Any]:
    """A column of numbers, none of them missing; text may spell them."""
    return _numbers(as_arrow(table), name)


def observed_categories(table: object, *, category: str = "category") -> int | tuple[str, ...]:
    """The categories that a table at hand shows: C for whole numbers, else the names in order.

    Whole numbers are names too where most of those up to the largest never occur, as in postcodes.
    For tables that belong to whoever asks; the categories of live clients are declared.
    """
    values, _ = _distinct(_column(as_arrow(table), category))
    names = sorted(str(value) for value in values)
    if any("\n" in name for name in names):
        raise CountsError(
            f"a value in column {category!r} goes over several lines: a quote that does not end?"
        )
    if not all(_WHOLE_NUMBER.fullmatch(name) for name in names):
        return tuple(names)
    names.sort(key=len)  # and so by their value, whatever their length
    few_digits = len(names[-1]) <= len(str(_LARGEST))
    if few_digits and int(names[-1]) + 1 <= 2 * len(names):
        return int(names[-1]) + 1
    return tuple(names)


def as_arrow(table: object) -> "pa.Table":
    """Any frame as an Arrow table; where names have spaces around them, names and texts lose those."""
    try:
        import pyarrow as pa
        import pyarrow.compute
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", "reading tables") from error
    if not hasattr(table, "__arrow_c_stream__"):
        raise CountsError(
            f"expected a pandas, polars or pyarrow table, got {type(table).__name__}; read a file with "
            "read_table"
        )
    try:
        arrow = table if isinstance(table, pa.Table) else pa.table(table)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise CountsError(f"expected columns of texts and numbers: {reason}") from error
    if all(name == name.strip() for name in arrow.column_names):
        return arrow
    trimmed = [
        pa.compute.utf8_trim_whitespace(column.cast(pa.large_string()))
        if _is_text(column)
        else column
        for column in arrow.columns
    ]
    return pa.table(trimmed, names=[name.strip() for name in arrow.column_names])


def _wide_histograms(table: "pa.Table", layout: Layout, categories: Categories) -> Histograms:
    """One row per client: a column for each category."""
    clients, _ = _distinct(_ids(table, layout.client))
    if isinstance(categories, Bins):
        raise CountsError("expected one row per point to put into bins, got one row per client")
    by_number = isinstance(categories, int | np.integer)
    names = layout.wide if by_number else category_names(categories)
    nothing = np.zeros(len(clients), np.int64)
    columns = [_counts(table, name) if name in layout.wide else nothing for name in names]
    return Histograms(sparse.csr_array(np.column_stack(columns)), clients, tuple(names))


def _refuse_unread_counts(table: "pa.Table", layout: Layout) -> None:
    """Stop where the counts may stand in a column that was not read."""
    for name in layout.unread:
        if name and _is_whole(table, name) and not _is_numbering(_numbers(table, name)):
            raise CountsError(
                f"no client has a category twice, and column {name!r}, which was not read, holds whole "
                f"numbers: if they are the counts, say so (--count {name}, or count={name!r}); if every "
                "row is one point, --count 1"
            )


def _is_numbering(numbers: NDArray[Any]) -> bool:
    """Whether a column only numbers the rows, from 0; one without a name is taken to do so anyway."""
    return bool((numbers == np.arange(len(numbers))).all())


def _is_whole(table: "pa.Table", name: str) -> bool:
    """Whether a column holds whole numbers of at least 0, and nothing else."""
    try:
        _counts(table, name)
    except CountsError:
        return False
    return True


def _is_distinct(table: "pa.Table", name: str) -> bool:
    values, which = _distinct(_column(table, name))
    return len(values) == len(which)


def _column(table: "pa.Table", name: str) -> "pa.ChunkedArray":
    if name not in table.column_names:
        raise CountsError(missing_column(name, table.column_names))
    if table.column_names.count(name) > 1:
        raise CountsError(
            f"expected one column {name!r}, got {table.column_names.count(name)}; rename the others"
        )
    column = table[name]
    if len(column) == 0:
        raise CountsError("expected at least one row, got an empty table")
    if not _is_plain(column):
        raise CountsError(f"expected texts or numbers in column {name!r}, got {column.type}")
    missing = np.flatnonzero(np.asarray(column.is_null(nan_is_null=_is_floating(column))))
    if len(missing):
        raise RowError(
            f"{counted(len(missing), 'value is', 'values are')} missing from column {name!r}, the first",
            int(missing[0]),
            "; drop or fill them",
        )
    return column


def _ids(table: "pa.Table", name: str) -> "pa.ChunkedArray":
    """A column as ids: whole numbers and texts as they are, dates and all else as texts."""
    import pyarrow as pa

    column = _whole_where_possible(_column(table, name))
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind) or str(kind) in _TEXT:
        return column
    return column.cast(pa.string())


def _distinct(column: "pa.ChunkedArray") -> tuple[NDArray[Any], NDArray[np.integer[Any]]]:
    """The values that occur, in the order in which they first do, and which of them each row has."""
    import pyarrow as pa

    coded = _whole_where_possible(column).dictionary_encode().combine_chunks()
    values, which = np.asarray(coded.dictionary), np.asarray(coded.indices)
    if pa.types.is_dictionary(column.type):  # a categorical column may list levels that no row has
        seen = coded.indices.dictionary_encode()
        values, which = values[np.asarray(seen.dictionary)], np.asarray(seen.indices)
    return values, which


def _whole_where_possible(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Whole numbers that a frame keeps as floats, because others were missing once, as whole numbers."""
    import pyarrow as pa

    if _is_floating(column):
        with contextlib.suppress(pa.ArrowInvalid):
            return column.cast(pa.int64())
    return column


def _counts(table: "pa.Table", name: str) -> NDArray[np.int64]:
    counts = _numbers(table, name)
    if counts.dtype.kind == "f":
        counts = counts.astype(np.float64)  # half precision ends at 65504
    bad = np.flatnonzero(~np.isfinite(counts) | (counts != np.rint(counts)) | (counts < 0))
    if len(bad):
        raise RowError(
            f"expected whole numbers of at least 0 in column {name!r}, got {counts[bad[0]]}",
            int(bad[0]),
        )
    if counts.size and counts.max() > _LARGEST:
        raise RowError(
            f"expected counts of at most {_LARGEST}, the largest supported, got {counts.max()}",
            int(counts.argmax()),
        )
    return counts.astype(np.int64)


def _numbers(table: "pa.Table", name: str) -> NDArray[Any]:
    import pyarrow as pa

    values = _column(table, name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if _is_text(values):
        values = _parsed(values, name)
    elif pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if not (pa.types.is_integer(values.type) or _is_floating(values)):
        raise CountsError(f"expected numbers in column {name!r}, got {values.type}")
    return np.asarray(values.to_numpy())


def _parsed(text: "pa.ChunkedArray", name: str) -> "pa.ChunkedArray":
    """Whole numbers where all of the text spells them, else numbers."""
    import pyarrow as pa

    text = text.cast(pa.large_string())  # string views cannot be matched

    def all_match(pattern: str) -> bool:
        return bool(pa.compute.all(pa.compute.match_substring_regex(text, pattern)).as_py())

    for pattern, kind in ((_INTEGER, pa.int64()), (_DECIMAL, pa.float64())):
        if all_match(pattern):  # Arrow would take 0x5 as well
            with contextlib.suppress(pa.ArrowInvalid):  # too many digits
                return text.cast(kind)
    spelled = np.asarray(pa.compute.match_substring_regex(text, _DECIMAL))
    row = int(np.argmin(spelled))
    value = text[row].as_py()
    shown, advice = "text", ""
    if _SEPARATED.fullmatch(value):
        plain = re.sub("[^0-9]", "", value)
        shown, advice = repr(value), f"; write {plain}, without separators"
    raise RowError(f"expected numbers in column {name!r}, got {shown}", row, advice)


def _is_plain(column: "pa.ChunkedArray") -> bool:
    """Whether the cells are single values that can be compared as text or numbers."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    refused = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary)
    return not any(is_kind(kind) for is_kind in refused)


def _is_text(column: "pa.ChunkedArray") -> bool:
    return str(column.type) in _TEXT


def _is_floating(column: "pa.ChunkedArray") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(column.type))
