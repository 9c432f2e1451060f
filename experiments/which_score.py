"""What a run should score: its last evaluation, the mean of its last half, or that of all.

    python experiments/which_score.py   # from the runs in results/; prints the table

For each sweep that is kept here: the noise floor, which is how far true clients trained again are from
themselves, and how much nearer the MDM's clients are to the true ones than IID clients, with the
standard deviation of that over seeds; each by the last evaluation / the last half / all. In points.
The last column is the square of the ratio of the first two deviations: how many times as many seeds the
last evaluation needs for an interval as wide. Six seeds know it to within a factor of several.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import polyurn as pu

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import RESULTS

POINTS = 100.0


@dataclass(frozen=True)
class Settings:
    """Every sweep of section 4.2 whose runs are kept, with its metrics and its simulated clients."""

    sweeps: tuple[tuple[str, str, str], ...] = (
        ("cifar10_high_1", "accuracy", "mdm"),
        ("cifar10_high_1", "federation", "mdm"),
        ("cifar10_high_2", "accuracy", "mdm"),
        ("cifar10_high_2", "federation", "mdm"),
        ("flights", "accuracy", "mdm route"),
        ("digits", "accuracy", "mdm"),
    )
    # Shares of the evaluations; the first is one of them, as no run has a hundred.
    last: tuple[float, ...] = (0.01, 0.5, 1.0)


SETTINGS = Settings()


@dataclass(frozen=True)
class Scored:
    """What one score says about one sweep, in points."""

    floor: float
    nearer: float
    deviation: float


def scored(runs: list[pu.FinishedRun], metric: str, simulated: str, *, last: float) -> Scored:
    """The floor, and the advantage over IID clients with its standard deviation over seeds."""
    verdict = pu.compare_sweeps(runs, metric=metric, last=last)
    if verdict.floor is None:
        raise ValueError("expected a sweep with its noise floor")
    advantages = [
        POINTS * pu.compare_sweeps(of_seed, metric=metric, last=last).paired("iid", simulated).value
        for of_seed in _by_seed(runs)
    ]
    floor = POINTS * verdict.floor.difference.value
    return Scored(floor, float(np.mean(advantages)), float(np.std(advantages, ddof=1)))


def _by_seed(runs: list[pu.FinishedRun]) -> Iterator[list[pu.FinishedRun]]:
    for seed in sorted({run.seed for run in runs}):
        yield [run for run in runs if run.seed == seed]


def main() -> None:
    """Print the table."""
    print("| sweep, metric | floor | nearer than IID by | its deviation | seeds, one / half |")
    print("|---|---|---|---|---|")
    for name, metric, simulated in SETTINGS.sweeps:
        runs = pu.read_runs(RESULTS / name)
        found = [scored(runs, metric, simulated, last=last) for last in SETTINGS.last]
        cells = [
            " / ".join(f"{getattr(one, part):.2f}" for one in found)
            for part in ("floor", "nearer", "deviation")
        ]
        saved = (found[0].deviation / found[1].deviation) ** 2
        print(f"| {name}, {metric} | {' | '.join(cells)} | {saved:.1f} |")


if __name__ == "__main__":
    main()
