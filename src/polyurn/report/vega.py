"""What all charts of a page have in common, in Altair's words, and the JavaScript that draws them.

Colours are CSS variables, so that one drawing serves a light page, a dark one and paper. Marks have no
labels for screen readers: a thousand of them say nothing, and there is a table behind every figure.
Which charts there are is `model_charts.py`, `population_charts.py`, `style_charts.py`, `sweep_charts.py`
and `crossed_charts.py`; the same figures for papers, but for styles and what crossed, are `plots.py`.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from polyurn.errors import MissingDependencyError
from polyurn.report.palette import population_looks, tone
from polyurn.report.parts import Rows, Spec

try:
    import altair as alt
    import vl_convert
except ImportError as error:
    raise MissingDependencyError(error.name or "altair", "report", "a report") from error

INK, QUIET, LINE, ACCENT = "var(--ink)", "var(--quiet)", "var(--line)", "var(--tone-1)"
SHORT = "~s"  # 1.2k
SHOWN = "shown"  # the signal that lists the populations which the reader has not hidden
_FONT = "system-ui, sans-serif"
_CONFIG = {
    "aria": False,
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": QUIET, "titleColor": QUIET, "titleFontWeight": "normal", "labelFontSize": 12,
        "titleFontSize": 12, "domainColor": LINE, "tickColor": LINE, "gridColor": LINE,
        "gridOpacity": 0.6, "labelOverlap": True, "titlePadding": 8,
    },
    "legend": {
        "labelColor": INK, "titleColor": QUIET, "titleFontWeight": "normal", "orient": "top",
        "labelFontSize": 12, "titleFontSize": 12, "symbolStrokeWidth": 3, "columns": 4,
    },
}  # fmt: skip


def chart(populations: Sequence[str] = ()) -> alt.Chart:
    """A chart of the figure's rows; with populations, of those that the reader has not hidden."""
    base = alt.Chart(alt.NamedData(name="rows"))
    if not populations:
        return base
    return base.transform_filter(f"indexof({SHOWN}, datum.population) >= 0")


def spec_of(drawn: alt.Chart | alt.LayerChart, rows: Rows, *, height: int, **more: Rows) -> Spec:
    """Vega-Lite for the page, as wide as its place, with the rows that it is drawn from."""
    spec: Spec = drawn.properties(width="container", height=height).to_dict()
    spec.pop("$schema")  # an address; nothing on the page is to be fetched
    names = names_of(rows, "population") if rows and "population" in rows[0] else []
    return {
        **spec,
        "config": _CONFIG,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "params": [*spec.get("params", ()), {"name": SHOWN, "value": names}],
        "datasets": {"rows": rows, **more},
    }


@cache
def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed in one text, which puts `vegaEmbed` into the page."""
    newest = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", newest)
    return bundle.replace("</script", "<\\/script")


def names_of(rows: Rows, field: str) -> list[str]:
    """The values of a field, each once, in the order of the rows."""
    return [*dict.fromkeys(row[field] for row in rows)]


def steps(rows: Rows, field: str, step: int = 34) -> int:
    """The height of a chart with so many pixels for each value of a field."""
    return step * len(names_of(rows, field))


def plain_axis(**settings: Any) -> alt.Axis:
    """An axis without line, ticks or grid, for names."""
    return alt.Axis(
        **{"domain": False, "ticks": False, "grid": False, "labelColor": INK, **settings}
    )


def percent_axis() -> alt.Axis:
    """An axis of shares."""
    return alt.Axis(format="~%", tickCount=5)


def size_axis(rows: Rows) -> alt.X:
    """An axis of sizes, logarithmic if they span more than a factor of 20."""
    sizes = [row["size"] for row in rows]
    wide = max(sizes) > 20 * max(min(sizes), 1)
    return alt.X(
        "size:Q",
        title="points of a client",
        scale=alt.Scale(type="log", nice=False) if wide else alt.Scale(nice=False, zero=False),
        axis=alt.Axis(format=SHORT, tickCount=5),
    )


def point(size: int, colour: str) -> alt.OverlayMarkDef:
    """The points on a line."""
    return alt.OverlayMarkDef(size=size, color=colour, filled=True, opacity=1)


def component_colour(names: Sequence[str]) -> alt.Color:
    """A colour for each component, with a legend."""
    colours = [tone(i + 1) for i in range(len(names))]
    return alt.Color(
        "component:N",
        sort=None,
        scale=alt.Scale(domain=[*names], range=colours),
        legend=alt.Legend(title="component", symbolOpacity=1),
    )


def population_colour(names: Sequence[str]) -> alt.Color:
    """A colour for each population; the page's own switches are the legend."""
    colours = [tone(population_looks(names)[name].tone) for name in names]
    return alt.Color("population:N", scale=alt.Scale(domain=[*names], range=colours), legend=None)


def population_dash(names: Sequence[str]) -> alt.StrokeDash:
    """The true clients' line is dotted, as in the paper, and each other one has a dash of its own."""
    dashes = [[*population_looks(names)[name].dash] or [1, 0] for name in names]
    return alt.StrokeDash(
        "population:N", scale=alt.Scale(domain=[*names], range=dashes), legend=None
    )


def population_shape(names: Sequence[str]) -> alt.Shape:
    """A shape for each population's points."""
    shapes = [population_looks(names)[name].shape for name in names]
    return alt.Shape("population:N", scale=alt.Scale(domain=[*names], range=shapes), legend=None)
