"""Charts of a style: what directions carry, what they move, how the pool serves them, the forecast.

Rows in, Vega-Lite out; nothing is computed here.
"""

import altair as alt

from polyurn.report.palette import tone
from polyurn.report.parts import Rows, Spec
from polyurn.report.style_rows import PARTS
from polyurn.report.vega import (
    ACCENT,
    LINE,
    QUIET,
    SHORT,
    chart,
    names_of,
    percent_axis,
    plain_axis,
    population_colour,
    population_shape,
    spec_of,
    steps,
)

_COLOURS = (tone(1), tone(2), tone(8))
_SHAPES = ("circle", "triangle-up", "square")


def carried_chart(rows: Rows) -> Spec:
    """Which share of the clients' differences each direction carries, in its two parts."""
    base = chart().encode(
        y=alt.Y("direction:N", sort=None, title="direction", axis=plain_axis()),
        x=alt.X(
            "share:Q", stack="zero", title="share of the clients’ differences", axis=percent_axis()
        ),
        color=_part_colour(rows),
        order=alt.Order("part:N", sort="descending"),
        tooltip=["direction:N", "part:N", alt.Tooltip("share:Q", format=".1%")],
    )
    return spec_of(base.mark_bar(), rows, height=steps(rows, "direction"))


def variance_chart(rows: Rows) -> Spec:
    """The variance of each direction in its three parts, with 95 % intervals."""
    names = names_of(rows, "part")
    y = alt.Y(
        "direction:N", sort=None, title="direction", axis=plain_axis(grid=True),
        scale=alt.Scale(paddingInner=0.4, paddingOuter=0.2),
    )  # fmt: skip
    base = chart().encode(y=y, color=_part_colour(rows), yOffset=alt.YOffset("part:N", sort=None))
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="variance (the pool’s points have 1)"), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="variance:Q",
        shape=alt.Shape(
            "part:N",
            sort=None,
            scale=alt.Scale(domain=names, range=[*_SHAPES]),
            legend=_part_legend(),
        ),
        tooltip=[
            "direction:N",
            "part:N",
            alt.Tooltip("variance:Q", format=".3f"),
            alt.Tooltip("error:Q", format=".3f", title="standard error"),
        ],
    )
    return spec_of(bars + dots, rows, height=steps(rows, "direction", 44))


def loadings_chart(rows: Rows, *, unit: str) -> Spec:
    """By how much the features of one direction move with it."""
    base = chart().encode(
        y=alt.Y("feature:N", sort=None, title=None, axis=plain_axis(labelLimit=160)),
        x=alt.X("moves:Q", title=unit, axis=alt.Axis(tickCount=4, format="~g")),
        color=alt.condition("datum.moves >= 0", alt.value(tone(1)), alt.value(tone(2))),
        tooltip=["feature:N", alt.Tooltip("moves:Q", format=".3g", title=unit)],
    )
    return spec_of(base.mark_bar(cornerRadiusEnd=2), rows, height=steps(rows, "feature", 24))


def serving_chart(rows: Rows) -> Spec:
    """For each label: what clients ask for, and the effective sample sizes that the pool has."""
    y = alt.Y("label:N", sort=None, title="label", axis=plain_axis(labelLimit=140))
    scale = alt.Scale(type="log", nice=False, padding=12)
    title = "points (logarithmic)"
    axis = alt.Axis(format=SHORT, tickCount=5)
    base = chart().encode(
        y=y,
        tooltip=[
            "label:N",
            alt.Tooltip("asked:Q", format=",.1f", title="points asked for, mean"),
            alt.Tooltip("low:Q", format=",.1f", title="effective, 5 % quantile"),
            alt.Tooltip("median:Q", format=",.1f", title="effective, median"),
            alt.Tooltip("available:Q", format=",", title="in the pool"),
        ],
    )
    spans = base.mark_rule(strokeWidth=5, color=LINE, strokeCap="round").encode(
        x=alt.X("low:Q", scale=scale, title=title, axis=axis), x2="median:Q"
    )
    lows = base.mark_point(filled=True, size=70, opacity=1, color=ACCENT, shape="triangle-up")
    medians = base.mark_point(filled=True, size=80, opacity=1, color=ACCENT)
    asked = base.mark_tick(thickness=3, size=16, color=tone(2))
    drawn = (
        spans
        + lows.encode(x=alt.X("low:Q", scale=scale))
        + medians.encode(x=alt.X("median:Q", scale=scale))
        + asked.encode(x=alt.X("asked:Q", scale=scale))
    )
    return spec_of(drawn, rows, height=steps(rows, "label", 26))


def forecast_chart(rows: Rows, floor: Rows, *, title: str) -> Spec:
    """How much each population promises too much, or too little; the floor is a grey band."""
    names = names_of(rows, "population")
    y = alt.Y("population:N", sort=None, title=None, axis=plain_axis(labelLimit=160))
    base = chart(names).encode(y=y, color=population_colour(names))
    zero = alt.Chart(alt.NamedData(name="zero")).mark_rule(color=QUIET, strokeDash=[4, 4])
    bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    dots = base.mark_point(filled=True, size=130, opacity=1).encode(
        x="off:Q",
        shape=population_shape(names),
        tooltip=[
            "population:N",
            "style:N",
            alt.Tooltip("off:Q", format="+.2f", title="simulated less true"),
            alt.Tooltip("difference:Q", format=".2f", title="absolute difference"),
        ],
    )
    band = alt.Chart(alt.NamedData(name="floor")).mark_rect(color=LINE, opacity=0.6)
    drawn = band.encode(x="low:Q", x2="high:Q") + zero.encode(x="v:Q") + bars + dots
    height = steps(rows, "population", 40)
    return spec_of(drawn, rows, height=height, zero=[{"v": 0.0}], floor=floor)


def _part_colour(rows: Rows) -> alt.Color:
    names = names_of(rows, "part")
    colours = [_COLOURS[PARTS.index(name)] for name in names]
    return alt.Color(
        "part:N", sort=None, scale=alt.Scale(domain=names, range=colours), legend=_part_legend()
    )


def _part_legend() -> alt.Legend:
    return alt.Legend(title=None, columns=1, symbolOpacity=1)
