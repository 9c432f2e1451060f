"""Charts of a sweep: the metric against each hyper-parameter, and simulated against true.

Rows in, Vega-Lite out; nothing is computed here.
"""

from typing import Any

import altair as alt

from polyurn.report.parts import Rows, Spec
from polyurn.report.vega import (
    QUIET,
    chart,
    names_of,
    percent_axis,
    plain_axis,
    population_colour,
    population_dash,
    population_shape,
    spec_of,
)
from polyurn.sweeps.scores import LOSS


def sweep_chart(rows: Rows, *, name: str, metric: str) -> Spec:
    """The metric against a hyper-parameter, the true clients' dotted."""
    names = names_of(rows, "population")
    values = sorted({row["value"] for row in rows if not isinstance(row["value"], str)})
    wide = len(values) > 2 and values[0] > 0 and values[-1] / values[0] >= 20
    texts = any(isinstance(row["value"], str) for row in rows)
    x: Any = (
        alt.X("value:O", sort=None, title=name, axis=plain_axis(labelAngle=0))
        if texts
        else alt.X(
            "value:Q",
            title=name,
            scale=alt.Scale(type="log", nice=False, padding=10)
            if wide
            else alt.Scale(zero=False, nice=False, padding=10),
            axis=alt.Axis(values=values, format="~g"),
        )
    )
    base = chart(names).encode(x=x, color=population_colour(names))
    band = base.mark_area(opacity=0.14).encode(
        y=alt.Y("low:Q", title=metric, scale=alt.Scale(zero=False)), y2="high:Q"
    )
    y = alt.Y("metric:Q", title=metric, scale=alt.Scale(zero=False), axis=_axis(metric))
    lines = base.mark_line(strokeWidth=2.5).encode(y=y, strokeDash=population_dash(names))
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=y,
        shape=population_shape(names),
        tooltip=[
            "population:N",
            alt.Tooltip("value:N", title=name),
            alt.Tooltip("metric:Q", format=_format(metric), title=metric),
            alt.Tooltip("n_seeds:Q", title="seeds"),
        ],
    )
    return spec_of(band + lines + dots, rows, height=300)


def agreement_chart(rows: Rows, *, metric: str) -> Spec:
    """Each setting: the metric on simulated clients against the metric on the true ones."""
    names = names_of(rows, "population")
    ends = [
        min(min(r["simulated"], r["true"]) for r in rows),
        max(max(r["simulated"], r["true"]) for r in rows),
    ]
    scale = alt.Scale(domain=ends, nice=True)
    line = (
        alt.Chart(alt.NamedData(name="ends"))
        .mark_line(color=QUIET, strokeDash=[4, 4], strokeWidth=1.5)
        .encode(x=alt.X("v:Q", scale=scale), y=alt.Y("v:Q", scale=scale))
    )
    dots = (
        chart(names)
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X(
                "simulated:Q",
                title=f"{metric} on simulated clients",
                scale=scale,
                axis=_axis(metric),
            ),
            y=alt.Y("true:Q", title=f"{metric} on true clients", scale=scale, axis=_axis(metric)),
            color=population_colour(names),
            shape=population_shape(names),
            tooltip=[
                "population:N",
                "settings:N",
                alt.Tooltip("simulated:Q", format=_format(metric)),
                alt.Tooltip("true:Q", format=_format(metric)),
            ],
        )
    )
    return spec_of(line + dots, rows, height=300, ends=[{"v": end} for end in ends])


def _axis(metric: str) -> alt.Axis:
    return alt.Axis(tickCount=5) if metric == LOSS else percent_axis()


def _format(metric: str) -> str:
    return ".4g" if metric == LOSS else ".2%"
