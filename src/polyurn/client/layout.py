"""The layout of a table: long or wide, and the meaning of its columns.

Columns are found by their names. If there is only one way to read a table, it is read that way, with
remarks; everything else is an error that names the options. `tables.py` reads the cells.
"""

import contextlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from polyurn.client.columns import ColumnValues, missing_column, nearest_name, plain_name
from polyurn.errors import CountsError
from polyurn.model.names import Match, renamed
from polyurn.wording import counted, listed

Role: TypeAlias = Literal["client", "category", "count"]

# Common names of such columns, only for suggestions.
_OFTEN: Mapping[Role, tuple[str, ...]] = {
    "client": ("client", "user", "customer", "device", "owner", "writer", "person"),
    "category": ("category", "label", "class", "item", "type", "kind"),
}
# A table of a client and two numbers may as well be (client, category, count).
_FEWEST_WIDE = 3
ONE_PER_ROW = "1"
_FIRST_ROWS = 2  # that an error shows as they would be read


@dataclass(frozen=True)
class Columns:
    """The names of columns that the caller gave; None for a column that is to be found.

    Several columns of the category are crossed, and so is "origin,destination" if no column has that
    name. A `count` of "1" says that every row is one point.
    """

    client: str | None = None
    category: str | Sequence[str] | None = None
    count: str | None = None

    def texts(self) -> dict[str, str]:
        """The names that were given, by role."""
        return {role: column_text(name) for role, name in vars(self).items() if name is not None}


NO_COLUMNS = Columns()


@dataclass(frozen=True)
class Layout:
    """The layout of a table: the meaning of its columns.

    `category` may be several columns, which are crossed; it is None for a wide table, which has one row
    per client and the categories `wide`. Without `count` every row is one point. `unread` are the other
    columns, `certain` says whether the user stated that there are no counts, and `remarks` how columns
    were read whose names left something to guess.
    """

    client: str
    category: str | tuple[str, ...] | None
    count: str | None = None
    wide: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    certain: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that are read."""
        return tuple(filter(None, (self.client, *_parts(self.category), self.count, *self.wide)))

    @property
    def columns(self) -> Columns:
        """The names of the columns, to read a similar table with."""
        return Columns(self.client, self.category, self.count)


def find_layout(
    names: Sequence[str], values: ColumnValues, asked: Columns = NO_COLUMNS, *,
    remembered: Columns = NO_COLUMNS, declared: Sequence[str] | int | None = None,
    elsewhere: Sequence[str] = (), match: Match | None = None,
) -> Layout:  # fmt: skip
    """Find out which columns mean what, by their names and by what they hold."""
    client: str | None = _find("client", names, asked, remembered)
    category: str | tuple[str, ...] | None = _find("category", names, asked, remembered)
    found = None if category else _wide(names, values, client, asked, declared, match)
    if found is not None:
        return found
    certain = asked.count == ONE_PER_ROW and ONE_PER_ROW not in names
    count: str | None = None if certain else _find("count", names, asked, remembered)
    if client is None or category is None:
        raise CountsError(_missing(names, values, client, category, count, certain=certain))
    _refuse_two_roles(client, category, count)
    parts = {client, count, *_parts(category), *elsewhere}
    unread = tuple(name for name in names if name not in parts)
    used, given, known = (
        one.texts() for one in (Columns(client, category, count), asked, remembered)
    )
    remarks = [
        f"column {text!r} is read as the {role}"
        for role, text in used.items()
        if text not in (role, given.get(role), known.get(role))
    ]
    remarks += _not_read(unread)
    return Layout(client, category, count, (), unread, certain, tuple(remarks))


def category_columns(
    names: Sequence[str], category: str | Sequence[str], *, option: str = "--category"
) -> str | tuple[str, ...]:
    """The column that holds a category, or those that are crossed.

    >>> category_columns(["plane", "origin", "dest"], "origin,dest")
    ('origin', 'dest')
    >>> category_columns(["plane", "origin,dest"], "origin,dest")
    'origin,dest'
    """
    if isinstance(category, str):
        if category in names or "," not in category:
            return find_column(names, category, option=option)
        listed = [part.strip() for part in category.split(",")]
    else:
        listed = list(category)
    if not listed or not all(listed):
        raise CountsError(
            f"expected columns to cross as origin,destination, got {','.join(listed)!r}"
        )
    found = tuple(find_column(names, part, option=option) for part in listed)
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise CountsError(f"expected different columns to cross, got {twice!r} twice")
    return found if len(found) > 1 else found[0]


def column_text(category: str | Sequence[str]) -> str:
    """A column's name, or those of crossed columns as the option `--category` spells them."""
    return category if isinstance(category, str) else ",".join(category)


