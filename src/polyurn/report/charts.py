"""How every chart looks, on the page, in a notebook and on paper: theme, colours, dashes and shapes.

Colours are CSS variables of `style.css`, Okabe and Ito's, which colour-blind people tell apart; one
drawing serves a light page and a dark one, and `side_by_side` puts numbers in their place for paper.
Marks have no labels for screen readers: there is a table behind every figure. What is drawn is said in
the module of its topic.
"""

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from polyurn.comparison.estimates import Estimate
from polyurn.errors import MissingDependencyError, ParameterError

try:
    import altair as alt
    import vl_convert
except ImportError as error:
    raise MissingDependencyError(error.name or "altair", "report", "a report") from error

# One mark of a chart, or one line of a table; some of its values may be an `Estimate`.
Row: TypeAlias = dict[Any, Any]
Rows: TypeAlias = list[Row]
Spec: TypeAlias = dict[str, Any]

INK, QUIET, LINE, ACCENT = "var(--ink)", "var(--quiet)", "var(--line)", "var(--tone-1)"
SHORT = "~s"  # 1.2k
SHOWN = "shown"  # the signal that lists the populations which the reader has not hidden
VEGA_LITE_TYPE = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.split('.')[0]}+json"
_VERSION = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
_N_TONES, _N_FILLS = 9, 9  # in style.css
_DRAWN = ("mark", "encoding", "layer", "data", "transform", "height")
# Populations that every page has in the same colours: the paper's.
_KNOWN = ("true", "mdm", "iid", "oracle")
_DASHES: tuple[tuple[int, ...], ...] = ((2, 3), (), (8, 3), (8, 3, 2, 3), (5, 2), (1, 1))
_SHAPES = ("circle", "triangle-up", "cross", "square", "diamond", "triangle-down")
_THEME = {
    "aria": False,
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "point": {"filled": True, "opacity": 1, "size": 80},
    "axis": {
        "labelColor": QUIET, "titleColor": QUIET, "titleFontWeight": "normal", "labelFontSize": 12,
        "titleFontSize": 12, "domainColor": LINE, "tickColor": LINE, "gridColor": LINE,
        "gridOpacity": 0.6, "labelOverlap": True, "titlePadding": 8,
    },
    "axisQuantitative": {"tickCount": 5},
    "axisDiscrete": {
        "domain": False, "ticks": False, "grid": False, "labelColor": INK, "labelLimit": 220,
    },
    "legend": {
        "labelColor": INK, "titleColor": QUIET, "titleFontWeight": "normal", "orient": "top",
        "labelFontSize": 12, "titleFontSize": 12, "symbolStrokeWidth": 3, "columns": 4,
        "symbolOpacity": 1, "labelLimit": 260,
    },
}  # fmt: skip


# ------------------------------------------------------------------------ colours and shapes


@dataclass(frozen=True)
class Look:
    """How a population is drawn: which tone, the dash of its lines, and the shape of its points.

    The true clients' lines are dotted, as in the paper; never is there colour alone.
    """

    tone: int
    dash: tuple[int, ...]
    shape: str


def population_looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each population, the same on every page for those that the paper has.

    >>> [look.tone for look in population_looks(["iid", "mine", "true"]).values()]
    [0, 2, 4]
    """
    given = dict.fromkeys(names)
    others = [name for name in given if name not in _KNOWN]
    numbers = {name: i for i, name in enumerate([*_KNOWN, *others]) if name in given}
    return {
        name: Look(i, _DASHES[i % len(_DASHES)], _SHAPES[i % len(_SHAPES)])
        for name, i in numbers.items()
    }


def tone(number: int) -> str:
    """The colour of a population or component."""
    return f"var(--tone-{number % _N_TONES})"


def fills(names: Sequence[str]) -> list[str]:
    """The colours of categories, paler because they fill areas; "other", if it is last, is grey."""
    grey = _N_FILLS - 1
    colours = [i % grey for i in range(len(names))]
    if names and names[-1] == "other":
        colours[-1] = grey
    return [f"var(--fill-{i})" for i in colours]


@cache
def resource(name: str) -> str:
    """The text of a file of this package."""
    return files("polyurn.report").joinpath(name).read_text(encoding="utf-8")


@cache
def paper_colours() -> dict[str, str]:
    """The colours of a light page by their names in `style.css`."""
    light = resource("style.css").split("@media")[0]
    return dict(re.findall(r"--([\w-]+): (#\w+);", light))


# ------------------------------------------------------------------------ what charts are built from


def chart(rows: str = "rows", *, hides: bool = False) -> alt.Chart:
    """A chart of the figure's rows; `hides` leaves out populations that the reader has hidden."""
    base = alt.Chart(alt.NamedData(name=rows))
    return base.transform_filter(f"indexof({SHOWN}, datum.population) >= 0") if hides else base


