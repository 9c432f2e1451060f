"""Data frames → histograms, through Arrow: pandas, polars, pyarrow and other libraries that support it.

Long tables (client, category, count), raw records (client, value) and wide tables (one row per client).
`columns.py` reads columns, without a copy if the frame's memory allows that. `layout.py` finds the
meaning of the columns.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.bins import Bins
from polyurn.client.columns import (
    LARGEST,
    ColumnValues,
    as_arrow,
    check_missing,
    column_counts,
    column_ids,
    distinct_values,
    numbers_of,
    plain_column,
)
from polyurn.client.counting import Categories, Histograms, category_names, located, tally
from polyurn.client.crossing import cross
from polyurn.client.layout import (
    NO_COLUMNS,
    Columns,
    Layout,
    category_columns,
    column_text,
    find_layout,
)
from polyurn.errors import CountsError, RowError
from polyurn.model.names import Match, laid, positions, renamed
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Ints
from polyurn.wording import counted, listed

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE_NUMBER = re.compile("0|[1-9][0-9]*")  # "01" is a name
_NUMBER = re.compile("-?[0-9]+([.][0-9]+)?")


@checked
def table_histograms(
    table: object,
    *,
    categories: Categories,
    client: str | None = None,
    category: str | Sequence[str] | None = None,
    count: str | None = None,
) -> Histograms:
    """The histograms of many clients from a data frame.

    Parameters
    ----------
    table : pyarrow.Table, pandas.DataFrame, polars.DataFrame or any Arrow stream
        One row per client and category, per point, or per client with a column for each category.
    categories : int, sequence of str, or Bins
        C for values 0 to C - 1; the category names, compared as text; or bins.
    client : str, optional
        The column with the client's id; by default "client".
    category : str or sequence of str, optional
        The column with the modelled feature; by default "category". Several columns are crossed: their
        values are joined by " × ".
    count : str, optional
        The column of counts of a long table: by default "count" if there is one; without it every row is
        one point. "1" says that every row is one point, whatever the other columns are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> long = pa.table({"client": ["a", "a", "b"], "category": [0, 2, 1], "count": [5, 1, 2]})
    >>> table_histograms(long, categories=3).counts.toarray().tolist()
    [[5, 0, 1], [0, 2, 0]]
    >>> flights = pa.table({"plane": [7, 7], "origin": ["EWR", "JFK"], "dest": ["ATL", "ATL"]})
    >>> routes = ["EWR × ATL", "JFK × ATL"]
    >>> found = table_histograms(
    ...     flights, categories=routes, client="plane", category=["origin", "dest"]
    ... )
    >>> found.counts.toarray().tolist()
    [[1, 1]]
    """
    arrow = as_arrow(table)
    layout = table_layout(arrow, Columns(client, category, count), declared=categories)
    check_missing(arrow, layout.read)
    return layout_histograms(arrow, layout, categories)


def table_layout(
    table: object, asked: Columns, *, remembered: Columns = NO_COLUMNS,
    declared: Categories | None = None, elsewhere: Sequence[str] = (), match: Match | None = None,
) -> Layout:  # fmt: skip
    """The layout of a data frame: `find_layout` with the frame's columns."""
    arrow = as_arrow(table)
    if match == "position" and isinstance(declared, Sequence):
        declared = len(declared)
    found = find_layout(
        arrow.column_names, ColumnValues(arrow), asked, remembered=remembered,
        declared=None if isinstance(declared, Bins) else declared, elsewhere=elsewhere, match=match,
    )  # fmt: skip
    if not isinstance(table, type(arrow)) or table.column_names == arrow.column_names:
        return found
    return replace(found, remarks=("spaces around names and texts are left out", *found.remarks))


def layout_histograms(
    table: object, layout: Layout, categories: Categories, match: Match | None = None, *,
    say: Callable[[str], None] | None = None,
) -> Histograms:  # fmt: skip
    """The histograms by a layout; `match` is for wide tables, `say` is told what may be no counts."""
    arrow = as_arrow(table)
    if layout.category is None:
        return _wide_histograms(arrow, layout, categories, match)
    ids, codes, given = layout_rows(arrow, layout, categories)
    clients, owner = distinct_values(ids)
    found = tally(owner, codes, given, clients=clients, categories=categories)
    if layout.count is None and not layout.certain and found.counts.nnz == len(owner):
        _refuse_unread_counts(arrow, layout)
    if say is not None and layout.count is not None:
        _question_counts(owner * found.counts.shape[1] + codes, given, layout.count, say)
    return found


