"""The evidence on the first page: how far simulated clients are from held-out ones, on real federations.

    python experiments/front_door.py  # prints the table, from the records that are kept

Nothing is measured here: the distances are those of results/populations.jsonl (means of its splits), the
best α that of results/which_alpha.jsonl. `python docs/renew_outputs.py` puts the table into README.md.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import RESULTS
from which_alpha import TABLES, likeness, short

POPULATIONS = ("iid", "dirichlet", "mdm")  # one Dirichlet with the best alpha of every category


def main() -> None:
    """Print the table."""
    print("\n".join(table()))


def table() -> Iterator[str]:
    """The lines of the table, in Markdown: one row per federation, by its best α."""
    yield "| clients | best α | IID | best Dirichlet | polyurn | true clients |"
    yield "|---|---|---|---|---|---|"
    alphas = {r["settings"]["table"]: r["alpha"]["value"] for r in _records("which_alpha")}
    runs = [*_records("populations")]
    for name, described in TABLES.items():
        mine = [run for run in runs if run["settings"]["federation"] == described.compared]
        if mine:
            ratios = [_mean(mine, population) for population in POPULATIONS]
            nulls = np.mean([likeness(run, "mdm")["energy_null"] for run in mine], axis=0)
            cells = [
                described.clients,
                short(alphas[name]),
                *(f"{ratio:.{1 if ratio < 10 else 0}f}" for ratio in ratios),
                f"{nulls[0]:.1f} to {nulls[1]:.1f}",
            ]
            yield f"| {' | '.join(cells)} |"


def _mean(runs: list[dict[str, Any]], population: str) -> float:
    """The mean energy distance over the splits, in units of true-to-true."""
    return float(np.mean([float(likeness(run, population)["energy_ratio"]) for run in runs]))


def _records(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (RESULTS / f"{name}.jsonl").read_text().splitlines())


if __name__ == "__main__":
    main()
