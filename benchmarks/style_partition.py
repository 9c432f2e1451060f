"""How much longer `partition` takes with a style: the ratio of both, in one run.

A million points of 16 features, 10,000 clients of 100 points, and four directions with the shares of
variance between clients that digits by writer have; beside it, without a bar, eight directions. Both
kinds of partition run in turn, so that a busy machine slows down both; the shortest of several runs
counts. Processor time counts all threads: it is what one core would take.

    python benchmarks/style_partition.py            # a table, and one JSON object as the last line
"""

import json
import time
from pathlib import Path

import numpy as np

import polyurn as pu

N_POINTS, N_CLIENTS, SIZE, N_FEATURES = 1_000_000, 10_000, 100, 16
BETWEEN = (0.79, 0.69, 0.55, 0.37, 0.35, 0.3, 0.3, 0.25)
# Labels, the concentration of the clients' label shares, and directions.
CASES = ((10, 1.0, 4), (100, 0.3, 4), (10, 1.0, 8), (100, 0.3, 8))
# With four directions.
REQUIRED = 20
REPEATS = 5
RESULTS = Path(__file__).parent / "results" / "style_partition.json"


def main() -> None:
    """Measure and print; keep the record."""
    print(f"{N_POINTS:,} points of {N_FEATURES} features, {N_CLIENTS:,} clients of {SIZE}")
    print(f"{'labels':>7} {'directions':>10} {'':<9} {'plain, s':>9} {'style, s':>9} {'ratio':>6}")
    found = []
    for n_labels, alpha, n_directions in CASES:
        row = measure(n_labels, alpha, n_directions)
        found.append(row)
        for clock in ("wall", "processor"):
            plain, styled = row[f"plain_{clock}"], row[f"styled_{clock}"]
            case = f"{n_labels:>7} {n_directions:>10} {clock:<9}"
            print(f"{case} {plain:>9.3f} {styled:>9.3f} {styled / plain:>6.1f}")
    worst = max(row["styled_wall"] / row["plain_wall"] for row in found if row["directions"] == 4)
    print(f"required: at most {REQUIRED}: {'met' if worst <= REQUIRED else 'MISSED'} ({worst:.0f})")
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


def measure(n_labels: int, alpha: float, n_directions: int) -> dict[str, float]:
    """The shortest times of both, in seconds, by either clock."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_labels, N_POINTS)
    features = rng.normal(size=(N_POINTS, N_FEATURES)).astype(np.float32)
    style = style_of(n_labels, n_directions)
    counts = pu.Dirichlet([alpha] * n_labels, sizes=[SIZE]).sample(N_CLIENTS, rng=1)
    works = {
        "plain": lambda: pu.partition(labels, counts, rng=2),
        "styled": lambda: pu.partition(labels, counts, style=style, features=features, rng=2),
    }
    best: dict[str, float] = {"labels": n_labels, "alpha": alpha, "directions": n_directions}
    for turn in range(REPEATS + 1):  # the first turn compiles
        for name, work in works.items():
            wall, processor = time.perf_counter(), time.process_time()
            work()
            took = {
                "wall": time.perf_counter() - wall,
                "processor": time.process_time() - processor,
            }
            for clock, seconds in took.items():
                key = f"{name}_{clock}"
                if turn:
                    best[key] = min(seconds, best.get(key, np.inf))
    return best


def style_of(n_labels: int, n_directions: int) -> pu.Style:
    """Half of the clients' variance is shared by their labels, half belongs to each label."""
    m, between = n_directions, np.array(BETWEEN[:n_directions])
    whitening = np.tile(np.eye(m), (n_labels, 1, 1))
    space = pu.StyleSpace(np.zeros((n_labels, m)), np.eye(N_FEATURES, m), whitening, radius=5.0)
    half = np.diag(between / 2)
    return pu.Style(space, np.zeros(m), half, half, np.diag(1 - between))


if __name__ == "__main__":
    main()