def _question_counts(cells: Ints, given: Ints, name: str, say: Callable[[str], None]) -> None:
    """Question a column whose numbers differ for the same client and category: they may be no counts."""
    order = np.argsort(cells, kind="stable")
    again = np.diff(cells[order]) == 0
    if differ := int((again & (np.diff(given[order]) != 0)).sum()):
        rows = counted(differ, "row has", "rows have")
        say(
            f"is column {name!r} one of counts? {rows} another number there than an earlier row of the "
            "same client and category, and they were added; if every row is one point, --count 1"
        )


def layout_rows(
    table: object, layout: Layout, categories: Categories
) -> tuple["pa.ChunkedArray", Ints, Ints]:
    """The client, the code and the count of each row of a long data frame."""
    arrow, count = as_arrow(table), layout.count
    if layout.category is None:
        raise CountsError("expected one row per point or with a count, got one row per client")
    ids = column_ids(arrow, layout.client)
    codes = category_codes(arrow, categories, category=layout.category)
    return ids, codes, np.ones(len(ids), np.int64) if count is None else column_counts(arrow, count)


def category_codes(
    table: object, categories: Categories, *, category: str | Sequence[str] = "category"
) -> Ints:
    """The code of each row of a data frame.

    >>> import pyarrow as pa
    >>> category_codes(pa.table({"category": ["b", "a"]}), ["a", "b"]).tolist()
    [1, 0]
    """
    codes = known_codes(table, categories, category=category)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise RowError(
            f"column {column_text(category)!r}: {len(unknown):,} of {len(codes):,} values are not in "
            "the declared categories, the first",
            int(unknown[0]),
            f"; the categories are {listed(category_names(categories))}: if they are those of an "
            "MDM file or a federation, say what the table calls them (--map OLD=NEW,... or --map "
            "by-position), else declare all (--categories)",
        )
    return codes


def with_names(
    table: "pa.Table", category: str | tuple[str, ...], categories: Categories, match: Match,
    say: Callable[[str], None],
) -> tuple["pa.Table", str]:  # fmt: skip
    """The table with its categories called as they are declared, in one column; said if by position."""
    values, which = observed_codes(table, category)
    shown, names = [str(value) for value in values], category_names(categories)
    numbers = {text for text in shown if _NUMBER.fullmatch(text)}
    texts = sorted(numbers, key=float) + sorted({*shown} - numbers)
    new = dict(zip(texts, renamed(texts, match), strict=True))
    if match == "position" or isinstance(category, str):  # rare combinations may be of no category
        at = positions(texts, names, match)
        new = {text: names[j] for text, j in zip(texts, at, strict=True)}
    if match == "position":
        say(by_position(new))
    column, name = [np.array([new[text] for text in shown])[which]], column_text(category)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column), name
    return table.append_column(name, column), name


def by_position(new: Mapping[str, str]) -> str:
    """The message about categories that are taken in their order."""
    return f"by position: {listed([f'{old} is {name}' for old, name in new.items()])}"


def known_codes(
    table: object, categories: Categories, *, category: str | Sequence[str] = "category"
) -> Ints:
    """`category_codes`, with -1 for a value that is not a category."""
    arrow = as_arrow(table)
    if isinstance(categories, Bins | int | np.integer):
        return located(column_numbers(arrow, category), categories)
    known = {text: j for j, text in enumerate(category_names(categories))}
    shown, which = observed_codes(arrow, category)
    numbers = np.array([known.get(str(value), -1) for value in shown], np.int64)
    return np.asarray(numbers[which])


def column_numbers(table: object, name: str | Sequence[str]) -> NDArray[Any]:
    """A column of numbers, none of them missing; text may spell them."""
    arrow = as_arrow(table)
    column = _one_or_crossed(arrow, name)
    if isinstance(column, tuple):
        raise CountsError(
            f"expected one column for numbers or bins, got {column_text(column)!r}; crossed columns "
            "have names: put a number into bins first, or declare the names"
        )
    return numbers_of(arrow, column)


