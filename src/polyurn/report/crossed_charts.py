"""Charts of what crossed between a server and its nodes.

Rows in, Vega-Lite out; nothing is computed here.
"""

import altair as alt

from polyurn.report.palette import shapes, tone
from polyurn.report.parts import Rows, Spec
from polyurn.report.vega import LINE, SHORT, chart, names_of, spec_of


def bytes_chart(rows: Rows, *, way: str, title: str) -> Spec:
    """The bytes of each round, `way` "up" or "down", by what was asked."""
    names = names_of(rows, "asked")
    base = chart().encode(
        x=alt.X(
            "round:Q",
            title="round",
            scale=alt.Scale(zero=False, nice=False, padding=10),
            axis=alt.Axis(tickMinStep=1, format="d", grid=False),
        ),
        y=alt.Y(f"{way}:Q", title=title, axis=alt.Axis(format=SHORT, tickCount=5)),
    )
    stems = base.mark_rule(color=LINE, strokeWidth=2).encode(y2=alt.datum(0))
    heads = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=alt.Color(
            "asked:N",
            sort=None,
            scale=alt.Scale(domain=names, range=[tone(i + 1) for i in range(len(names))]),
            legend=alt.Legend(title="asked", columns=3),
        ),
        shape=alt.Shape(
            "asked:N", sort=None, scale=alt.Scale(domain=names, range=shapes(len(names)))
        ),
        tooltip=[
            alt.Tooltip("round:Q"),
            alt.Tooltip("kind:N", title="asked"),
            alt.Tooltip("up:Q", format=",", title="bytes from nodes"),
            alt.Tooltip("down:Q", format=",", title="bytes to nodes"),
            alt.Tooltip("n_numbers:Q", format=",", title="numbers per answer"),
            alt.Tooltip("n_nodes:Q", format=",", title="nodes in the sum"),
        ],
    )
    return spec_of(stems + heads, rows, height=240)
