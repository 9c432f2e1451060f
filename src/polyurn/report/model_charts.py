"""Charts of a model: its components, the choice of K, and the rounds of the fit.

Rows in, Vega-Lite out; nothing is computed here.
"""

import altair as alt

from polyurn.report.palette import tone
from polyurn.report.parts import Rows, Spec
from polyurn.report.vega import (
    ACCENT,
    INK,
    LINE,
    QUIET,
    chart,
    component_colour,
    names_of,
    percent_axis,
    plain_axis,
    point,
    size_axis,
    spec_of,
    steps,
)


def weights_chart(rows: Rows) -> Spec:
    """How many of the clients each component stands for."""
    base = chart().encode(
        y=alt.Y("component:N", sort=None, title=None, axis=plain_axis()),
        x=alt.X("weight:Q", title="share of the clients", axis=alt.Axis(format="%", tickCount=5)),
        tooltip=[
            alt.Tooltip("component:N"),
            alt.Tooltip("weight:Q", format=".1%"),
            alt.Tooltip("concentration:Q", format=".3g", title="concentration α₀"),
            alt.Tooltip("mean_size:Q", format=",.1f", title="mean size"),
        ],
    )
    return spec_of(base.mark_bar(color=ACCENT, cornerRadiusEnd=2), rows, height=_height(rows))


def concentration_chart(rows: Rows) -> Spec:
    """How alike the clients of a component are: the larger, the more alike."""
    base = chart().encode(
        y=alt.Y("component:N", sort=None, title=None, axis=plain_axis()),
        x=alt.X(
            "concentration:Q",
            title="concentration α₀ (further right: clients more alike)",
            scale=alt.Scale(type="log", nice=True),
            axis=alt.Axis(format=",~g", tickCount=4),
        ),
        tooltip=[
            alt.Tooltip("component:N"),
            alt.Tooltip("concentration:Q", format=".3g"),
        ],
    )
    return spec_of(
        base.mark_point(filled=True, size=110, color=ACCENT, opacity=1),
        rows,
        height=_height(rows),
    )


def profile_chart(rows: Rows) -> Spec:
    """What a client of each component holds, in the mean: the darker, the more."""
    base = chart().encode(
        x=alt.X("category:O", sort=None, title=None, axis=plain_axis(labelAngle=_slant(rows))),
        y=alt.Y("component:N", sort=None, title=None, axis=plain_axis()),
        opacity=alt.Opacity("share:Q", scale=alt.Scale(range=[0.04, 1], zero=True), legend=None),
        tooltip=["component:N", "category:N", alt.Tooltip("share:Q", format=".1%")],
    )
    return spec_of(
        base.mark_rect(color=ACCENT),
        rows,
        height=steps(rows, "component", 26 if len(names_of(rows, "component")) <= 8 else 20),
    )


def telling_chart(rows: Rows) -> Spec:
    """The categories that tell components apart: expected share in each component."""
    names = names_of(rows, "component")
    base = chart().encode(
        y=alt.Y("category:N", sort=None, title=None, axis=plain_axis(grid=True)),
        x=alt.X(
            "share:Q",
            title="expected share of a client's points",
            scale=alt.Scale(padding=8, nice=False),
            axis=percent_axis(),
        ),
    )
    span = base.mark_line(color=LINE, strokeWidth=3).encode(detail="category:N")
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        color=component_colour(names),
        shape=alt.Shape("component:N", sort=None, legend=None),
        tooltip=[
            "category:N",
            "component:N",
            alt.Tooltip("share:Q", format=".1%"),
            alt.Tooltip("part:Q", format=".0%", title="part of the difference"),
        ],
    )
    return spec_of(span + dots, rows, height=steps(rows, "category", 24))


def component_sizes_chart(rows: Rows) -> Spec:
    """How many clients of each component hold at most so many points."""
    base = chart().encode(
        x=size_axis(rows),
        y=alt.Y("share:Q", title="clients with at most so many", axis=percent_axis()),
        color=component_colour(names_of(rows, "component")),
        tooltip=[
            "component:N",
            alt.Tooltip("size:Q", format=",.0f"),
            alt.Tooltip("share:Q", format=".1%"),
        ],
    )
    return spec_of(base.mark_line(interpolate="step-after", strokeWidth=2), rows, height=240)


# ------------------------------------------------------------------- the choice, the rounds


def candidates_chart(rows: Rows) -> Spec:
    """How far each number of components is behind the best, on the clients that were held out."""
    base = chart().encode(
        x=alt.X("n_components:O", title="components, K", axis=plain_axis(labelAngle=0)),
        tooltip=[
            alt.Tooltip("n_components:Q", title="K"),
            alt.Tooltip("log_likelihood:Q", format=".4f"),
            alt.Tooltip("behind:Q", format=".4f", title="behind the best"),
            alt.Tooltip("behind_error:Q", format=".4f", title="its standard error"),
        ],
    )
    bars = base.mark_rule(strokeWidth=2, color=QUIET).encode(
        y=alt.Y(
            "low:Q",
            title="held-out log-likelihood per client",
            scale=alt.Scale(zero=False),
            axis=alt.Axis(tickCount=5),
        ),
        y2="high:Q",
    )
    dots = base.mark_point(filled=True, opacity=1).encode(
        y="log_likelihood:Q",
        color=alt.condition("datum.chosen", alt.value(tone(2)), alt.value(tone(1))),
        size=alt.condition("datum.chosen", alt.value(190), alt.value(80)),
        shape=alt.condition("datum.chosen", alt.value("diamond"), alt.value("circle")),
    )
    said = (
        base.mark_text(dy=-14, fontWeight="bold", color=INK)
        .encode(y="high:Q", text=alt.value("chosen"))
        .transform_filter("datum.chosen")
    )
    return spec_of(bars + dots + said, rows, height=260)


def paths_chart(rows: Rows) -> Spec:
    """The likelihood of every start, round by round, and where it stopped."""
    base = chart().encode(
        x=alt.X(
            "round:Q",
            title="round",
            scale=alt.Scale(zero=False, nice=False, padding=6),
            axis=alt.Axis(tickMinStep=1, format="d"),
        ),
        y=alt.Y(
            "log_likelihood:Q",
            title="log-likelihood per client",
            scale=alt.Scale(zero=False),
            axis=alt.Axis(tickCount=5),
        ),
        tooltip=["start:N", "round:Q", alt.Tooltip("log_likelihood:Q", format=".5f")],
    )
    others = (
        base.mark_line(strokeWidth=1, opacity=0.5, color=QUIET, point=point(12, QUIET))
        .encode(detail="start:N")
        .transform_filter("!datum.winner")
    )
    winner = base.mark_line(strokeWidth=3, color=ACCENT, point=point(36, ACCENT))
    return spec_of(others + winner.transform_filter("datum.winner"), rows, height=260)


def _height(rows: Rows) -> int:
    """Many components stand closer together."""
    return steps(rows, "component", 34 if len(rows) <= 8 else 21)


def _slant(rows: Rows) -> int:
    """Short names of few categories stand upright; others would run into each other."""
    names = names_of(rows, "category")
    return 0 if len(names) <= 20 and max(map(len, names)) <= 2 else -45