def spec_of(drawn: alt.Chart | alt.LayerChart, rows: Rows, *, height: int, **more: Rows) -> Spec:
    """Vega-Lite for the page, as wide as its place, with the rows that it is drawn from."""
    spec: Spec = drawn.properties(width="container", height=height).to_dict()
    spec.pop("$schema")  # an address; nothing on the page is to be fetched
    names = names_of(rows, "population") if rows and "population" in rows[0] else []
    return {
        **spec,
        "config": _THEME,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "params": [*spec.get("params", ()), {"name": SHOWN, "value": names}],
        "datasets": {"rows": [_flat(row) for row in rows], **more},
    }


def _flat(row: Row) -> Row:
    """A row with three fields for an estimate, `weight`, `weight_low` and `weight_high`.

    They are None where they are not finite.
    """
    flat: Row = {}
    for field, value in row.items():
        if isinstance(value, Estimate):
            ends = {"": value.value, "_low": value.low, "_high": value.high}
            flat |= {f"{field}{end}": at if math.isfinite(at) else None for end, at in ends.items()}
        else:
            flat[field] = value
    return flat


def names_of(rows: Rows, field: str) -> list[Any]:
    """The values of a field, each once, in the order of the rows."""
    return [*dict.fromkeys(row[field] for row in rows)]


def steps(rows: Rows, field: str, step: int = 34) -> int:
    """The height of a chart with so many pixels for each value of a field."""
    return step * len(names_of(rows, field))


def listed(field: str, title: str | None = None, **axis: Any) -> alt.Y:
    """One line of the chart for each value of a field, in the order of the rows."""
    return alt.Y(f"{field}:N", sort=None, title=title, axis=alt.Axis(**axis))


@dataclass(frozen=True)
class Column:
    """One column of a table, and one line of a tooltip.

    `show` is a format that Python and Vega have in common (".1%"), or what a table says of a row.
    """

    field: Hashable
    title: str = ""
    show: str | Callable[[Row], str] = ""

    @property
    def heading(self) -> str:
        return self.title or str(self.field).replace("_", " ")

    def cell(self, row: Row) -> str:
        """The text of a row; a dash for what there is not."""
        if not isinstance(self.show, str):
            return self.show(row)
        value = row[self.field]
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "–"
        return value if isinstance(value, str) else f"{value:{self.show}}"


def tooltip(*fields: Column | str | tuple[str, str] | tuple[str, str, str]) -> list[alt.Tooltip]:
    """What is said of a mark: columns, or fields with a format if they are numbers and a title."""
    found = []
    for one in fields:
        column = one if isinstance(one, Column) else Column(one)
        if isinstance(one, tuple):
            column = Column(one[0], "".join(one[2:]), one[1])
        form: Any = {"format": column.show} if column.show else {}
        shorthand = f"{column.field}:{'Q' if form else 'N'}"
        found.append(alt.Tooltip(shorthand, title=column.heading, **form))
    return found


def measured(
    channel: Callable[..., Any], field: str, title: str | None, show: str = "", **scale: Any
) -> Any:
    """An axis of numbers, `alt.X` or `alt.Y`: its title, the format of its ticks, and its scale."""
    given: dict[str, Any] = {"axis": alt.Axis(format=show)} if show else {}
    if scale:
        given["scale"] = alt.Scale(**scale)
    return channel(f"{field}:Q", title=title, **given)


