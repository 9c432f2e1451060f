"""Speed, growth and memory of `partition`, against flwr-datasets' DirichletPartitioner.

All in this process and on one thread. The partitioner runs first: it reads the column, draws proportions
and gives every point away. The row "all that it does" is like for like, and is judged: the column read
from the same dataset, the histograms of as many clients drawn from the same Dirichlet, with the sizes
that came out, and each client given its points without replacement. The other rows are parts of that,
with the very histograms that came out. Both put each client's points into random order.

    python benchmarks/partition.py            # a table, and one JSON object as the last line
"""

import json
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from flwr_datasets.partitioner import DirichletPartitioner

import polyurn as pu
from datasets import Dataset
from polyurn.integrations.huggingface import dataset_labels

N_POINTS, N_CATEGORIES, N_CLIENTS, ALPHA = 1_000_000, 100, 10_000, 0.3
REQUIRED_SPEED, REQUIRED_MEMORY = 100, 4
GROWTH = (100_000, 1_000_000, 10_000_000)
POINTS_PER_CLIENT = 100
# The steps a point are the same; what they cost is not. At 1e5 points urns, clients and indices are in
# the cache, at 1e7 each swap in an urn and each write to a client is a miss: 2 to 3 times as long.
REQUIRED_GROWTH = 4
REPEATS = 5
JUDGED = "all that it does"
RESULTS = Path(__file__).parent / "results" / "partition.json"


def main() -> None:
    """Measure and print; keep the record."""
    labels = np.random.default_rng(0).integers(0, N_CATEGORIES, N_POINTS)
    # Compile what draws points, and what draws histograms.
    pu.partition(labels, np.ones((2, N_CATEGORIES), int), rng=0)
    pu.Dirichlet([ALPHA] * N_CATEGORIES, sizes=[1]).sample(N_CLIENTS, rng=0)
    record = {"speed": speed(labels), "growth": growth()}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record))


def speed(labels: np.ndarray) -> dict[str, float]:
    """Seconds for the same histograms, and how many times faster."""
    proxy = Dataset.from_dict({"label": labels})
    theirs = DirichletPartitioner(
        num_partitions=N_CLIENTS, partition_by="label", alpha=ALPHA, min_partition_size=0, seed=1
    )
    theirs.dataset = proxy
    took = {"flwr-datasets": best(lambda: theirs.num_partitions, 1)}  # it keeps its result
    parts = [theirs.load_partition(i) for i in range(N_CLIENTS)]
    rows = np.array([np.bincount(part["label"][:], minlength=N_CATEGORIES) for part in parts])
    counts, _ = pu.drop_empty(rows)
    sizes = rows.sum(axis=1)

    def whole() -> pu.Partition:
        population = pu.Dirichlet([ALPHA] * N_CATEGORIES, sizes=sizes[sizes > 0])
        drawn = population.sample(N_CLIENTS, rng=2)
        return pu.partition(dataset_labels(proxy).labels, drawn, replace=False, rng=3)

    ours = pu.partition(labels, counts, replace=False, rng=3)
    assert np.array_equal(ours.histograms(labels, N_CATEGORIES), counts)
    assert np.array_equal(np.sort(ours.indices), np.arange(N_POINTS))
    took |= {
        "partition": best(lambda: pu.partition(labels, counts, replace=False, rng=3), REPEATS),
        "partition, replace": best(lambda: pu.partition(labels, counts, rng=3), REPEATS),
        "partition from the Dataset": best(
            lambda: pu.partition(dataset_labels(proxy).labels, counts, replace=False, rng=3),
            REPEATS,
        ),
        JUDGED: best(whole, REPEATS),
    }
    print(f"{N_POINTS:,} points, {N_CATEGORIES} categories, {len(counts):,} clients")
    print(f"{'':<28} {'seconds':>8} {'times faster':>13}")
    for name, seconds in took.items():
        print(f"{name:<28} {seconds:>8.3f} {took['flwr-datasets'] / seconds:>13.0f}")
    ratio = took["flwr-datasets"] / took[JUDGED]
    print(
        f"required: {JUDGED!r} {REQUIRED_SPEED} times faster: "
        f"{'met' if ratio >= REQUIRED_SPEED else 'MISSED'} ({ratio:.0f})\n"
    )
    return took


def growth() -> list[dict[str, float]]:
    """Seconds and memory from 1e5 to 1e7 points: for the same clients, and for more of the same size."""
    found = []
    print(
        f"{'points':>12} {'clients':>8} {'replace':>8} {'ns a point':>11} {'peak / index array':>19}"
    )
    for n_clients in (lambda _: N_CLIENTS, lambda n_points: n_points // POINTS_PER_CLIENT):
        for n_points in GROWTH:
            for replace in (True, False):
                row = measure(n_points, n_clients(n_points), replace)
                found.append(row)
                print(
                    f"{n_points:>12,} {row['clients']:>8,} {replace!s:>8} "
                    f"{row['seconds'] / n_points * 1e9:>11.0f} {row['memory_ratio']:>19.2f}"
                )
    worst = max(row["memory_ratio"] for row in found)
    print(f"required: at most {REQUIRED_MEMORY}: {'met' if worst <= REQUIRED_MEMORY else 'MISSED'}")
    for replace in (True, False):
        costs = {
            row["points"]: row["seconds"] / row["points"]
            for row in found
            if row["replace"] == replace and row["clients"] * POINTS_PER_CLIENT == row["points"]
        }
        ratio = costs[GROWTH[-1]] / costs[GROWTH[0]]
        print(
            f"growth, replace={replace}: a point costs {ratio:.2f} times as much at {GROWTH[-1]:,} "
            f"points as at {GROWTH[0]:,}, {POINTS_PER_CLIENT} to a client; at most "
            f"{REQUIRED_GROWTH}, the cache: {'met' if ratio <= REQUIRED_GROWTH else 'MISSED'}"
        )
    return found


def measure(n_points: int, n_clients: int, replace: bool) -> dict[str, float]:
    """One row of the table."""
    labels = np.random.default_rng(0).integers(0, N_CATEGORIES, n_points)
    population = pu.Dirichlet([ALPHA] * N_CATEGORIES, sizes=[n_points // n_clients])
    counts = population.sample(n_clients, rng=1)

    def run() -> pu.Partition:
        return pu.partition(labels, counts, replace=replace, rng=2)

    return {
        "points": n_points,
        "clients": n_clients,
        "replace": replace,
        "seconds": best(run, REPEATS),
        "memory_ratio": peak(run) / (8 * n_points),
    }


def best(work: Callable[[], object], repeats: int) -> float:
    """The shortest time, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak(work: Callable[[], object]) -> int:
    """The most memory that is held at once, in bytes, beyond what was there."""
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


if __name__ == "__main__":
    main()
