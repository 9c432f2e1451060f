"""The section about the populations side by side.

What is computed for it is `population_rows.py`; how it looks is `population_charts.py`.
"""

import math

import numpy as np

from polyurn.comparison.distances import Floor
from polyurn.comparison.estimates import Estimate
from polyurn.comparison.results import Comparison
from polyurn.report import population_charts
from polyurn.report.material import Material
from polyurn.report.palette import fills
from polyurn.report.parts import DataTable, Figure, Panel, Section, table_of
from polyurn.report.population_rows import (
    MEASURES,
    N_STRIPS,
    distance_ratios,
    distance_rows,
    floor_rows,
    joint_plane,
    neighbour_rows,
    plane_rows,
    population_size_rows,
    strip_categories,
    strip_rows,
)


def populations_section(material: Material, *, rng: np.random.Generator) -> Section | None:
    """The populations side by side, if there are clients or a comparison of them."""
    figures: list[Figure] = []
    tables: tuple[DataTable, ...] = ()
    if material.comparison is not None:
        figures.append(_distances(material.comparison))
        tables = (_distance_table(material.comparison),)
    if material.clients:
        if sum(map(len, material.clients.values())) >= 4:
            figures.append(_plane(material, rng))
        figures += [_population_sizes(material), _strips(material, rng)]
    if not figures:
        return None
    return Section(
        name="populations",
        title="The populations side by side",
        lead="True clients, and those that stand in for them. Hide a population to see the others.",
        figures=tuple(figures),
        tables=tables,
    )


def _distances(comparison: Comparison) -> Figure:
    chart = population_charts.distances_chart(distance_rows(comparison), floor_rows(comparison))
    ratios = zip(*distance_ratios(comparison).values(), strict=True)
    return Figure(
        name="distances",
        title="How far from true clients",
        says=(
            "Distance of each population to the held-out clients, in units of the distance of true "
            "clients to true clients: what they hold, measured twice, and how much. The bars hold "
            "95 % of the splits of true clients: a mark inside them cannot be told from true clients."
            + (f" But {comparison.few}." if comparison.few else "")
        ),
        panels=(Panel(chart),),
        table=table_of(
            "Ratios to the noise floor",
            ("population", *MEASURES),
            (
                *(
                    (row.name, *map(_ratio, mine))
                    for row, mine in zip(comparison.rows, ratios, strict=True)
                ),
                ("true clients, 95 % of splits", *map(_range, comparison.floors.all)),
            ),
        ),
        wide=True,
    )


def _distance_table(comparison: Comparison) -> DataTable:
    head = ("population", "clients", "log-likelihood ± 95 %", "energy ratio", "Wasserstein ratio",
            "two-sample AUC ± 95 %", "size ratio", "away from the marginal",
            "about Dirichlet(α)")  # fmt: skip
    rows: list[tuple[str, ...]] = [
        (
            row.name,
            f"{row.n_clients:,}",
            _estimate(row.log_likelihood, 3),
            _ratio(row.energy_ratio),
            _ratio(row.sliced_wasserstein_ratio),
            _estimate(row.auc, 2),
            _ratio(row.size_ratio),
            f"{row.heterogeneity.total_variation.value:.0%}",
            _ratio(row.heterogeneity.alpha.value, 3),
        )
        for row in comparison.rows
    ]
    true, floors = comparison.heterogeneity, comparison.floors
    rows.append(
        (
            "true",
            f"{comparison.n_compared:,}",
            "–",
            _range(floors.energy),
            _range(floors.sliced_wasserstein),
            "0.50",
            _range(floors.sizes),
            f"{true.total_variation.value:.0%}",
            _ratio(true.alpha.value, 3),
        )
    )
    return table_of("Distances to true clients, with the noise floor in the last row", head, rows)


def _plane(material: Material, rng: np.random.Generator) -> Figure:
    places = joint_plane(material.clients, rng=rng)
    names = [*places]
    near = {(r["population"], r["neighbour"]): r["share"] for r in neighbour_rows(places)}
    return Figure(
        name="plane",
        title="Clients in one plane",
        says=(
            "Joint t-SNE of the clients’ normalised histograms: like clients are near each other. "
            "Where simulated clients are true to life, their marks cover the true ones’. Distances "
            "and densities are for the eye; the table counts whose the ten nearest neighbours are."
        ),
        panels=(Panel(population_charts.plane_chart(plane_rows(places))),),
        table=table_of(
            "Whose the nearest neighbours in the plane are",
            ("clients", "how many", *(f"{name} nearby" for name in names)),
            ((a, f"{len(places[a]):,}", *(f"{near[a, b]:.0%}" for b in names)) for a in names),
        ),
    )


def _strips(material: Material, rng: np.random.Generator) -> Figure:
    rows = strip_rows(material.clients, material.categories, rng=rng)
    shown = strip_categories(rows)
    held: dict[tuple[str, int], dict[str, float]] = {}
    for row in rows:
        mine = held.setdefault((row["population"], row["client"]), {})
        mine[row["category"]] = mine.get(row["category"], 0.0) + row["share"]
    return Figure(
        name="strips",
        title="What single clients hold",
        says=(
            f"Up to {N_STRIPS} clients of each population, one column each, in the order of their "
            "largest category; grey pieces are categories without a colour, one piece each. "
            "Simulated clients should look as mixed, or as pure, as true ones."
        ),
        panels=tuple(
            Panel(
                population_charts.strip_chart(
                    [row for row in rows if row["population"] == name], shown
                ),
                name,
                population=name,
            )
            for name in material.clients
        ),
        table=table_of(
            "What single clients hold",
            ("client", *shown),
            (
                (f"{name} {client}", *(f"{shares.get(category, 0):.0%}" for category in shown))
                for (name, client), shares in held.items()
            ),
        ),
        wide=True,
        legend=tuple(zip(shown, fills(shown), strict=True)),
    )


def _population_sizes(material: Material) -> Figure:
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    return Figure(
        name="population-sizes",
        title="How much clients hold",
        says="Share of each population’s clients that hold at most so many points.",
        panels=(
            Panel(population_charts.population_sizes_chart(population_size_rows(material.clients))),
        ),
        table=table_of(
            "Sizes of clients",
            ("population", "10 %", "25 %", "half", "75 %", "90 %", "mean"),
            (
                (
                    name,
                    *(
                        f"{size:,.0f}"
                        for size in np.quantile(table.sum(axis=1), levels, method="inverted_cdf")
                    ),
                    f"{table.sum(axis=1).mean():,.1f}",
                )
                for name, table in material.clients.items()
            ),
        ),
    )


def _range(floor: Floor) -> str:
    return f"{floor.low:.2f} to {floor.high:.2f}"


def _ratio(value: float, digits: int = 2) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.{digits}f}"


def _estimate(estimate: Estimate | None, digits: int) -> str:
    if estimate is None:
        return "–"
    if not math.isfinite(estimate.value):
        return "−∞"
    half = (estimate.high - estimate.low) / 2
    return f"{estimate.value:.{digits}f} ± {half:.{digits}f}"
