"""One column of a data frame as a numpy array, through Arrow: ids, counts, numbers, distinct values.

Text may spell numbers, as it does in a CSV file. Errors name the row of the cell. `layout.py` finds out
what a column means, and `tables.py` counts.
"""

import contextlib
import difflib
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import CountsError, MissingDependencyError, RowError
from polyurn.typed.declared import Bools, Ints
from polyurn.wording import counted, listed

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = ("string", "large_string", "string_view")
_INTEGER = "^[-+]?[0-9]+$"
_DECIMAL = "^[-+]?([0-9]+[.]?[0-9]*([eE][-+]?[0-9]+)?|[.][0-9]+|inf|nan|infinity|Inf|NaN)$"
_SEPARATED = re.compile("[0-9]{1,3}([,. '’_][0-9]{3})+")
LARGEST = 2**31 - 1


def as_arrow(table: object) -> "pa.Table":
    """Any frame as an Arrow table; if names have spaces around them, names and texts are stripped."""
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
    trim = pa.compute.utf8_trim_whitespace
    trimmed = [trim(c.cast(pa.large_string())) if _is_text(c) else c for c in arrow.columns]
    return pa.table(trimmed, names=[name.strip() for name in arrow.column_names])


def plain_column(table: "pa.Table", name: str) -> "pa.ChunkedArray":
    """A column of texts or numbers, none of them missing."""
    if name not in table.column_names:
        raise CountsError(missing_column(name, table.column_names))
    if (n := table.column_names.count(name)) > 1:
        raise CountsError(f"expected one column {name!r}, got {n}; rename the others")
    column = table[name]
    if len(column) == 0:
        raise CountsError("expected at least one row, got an empty table")
    if not _is_plain(column):
        raise CountsError(f"expected texts or numbers in column {name!r}, got {column.type}")
    check_missing(table, [name])
    return column


def check_missing(table: "pa.Table", names: Sequence[str]) -> None:
    """Stop where values are missing from these columns, all of which are named."""
    missing = _missing(table, names)
    if missing.any():
        parts = [
            f"{counted(n, 'value is', 'values are')} missing from column {name!r}"
            for name, n in zip(names, missing.sum(axis=1), strict=True)
            if n
        ]
        row = int(missing.any(axis=0).argmax())
        advice = "fill them, or leave these rows out (--drop-missing, also of `polyurn histogram`)"
        raise RowError(f"{', '.join(parts)}, the first", row, f"; {advice}")


def without_missing(table: "pa.Table", names: Sequence[str]) -> tuple["pa.Table", Ints]:
    """The rows in which none of these columns lacks a value, and which they are."""
    kept = ~_missing(table, names).any(axis=0)
    return table if kept.all() else table.filter(kept), np.flatnonzero(kept)


def _missing(table: "pa.Table", names: Sequence[str]) -> Bools:
    """Which cells of these columns are missing, shape (n_names, n_rows)."""
    columns = [table.column(table.column_names.index(name)) for name in names]
    return np.array([c.is_null(nan_is_null=_is_floating(c)) for c in columns], bool)


def column_ids(table: "pa.Table", name: str) -> "pa.ChunkedArray":
    """A column as ids: whole numbers and texts stay, everything else becomes text."""
    import pyarrow as pa

    column = _whole_where_possible(plain_column(table, name))
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind) or str(kind) in _TEXT:
        return column
    return column.cast(pa.string())


def distinct_values(column: "pa.ChunkedArray") -> tuple[NDArray[Any], NDArray[np.integer[Any]]]:
    """The distinct values in the order of their first row, and the index of each row's value."""
    import pyarrow as pa

    coded = _whole_where_possible(column).dictionary_encode().combine_chunks()
    values, which = np.asarray(coded.dictionary), np.asarray(coded.indices)
    if pa.types.is_dictionary(column.type):  # a categorical column may list levels that no row has
        seen = coded.indices.dictionary_encode()
        values, which = values[np.asarray(seen.dictionary)], np.asarray(seen.indices)
    return values, which


