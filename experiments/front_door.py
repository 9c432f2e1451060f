"""The evidence on the first page: do simulated clients look like true ones, and train like them?

    python experiments/front_door.py  # prints both tables, from the records that are kept

Nothing is measured here: distances are those of results/populations.jsonl (means of its splits), the
best α that of the zoo's cards, and training that of results/<experiment>/runs.jsonl.
`python docs/renew_outputs.py` puts the tables into README.md.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import polyurn as pu

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import RESULTS
from which_alpha import short

# Name on the page, experiment, and its population of simulated clients.
TRAINED = (
    ("pictures, clients with few classes", "cifar10_high_1", "mdm"),
    ("pictures, the paper's two kinds of clients", "cifar10_high_2", "mdm"),
    ("aeroplanes by route", "flights", "mdm route"),
    ("writers by digit", "digits", "mdm"),
)
# What a federation is called in populations.jsonl, and in the zoo.
COMPARED = {
    "flights": "flights", "race, K to 24": "census_race", "ratings": "lecturers",
    "income, K to 24": "census_income", "speech": "speech", "digits": "digits",
}  # fmt: skip
POPULATIONS = ("iid", "dirichlet", "mdm")  # one Dirichlet with the best alpha of every category


def main() -> None:
    """Print the tables."""
    print("\n".join([*table(), "", *training_table()]))


def table() -> Iterator[str]:
    """The lines of the table, in Markdown: one row per federation, by its best α."""
    yield "| clients | best α | IID | best Dirichlet | polyurn | true clients |"
    yield "|---|---|---|---|---|---|"
    runs = [*_records("populations")]
    for federation, name in COMPARED.items():
        card = pu.zoo.card(name)
        mine = [run for run in runs if run["settings"]["federation"] == federation]
        if mine:
            ratios = [_mean(mine, population) for population in POPULATIONS]
            nulls = np.mean([likeness(run, "mdm")["energy_null"] for run in mine], axis=0)
            cells = [
                card.title,
                short(card.profile.heterogeneity.alpha.value),
                *(f"{ratio:.{1 if ratio < 10 else 0}f}" for ratio in ratios),
                f"{nulls[0]:.1f} to {nulls[1]:.1f}",
            ]
            yield f"| {' | '.join(cells)} |"


def training_table() -> Iterator[str]:
    """How far training on simulated clients is from training on true ones, in points of accuracy."""
    yield "| clients | true, again | polyurn | IID | Dirichlet(0.1) | polyurn is nearer than IID by |"
    yield "|---|---|---|---|---|---|"
    for name, experiment, simulated in TRAINED:
        verdict = pu.compare_sweeps(pu.read_runs(RESULTS / experiment))
        names = ("again", simulated, "iid", "dirichlet 0.1")
        found = [f"{100 * verdict[population].difference.value:.2f}" for population in names]
        pair = verdict.paired("iid", simulated)
        value, low, high = (100 * number for number in (pair.value, pair.low, pair.high))
        yield f"| {name} | {' | '.join(found)} | {value:.2f} ({low:.2f} to {high:.2f}) |"


def likeness(run: dict[str, Any], population: str) -> dict[str, Any]:
    """How alike a population of a run in populations.jsonl is to its held-out clients."""
    return next(row for row in run["comparison"]["rows"] if row["name"] == population)


def _mean(runs: list[dict[str, Any]], population: str) -> float:
    """The mean energy distance over the splits, in units of true-to-true."""
    return float(np.mean([float(likeness(run, population)["energy_ratio"]) for run in runs]))


def _records(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (RESULTS / f"{name}.jsonl").read_text().splitlines())


if __name__ == "__main__":
    main()
