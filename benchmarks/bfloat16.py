"""bfloat16 beside float32: how much faster the paper's network trains, and if it learns the same.

Speed: the paper's network on 28 x 28 images, 20 clients of 100 points in batches of 10, one worker;
both precisions take turns. Accuracy: the same kind of network on the digits of scikit-learn, 200 rounds
under six seeds, beside float32 again with clients in another order, which is the noise floor.

    python benchmarks/bfloat16.py            # two tables, and one JSON object as the last line
    python benchmarks/bfloat16.py --save     # also into benchmarks/results/bfloat16.json
"""

import argparse
import json
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import torch

import polyurn as pu
from polyurn.comparison.estimates import student_estimate
from polyurn.datasets.dataset import digits

RESULTS = Path(__file__).parent / "results" / "bfloat16.json"
PRECISIONS = ("float32", "bfloat16")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="bfloat16 beside float32.")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = {"speed": speed(given.turns), "accuracy": accuracy(given.seeds, given.rounds)}
    if given.save:
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found))


def speed(n_turns: int) -> dict[str, float]:
    """Processor seconds of a round in each precision, and their ratio."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2000, 1, 28, 28)).astype(np.float32)
    labels = rng.integers(0, 62, 2000)
    labels[0] = 61
    data = pu.Examples(points, labels, points[:10], labels[:10])
    clients = pu.Partition.by_owner(np.arange(2000) // 100)
    seconds: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    for _ in range(n_turns):
        for name, turns in seconds.items():
            settings = pu.FedAvg(n_rounds=1, cohort_size=20, precision=name)
            started = process_time()
            pu.train(settings, "cnn", data, clients, seed=0, n_workers=1, engine="workers")
            turns.append(process_time() - started)
    each = {name: median(turns) for name, turns in seconds.items()}
    ratios = [a / b for a, b in zip(seconds["float32"], seconds["bfloat16"], strict=True)]
    print(
        f"a round: {each['float32']:.2f} s and {each['bfloat16']:.2f} s, {median(ratios):.2f} times"
    )
    return each | {"ratio": median(ratios), "least": min(ratios), "most": max(ratios)}


def accuracy(n_seeds: int, n_rounds: int) -> dict[str, list[float]]:
    """The test accuracy in float32, and of the others less that, seed by seed."""
    found = digits().train
    features = np.asarray(found.features, np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(features))
    train, test = order[:1400], order[1400:]
    labels = np.asarray(found.labels)
    data = pu.Examples(features[train], labels[train], features[test], labels[test])
    clients = pu.partition(
        labels[train], pu.Dirichlet([0.5] * 10, [28]), n_clients=50, replace=False, rng=0
    )
    kinds: dict[str, list[float]] = {"bfloat16": [], "again": []}
    whole = []
    for seed in range(n_seeds):
        reached = {}
        for name, precision in (*zip(PRECISIONS, PRECISIONS, strict=True), ("again", "float32")):
            order = (
                np.random.default_rng(seed).permutation(50) if name == "again" else np.arange(50)
            )
            held = pu.Partition.from_lists([clients[i] for i in order])
            settings = pu.FedAvg(
                n_rounds=n_rounds, cohort_size=10, local_learning_rate=0.05, precision=precision
            )
            run = pu.train(settings, "cnn", data, held, seed=seed, n_workers=1, engine="workers")
            curve = run.metrics["accuracy"]
            reached[name] = float(np.mean(curve[len(curve) // 2 :]))
        whole.append(reached["float32"])
        for name, less in kinds.items():
            less.append(reached[name] - reached["float32"])
    print(f"float32 reaches {100 * float(np.mean(whole)):.1f} %")
    for name, less in kinds.items():
        apart = student_estimate(less)
        off = float(np.mean(np.abs(less)))
        print(f"{name}: {100 * off:.2f} points apart in the mean; signed, in points: "
              f"{apart.scaled(100):.2f}")  # fmt: skip
    return kinds | {"float32": whole}


if __name__ == "__main__":
    main()
