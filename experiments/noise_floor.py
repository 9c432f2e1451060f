"""How many splits of true clients the noise floor needs.

    python experiments/noise_floor.py    # resumes; writes results/noise_floor.jsonl and a table

The floor and the ends of its interval are computed again and again from other random splits of the same
held-out clients; what is reported is how much they move (standard deviation over mean).
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.comparison.distances import (
    directions,
    energy_floor,
    random_halves,
    wasserstein_floor,
)

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import HELD_OUT, read_counts
from records import run_all


@dataclass(frozen=True)
class Settings:
    """A mean of five splits is what our first trials had."""

    federations: tuple[str, ...] = ("race", "ratings")
    n_splits: tuple[int, ...] = (5, 100, 300, 1_000, 3_000)
    n_repetitions: int = 20
    n_directions: int = 100


SETTINGS = Settings()


def run(federation: str, n_splits: int) -> dict[str, Any]:
    """How much the floors move."""
    true = pu.split_clients(read_counts(federation), held_out=HELD_OUT, rng=0).held_out.toarray()
    shares = true / true.sum(axis=1, keepdims=True)
    lines = shares @ directions(shares.shape[1], SETTINGS.n_directions, rng=0)
    floors = []
    for repetition in range(SETTINGS.n_repetitions):
        halves = random_halves(len(shares), n_splits, rng=repetition)
        both = energy_floor(shares, halves), wasserstein_floor(lines, halves)
        floors.append([(floor.distance, floor.low, floor.high) for floor in both])
    moves = np.std(floors, axis=0) / np.mean(floors, axis=0)
    energy, sliced = moves.round(4).tolist()
    return {"energy": energy, "sliced_wasserstein": sliced}


def main() -> None:
    """Run what is missing, then print the table."""
    grid = [
        {"federation": f, "n_splits": n} for f in SETTINGS.federations for n in SETTINGS.n_splits
    ]
    print("| clients | splits | energy: floor | low | high | sliced W: floor | low | high |")
    print("|---|---|---|---|---|---|---|---|")
    for record in run_all("noise_floor", grid, run):
        moves = [f"{100 * m:.1f} %" for m in (*record["energy"], *record["sliced_wasserstein"])]
        federation, n_splits = record["settings"].values()
        print(f"| {federation} | {n_splits} | {' | '.join(moves)} |")


if __name__ == "__main__":
    main()
