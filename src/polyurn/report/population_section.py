"""Populations side by side on the page: how far from true clients, who is like whom, what clients hold.

The plane that clients are drawn in is the joint t-SNE of the paper's figures, for the eye; how far apart
populations are is measured by `polyurn.comparison`.
"""

import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
from scipy.spatial import cKDTree

from polyurn.comparison.comparison_results import Comparison, in_range, short
from polyurn.comparison.distances import Floor
from polyurn.errors import ParameterError
from polyurn.report.charts import (
    LINE,
    QUIET,
    Row,
    Rows,
    Spec,
    chart,
    fills,
    listed,
    names_of,
    populations,
    size_curves,
    spec_of,
    steps,
    tooltip,
)
from polyurn.report.federation_map import map_figure
from polyurn.report.material import Material
from polyurn.report.model_section import QUANTILES
from polyurn.report.parts import Column, Figure, Panel, Section, Table, across, pivoted
from polyurn.report.tsne import tsne
from polyurn.typed.declared import Floats, Ints, Seed
from polyurn.zoo.cards import profile

# Clients of a strip, and categories that have a colour of their own in it.
N_STRIPS, N_COLOURS = 48, 8
OTHER = "other"
# Smaller shares of a client, of categories without a colour, are put together.
_FINEST = 0.01
# Points of a curve of sizes.
_N_QUANTILES = 101
# Bootstrap samples of a population on the map of federations.
_N_BOOTSTRAP = 100
# Whose neighbours are counted.
_N_NEIGHBOURS = 10
_PERPLEXITY = 30.0
# The distances of a comparison, and where a population has its ratio.
_RATIOS = {
    "content (energy)": "energy_ratio",
    "content (Wasserstein)": "sliced_wasserstein_ratio",
    "size (Wasserstein)": "size_ratio",
}
MEASURES = tuple(_RATIOS)


