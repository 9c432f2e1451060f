"""The section about the populations side by side.

What is computed for it is `clients.py` and `embedding.py`; how it looks is `population_charts.py`.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyurn.report import population_charts
from polyurn.report.embedding import joint_plane
from polyurn.report.headline import number
from polyurn.report.material import Material
from polyurn.report.palette import fills
from polyurn.report.parts import DataTable, Figure, Panel, Rows, Section, table_of
from polyurn.report.population_rows import (
    N_STRIPS,
    neighbour_rows,
    plane_rows,
    population_size_rows,
    strip_categories,
    strip_rows,
)

_MEASURES = {
    "energy": ("energy_ratio", "content (energy)"),
    "sliced_wasserstein": ("sliced_wasserstein_ratio", "content (Wasserstein)"),
    "sizes": ("size_ratio", "size (Wasserstein)"),
}


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


def _distances(comparison: Mapping[str, Any]) -> Figure:
    rows: Rows = []
    floors: Rows = []
    for floor, (ratio, measure) in _MEASURES.items():
        noise = comparison["floors"][floor]
        floors.append({"measure": measure, "low": noise["low"], "high": noise["high"], "one": 1})
        for row in comparison["rows"]:
            value = number(row[ratio])
            if math.isfinite(value) and value > 0:
                rows.append({"population": row["name"], "measure": measure, "ratio": value})
    return Figure(
        name="distances",
        title="How far from true clients",
        says=(
            "Distance of each population to the held-out clients, in units of the distance of true "
            "clients to true clients: what they hold, measured twice, and how much. The bars hold "
            "95 % of the splits of true clients: a mark inside them cannot be told from true clients."
        ),
        panels=(Panel(population_charts.distances_chart(rows, floors)),),
        table=table_of(
            "Ratios to the noise floor",
            ("population", *(measure for _, measure in _MEASURES.values())),
            (
                *(
                    (row["name"], *(_ratio(row[ratio]) for ratio, _ in _MEASURES.values()))
                    for row in comparison["rows"]
                ),
                (
                    "true clients, 95 % of splits",
                    *(f"{f['low']:.2f} to {f['high']:.2f}" for f in floors),
                ),
            ),
        ),
        wide=True,
    )


def _distance_table(comparison: Mapping[str, Any]) -> DataTable:
    head = ("population", "clients", "log-likelihood", "energy ratio", "Wasserstein ratio",
            "two-sample AUC", "size ratio", "away from the marginal", "about Dirichlet(α)")  # fmt: skip
    rows: list[tuple[str, ...]] = [
        (
            row["name"],
            f"{row['n_clients']:,}",
            _estimate(row["log_likelihood"], 3),
            _ratio(row["energy_ratio"]),
            _ratio(row["sliced_wasserstein_ratio"]),
            _estimate(row["auc"], 2),
            _ratio(row["size_ratio"]),
            f"{number(row['heterogeneity']['total_variation']['value']):.0%}",
            _ratio(row["heterogeneity"]["alpha"]["value"], 3),
        )
        for row in comparison["rows"]
    ]
    true = comparison["heterogeneity"]
    rows.append(
        (
            "true",
            f"{comparison['n_compared']:,}",
            "–",
            *(
                f"{comparison['floors'][f]['low']:.2f} to {comparison['floors'][f]['high']:.2f}"
                for f in ("energy", "sliced_wasserstein")
            ),
            "0.50",
            f"{comparison['floors']['sizes']['low']:.2f} to "
            f"{comparison['floors']['sizes']['high']:.2f}",
            f"{number(true['total_variation']['value']):.0%}",
            _ratio(true["alpha"]["value"], 3),
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


def _ratio(value: Any, digits: int = 2) -> str:
    found = number(value)
    if math.isnan(found):
        return "–"
    if math.isinf(found):
        return "∞"
    return f"{found:.0f}" if abs(found) >= 100 else f"{found:.{digits}f}"


def _estimate(record: Mapping[str, Any] | None, digits: int) -> str:
    if record is None:
        return "–"
    value = number(record["value"])
    if not math.isfinite(value):
        return "−∞"
    half = (number(record["high"]) - number(record["low"])) / 2
    return f"{value:.{digits}f} ± {half:.{digits}f}"
