"""The map: real federations and one's own clients, by how different clients are in labels and sizes."""

from collections.abc import Mapping

import altair as alt

from polyurn.report.charts import INK, Rows, chart, keyed, spec_of, tooltip
from polyurn.report.parts import Column, Figure, Panel, Table
from polyurn.zoo.cards import Profile
from polyurn.zoo.federations import card, names

_ABOVE, _CHANCE, _BELOW = "more different than chance", "as chance", "more even than chance"
_OWN = "here"


def map_figure(own: Mapping[str, Profile]) -> Figure:
    """All federations of the zoo, and these clients."""
    rows = map_rows(own)
    base = chart().encode(
        x=alt.X(
            "correlation:Q",
            title="labels: intraclass correlation (0 is chance)",
            scale=alt.Scale(type="symlog", constant=0.01, domain=[-0.1, 1]),
            axis=alt.Axis(values=[-0.1, -0.03, 0, 0.03, 0.1, 0.3, 1], format="~g"),
        ),
        y=alt.Y(
            "size_variation:Q",
            title="sizes: standard deviation over mean",
            scale=alt.Scale(type="symlog", constant=0.1),
            axis=alt.Axis(values=[0, 0.1, 0.3, 1, 3, 10], format="~g"),
        ),
        tooltip=tooltip("name", "what", ("correlation", ".3f"), ("size_variation", ".2f")),
    )
    points = base.mark_point(size=90).encode(
        **keyed("dispersion", [_ABOVE, _CHANCE, _BELOW, _OWN], tones=(1, 4, 3, 2), columns=1)
    )
    text = base.encode(text="name:N")
    on_the_left = text.mark_text(align="right", dx=-7, fontSize=11, color=INK)
    on_the_right = text.mark_text(align="left", dx=7, fontSize=11, color=INK)
    drawn = (
        points
        + on_the_left.transform_filter("datum.correlation >= 0.08")
        + on_the_right.transform_filter("datum.correlation < 0.08")
    )
    return Figure(
        name="map",
        title="Among real federations",
        says=(
            "Each point is a federation: further right, clients differ more in what they hold; further "
            "up, more in how much. Federations are those of the zoo, with their own categories."
        ),
        panels=(Panel(spec_of(drawn, rows, height=420)),),
        table=Table.of(
            "Federations by how different their clients are",
            rows,
            [
                Column("name"), Column("what", "clients"), Column("correlation", show=".3f"),
                Column("size_variation", "variation of sizes", ".2f"), Column("alpha", "α"),
                Column("dispersion", "labels vary"),
            ],
        ),
        wide=True,
    )  # fmt: skip


def map_rows(own: Mapping[str, Profile]) -> Rows:
    """A row for each population of the reader's, then one for each federation."""
    cards = [card(name) for name in names()]
    profiles = [(name, "", found, _OWN) for name, found in own.items()]
    profiles += [(c.name, c.title, c.profile, c.profile.in_words) for c in cards]
    return [
        {
            "name": name, "what": title, "dispersion": how,
            "correlation": round(found.correlation.value, 5),
            "size_variation": round(found.size_variation.value, 4),
            "alpha": f"{found.heterogeneity.alpha.value:.3g}",
        }
        for name, title, found, how in profiles
    ]  # fmt: skip
