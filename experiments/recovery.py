"""NMSE of A and of τ against rounds: Figures 2, 7 and 8 of the paper, with both methods.

    python experiments/recovery.py               # resumes; writes results/recovery.jsonl and a table

The paper draws curves and prints no numbers, so the table says what ours come to; its text says that
"in all cases we obtain approximate convergence" within 100 rounds.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import TABLE_1, truth

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import run_all


@dataclass(frozen=True)
class Settings:
    """Appendix C.3: cohorts of 1,000, 100 rounds after the one of Algorithm 1."""

    cohort_size: int = 1_000
    n_rounds: int = 101
    n_population: int = 101_000  # fresh cohorts are drawn from so many clients
    n_seeds: int = 5
    shown: tuple[int, ...] = (11, 21, 51, 101)


SETTINGS = Settings()


def run(truth_name: str, method: str, seed: int) -> dict[str, Any]:
    """One fit; the errors after every round."""
    hidden = truth(truth_name)
    clients = pu.LocalAggregator(hidden.sample(SETTINGS.n_population, rng=[seed, 1]), rng=[seed, 2])
    common = {
        "n_components": hidden.n_components,
        "n_categories": hidden.n_categories,
        "max_size": hidden.max_size,
        "cohort_size": SETTINGS.cohort_size,
    }
    if method == "paper":
        done = pu.fit_paper(clients, n_rounds=SETTINGS.n_rounds, **common)
    else:
        done = pu.fit(clients, max_rounds=SETTINGS.n_rounds, tol=1e-12, rng=[seed, 3], **common)
    errors = [_errors(r.mdm, hidden) for r in done.rounds]
    return {"nmse_alphas": [e[0] for e in errors], "nmse_weights": [e[1] for e in errors]}


def _errors(mdm: pu.MDM | None, hidden: pu.MDM) -> tuple[float | None, float | None]:
    if mdm is None or mdm.n_components != hidden.n_components:
        return None, None
    same_sizes = pu.MDM(mdm.weights, mdm.alphas, hidden.sizes)
    found = pu.compare_parameters(same_sizes, hidden)
    return round(found.alphas, 5), round(found.weights, 5)


def main() -> None:
    """Run what is missing, then print the table."""
    grid = [
        {"truth_name": name, "method": method, "seed": seed}
        for name in TABLE_1
        for method in ("paper", "search")
        for seed in range(SETTINGS.n_seeds)
    ]
    records = list(run_all("recovery", grid, run))
    rounds = " | ".join(f"A after {n - 1}" for n in SETTINGS.shown)
    print(f"| truth | method | {rounds} | τ after {SETTINGS.n_rounds - 1} |")
    print("|---|---|" + "---|" * (len(SETTINGS.shown) + 1))
    for name in TABLE_1:
        for method in ("paper", "search"):
            mine = [
                r for r in records
                if (r["settings"]["truth_name"], r["settings"]["method"]) == (name, method)
            ]  # fmt: skip
            cells = [_median(mine, "nmse_alphas", n) for n in SETTINGS.shown]
            cells.append(_median(mine, "nmse_weights", SETTINGS.n_rounds))
            print(f"| {name} | {method} | {' | '.join(cells)} |")


def _median(records: list[dict[str, Any]], block: str, n_rounds: int) -> str:
    values = [r[block][n_rounds - 1] for r in records]
    seen = [v for v in values if v is not None]
    return f"{np.median(seen):.3f}" if seen else "–"


if __name__ == "__main__":
    main()
