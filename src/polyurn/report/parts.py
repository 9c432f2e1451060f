"""What a page is made of, declared: sections, figures, charts, tables and pictures.

A topic's module declares them, `page.html.j2` walks them. A figure also shows itself in a notebook and
saves itself as a picture, for papers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from polyurn.errors import ParameterError
from polyurn.report.charts import (
    VEGA_LITE_TYPE,
    Column,
    Row,
    Rows,
    Spec,
    names_of,
    side_by_side,
    write_picture,
)


@dataclass(frozen=True)
class Table:
    """A table of texts; the first cell of a row names it.

    Behind a figure one that is `open` is seen at once.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    open: bool = False

    @classmethod
    def of(cls, caption: str, rows: Iterable[Row], columns: Sequence[Column]) -> Self:
        """The table of some rows, a cell for each column."""
        head = tuple(column.heading for column in columns)
        return cls(caption, head, tuple(tuple(c.cell(row) for c in columns) for row in rows))


def pivot_table(
    caption: str,
    rows: Rows,
    by: Column,
    over: str,
    value: Column,
    *more: Column,
    names: Iterable[str] | None = None,
) -> Table:
    """A line for each value of `by`, with sums of `value` in a column for each name of `over`.

    `value` has the title and format of these columns. Where there is no row it is 0.

    >>> rows = [{"a": "x", "b": "1", "n": 2}, {"a": "x", "b": "2", "n": 3}]
    >>> pivot_table("", rows, Column("a"), "b", Column("n", "no. {}", "d"))
    Table(caption='', head=('a', 'no. 1', 'no. 2'), rows=(('x', '2', '3'),), open=False)
    """
    keys = [(over, name) for name in (names_of(rows, over) if names is None else names)]
    lines: dict[Any, Row] = {}
    for row in rows:
        line = lines.setdefault(row[by.field], {**row, **dict.fromkeys(keys, 0)})
        line[over, row[over]] += row[value.field]
    sums = [Column(key, value.title.format(key[1]), value.show) for key in keys]
    return Table.of(caption, lines.values(), [by, *more, *sums])


@dataclass(frozen=True)
class Panel:
    """One chart; one of a single `population` disappears when the reader hides it."""

    spec: Spec = field(repr=False)
    title: str = ""
    population: str | None = None


@dataclass(frozen=True)
class Strip:
    """A row of pictures as one image: what stands before it, its address, and what it shows."""

    name: str
    source: str = field(repr=False)
    says: str


@dataclass(frozen=True)
class Pictures:
    """Rows of pictures under each other; `marks` stand above them, from the first to the last."""

    title: str
    marks: tuple[str, ...]
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class Figure:
    """Charts or pictures, what they say, and the table behind them.

    `name` is its anchor in the page, `legend` are names and their colours in CSS; a `wide` figure takes
    the whole width of the page.
    """

    name: str
    title: str
    says: str
    table: Table = field(repr=False)
    panels: tuple[Panel, ...] = ()
    wide: bool = False
    legend: tuple[tuple[str, str], ...] = ()
    pictures: tuple[Pictures, ...] = field(default=(), repr=False)

    @property
    def spec(self) -> Spec:
        """Vega-Lite of all charts side by side, in colours for paper, for `altair.Chart.from_dict`."""
        if not self.panels:
            raise ParameterError(f"the figure {self.name!r} has pictures, and no chart")
        width = 760 if self.wide and len(self.panels) == 1 else 380
        return side_by_side([(panel.title, panel.spec) for panel in self.panels], width=width)

    def save(self, path: str | Path) -> None:
        """Write the charts to a file that ends in .svg, .pdf, .png, or .json for Vega-Lite."""
        write_picture(self.spec, Path(path))

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        shown = {VEGA_LITE_TYPE: self.spec} if self.panels else {}
        return {**shown, "text/plain": f"{self.title}: {self.says}"}


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and what follows.

    `tables` are not behind a figure: they are open. `facts` are terms and what they stand for; they come
    before figures and tables.
    """

    name: str
    title: str
    lead: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