def keyed(
    field: str,
    names: Sequence[str],
    *,
    title: str | None = None,
    tones: Sequence[int] = (),
    **legend: Any,
) -> dict[str, Any]:
    """A colour and a shape for each name of a field, with one legend."""
    colours = [tone(i) for i in tones or range(1, len(names) + 1)]
    shapes = [_SHAPES[i % len(_SHAPES)] for i in range(len(names))]
    key = alt.Legend(title=title, **legend)
    return {
        channel: {"field": field, "type": "nominal", "sort": None, "legend": key,
                  "scale": alt.Scale(domain=[*names], range=values)}
        for channel, values in (("color", colours), ("shape", shapes))
    }  # fmt: skip


def populations(rows: Rows, *channels: str) -> dict[str, Any]:
    """The color, shape or strokeDash of each population; the page's own switches are the legend."""
    names = names_of(rows, "population")
    looks = [population_looks(names)[name] for name in names]
    ranges: dict[str, tuple[Any, Any]] = {
        "color": (alt.Color, [tone(look.tone) for look in looks]),
        "shape": (alt.Shape, [look.shape for look in looks]),
        "strokeDash": (alt.StrokeDash, [[*look.dash] or [1, 0] for look in looks]),
    }
    return {
        channel: kind("population:N", scale=alt.Scale(domain=names, range=values), legend=None)
        for channel, (kind, values) in ranges.items()
        if channel in channels
    }


# ------------------------------------------------------------------------ out of the page


@cache
def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed in one text, which puts `vegaEmbed` into the page."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", _VERSION)
    return bundle.replace("</script", "<\\/script")


def side_by_side(charts: Sequence[tuple[str, Spec]], *, width: int = 380) -> Spec:
    """Titled charts of a page as one that needs no page: of a given width, with numbers for colours.

    Populations, whose legend is the page's switches, have a legend of their own here.
    """
    datasets: dict[str, Rows] = {}
    alone: list[Spec] = []
    shown: dict[str, None] = {}
    for i, (title, page) in enumerate(charts):
        spec = json.loads(json.dumps({k: page[k] for k in _DRAWN if k in page}))
        for part in _parts(spec):
            if "data" in part:
                part["data"]["name"] += f"-{i}"
        datasets |= {f"{name}-{i}": rows for name, rows in page["datasets"].items()}
        shown |= dict.fromkeys(page["params"][-1]["value"])
        alone.append(spec | {"width": width, "title": title if len(charts) > 1 else ""})
    whole = alone[0] if len(alone) == 1 else {"hconcat": alone}
    whole |= {"datasets": datasets, "params": [{"name": SHOWN, "value": [*shown]}]}
    text = json.dumps({**whole, "config": {**_THEME, "background": "white"}})
    colours = paper_colours()
    text = re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], text)
    drawn: Spec = json.loads(text)
    for part in _parts(drawn):
        for channel in ("color", "shape", "strokeDash"):
            encoded = part.get("encoding", {}).get(channel, {})
            if encoded.get("field") == "population":
                encoded["legend"] = {"title": None}
    return drawn


def _parts(spec: Spec) -> Iterable[Spec]:
    """A chart and all that it is composed of."""
    yield spec
    for part in (*spec.get("layer", ()), *spec.get("hconcat", ())):
        yield from _parts(part)


def svg(spec: Spec) -> str:
    """A chart as a picture that any browser shows."""
    drawn: str = vl_convert.vegalite_to_svg(spec, _VERSION)
    return drawn


def write_picture(spec: Spec, path: Path) -> None:
    """Write a chart in the format that the file's name ends in."""
    written: dict[str, Callable[[], bytes]] = {
        ".json": lambda: json.dumps(spec).encode(),
        ".svg": lambda: svg(spec).encode(),
        ".pdf": lambda: vl_convert.vegalite_to_pdf(spec, _VERSION),
        ".png": lambda: vl_convert.vegalite_to_png(spec, _VERSION, scale=2),
    }
    if path.suffix not in written:
        raise ParameterError(
            f"expected a file that ends in .svg, .pdf, .png or .json, got {path.name!r}"
        )
    path.write_bytes(written[path.suffix]())