def find_column(names: Sequence[str], asked: str, *, option: str) -> str:
    """The column of that name; case and punctuation may differ if there is only one such column."""
    found = _alike(asked, names)
    if found is None:
        raise CountsError(missing_column(asked, names, option=option))
    return found


def _find(role: Role, names: Sequence[str], asked: Columns, remembered: Columns) -> Any:
    """The column of a role, or those of the category that are crossed; None if no name fits."""
    find: Any = category_columns if role == "category" else find_column
    if (name := getattr(asked, role)) is not None:
        return find(names, name, option=f"--{role}")
    if (name := getattr(remembered, role)) is not None:
        with contextlib.suppress(CountsError):
            return find(names, name, option=f"--{role}")
    return _alike(role, names)


def _refuse_two_roles(client: str, category: str | tuple[str, ...], count: str | None) -> None:
    if client in _parts(category):
        raise CountsError(
            f"expected another column for the category than the client's, got {client!r}"
        )
    if count is not None and count in (client, *_parts(category)):
        other = "client" if count == client else "category"
        raise CountsError(
            f"expected another column for the counts than the {other}'s, got {count!r}; if every row is "
            "one point, --count 1"
        )


def _parts(category: str | tuple[str, ...] | None) -> tuple[str | None, ...]:
    return category if isinstance(category, tuple) else (category,)


def _alike(wanted: str, names: Sequence[str]) -> str | None:
    """The column of that name, or the only one that differs in case, punctuation or a role's ending."""
    if wanted in names:
        return wanted
    plain = plain_name(wanted)
    endings = ("", "s", "id") if plain in ("client", "category", "count", "label") else ("",)
    alike = [name for name in names if plain_name(name) in [plain + end for end in endings]]
    return alike[0] if len(alike) == 1 and plain else None


def _wide(
    names: Sequence[str], values: ColumnValues, client: str | None, asked: Columns,
    declared: Sequence[str] | int | None, match: Match | None,
) -> Layout | None:  # fmt: skip
    """The layout of one row per client and one column per category, if no other is possible."""
    if asked.count is not None:
        return None
    lacking: list[str] = []
    if isinstance(declared, Sequence):
        order = {name: j for j, name in enumerate(declared)}
        called = zip(names, renamed(names, match), strict=True)
        place = {n: order[new] for n, new in called if new in order}
        wide = tuple(sorted(place, key=place.__getitem__))
        lacking = [name for j, name in enumerate(declared) if j not in place.values()]
        if len(wide) < 2:
            return None
    else:
        # A number that is no count is one client's mistake, which its line tells: not another layout.
        texts = [name for name in names if name != client and not values.is_number(name)]
        if client is None and len(texts) == 1:
            (client,), texts = texts, []
        wide = tuple(name for name in names if name != client)
        enough = len(wide) >= _FEWEST_WIDE if declared is None else len(wide) == declared
        if texts or not enough:
            return None
    others = tuple(name for name in names if name not in wide)
    if client is None and len(others) == 1:
        client = others[0]
    if client is None or values.n_distinct(client) < len(values):
        return None
    unread = tuple(name for name in others if name != client)
    remarks = [
        f"one row per client (column {client!r}); the categories are {listed(wide)}; "
        f"{_first_wide(values, client, wide)}"
    ]
    if lacking:
        remarks.append(f"no column, so no points: {listed(lacking)}")
    remarks += _not_read(unread)
    return Layout(client, None, None, wide, unread, True, tuple(remarks))


def _not_read(unread: Sequence[str]) -> list[str]:
    return [f"not read: {_plural('column', unread)} {listed(unread)}"] if unread else []


