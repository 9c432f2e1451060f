"""Populations side by side on the page: how far from true clients, who is like whom, what clients hold.

The plane that clients are drawn in is the joint t-SNE of the paper's figures, for the eye; how far apart
populations are is measured by `polyurn.comparison`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from polyurn.comparison.comparison_results import Comparison
from polyurn.model.sizes import SUM_TOLERANCE
from polyurn.report import charts
from polyurn.report.charts import (
    Column,
    Rows,
    chart,
    listed,
    measured,
    populations,
    spec_of,
    steps,
    tooltip,
)
from polyurn.report.material import Material
from polyurn.report.parts import Figure, Panel, Section, Table, pivot_table
from polyurn.report.tsne import tsne
from polyurn.typed.declared import Floats, Ints, Seed
from polyurn.wording import capital
from polyurn.zoo import federations
from polyurn.zoo.cards import Profile, profile

# Clients of a strip, and categories that have a colour of their own in it.
N_STRIPS, N_COLOURS = 48, 8
OTHER = "other"
# Smaller shares of a client, of categories without a colour, are put together.
_FINEST = 0.01
# The shares of clients at which a curve of sizes is drawn, and those in its table.
_LEVELS = [level / 100 for level in range(1, 101)]
_QUANTILES = {"10 %": 0.1, "25 %": 0.25, "half": 0.5, "75 %": 0.75, "90 %": 0.9}
# Bootstrap samples of a population on the map of federations.
_N_BOOTSTRAP = 100
_PERPLEXITY = 30.0
# The distances of a comparison, and where a population has its ratio.
_RATIOS = {
    "content (energy)": "energy_ratio",
    "content (Wasserstein)": "sliced_wasserstein_ratio",
    "size (Wasserstein)": "size_ratio",
}
MEASURES = tuple(_RATIOS)
_ABOVE, _CHANCE, _BELOW = "more different than chance", "as chance", "more even than chance"
_OWN = "here"


def populations_section(material: Material) -> Section | None:
    """The populations side by side, if there are clients or a comparison of them."""
    figures: list[Figure] = []
    if material.comparison is not None:
        figures.append(_distances(material.comparison))
    if material.clients:
        if sum(map(len, material.clients.values())) >= 4:
            figures.append(_plane(joint_plane(material.clients, rng=material.rng)))
        figures.append(population_sizes(material.clients))
        rows = strip_rows(material.clients, material.categories, rng=material.rng)
        figures.append(_strips(rows))
        own = {
            name: profile(table, n_bootstrap=_N_BOOTSTRAP, rng=material.rng.spawn(1)[0])
            for name, table in material.clients.items()
            if len(table) > 1
        }
        figures.append(map_figure(own))
    if not figures:
        return None
    verdict = "True clients, and those that stand in for them."
    if material.comparison is not None:
        verdict = f"{capital(material.comparison.verdict)}."
    return Section(
        name="populations",
        title="The populations side by side",
        lead=f"{verdict} Hide a population to see the others.",
        figures=tuple(figures),
    )


# ------------------------------------------------------------------------ distances


def distance_rows(comparison: Comparison) -> Rows:
    """How far each population is from true clients, in units of the noise floor; finite ones only."""
    return [
        {"population": row.name, "measure": measure, "ratio": getattr(row, ratio)}
        for measure, ratio in _RATIOS.items()
        for row in comparison.rows
        if math.isfinite(getattr(row, ratio)) and getattr(row, ratio) > 0
    ]


def floor_rows(comparison: Comparison) -> Rows:
    """The range of 95 % of true clients, in each distance; finite ones only.

    In energy, that of as many true clients as a population has: one for each such number.
    """
    ranges = [(MEASURES[0], *null) for null in {row.energy_null: 0 for row in comparison.rows}]
    floors = (comparison.floors.sliced_wasserstein, comparison.floors.sizes)
    ranges += [(name, one.low, one.high) for name, one in zip(MEASURES[1:], floors, strict=True)]
    return [
        {"measure": measure, "low": low, "high": high, "one": 1}
        for measure, low, high in ranges
        if math.isfinite(low) and math.isfinite(high)
    ]


def _distances(comparison: Comparison) -> Figure:
    def floors_away(field: str) -> Any:
        title = "distance ÷ noise floor"
        return measured(alt.X, field, title, "~g", type="log", nice=False, padding=14)

    rows = distance_rows(comparison)
    floor = chart("floors").encode(y=listed("measure"))
    noise = floor.mark_bar(color=charts.LINE, height=alt.RelativeBandSize(band=0.7), opacity=0.9)
    one = floor.mark_tick(color=charts.QUIET, thickness=2, height=alt.RelativeBandSize(band=0.9))
    dots = chart(hides=True).mark_point(size=150).encode(
        y=listed("measure"), x=floors_away("ratio"), **populations(rows, "color", "shape"),
        tooltip=tooltip("population", "measure", ("ratio", ".2f")),
    )  # fmt: skip
    drawn = (
        noise.encode(x=floors_away("low"), x2="high:Q") + one.encode(x=floors_away("one")) + dots
    )
    height = steps(rows, "measure", 56)
    head, *lines = comparison.table()
    measures = "Every measure; the last column has true clients"
    spec = spec_of(drawn, rows, height=height, floors=floor_rows(comparison))
    return Figure(
        name="distances",
        title="How far from true clients",
        says=(
            "Distance of each population to the true clients, in units of the distance of true "
            "clients to true clients: what they hold, measured twice, and how much. The bars hold "
            "95 % of true clients: a mark inside them is no evidence of a difference in this measure."
        ),
        panels=(Panel(spec),),
        table=Table(measures, head, tuple(lines), open=True),
        wide=True,
    )


# ------------------------------------------------------------------------ the plane


def joint_plane(counts: Mapping[str, Ints], *, rng: Seed = None) -> dict[str, Floats]:
    """Places of all clients, four or more, in one plane, by t-SNE of their normalised histograms.

    Counts of shape (n_clients, n_categories) by name; positions of shape (n_clients, 2) by name.

    >>> tables = {"a": np.eye(20, dtype=int) + 1, "b": np.ones((20, 20), dtype=int)}
    >>> {name: positions.shape for name, positions in joint_plane(tables, rng=0).items()}
    {'a': (20, 2), 'b': (20, 2)}
    """
    together = np.concatenate([*counts.values()])
    shares = together / together.sum(axis=1, keepdims=True)
    perplexity = min(_PERPLEXITY, (len(shares) - 1) / 3)
    positions = tsne(shares, perplexity=perplexity, rng=rng)
    ends = np.cumsum([len(table) for table in counts.values()])[:-1]
    return dict(zip(counts, np.split(positions, ends), strict=True))


def _plane(positions: Mapping[str, Floats]) -> Figure:
    rows: Rows = [
        {"population": name, "x": round(float(x), 2), "y": round(float(y), 2)}
        for name, points in positions.items()
        for x, y in points
    ]
    hidden = {"labels": False, "ticks": False, "domain": False, "grid": False}
    places = {}
    for channel, way in ((alt.X, "x"), (alt.Y, "y")):
        # A margin of its own, so that nothing moves when the reader hides a population.
        ends = [choice(row[way] for row in rows) for choice in (min, max)]
        places[way] = measured(channel, way, None, domain=ends).axis(**hidden)
    drawn = chart(hides=True).mark_point(size=34, opacity=0.65).encode(
        **places, **populations(rows, "color", "shape"), tooltip=tooltip("population")
    )  # fmt: skip
    return Figure(
        name="plane",
        title="Clients in one plane",
        says=(
            "Joint t-SNE of the clients’ normalised histograms: like clients are near each other. "
            "Where simulated clients are true to life, their marks cover the true ones’. The plane is "
            "for the eye: distances and densities in it are no measure of likeness."
        ),
        panels=(Panel(spec_of(drawn, rows, height=440)),),
        table=Table.of(
            "How many clients of each population are drawn",
            [{"population": name, "n_clients": len(mine)} for name, mine in positions.items()],
            [Column("population"), Column("n_clients", "clients", ",")],
        ),
    )


# ------------------------------------------------------------------------ sizes and contents


@dataclass(frozen=True)
class SizeCurve:
    """Sizes in increasing order, the share of clients that hold at most so many points, and the mean."""

    sizes: Ints
    reached: Floats
    mean: float

    def reaching(self, levels: Sequence[float]) -> Ints:
        """Where each level is reached first; what is missing at the end is rounding."""
        there = np.minimum(levels, self.reached[-1]) - SUM_TOLERANCE
        return np.asarray(np.searchsorted(self.reached, there))


def population_sizes(clients: Mapping[str, Ints]) -> Figure:
    """How much clients hold, population by population."""
    curves = {}
    for name, table in clients.items():
        held = table.sum(axis=1)
        sizes, times = np.unique(held, return_counts=True)
        curves[name] = SizeCurve(sizes, np.cumsum(times) / len(held), float(held.mean()))
    return sizes_figure("population", curves, height=400)


def size_rows(of: str, curves: Mapping[str, SizeCurve]) -> Rows:
    """Points of each curve, from 0 on: one wherever it reaches another hundredth.

    So a step that many clients make stays where it is, however few points there are.
    """
    rows: Rows = []
    for name, curve in curves.items():
        at = np.unique(curve.reaching(_LEVELS))
        shares = [0.0, *np.minimum(curve.reached[at], 1.0).tolist()]
        sizes = curve.sizes[[at[0], *at]].tolist()
        rows += [{of: name, "size": n, "share": p} for n, p in zip(sizes, shares, strict=True)]
    return rows


def sizes_figure(
    of: str, curves: Mapping[str, SizeCurve], *, height: int, some: str = ""
) -> Figure:
    """The curves of the sizes of each population, or of each component."""
    rows = size_rows(of, curves)
    sizes = [row["size"] for row in rows]
    wide = max(sizes) > 20 * max(min(sizes), 1)
    scale = {"type": "log", "nice": False} if wide else {"zero": False, "nice": False}
    if of == "population":  # the page's switches are their legend
        base = chart(hides=True).encode(**populations(rows, "color", "strokeDash"))
    else:
        base = chart().encode(color=charts.keyed(of, [*curves], title=of)["color"])
    drawn = base.mark_line(interpolate="step-after", strokeWidth=2.5).encode(
        x=measured(alt.X, "size", "points of a client", charts.SHORT, **scale),
        y=measured(alt.Y, "share", "clients with at most so many", "~%"),
        tooltip=tooltip(of, ("size", ",.0f"), ("share", ".1%")),
    )
    quantiles = []
    for name, curve in curves.items():
        reached = curve.sizes[curve.reaching([*_QUANTILES.values()])]
        quantiles.append(
            {of: name, **dict(zip(_QUANTILES, reached, strict=True)), "mean": curve.mean}
        )
    columns = [Column(of), *(Column(name, show=",") for name in _QUANTILES)]
    return Figure(
        name=f"{of}-sizes",
        title="How much clients hold",
        says=f"Share of each {of}’s clients that hold at most so many points{some}.",
        panels=(Panel(spec_of(drawn, rows, height=height)),),
        table=Table.of(
            "Sizes: the points that so many of the clients hold at most",
            quantiles,
            [*columns, Column("mean", show=",.1f")],
        ),
    )


def strip_rows(
    counts: Mapping[str, Ints], categories: Sequence[str], *, rng: np.random.Generator
) -> Rows:
    """What some clients of each population hold, category by category.

    The most frequent categories are themselves ("category"); all the rest are "other", still one row
    for each of a client's categories ("held"), so that a pure client can be told from a mixed one.
    Clients are in the order of their largest category, so that populations can be compared by eye.
    """
    together = sum(table.sum(axis=0) / table.sum() for table in counts.values())
    frequent = np.argsort(-np.asarray(together), kind="stable")
    rank = np.argsort(frequent)
    rows: Rows = []
    for name, table in counts.items():
        some = table[np.sort(rng.permutation(len(table))[:N_STRIPS])]
        shares = some / some.sum(axis=1, keepdims=True)
        largest = shares.argmax(axis=1)
        order = np.lexsort((-shares.max(axis=1), rank[largest]))
        for position, i in enumerate(order):
            held = frequent[shares[i, frequent] > 0]
            held = held[(shares[i, held] >= _FINEST) | (rank[held] < N_COLOURS)]
            pieces = [(categories[j], int(rank[j]), shares[i, j]) for j in held]
            rest = 1 - shares[i, held].sum()
            if rest > _FINEST / 10:
                pieces.append((OTHER, len(categories), rest))
            rows += [
                {
                    "population": name, "client": position + 1, "held": piece, "position": at,
                    "category": piece if at < N_COLOURS else OTHER, "share": round(float(share), 4),
                }
                for piece, at, share in pieces
            ]  # fmt: skip
    return rows


def strip_categories(rows: Rows) -> list[str]:
    """The categories that have a colour in the strips, the most frequent first, and perhaps "other"."""
    ranks = {row["position"]: row["category"] for row in rows}
    return [*dict.fromkeys(ranks[rank] for rank in sorted(ranks))]


def _strips(rows: Rows) -> Figure:
    shown = strip_categories(rows)
    fills = charts.fills(shown)
    colours = alt.Scale(domain=shown, range=fills)
    drawn = chart().mark_bar(stroke="var(--card)", strokeWidth=0.5).encode(
        x=alt.X("client:O", axis=None, scale=alt.Scale(paddingInner=0.08, paddingOuter=0)),
        y=alt.Y("share:Q", stack="zero", axis=None, scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("category:N", sort=None, scale=colours, legend=None),
        order=alt.Order("position:Q"),
        tooltip=tooltip("client", ("held", "", "category"), ("share", ".0%")),
    )  # fmt: skip
    panels = []
    for name in charts.names_of(rows, "population"):
        mine = [row for row in rows if row["population"] == name]
        panels.append(Panel(spec_of(drawn, mine, height=160), name, population=name))
    one_by_one = [{**row, "who": f"{row['population']} {row['client']}"} for row in rows]
    return Figure(
        name="strips",
        title="What single clients hold",
        says=(
            f"Up to {N_STRIPS} clients of each population, one column each, in the order of their "
            "largest category; grey pieces are categories without a colour, one piece each. "
            "Simulated clients should look as mixed, or as pure, as true ones."
        ),
        panels=tuple(panels),
        table=pivot_table(
            "What single clients hold",
            one_by_one,
            Column("who", "client"),
            "category",
            Column("share", "{}", ".0%"),
            names=shown,
        ),
        wide=True,
        legend=tuple(zip(shown, fills, strict=True)),
    )


# ------------------------------------------------------------------------ the map of federations


def map_figure(own: Mapping[str, Profile]) -> Figure:
    """All federations of the zoo, and these clients."""
    rows = map_rows(own)
    columns = [
        Column("name"), Column("what", "clients"), Column("correlation", show=".3f"),
        Column("size_variation", "variation of sizes", ".2f"),
    ]  # fmt: skip
    title = "labels: intraclass correlation (0 is chance)"
    x = measured(alt.X, "correlation", title, type="symlog", constant=0.01, domain=[-0.1, 1])
    title = "sizes: standard deviation over mean"
    y = measured(alt.Y, "size_variation", title, type="symlog", constant=0.1)
    base = chart().encode(
        x=x.axis(values=[-0.1, -0.03, 0, 0.03, 0.1, 0.3, 1], format="~g"),
        y=y.axis(values=[0, 0.1, 0.3, 1, 3, 10], format="~g"),
        tooltip=tooltip(*columns),
    )
    points = base.mark_point(size=90).encode(
        **charts.keyed("dispersion", [_ABOVE, _CHANCE, _BELOW, _OWN], tones=(1, 4, 3, 2), columns=1)
    )
    on_the_left = "datum.correlation >= 0.08"
    names = base.encode(text="name:N").mark_text(
        align=alt.expr(f"{on_the_left} ? 'right' : 'left'"),
        dx=alt.expr(f"{on_the_left} ? -7 : 7"),
        fontSize=11,
        color=charts.INK,
    )
    return Figure(
        name="map",
        title="Among real federations",
        says=(
            "Each point is a federation: further right, clients differ more in what they hold; further "
            "up, more in how much. Federations are those of the zoo, with their own categories."
        ),
        panels=(Panel(spec_of(points + names, rows, height=420)),),
        table=Table.of(
            "Federations by how different their clients are",
            rows,
            [*columns, Column("alpha", "α"), Column("dispersion", "labels vary")],
        ),
        wide=True,
    )


def map_rows(own: Mapping[str, Profile]) -> Rows:
    """A row for each population of the reader's, then one for each federation."""
    cards = [federations.card(name) for name in federations.names()]
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
