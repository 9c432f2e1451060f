"""Which alpha is realistic? How different the clients of real federations are, in a few numbers.

    python experiments/which_alpha.py  # resumes; writes results/which_alpha.jsonl and tables

All clients of each table: the best single Dirichlet with its bootstrap interval, the distances to the
marginal, the effective number of categories; and `fit` with the K that `select` chose most often, for
the share of its components that are plain multinomials. K and the energy ratios are not computed here:
they are those of results/populations.jsonl. POLYURN_DATA is the folder with the tables, ../shared/data
by default.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import polyurn as pu
from polyurn.counts import client_sizes

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import FOLDER
from records import RESULTS, run_all


@dataclass(frozen=True)
class Table:
    """A table of natural clients, and what its runs in populations.jsonl are called."""

    folder: str
    n_categories: int
    clients: str
    compared: str | None = None


TABLES = {
    "flights": Table("flights_plane_destination", 104, "aeroplanes by destination", "flights"),
    "microbiome": Table("twins_microbiome", 130, "stool samples by genus"),
    "hospitals": Table("fed_isic2019", 8, "hospitals by diagnosis"),
    "race": Table("acs2024_race", 9, "census areas by race", "race, K to 24"),
    "ratings": Table("insteval_lecturer", 5, "lecturers by rating", "ratings"),
    "income": Table("acs2024_income", 41, "census areas by income", "income, K to 24"),
    "speech": Table("speech_commands", 35, "speakers by word", "speech"),
    "digits": Table("nist_digits_by_writer", 10, "writers by digit", "digits"),
}
FIELD = (0.1, 0.5, 1.0)  # the alphas that papers use
N_BOOTSTRAP = 1000
SEED = 0


def run(table: str, n_bootstrap: int, seed: int) -> dict[str, Any]:
    """The numbers of one table."""
    data = TABLES[table]
    read = pu.read_table(FOLDER / data.folder / "histograms.parquet")
    counts = pu.table_histograms(read, categories=data.n_categories, count="count").counts
    sizes = client_sizes(counts)
    found = pu.heterogeneity(counts, n_bootstrap=n_bootstrap, rng=seed)
    return {
        "clients": data.clients,
        "n_clients": int(counts.shape[0]),
        "n_categories": data.n_categories,
        "median_size": float(np.median(sizes)),
        **{
            key: {end: _json(getattr(value, end)) for end in ("value", "low", "high")}
            for key, value in vars(found).items()
        },
        "symmetric": {str(alpha): _symmetric(alpha, counts, seed) for alpha in FIELD},
        **_compared(data, counts, seed),
    }


def _symmetric(alpha: float, counts: sparse.csr_array, seed: int) -> dict[str, float]:
    """What a cut with Dirichlet(alpha) per category makes of clients as many and as large."""
    cut = pu.dirichlet_counts(
        int(counts.shape[0]),
        alpha=alpha,
        sizes=client_sizes(counts),
        n_categories=int(counts.shape[1]),
        rng=seed,
    )
    found = pu.heterogeneity(cut, n_bootstrap=2, rng=seed)
    return {
        "total_variation": found.total_variation.value,
        "effective_categories": found.effective_categories.value,
    }


def _compared(table: Table, counts: sparse.csr_array, seed: int) -> dict[str, Any]:
    """K and energy ratios as `populations.py` kept them; which components are multinomials."""
    if table.compared is None:
        return {}
    lines = (RESULTS / "populations.jsonl").read_text().splitlines()
    runs = [r for r in map(json.loads, lines) if r["settings"]["federation"] == table.compared]
    chosen = [run["n_components"] for run in runs]
    usual = Counter(chosen).most_common(1)[0][0]
    done = pu.fit(
        pu.LocalAggregator(counts, rng=seed),
        n_components=usual,
        n_categories=table.n_categories,
        max_size=int(client_sizes(counts).max()),
        rng=seed,
    )
    return {
        "n_components": chosen,
        "energy_ratio": {
            name: [likeness(run, name)["energy_ratio"] for run in runs]
            for name in ("iid", "dirichlet", "mdm")
        },
        "fit": {
            "n_components": done.mdm.n_components,
            "converged": done.converged,
            "n_multinomial": len(done.multinomial),
            "weight_multinomial": float(done.mdm.weights[list(done.multinomial)].sum()),
        },
    }


def likeness(run: dict[str, Any], population: str) -> dict[str, Any]:
    """How alike a population of a run in populations.jsonl is to its held-out clients."""
    return next(row for row in run["comparison"]["rows"] if row["name"] == population)


def _json(value: float) -> float | str:
    return value if np.isfinite(value) else "Infinity"


def main() -> None:
    """Measure what is missing, then print the tables."""
    grid = [{"table": name, "n_bootstrap": N_BOOTSTRAP, "seed": SEED} for name in TABLES]
    found = [*run_all("which_alpha", grid, run)]
    _alpha_table(found)
    _mixture_table(found)
    _field_table(found)


def _alpha_table(found: list[dict[str, Any]]) -> None:
    print(
        "| clients | how many | C | points | α | 95 % interval | α₀ = αC | categories | TV | JS |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in found:
        alpha, n = row["alpha"], row["n_categories"]
        cells = [
            row["clients"],
            f"{row['n_clients']:,}",
            str(n),
            f"{row['median_size']:,.0f}",
            short(alpha["value"]),
            f"{short(alpha['low'])} to {short(alpha['high'])}",
            short(float(alpha["value"]) * n),
            f"{row['effective_categories']['value']:.1f}",
            f"{row['total_variation']['value']:.2f}",
            f"{row['jensen_shannon']['value']:.2f}",
        ]
        print(f"| {' | '.join(cells)} |")


def _mixture_table(found: list[dict[str, Any]]) -> None:
    print("\n| clients | IID | one Dirichlet | mixture | K chosen | multinomials of K |")
    print("|---|---|---|---|---|---|")
    for row in found:
        if "fit" not in row:
            continue
        ratios = [f"{np.mean(row['energy_ratio'][p]):.2f}" for p in ("iid", "dirichlet", "mdm")]
        fit = row["fit"]
        cells = [
            row["clients"],
            *ratios,
            ", ".join(map(str, row["n_components"])),
            f"{fit['n_multinomial']} of {fit['n_components']}",
        ]
        print(f"| {' | '.join(cells)} |")


def _field_table(found: list[dict[str, Any]]) -> None:
    print("\n| clients | true | " + " | ".join(f"Dirichlet({alpha})" for alpha in FIELD) + " |")
    print("|---|---|" + "---|" * len(FIELD))
    for row in found:
        cut = [row["symmetric"][str(a)]["effective_categories"] for a in FIELD]
        values = [row["effective_categories"]["value"], *cut]
        print(f"| {row['clients']} | {' | '.join(f'{v:.1f}' for v in values)} |")


def short(value: float | str) -> str:
    """An alpha as tables show it: two digits, or whole from 100 on."""
    number = float(value)
    return f"{number:,.0f}" if 100 <= number < np.inf else f"{number:.2g}".replace("inf", "∞")


if __name__ == "__main__":
    main()
