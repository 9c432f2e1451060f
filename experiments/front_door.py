"""The evidence on the first page: do simulated clients look like true ones, and train like them?

    python experiments/front_door.py  # prints both tables, from the records that are kept

Nothing is measured here: distances are those of results/populations.jsonl (means of its splits), and
training that of results/<experiment>/runs.jsonl.
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

# Name on the page, experiment, and its population of simulated clients.
TRAINED = (
    ("pictures, clients with few classes", "cifar10_high_1", "mdm"),
    ("pictures, the paper's two kinds of clients", "cifar10_high_2", "mdm"),
    ("aeroplanes by route", "flights", "mdm route"),
    ("writers by digit", "digits", "mdm"),
)
# What a federation is called in populations.jsonl, and in the zoo.
COMPARED = {
    "flights, default": "flights", "race, default": "census_race", "ratings, default": "lecturers",
    "income, default": "census_income", "speech, default": "speech", "digits, default": "digits",
}  # fmt: skip
POPULATIONS = ("iid", "dirichlet", "mdm")  # one Dirichlet with the best alpha of every category


def main() -> None:
    """Print the tables."""
    print("\n".join([*table(), "", *training_table()]))


def table() -> Iterator[str]:
    """The lines of the table, in Markdown: one row per federation, by its best α."""
    names = (
        "energy ratio: IID | fitted Dirichlet | polyurn | true | AUC: fitted Dirichlet | polyurn"
    )
    yield f"| clients | K | {names} |"
    yield "|---|---|---|---|---|---|---|---|"
    runs = [*records("populations")]
    for federation, name in COMPARED.items():
        mine = [run for run in runs if run["settings"]["federation"] == federation]
        if mine:
            ratios = [_mean(mine, population) for population in POPULATIONS]
            nulls = np.mean([likeness(run, "mdm")["energy_null"] for run in mine], axis=0)
            aucs = [
                np.mean([likeness(run, population)["auc"]["value"] for run in mine])
                for population in POPULATIONS[1:]
            ]
            cells = [
                pu.zoo.card(name).title,
                spread([run["n_components"] for run in mine]),
                *(f"{ratio:.{1 if ratio < 10 else 0}f}" for ratio in ratios),
                f"{nulls[0]:.1f} to {nulls[1]:.1f}",
                *(f"{auc:.2f}" for auc in aucs),
            ]
            yield f"| {' | '.join(cells)} |"


def training_table() -> Iterator[str]:
    """How far training on simulated clients is from training on true ones, in points of accuracy."""
    columns = "noise floor | polyurn | IID | Dirichlet(0.1) | polyurn is nearer than IID by"
    yield f"| clients | {columns} | regret: polyurn | IID |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, experiment, simulated in TRAINED:
        verdict = pu.compare_sweeps(pu.read_runs(RESULTS / experiment))
        names = ("again", simulated, "iid", "dirichlet 0.1")
        found = [f"{100 * verdict[population].difference.value:.2f}" for population in names]
        regrets = [f"{100 * verdict[population].regret.value:.2f}" for population in names[1:3]]
        pair = verdict.paired("iid", simulated)
        value, low, high = (100 * number for number in (pair.value, pair.low, pair.high))
        paired = f"{value:.2f} ({low:.2f} to {high:.2f})"
        yield f"| {' | '.join([name, *found, paired, *regrets])} |"


def spread(numbers: list[int]) -> str:
    """The smallest and the largest of some numbers."""
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def likeness(run: dict[str, Any], population: str) -> dict[str, Any]:
    """How alike a population of a run in populations.jsonl is to its held-out clients."""
    return next(row for row in run["comparison"]["rows"] if row["name"] == population)


def _mean(runs: list[dict[str, Any]], population: str) -> float:
    """The mean energy distance over the splits, in units of true-to-true."""
    return float(np.mean([float(likeness(run, population)["energy_ratio"]) for run in runs]))


def records(name: str) -> Iterator[dict[str, Any]]:
    """What is kept of an experiment, in results/<name>.jsonl."""
    return map(json.loads, (RESULTS / f"{name}.jsonl").read_text().splitlines())


if __name__ == "__main__":
    main()