def populations_section(material: Material) -> Section | None:
    """The populations side by side, if there are clients or a comparison of them."""
    figures: list[Figure] = []
    tables: list[Table] = []
    if material.comparison is not None:
        figures.append(_distances(material.comparison))
        head, *lines = material.comparison.table()
        tables.append(Table("Every measure; the last column has true clients", head, tuple(lines)))
    if material.clients:
        if sum(map(len, material.clients.values())) >= 4:
            figures.append(_plane(joint_plane(material.clients, rng=material.rng)))
        figures.append(sizes_figure(material.clients))
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
    return Section(
        name="populations",
        title="The populations side by side",
        lead="True clients, and those that stand in for them. Hide a population to see the others.",
        figures=tuple(figures),
        tables=tuple(tables),
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
    ranges += [(measure, floor.low, floor.high) for measure, floor in _floors(comparison)]
    return [
        {"measure": measure, "low": low, "high": high, "one": 1}
        for measure, low, high in ranges
        if math.isfinite(low) and math.isfinite(high)
    ]


def _floors(comparison: Comparison) -> list[tuple[str, Floor]]:
    """The noise floor of each measure but energy, whose range is that of a population."""
    sliced, sizes = comparison.floors.sliced_wasserstein, comparison.floors.sizes
    return [(MEASURES[1], sliced), (MEASURES[2], sizes)]


def _distances_chart(comparison: Comparison) -> Spec:
    rows = distance_rows(comparison)
    scale = alt.Scale(type="log", nice=False, padding=14)
    floor = chart("floors").encode(y=listed("measure"))
    noise = floor.mark_bar(color=LINE, height=alt.RelativeBandSize(band=0.7), opacity=0.9)
    one = floor.mark_tick(color=QUIET, thickness=2, height=alt.RelativeBandSize(band=0.9))
    looks = populations(rows)
    dots = chart(hides=True).mark_point(size=150).encode(
        y=listed("measure"),
        x=alt.X(
            "ratio:Q", title="distance ÷ noise floor", scale=scale, axis=alt.Axis(format="~g")
        ),
        color=looks["color"],
        shape=looks["shape"],
        tooltip=tooltip("population", "measure", ("ratio", ".2f")),
    )  # fmt: skip
    drawn = (
        noise.encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        + one.encode(x=alt.X("one:Q", scale=scale))
        + dots
    )
    height = steps(rows, "measure", 56)
    return spec_of(drawn, rows, height=height, floors=floor_rows(comparison))


def _distances(comparison: Comparison) -> Figure:
    measured = [
        {"population": row.name}
        | {measure: short(getattr(row, ratio)) for measure, ratio in _RATIOS.items()}
        | {MEASURES[0]: in_range(row)}
        for row in comparison.rows
    ]
    splits = {measure: f"{floor:.2f}" for measure, floor in _floors(comparison)}
    return Figure(
        name="distances",
        title="How far from true clients",
        says=(
            "Distance of each population to the true clients, in units of the distance of true "
            "clients to true clients: what they hold, measured twice, and how much. The bars hold "
            "95 % of true clients: a mark inside them is no evidence of a difference in this measure."
            + (f" But {comparison.few}." if comparison.few else "")
        ),
        panels=(Panel(_distances_chart(comparison)),),
        table=Table.of(
            "Ratios to the noise floor",
            [*measured, {"population": "true clients, 95 %", MEASURES[0]: "in brackets", **splits}],
            [Column("population"), *map(Column, MEASURES)],
        ),
        wide=True,
    )


# ------------------------------------------------------------------------ the plane


def joint_plane(counts: Mapping[str, Ints], *, rng: Seed = None) -> dict[str, Floats]:
    """Places of all clients in one plane, by t-SNE of their normalised histograms.

    Counts of shape (n_clients, n_categories) by name; positions of shape (n_clients, 2) by name.

    >>> tables = {"a": np.eye(20, dtype=int) + 1, "b": np.ones((20, 20), dtype=int)}
    >>> {name: positions.shape for name, positions in joint_plane(tables, rng=0).items()}
    {'a': (20, 2), 'b': (20, 2)}
    """
    together = np.concatenate([*counts.values()])
    if len(together) < 4:
        raise ParameterError(f"expected at least four clients for a plane, got {len(together)}")
    shares = together / together.sum(axis=1, keepdims=True)
    perplexity = min(_PERPLEXITY, (len(shares) - 1) / 3)
    positions = tsne(shares, perplexity=perplexity, rng=rng)
    ends = np.cumsum([len(table) for table in counts.values()])[:-1]
    return dict(zip(counts, np.split(positions, ends), strict=True))


def plane_rows(positions: Mapping[str, Floats]) -> Rows:
    """Every client's position in the plane."""
    return [
        {"population": name, "x": round(float(x), 2), "y": round(float(y), 2)}
        for name, points in positions.items()
        for x, y in points
    ]


def neighbour_rows(positions: Mapping[str, Floats]) -> Rows:
    """Of the nearest neighbours of each population's clients in the plane, whose they are.

    Where populations are alike, every row has the shares of the populations themselves.

    >>> apart = {"a": np.zeros((20, 2)) + [[0, 0]], "b": np.zeros((20, 2)) + [[9, 9]]}
    >>> [(r["population"], r["neighbour"], r["share"]) for r in neighbour_rows(apart)]
    [('a', 'a', 1.0), ('a', 'b', 0.0), ('b', 'a', 0.0), ('b', 'b', 1.0)]
    """
    names = [*positions]
    points = np.concatenate([*positions.values()])
    owner = np.repeat(np.arange(len(names)), [len(part) for part in positions.values()])
    k = min(_N_NEIGHBOURS, len(points) - 1)
    _, near = cKDTree(points).query(points, k=k + 1)
    others = [row[row != i][:k] for i, row in enumerate(np.asarray(near))]
    near_owner = owner[np.array(others)]
    return [
        {
            "population": name,
            "neighbour": other,
            "share": round(float((near_owner[owner == i] == j).mean()), 4),
        }
        for i, name in enumerate(names)
        for j, other in enumerate(names)
    ]


def _plane(positions: Mapping[str, Floats]) -> Figure:
    rows = plane_rows(positions)
    hidden = alt.Axis(labels=False, ticks=False, domain=False, grid=False, title=None)
    # A margin of its own, so that nothing moves when the reader hides a population.
    x, y = (
        alt.Scale(domain=[min(r[a] for r in rows), max(r[a] for r in rows)]) for a in ("x", "y")
    )
    looks = populations(rows)
    drawn = chart(hides=True).mark_point(size=34, opacity=0.65).encode(
        x=alt.X("x:Q", scale=x, axis=hidden),
        y=alt.Y("y:Q", scale=y, axis=hidden),
        color=looks["color"],
        shape=looks["shape"],
        tooltip=tooltip("population"),
    )  # fmt: skip
    near = pivoted(neighbour_rows(positions), "population", "neighbour", "share")
    return Figure(
        name="plane",
        title="Clients in one plane",
        says=(
            "Joint t-SNE of the clients’ normalised histograms: like clients are near each other. "
            "Where simulated clients are true to life, their marks cover the true ones’. Distances "
            "and densities are for the eye; the table counts whose the ten nearest neighbours are."
        ),
        panels=(Panel(spec_of(drawn, rows, height=440)),),
        table=Table.of(
            "Whose the nearest neighbours in the plane are",
            near,
            [
                Column("population", "clients"),
                Column("", "how many", lambda row: f"{len(positions[row['population']]):,}"),
                *across("neighbour", positions, ".0%", "{} nearby"),
            ],
        ),
    )


# ------------------------------------------------------------------------ sizes and contents


def population_size_rows(counts: Mapping[str, Ints]) -> Rows:
    """The share of each population's clients that hold at most so many points."""
    levels = np.linspace(0, 1, _N_QUANTILES)
    return [
        {"population": name, "size": float(size), "share": float(level)}
        for name, table in counts.items()
        for size, level in zip(
            np.quantile(table.sum(axis=1), levels, method="inverted_cdf"), levels, strict=True
        )
    ]


def sizes_figure(clients: Mapping[str, Ints]) -> Figure:
    """How much clients hold, population by population."""
    rows = population_size_rows(clients)
    looks = populations(rows)
    drawn = size_curves(
        rows, of="population", height=400, color=looks["color"], strokeDash=looks["strokeDash"]
    )
    sizes = {name: table.sum(axis=1) for name, table in clients.items()}
    quantiles = [
        {"population": name, "mean": mine.mean()}
        | {
            level: np.quantile(mine, share, method="inverted_cdf")
            for level, share in QUANTILES.items()
        }
        for name, mine in sizes.items()
    ]
    return Figure(
        name="population-sizes",
        title="How much clients hold",
        says="Share of each population’s clients that hold at most so many points.",
        panels=(Panel(drawn),),
        table=Table.of(
            "Sizes of clients",
            quantiles,
            [
                Column("population"),
                *(Column(level, show=",.0f") for level in QUANTILES),
                Column("mean", show=",.1f"),
            ],
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
            for j in held:
                rows.append(
                    _strip_row(name, position + 1, categories[j], int(rank[j]), shares[i, j])
                )
            rest = 1 - shares[i, held].sum()
            if rest > _FINEST / 10:
                rows.append(_strip_row(name, position + 1, OTHER, len(categories), rest))
    return rows


def _strip_row(population: str, client: int, held: str, rank: int, share: float) -> Row:
    return {
        "population": population,
        "client": client,
        "category": held if rank < N_COLOURS else OTHER,
        "held": held,
        "position": rank,
        "share": round(float(share), 4),
    }


def strip_categories(rows: Rows) -> list[str]:
    """The categories that have a colour in the strips, the most frequent first, and perhaps "other"."""
    ranks = {row["position"]: row["category"] for row in rows}
    return [*dict.fromkeys(ranks[rank] for rank in sorted(ranks))]


def _strips(rows: Rows) -> Figure:
    shown = strip_categories(rows)
    colours = alt.Scale(domain=shown, range=fills(shown))
    drawn = chart().mark_bar(stroke="var(--card)", strokeWidth=0.5).encode(
        x=alt.X("client:O", axis=None, scale=alt.Scale(paddingInner=0.08, paddingOuter=0)),
        y=alt.Y("share:Q", stack="zero", axis=None, scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("category:N", sort=None, scale=colours, legend=None),
        order=alt.Order("position:Q"),
        tooltip=tooltip("client", ("held", "", "category"), ("share", ".0%")),
    )  # fmt: skip
    by_population = {
        name: [row for row in rows if row["population"] == name]
        for name in names_of(rows, "population")
    }
    one_by_one = [{**row, "who": f"{row['population']} {row['client']}"} for row in rows]
    return Figure(
        name="strips",
        title="What single clients hold",
        says=(
            f"Up to {N_STRIPS} clients of each population, one column each, in the order of their "
            "largest category; grey pieces are categories without a colour, one piece each. "
            "Simulated clients should look as mixed, or as pure, as true ones."
        ),
        panels=tuple(
            Panel(spec_of(drawn, mine, height=160), name, population=name)
            for name, mine in by_population.items()
        ),
        table=Table.of(
            "What single clients hold",
            pivoted(one_by_one, "who", "category", "share"),
            [Column("who", "client"), *across("category", shown, ".0%")],
        ),
        wide=True,
        legend=tuple(zip(shown, fills(shown), strict=True)),
    )
