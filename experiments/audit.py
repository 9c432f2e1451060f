"""Does the noise of a private fit keep its word? A canary in all of its rounds, 20,000 times.

    python experiments/audit.py    # resumes; writes results/audit.jsonl and a table

The questions are those of one private fit, every round of it; releases come from the package's own
aggregator. The canary holds all its points in the rarest category: its vector is as long as a client's
can be in nearly every round. One component has 4 rounds of 50 numbers in all, with OpenDP's noise. Three
have 12 rounds of about 1,000, which is 40 million draws; NumPy's seeded noise, rounded to the same grid,
takes its place. The last row breaks the mechanism on purpose.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.privacy.audit import audit, in_blocks
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.noise import discrete_gaussian
from polyurn.privacy.private_aggregator import PrivateAggregator
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
_RNG = np.random.default_rng(17)


def numpy_noise(n_numbers: int, scale: float) -> NDArray[np.int64]:
    """A Gaussian in whole steps of the grid, which can be repeated."""
    return np.rint(_RNG.normal(0.0, scale, n_numbers)).astype(np.int64)


def halved(n_numbers: int, scale: float) -> NDArray[np.int64]:
    """What a mistake in the scale would add."""
    return discrete_gaussian(n_numbers, scale / 2)


NOISE = {"OpenDP": discrete_gaussian, "NumPy": numpy_noise, "halved": halved}


class Asked(PrivateAggregator):
    """A private aggregator that keeps the questions."""

    def __init__(self, aggregator: Any, **options: Any) -> None:
        super().__init__(aggregator, **options)
        self.rounds: list[Noised[Any]] = []

    def aggregate(self, query: Any, cohort_size: int | None) -> Any:
        self.rounds.append(query)
        return super().aggregate(query, cohort_size)


def run(n_components: int, epsilon: float, noise: str) -> dict[str, Any]:
    """What the canary gives away."""
    table = truth(SETTINGS.truth).sample(SETTINGS.n_clients, rng=0)
    canary = np.zeros_like(table[:1])
    canary[0, table.sum(axis=0).argmin()] = SETTINGS.size
    rounds = questions(table, n_components, epsilon)
    draw = in_blocks(NOISE[noise])
    found = audit(
        lambda clients: PrivateAggregator(
            clients, ledger=PrivacyLedger(epsilon, SETTINGS.delta), noise=draw
        ),
        rounds,
        without=pu.LocalAggregator(table),
        with_canary=pu.LocalAggregator(np.vstack([table, canary])),
        delta=SETTINGS.delta,
        n_runs=SETTINGS.n_broken_runs if noise == "halved" else SETTINGS.n_runs,
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


def questions(table: NDArray[np.int64], n_components: int, epsilon: float) -> list[Noised[Any]]:
    """Every question of one private fit."""
    ledger = PrivacyLedger(epsilon, SETTINGS.delta)
    asked = Asked(pu.LocalAggregator(table), ledger=ledger)
    pu.fit_private(
        asked,
        epsilon=epsilon,
        delta=SETTINGS.delta,
        n_components=n_components,
        n_categories=table.shape[1],
        max_size=SETTINGS.size,
        rng=1,
    )
    return asked.rounds


def main() -> None:
    """Run what is missing, then print the table."""
    grid = [
        {"n_components": 1, "epsilon": 1.0, "noise": "OpenDP"},
        {"n_components": 1, "epsilon": 4.0, "noise": "OpenDP"},
        {"n_components": 3, "epsilon": 1.0, "noise": "NumPy"},
        {"n_components": 3, "epsilon": 4.0, "noise": "NumPy"},
        {"n_components": 1, "epsilon": 1.0, "noise": "halved"},
    ]
    print("| components | noise | runs | rounds | claimed ε | found at least |")
    print("|---|---|---|---|---|---|")
    for record in run_all("audit", grid, run):
        settings, n_rounds = record["settings"], len(record["canary_norms"])
        what = f"{settings['n_components']} | {settings['noise']} | {record['n_runs']:,}"
        found = f"{record['claimed']:.3f} | {record['found']:.3f}"
        print(f"| {what} | {n_rounds} | {found} |", flush=True)


if __name__ == "__main__":
    main()