def column_counts(table: "pa.Table", name: str) -> Ints:
    """A column of whole numbers of at least 0."""
    counts = numbers_of(table, name)
    if counts.dtype.kind == "f":
        counts = counts.astype(np.float64)  # the largest half-precision number is 65504
    bad = np.flatnonzero(~np.isfinite(counts) | (counts != np.rint(counts)) | (counts < 0))
    if len(bad):
        text = f"expected whole numbers of at least 0 in column {name!r}, got {counts[bad[0]]}"
        raise RowError(text, int(bad[0]))
    if counts.size and counts.max() > LARGEST:
        text = f"expected counts of at most {LARGEST}, the largest supported, got {counts.max()}"
        raise RowError(text, int(counts.argmax()))
    return counts.astype(np.int64)


def numbers_of(table: "pa.Table", name: str) -> NDArray[Any]:
    """A column of numbers; text may spell them."""
    import pyarrow as pa

    values = plain_column(table, name)
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
    """Whole numbers if all texts spell them, else numbers."""
    import pyarrow as pa

    text = text.cast(pa.large_string())  # string views cannot be matched
    for pattern, kind in ((_INTEGER, pa.int64()), (_DECIMAL, pa.float64())):
        spelled = np.asarray(pa.compute.match_substring_regex(text, pattern))
        if spelled.all():  # Arrow would take 0x5 as well
            with contextlib.suppress(pa.ArrowInvalid):  # too many digits
                return text.cast(kind)
    row = int(np.argmin(spelled))
    value, shown, advice = text[row].as_py(), "text", ""
    if _SEPARATED.fullmatch(value):
        plain = re.sub("[^0-9]", "", value)
        shown, advice = repr(value), f"; write {plain}, without separators"
    raise RowError(f"expected numbers in column {name!r}, got {shown}", row, advice)


def _whole_where_possible(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Whole numbers again, if a frame keeps them as floats because a value was missing once."""
    import pyarrow as pa

    if _is_floating(column):
        with contextlib.suppress(pa.ArrowInvalid):
            return column.cast(pa.int64())
    return column


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


@dataclass(frozen=True)
class ColumnValues:
    """What the columns of a table hold, apart from missing values."""

    table: "pa.Table"

    def is_whole(self, name: str) -> bool:
        return self._can(column_counts, name)

    def is_number(self, name: str) -> bool:
        return self._can(numbers_of, name)

    def _can(self, read: Callable[["pa.Table", str], object], name: str) -> bool:
        try:
            read(without_missing(self.table, [name])[0], name)
        except CountsError:
            return False
        return True

    def n_distinct(self, name: str) -> int:
        return len(distinct_values(plain_column(without_missing(self.table, [name])[0], name))[0])

    def first(self, name: str, n: int) -> list[str]:
        return [str(value) for value in self.table[name][:n].to_pylist()]

    def __len__(self) -> int:
        return len(self.table)


def missing_column(wanted: str, names: Sequence[str], *, option: str | None = None) -> str:
    """The error text about a missing column: those that there are, and the nearest."""
    text = f"expected a column {wanted!r}, got {listed(names)}"
    near = nearest_name(wanted, names)
    if option is not None:
        return f"{text}; name yours with {option}{'' if near is None else ' ' + shlex.quote(near)}"
    return text if near is None else f"{text}; did you mean {near!r}?"


def nearest_name(wanted: str, names: Sequence[str]) -> str | None:
    """The column with the wanted name as one of its words, or with a similar spelling."""
    for name in names:
        if wanted in re.findall("[a-z]+", name.casefold()):
            return name
    plain = {plain_name(name): name for name in names}
    near = difflib.get_close_matches(plain_name(wanted), plain, n=1, cutoff=0.75)
    return plain[near[0]] if near else None


def plain_name(name: str) -> str:
    """A name without case, spaces and punctuation."""
    return "".join(character for character in name.casefold() if character.isalnum())
