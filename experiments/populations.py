"""How alike simulated clients are to true ones that were held out, on real federations.

    python experiments/populations.py --seeds 1  # resumes; writes results/populations.jsonl and tables

80 % of the clients are fitted, K is chosen by `select` among them, and the others are compared with:
mdm, the mixture; dirichlet, the best single Dirichlet-multinomial (K = 1, the whole vector alpha); iid,
the fitted clients' pooled categories and their sizes; oracle, the fitted clients themselves, each once,
which no server has. POLYURN_DATA is the folder with the tables, ../shared/data by default.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import polyurn as pu
from polyurn.counts import client_sizes

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import run_all

FOLDER = Path(os.environ.get("POLYURN_DATA", Path(__file__).parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Federation:
    """A table of natural clients, and the numbers of components that are tried."""

    table: str
    n_categories: int
    components: tuple[int, ...] | None = (1, 2, 3, 4, 6, 8, 10, 12)  # None is "auto"


FEDERATIONS = {
    "race": Federation("acs2024_race", 9),
    "income": Federation("acs2024_income", 41),
    "ratings": Federation("insteval_lecturer", 5, (1, 2, 3, 4, 5, 6)),
    "speech": Federation("speech_commands", 35),
    "digits": Federation("nist_digits_by_writer", 10, (1, 2, 3, 4, 6)),
    "flights": Federation("flights_plane_destination", 104, None),
    # `select` kept the most components that it was offered, 12: the same splits, offered more.
    "race, K to 24": Federation("acs2024_race", 9, (1, 8, 12, 16, 24)),
    "income, K to 24": Federation("acs2024_income", 41, (1, 8, 12, 16, 24)),
    # What `fit` does with a table when nobody says how many components there are.
    "race, default": Federation("acs2024_race", 9, None),
    "income, default": Federation("acs2024_income", 41, None),
    "ratings, default": Federation("insteval_lecturer", 5, None),
    "speech, default": Federation("speech_commands", 35, None),
    "digits, default": Federation("nist_digits_by_writer", 10, None),
    "flights, default": Federation("flights_plane_destination", 104, None),
}
HELD_OUT = 0.2
N_SEEDS = 5
POPULATIONS = ("mdm", "dirichlet", "iid", "oracle")


def run(federation: str, seed: int) -> dict[str, Any]:
    """One split of the clients: choose K on one part, compare with the other."""
    data = FEDERATIONS[federation]
    counts = read_counts(federation)
    split = pu.split_clients(counts, held_out=HELD_OUT, rng=[seed, 1])
    began = time.perf_counter()
    by_default = federation.endswith(", default")
    choice = pu.fit(
        split.fitted if by_default else pu.LocalAggregator(split.fitted, rng=[seed, 2]),
        n_components=data.components or "auto",
        n_categories=data.n_categories,
        max_size=int(client_sizes(counts).max()),
        rng=[seed, 3],
    )
    selected = time.perf_counter()
    verdict = pu.compare(
        {
            "mdm": choice.mdm,
            "dirichlet": choice.candidates[0].mdm,
            "iid": pu.IID.like(split.fitted),
            "oracle": split.fitted,
        },
        split,
        rng=[seed, 4],
    )
    compared = time.perf_counter()
    return {
        "n_components": choice.n_components,
        "n_fitted_clients": split.fitted.shape[0],
        "seconds": {"select": selected - began, "compare": compared - selected},
        "comparison": verdict.to_dict(),
    }


def read_counts(federation: str) -> sparse.csr_array:
    """The histograms of a federation's clients."""
    data = FEDERATIONS[federation]
    table = pu.read_table(FOLDER / data.table / "histograms.parquet")
    return pu.table_histograms(table, categories=data.n_categories, count="count").counts


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description="How alike simulated clients are to true ones.")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="splits per federation")
    parser.add_argument("--only", choices=[*FEDERATIONS], help="one federation")
    given = parser.parse_args()
    names = [given.only] if given.only else [*FEDERATIONS]
    grid = [{"federation": name, "seed": seed} for seed in range(given.seeds) for name in names]
    records = []
    for record in run_all("populations", grid, run):
        print(record["settings"], record["n_components"], record["seconds"], file=sys.stderr)
        records.append(record)
    print(*likeness_table(names, records), sep="\n")
    _heterogeneity_table(names, records)


MEASURES: dict[str, Callable[[list[Any]], str]] = {
    "energy": lambda rows: _spread([_number(row["energy_ratio"]) for row in rows]),
    "sliced W": lambda rows: _spread([_number(row["sliced_wasserstein_ratio"]) for row in rows]),
    "AUC": lambda rows: _spread([row["auc"]["value"] for row in rows]),
    "size": lambda rows: _spread([_number(row["size_ratio"]) for row in rows]),
    "log q(c given n)": lambda rows: _spread(
        [_value(row["log_likelihood_given_size"]) for row in rows], 3
    ),
}


def likeness_table(
    names: Sequence[str], records: list[dict[str, Any]], measures: Iterable[str] = MEASURES
) -> Iterator[str]:
    """How alike each population is to the held-out clients, means and ranges over the splits."""
    measures = list(measures)
    yield f"| clients | population | K | {' | '.join(measures)} |"
    yield "|---|---|---|" + "---|" * len(measures)
    for name in names:
        mine = [r for r in records if r["settings"]["federation"] == name]
        ks = ", ".join(str(r["n_components"]) for r in mine)
        for population in POPULATIONS if mine else ():
            rows = [_row(r, population) for r in mine]
            cells = [MEASURES[measure](rows) for measure in measures]
            shown = {"mdm": ks, "dirichlet": "1"}.get(population, "–")
            yield f"| {name} | {population} | {shown} | {' | '.join(cells)} |"


def _heterogeneity_table(names: list[str], records: list[dict[str, Any]]) -> None:
    print(
        "\n| clients | which | TV | JS | categories | Dirichlet | dispersion, K | dispersion, K = 1 |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        mine = [r for r in records if r["settings"]["federation"] == name]
        for which in ("true", *POPULATIONS):
            found = [
                (r["comparison"] if which == "true" else _row(r, which))["heterogeneity"]
                for r in mine
            ]
            side = "true" if which == "true" else "simulated"
            cells = [
                _spread([_number(h[key]["value"]) for h in found], 3)
                for key in ("total_variation", "jensen_shannon", "effective_categories", "alpha")
            ] + [
                _spread([_row(r, population)["dispersion"][side]["value"] for r in mine])
                if which in ("true", population)
                else "–"
                for population in ("mdm", "dirichlet")
            ]
            print(f"| {name} | {which} | {' | '.join(cells)} |")


def _row(record: dict[str, Any], population: str) -> dict[str, Any]:
    return next(row for row in record["comparison"]["rows"] if row["name"] == population)


def _number(value: float | str) -> float:
    return float(value)  # "Infinity" is a number, too


def _value(estimate: dict[str, Any] | None) -> float:
    return np.nan if estimate is None else _number(estimate["value"])


def _spread(values: list[float], digits: int = 2) -> str:
    """Mean and range over seeds."""
    if np.isnan(values).any():
        return "–"
    digits = 0 if max(values) >= 100 else digits
    mean = f"{np.mean(values):.{digits}f}".replace("inf", "∞")
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})".replace("inf", "∞")


if __name__ == "__main__":
    main()