def _missing(
    names: Sequence[str], values: ColumnValues, client: str | None,
    category: str | tuple[str, ...] | None, count: str | None, *, certain: bool,
) -> str:  # fmt: skip
    """The error text where a column cannot be found: those that there are, and how they may be read."""
    lacking: list[Role] = ["client"] if client is None else []
    lacking += ["category"] if category is None else []
    text = (
        f"expected {_plural('a column', lacking)} {' and '.join(map(repr, lacking))}, got "
        f"{listed(names)}"
    )
    if any(name.strip().isdecimal() for name in names):
        return f"{text}; is the first line a header? It should be: client,category,count"
    free = [name for name in names if name not in (client, *_parts(category), count)]
    if len(free) < len(lacking):
        return f"{text}; a table needs a column for the client and one for the category"
    may_be_wide = category is None and count is None and not certain
    hint = _as_wide(values, client, free) if may_be_wide else ""
    text += f"; {hint}; else" if hint else ";"
    # Where no name tells, the clients are more likely the column of more values, if not one a row.
    free.sort(key=lambda name: (values.n_distinct(name) == len(values), -values.n_distinct(name)))
    found = {role: _guess(role, free, values) for role in lacking}
    read = Layout(client or found["client"], category or found["category"], count)
    text += f" name yours, such as {_options(found)} ({_as_long(values, read)})"
    if len(lacking) == 2:
        swapped: dict[Role, str] = {"client": found["category"], "category": found["client"]}
        text += f", or {_options(swapped)} ({_numbers(values, swapped.values())})"
    if count is None and not certain and any(map(values.is_whole, free)):
        text += "; every row is one point, unless --count names a column of counts"
    return text


def _as_wide(values: ColumnValues, client: str | None, free: list[str]) -> str:
    """A hint that a table with too few columns to be sure may be wide."""
    texts = [name for name in free if not values.is_whole(name)]
    wide = [name for name in free if name not in texts]
    owner = client or next(iter(texts), None)
    if owner is None or len(wide) < 2 or len(texts) > (client is None):
        return ""
    if values.n_distinct(owner) < len(values):
        return ""
    named = "" if client else f"--client {shlex.quote(owner)} "
    return (
        f"{len(wide)} columns of counts, one per category, are a wide table: {named}--categories "
        f"{shlex.quote(','.join(wide))} reads it so ({_first_wide(values, owner, wide)})"
    )


def _first_wide(values: ColumnValues, client: str, wide: Sequence[str]) -> str:
    """The first row of a wide table as it is read."""
    (owner,) = values.first(client, 1)
    held = listed([f"{n} of {name}" for name in wide for n in values.first(name, 1)])
    return f"the first row: client {owner} has {held}"


def _as_long(values: ColumnValues, read: Layout) -> str:
    """How many clients and categories there are in a long table, and its first rows as they are read."""
    names = [read.client, *filter(None, _parts(read.category))]
    columns = [values.first(name, _FIRST_ROWS) for name in names]
    n = read.count
    counts = ["1"] * len(columns[0]) if n is None else values.first(n, _FIRST_ROWS)
    rows = [
        f"client {owner} has {n} of {' × '.join(parts)}"
        for n, owner, *parts in zip(counts, *columns, strict=True)
    ]
    return f"{_numbers(values, names)}; the first rows: {', '.join(rows)}"


def _numbers(values: ColumnValues, names: Iterable[str]) -> str:
    """How many clients there are, and how many categories; of crossed columns, of each."""
    client, *category = (values.n_distinct(name) for name in names)
    times = " × ".join(f"{n:,}" for n in category[:-1])
    last = counted(category[-1], "category")
    return f"{counted(client, 'client')}, {times + ' × ' if times else ''}{last}"


def _guess(role: Role, free: list[str], values: ColumnValues) -> str:
    """The most likely column for a role, which is removed from `free`."""
    near = next((n for often in _OFTEN[role] if (n := nearest_name(often, free))), None)
    texts = [name for name in free if not values.is_whole(name)]
    name = near or next(iter(texts or free))
    free.remove(name)
    return name


def _options(found: Mapping[Role, str]) -> str:
    return " ".join(f"--{role} {shlex.quote(name)}" for role, name in found.items())


def _plural(noun: str, things: Sequence[object]) -> str:
    return noun if len(things) == 1 else f"{noun.removeprefix('a ')}s"
