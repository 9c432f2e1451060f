"""What a page is made of: sections, figures with a table behind each, pictures, and tables.

Values only. What they show is decided in the section's own module; how they look is `page.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# One mark of a chart, or one cell of a table: tidy rows that Vega-Lite and matplotlib both read.
Rows: TypeAlias = list[dict[str, Any]]
Spec: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class DataTable:
    """A table of texts.

    Attributes
    ----------
    caption : str
    head : tuple of str
    rows : tuple of tuples of str
        The first cell of a row names it.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Panel:
    """One chart.

    Attributes
    ----------
    spec : dict
        Vega-Lite.
    title : str
        Said above it where a figure has several.
    population : str or None
        The only population that it shows; it goes when the reader hides that.
    """

    spec: Spec = field(repr=False)
    title: str = ""
    population: str | None = None


@dataclass(frozen=True)
class Strip:
    """A row of pictures, as one image.

    Attributes
    ----------
    name : str
        Said before it.
    source : str
        The address of a PNG that holds all of it.
    says : str
        What it shows, for who cannot see it.
    """

    name: str
    source: str = field(repr=False)
    says: str


@dataclass(frozen=True)
class Pictures:
    """Rows of pictures under each other.

    Attributes
    ----------
    title : str
    marks : tuple of str
        What stands above the pictures, from the first to the last; may be empty.
    strips : tuple of Strip
    """

    title: str
    marks: tuple[str, ...]
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class Figure:
    """One or more charts, or pictures, what they say, and the table behind them.

    Attributes
    ----------
    name : str
        Its anchor in the page.
    title, says : str
    panels : tuple of Panel
    table : DataTable
    wide : bool
        Whether it takes the whole width of the page.
    legend : tuple of (str, str)
        Names and the colours, as in CSS, that stand for them.
    pictures : tuple of Pictures
    """

    name: str
    title: str
    says: str
    panels: tuple[Panel, ...]
    table: DataTable
    wide: bool = False
    legend: tuple[tuple[str, str], ...] = ()
    pictures: tuple[Pictures, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and what follows.

    Attributes
    ----------
    name, title, lead : str
    figures : tuple of Figure
    tables : tuple of DataTable
        Tables that are not behind a figure: they are open.
    facts : tuple of (str, str)
        Terms and what they stand for; before the figures, where there are some.
    """

    name: str
    title: str
    lead: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[DataTable, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def table_of(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> DataTable:
    """A table from whatever can be iterated over."""
    return DataTable(caption, tuple(head), tuple(tuple(row) for row in rows))