def observed_categories(
    table: object, *, category: str | Sequence[str] = "category"
) -> int | tuple[str, ...]:
    """The categories that occur in the caller's own table: C for whole numbers, else the names in order.

    Whole numbers are names, too, if most numbers up to the largest never occur, as in postcodes. For
    crossed columns they are the combinations that occur.
    """
    values, _ = observed_codes(as_arrow(table), category)
    return categories_shown({str(value) for value in values}, category=category)


def categories_shown(
    values: Collection[str], *, category: str | Sequence[str] = "category"
) -> int | tuple[str, ...]:
    """`observed_categories` of a table with these distinct values, as texts.

    >>> categories_shown({"2", "0"}), categories_shown({"10115", "80331"}), categories_shown({"b", "a"})
    (3, ('10115', '80331'), ('a', 'b'))
    """
    names = sorted(values)
    if any("\n" in name for name in names):
        raise CountsError(
            f"a value in column {column_text(category)!r} goes over several lines: a quote that does "
            "not end?"
        )
    if not all(_WHOLE_NUMBER.fullmatch(name) for name in names):
        return tuple(names)
    names.sort(key=len)  # texts of numbers are then in the order of their values
    few_digits = len(names[-1]) <= len(str(LARGEST))
    if few_digits and int(names[-1]) + 1 <= 2 * len(names):
        return int(names[-1]) + 1
    return tuple(names)


def _wide_histograms(
    table: "pa.Table", layout: Layout, categories: Categories, match: Match | None
) -> Histograms:
    """One row per client: a column for each category; without declared names, their own."""
    clients, _ = distinct_values(column_ids(table, layout.client))
    if isinstance(categories, Bins):
        raise CountsError("expected one row per point to put into bins, got one row per client")
    columns = np.column_stack([column_counts(table, name) for name in layout.wide])
    found = Histograms(sparse.csr_array(columns), clients, layout.wide)
    if match is None and isinstance(categories, int | np.integer):
        return found
    counts = laid(found, categories, match, allow_empty=True)
    return Histograms(sparse.csr_array(counts), clients, category_names(categories))


def check_wide(
    table: "pa.Table", layout: Layout, names: Sequence[str], match: Match | None
) -> None:
    """Refuse columns of numbers that are no categories of a model, if it has others that are lacking."""
    shown = {*renamed(layout.wide, match)}
    lacking = [name for name in names if name not in shown]
    others = [name for name in layout.unread if name and ColumnValues(table).is_whole(name)]
    if lacking and others and match != "position":
        raise CountsError(
            f"expected a column for each of the categories {listed(names)}, got none for "
            f"{listed(lacking)}, and others of whole numbers: {listed(others)}; say what they "
            "are called (--map OLD=NEW,...), or leave them out of the table"
        )


def _refuse_unread_counts(table: "pa.Table", layout: Layout) -> None:
    """Refuse a table whose counts may be in a column that was not read."""
    for name in layout.unread:
        if not name or not ColumnValues(table).is_whole(name):
            continue
        # A column that only numbers the rows from 0 is not one of counts.
        if (numbers_of(table, name) != np.arange(len(table))).any():
            raise CountsError(
                f"no client has a category twice, and column {name!r}, which was not read, holds whole "
                f"numbers: if they are the counts, say so (--count {name}, or count={name!r}); if every "
                "row is one point, --count 1"
            )


def observed_codes(
    table: "pa.Table", category: str | Sequence[str]
) -> tuple[Sequence[Any] | NDArray[Any], NDArray[np.integer[Any]]]:
    """The categories of a column, or of several that are crossed, and the index of each row's."""
    column = _one_or_crossed(table, category)
    if not isinstance(column, tuple):
        return distinct_values(plain_column(table, column))
    parts = [distinct_values(plain_column(table, name)) for name in column]
    listed = [(values.tolist(), which) for values, which in parts]
    return cross(listed, [repr(name) for name in column])


def _one_or_crossed(table: "pa.Table", name: str | Sequence[str]) -> str | tuple[str, ...]:
    """A column by its exact name, or those that are crossed."""
    if isinstance(name, str) and (name in table.column_names or "," not in name):
        return name
    return category_columns(table.column_names, name)
