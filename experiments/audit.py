"""Does the noise of a private fit keep its word? A canary in all of its rounds, 20,000 times.

    python experiments/audit.py    # resumes; writes results/audit.jsonl and a table

The questions are those of one private fit, every round of it; releases come from the package's own
aggregator, with OpenDP's noise. The canary holds all its points in the rarest category: its vector is
as long as a client's can be in nearly every round. The last rows break the mechanism on purpose.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.privacy.aggregator import PrivateAggregator
from polyurn.privacy.audit import audit, in_blocks
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.wire import Noised

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import run_all


@dataclass(frozen=True)
class Settings:
    """As many runs as tell a claim from its half at ε = 1."""

    truth: str = "medium/3"
    n_clients: int = 1_000
    size: int = 20
    delta: float = 1e-5
    n_runs: int = 20_000
    n_broken_runs: int = 2_000


SETTINGS = Settings()


class Asked(PrivateAggregator):
    """A private aggregator that keeps the questions."""

    def __init__(self, aggregator: Any, **options: Any) -> None:
        super().__init__(aggregator, **options)
        self.rounds: list[Noised[Any]] = []

    def aggregate(self, query: Any, cohort_size: int | None) -> Any:
        self.rounds.append(query)
        return super().aggregate(query, cohort_size)


def run(epsilon: float, noise: str) -> dict[str, Any]:
    """What the canary gives away."""
    table = truth(SETTINGS.truth).sample(SETTINGS.n_clients, rng=0)
    canary = np.zeros_like(table[:1])
    canary[0, table.sum(axis=0).argmin()] = SETTINGS.size
    rounds = questions(table, epsilon)
    draw = in_blocks()
    parts = {"as it is": 1.0, "halved": 0.5}
    private_options = {"noise": lambda n, scale: draw(n, scale * parts[noise])}
    found = audit(
        lambda clients: PrivateAggregator(
            clients, ledger=PrivacyLedger(epsilon, SETTINGS.delta), **private_options
        ),
        rounds,
        without=pu.LocalAggregator(table),
        with_canary=pu.LocalAggregator(np.vstack([table, canary])),
        delta=SETTINGS.delta,
        n_runs=SETTINGS.n_runs if noise == "as it is" else SETTINGS.n_broken_runs,
    )
    norms = [float(np.linalg.norm(pu.answer(q.query, canary).to_vector())) for q in rounds]
    return {
        "claimed": round(found.claimed, 4),
        "found": round(found.found, 4),
        "n_runs": found.n_runs,
        "n_false_alarms": found.n_false_alarms,
        "n_missed": found.n_missed,
        "canary_norms": [round(norm, 4) for norm in norms],
    }


def questions(table: NDArray[np.int64], epsilon: float) -> list[Noised[Any]]:
    """Every question of one private fit."""
    ledger = PrivacyLedger(epsilon, SETTINGS.delta)
    asked = Asked(pu.LocalAggregator(table), ledger=ledger)
    pu.fit_private(
        asked,
        epsilon=epsilon,
        delta=SETTINGS.delta,
        n_components=3,
        n_categories=table.shape[1],
        max_size=SETTINGS.size,
        rng=1,
    )
    return asked.rounds


def main() -> None:
    """Run what is missing, then print the table."""
    grid = [
        {"epsilon": 1.0, "noise": "as it is"},
        {"epsilon": 4.0, "noise": "as it is"},
        {"epsilon": 1.0, "noise": "halved"},
    ]
    print("| noise | runs | rounds | claimed ε | found at least |")
    print("|---|---|---|---|---|")
    for record in run_all("audit", grid, run):
        noise, n_rounds = record["settings"]["noise"], len(record["canary_norms"])
        found = f"{record['claimed']:.3f} | {record['found']:.3f}"
        print(f"| {noise} | {record['n_runs']:,} | {n_rounds} | {found} |", flush=True)


if __name__ == "__main__":
    main()
