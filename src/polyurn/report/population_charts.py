"""Charts of populations side by side: the plane, strips of clients, sizes, distances.

Rows in, Vega-Lite out; nothing is computed here.
"""

from collections.abc import Sequence

import altair as alt

from polyurn.report.palette import fills
from polyurn.report.parts import Rows, Spec
from polyurn.report.vega import (
    LINE,
    QUIET,
    chart,
    names_of,
    percent_axis,
    plain_axis,
    population_colour,
    population_dash,
    population_shape,
    size_axis,
    spec_of,
    steps,
)


def plane_chart(rows: Rows) -> Spec:
    """Every client at its place in the plane."""
    names = names_of(rows, "population")
    hidden = alt.Axis(labels=False, ticks=False, domain=False, grid=False, title=None)
    # A margin of its own, so that nothing moves when the reader hides a population.
    ends = {a: [min(r[a] for r in rows), max(r[a] for r in rows)] for a in ("x", "y")}
    base = chart(names).encode(
        x=alt.X("x:Q", scale=alt.Scale(domain=ends["x"]), axis=hidden),
        y=alt.Y("y:Q", scale=alt.Scale(domain=ends["y"]), axis=hidden),
        color=population_colour(names),
        shape=population_shape(names),
        tooltip=["population:N"],
    )
    return spec_of(base.mark_point(filled=True, size=34, opacity=0.65), rows, height=440)


def strip_chart(rows: Rows, categories: Sequence[str]) -> Spec:
    """What each client holds, one column per client."""
    base = chart().encode(
        x=alt.X("client:O", axis=None, scale=alt.Scale(paddingInner=0.08, paddingOuter=0)),
        y=alt.Y("share:Q", stack="zero", axis=None, scale=alt.Scale(domain=[0, 1])),
        color=alt.Color(
            "category:N",
            sort=None,
            scale=alt.Scale(domain=[*categories], range=fills(categories)),
            legend=None,
        ),
        order=alt.Order("place:Q"),
        tooltip=[
            "client:O",
            alt.Tooltip("held:N", title="category"),
            alt.Tooltip("share:Q", format=".0%"),
        ],
    )
    return spec_of(base.mark_bar(stroke="var(--card)", strokeWidth=0.5), rows, height=160)


def population_sizes_chart(rows: Rows) -> Spec:
    """How many clients of each population hold at most so many points."""
    names = names_of(rows, "population")
    base = chart(names).encode(
        x=size_axis(rows),
        y=alt.Y("share:Q", title="clients with at most so many", axis=percent_axis()),
        color=population_colour(names),
        strokeDash=population_dash(names),
        tooltip=[
            "population:N",
            alt.Tooltip("size:Q", format=",.0f"),
            alt.Tooltip("share:Q", format=".0%"),
        ],
    )
    return spec_of(base.mark_line(interpolate="step-after", strokeWidth=2.5), rows, height=400)


def distances_chart(rows: Rows, floors: Rows) -> Spec:
    """How far populations are from the true clients, over the noise floor: 1 is indistinguishable."""
    names = names_of(rows, "population")
    y = alt.Y("measure:N", sort=None, title=None, axis=plain_axis(labelLimit=220))
    scale = alt.Scale(type="log", nice=False, padding=14)
    ratio = alt.X(
        "ratio:Q",
        title="distance ÷ noise floor",
        scale=scale,
        axis=alt.Axis(format="~g", tickCount=5),
    )
    noise = (
        alt.Chart(alt.NamedData(name="floors"))
        .mark_bar(color=LINE, height=alt.RelativeBandSize(band=0.7), opacity=0.9)
        .encode(y=y, x=alt.X("low:Q", scale=scale), x2="high:Q")
    )
    one = (
        alt.Chart(alt.NamedData(name="floors"))
        .mark_tick(color=QUIET, thickness=2, height=alt.RelativeBandSize(band=0.9))
        .encode(y=y, x=alt.X("one:Q", scale=scale))
    )
    dots = (
        chart(names)
        .mark_point(filled=True, size=150, opacity=1)
        .encode(
            y=y,
            x=ratio,
            color=population_colour(names),
            shape=population_shape(names),
            tooltip=["population:N", "measure:N", alt.Tooltip("ratio:Q", format=".2f")],
        )
    )
    return spec_of(noise + one + dots, rows, height=steps(rows, "measure", 56), floors=floors)
