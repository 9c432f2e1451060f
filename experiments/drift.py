"""How often a look says that something moved, where nothing did and where weights did.

    python experiments/drift.py      # 15 minutes; appends to results/drift.jsonl, prints the table
    python experiments/drift.py --show

Clients are drawn from a mixture of the paper, and looked at with the same mixture: every alarm is a
false one. Then from the mixture with .05 of the weight moved from its first component to its last.
With and without noise of epsilon 1; against the mixture, and against an earlier look at as many clients.
The simulation inside of every look has a seed of its own.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.server.drift import drift

OUT = Path(__file__).parent / "results" / "drift.jsonl"


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    truth: str
    n_clients: int
    moved: float
    epsilon: float | None
    against: str


@dataclass(frozen=True)
class Settings:
    """What is tried."""

    truths: tuple[str, ...] = ("medium/2", "high/3")
    sizes: tuple[int, ...] = (500, 5_000)
    moved: float = 0.05
    epsilons: tuple[float | None, ...] = (None, 1.0)
    delta: float = 1e-5
    n_draws: int = 200
    level: float = 0.05


SETTINGS = Settings()


def cases(settings: Settings) -> Iterator[Case]:
    """Few clients and an earlier look for the first truth only."""
    easy, hard = settings.truths
    few, many = settings.sizes
    for epsilon in settings.epsilons:
        yield Case(easy, many, 0.0, epsilon, "mixture")
        yield Case(easy, few, 0.0, epsilon, "mixture")
        yield Case(hard, many, 0.0, epsilon, "mixture")
        yield Case(easy, many, settings.moved, epsilon, "mixture")
        yield Case(easy, many, 0.0, epsilon, "look")


def alarms(case: Case, settings: Settings) -> int:
    """How many of the looks say that something moved."""
    was = truth(case.truth)
    weights = was.weights.copy()
    weights[0] -= case.moved
    weights[-1] += case.moved
    now = pu.MDM(weights, was.alphas, was.sizes)
    budget = {} if case.epsilon is None else {"epsilon": case.epsilon, "delta": settings.delta}
    found = 0
    for draw in range(settings.n_draws):
        first, second = np.random.default_rng((62796, draw)).spawn(2)
        since = None
        if case.against == "look":
            earlier = pu.LocalAggregator(was.sample(case.n_clients, rng=first))
            since = drift(earlier, was, rng=draw, **budget)
        clients = pu.LocalAggregator(now.sample(case.n_clients, rng=second))
        look = drift(clients, was, since=since, level=settings.level, rng=draw, **budget)
        found += look.moved
    return found


def show(settings: Settings) -> None:
    """The table, with the binomial standard error of each rate."""
    print(
        "| clients of | clients | weight moved | ε | against | alarms |\n|---|---|---|---|---|---|"
    )
    for line in OUT.read_text().splitlines():
        row = json.loads(line)
        rate = row["alarms"] / row["n_draws"]
        error = sqrt(rate * (1 - rate) / row["n_draws"])
        print(
            f"| {row['truth']} | {row['n_clients']:,} | {row['moved']:g} | {row['epsilon'] or '–'} | "
            f"{row['against']} | {rate:.1%} ± {error:.1%} |"
        )


def main() -> None:
    """Run what is not there yet, and show all."""
    OUT.touch()
    done = [json.loads(line) for line in OUT.read_text().splitlines()]
    if "--show" not in sys.argv:
        for case in cases(SETTINGS):
            if any(asdict(case).items() <= row.items() for row in done):
                continue
            row = {**asdict(case), "n_draws": SETTINGS.n_draws, "alarms": alarms(case, SETTINGS)}
            with OUT.open("a") as file:
                file.write(json.dumps(row) + "\n")
    show(SETTINGS)


if __name__ == "__main__":
    main()
