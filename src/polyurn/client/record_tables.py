"""Data frames → records: the features, the label and the client of every row.

Features are columns of numbers, or one column of lists of numbers (an embedding, pixels). The caller
names the columns. `tables.py` reads histograms.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyurn.client.bins import Bins
from polyurn.client.columns import as_arrow, column_ids, distinct_values, numbers_of
from polyurn.client.counting import Categories, category_names
from polyurn.client.records import Records
from polyurn.client.tables import category_codes
from polyurn.errors import CountsError, ParameterError, RowError
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Bools, Floats
from polyurn.wire import RecordColumn

if TYPE_CHECKING:
    import pyarrow as pa


@checked
def table_records(
    table: object,
    *,
    label: str | Sequence[str],
    categories: Categories,
    features: Sequence[str],
    client: str = "client",
    values: Mapping[str, Sequence[str]] | None = None,
) -> Records:
    """The records of many clients from a data frame with one row per point.

    Parameters
    ----------
    table : pyarrow.Table, pandas.DataFrame, polars.DataFrame or any Arrow stream
    label : str or sequence of str
        The column with the label; several are crossed.
    categories : int, sequence of str, or Bins
        The labels that the server declares, as in `table_histograms`.
    features : sequence of str
        Columns of numbers; or one column with lists of the same length in all rows.
    client : str
        The column with the client's id.
    values : mapping of str to sequence of str, optional
        The declared values of features of texts, whose codes are the features then.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"client": ["a", "a", "b"], "word": ["x", "y", "x"], "pitch": [1.0, 2.0, 4.0]})
    >>> records = table_records(table, label="word", categories=["x", "y"], features=["pitch"])
    >>> records.counts.toarray().tolist()
    [[1, 1], [1, 0]]
    """
    arrow = as_arrow(table)
    codes = category_codes(arrow, categories, category=label)
    ids, owner = distinct_values(column_ids(arrow, client))
    n_labels = len(category_names(categories))
    found = table_features_of(arrow, features, values)
    return Records(found, codes, ids[owner], n_labels=n_labels)


def column_records(table: object, column: str, *, client: str = "client") -> Records:
    """The records of one column of numbers, for questions that are not about labels: all have one."""
    arrow = as_arrow(table)
    numbers = table_features_of(arrow, [column])
    ids, owner = distinct_values(column_ids(arrow, client))
    return Records(numbers, np.zeros(len(numbers), np.int64), ids[owner])


def table_features_of(
    table: object, features: Sequence[str], values: Mapping[str, Sequence[str]] | None = None
) -> Floats:
    """The named columns of a data frame as features, shape (n_rows, n_features).

    Columns with declared `values` have their codes.
    """
    arrow, declared = as_arrow(table), values or {}
    if len(features) == 0:
        raise CountsError("expected at least one column of features, got none; name some")
    if len(features) == 1 and _is_list(arrow, features[0]):
        return _from_lists(arrow, features[0])
    columns = [
        category_codes(arrow, declared[name], category=name).astype(np.float64)
        if name in declared
        else numbers_of(arrow, name).astype(np.float64)
        for name in features
    ]
    for name, column in zip(features, columns, strict=True):
        _check_finite(np.isfinite(column), name)
    return np.column_stack(columns)


def record_columns(
    names: Sequence[str], features: Sequence[str], *, values: Mapping[str, Sequence[str]],
    bins: Mapping[str, Bins],
) -> dict[str, RecordColumn]:  # fmt: skip
    """How columns among the features of records are cut: into bins, or at the codes of their values."""
    if not names:
        raise ParameterError("expected a column with declared values or bins (--values, --range)")
    check_values(values, features)
    found = {}
    for name in (*names, *bins):
        if name not in names:
            raise ParameterError(f"expected bins of candidates, got those of {name!r}")
        if (name in values) == (name in bins):
            raise ParameterError(
                f"expected either the range of column {name!r} (--range {name}=LOW:HIGH, or its edges, "
                f"which `describe --column {name}` finds), or its values (--values), got "
                f"{'both' if name in bins else 'neither'}"
            )
        inner: Floats = (
            bins[name].edges[1:-1] if name in bins else np.arange(0.5, len(values[name]) - 1)
        )
        found[name] = RecordColumn(list(features).index(name), len(features), inner)
    return found


def check_values(values: Mapping[str, Sequence[str]], features: Sequence[str]) -> None:
    """Refuse declared values of another column than these features, or fewer than two."""
    for name, given in values.items():
        if name not in features or not 2 <= len(given) == len(set(given)):
            raise ParameterError(
                "expected values of a declared column, two different ones or more, got "
                f"{name}={','.join(given)}"
            )


def number_columns(table: object, *, leave_out: Sequence[str]) -> tuple[str, ...]:
    """The columns of a data frame that hold only numbers, or texts that spell them."""
    arrow = as_arrow(table)
    names = (name for name in arrow.column_names if name not in leave_out)
    return tuple(name for name in names if _has_numbers(arrow, name))


def list_columns(table: object) -> tuple[str, ...]:
    """The columns of a data frame that hold lists."""
    arrow = as_arrow(table)
    return tuple(name for name in arrow.column_names if _is_list(arrow, name))


def _has_numbers(table: "pa.Table", name: str) -> bool:
    try:
        return bool(np.isfinite(numbers_of(table, name)).all())
    except CountsError:
        return False


def _is_list(table: "pa.Table", name: str) -> bool:
    import pyarrow as pa

    if name not in table.column_names:
        return False
    kind: Any = table[name].type
    return bool(pa.types.is_nested(kind) and not pa.types.is_struct(kind))


def _from_lists(table: "pa.Table", name: str) -> Floats:
    import pyarrow as pa

    column = table[name]
    lengths = np.asarray(pa.compute.list_value_length(column).fill_null(-1))
    if not len(lengths):
        raise CountsError("expected at least one row, got an empty table")
    if lengths.min() < 1 or lengths.min() != lengths.max():
        raise CountsError(
            f"expected lists of the same number of numbers in column {name!r}, got lengths "
            f"{lengths.min()} to {lengths.max()}"
        )
    flat, n = pa.compute.list_flatten(column), int(lengths[0])
    try:
        numbers = numbers_of(pa.table({name: flat}), name).astype(np.float64)
    except RowError as error:  # it counts the numbers of all lists
        before, value, after = error.args
        raise RowError(before, value // n, after) from None
    _check_finite(np.asarray(np.isfinite(numbers).reshape(-1, n).all(axis=1)), name)
    return np.asarray(numbers.reshape(-1, n))


def _check_finite(finite: Bools, name: str) -> None:
    if not finite.all():
        text = f"expected finite numbers in column {name!r}, got others, the first"
        raise RowError(text, int(np.argmin(finite)))
