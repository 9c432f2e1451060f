"""Is the Flower example's accuracy that of the same training in our engine?

    python experiments/flower_app.py    # resumes; writes results/flower_app.jsonl and a table

The same clients, network, learning rate and number of rounds; first weights, cohorts and orders of
points are drawn by each for itself. How far two runs of one engine are apart by that is the noise floor.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import polyurn as pu

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import run_all

APP = Path(__file__).parents[1] / "examples" / "flower_app"
N_TRAIN = 1437  # as in the app


@dataclass(frozen=True)
class Settings:
    """What both are told."""

    n_rounds: int = 50
    cohort_size: int = 10
    local_epochs: int = 2
    learning_rate: float = 0.1
    batch_size: int = 10


SETTINGS = Settings()
MIXTURE = pu.MDM(
    [0.5, 0.5], [np.full(10, 0.3), np.linspace(0.1, 2, 10)], pu.Sizes.constant(36, n_components=2)
)


def run(seed: int, trainer: str) -> dict[str, Any]:
    """A learning curve on the clients of a seed."""
    images, labels = load_digits(return_X_y=True)
    parts = pu.partition(labels[:N_TRAIN], MIXTURE, n_clients=40, rng=seed)
    if trainer == "flower":
        return {"accuracy": in_flower(parts, seed)}
    images = (images / 16).astype(np.float32)
    data = pu.Examples(images[:N_TRAIN], labels[:N_TRAIN], images[N_TRAIN:], labels[N_TRAIN:])
    given = asdict(SETTINGS)
    settings = pu.FedAvg(local_learning_rate=given.pop("learning_rate"), evaluate_every=1, **given)
    done = pu.train(settings, "mlp", data, parts, seed=seed + (100 if trainer == "again" else 0))
    return {"accuracy": [one.metrics["accuracy"] for one in done.curve]}


def in_flower(parts: pu.Partition, seed: int) -> list[float]:
    """The example as it is, in Flower's simulation."""
    with TemporaryDirectory() as folder:
        clients, metrics = Path(folder) / "clients.json", Path(folder) / "metrics.jsonl"
        pu.save_partition(parts, clients)
        given = asdict(SETTINGS)
        settings = {"num-server-rounds": given.pop("n_rounds"), "seed": seed, **given}
        words = [str(APP), "--partition", str(clients), "--metrics", str(metrics)]
        words += [f"--set={name}={json.dumps(value)}" for name, value in settings.items()]
        command = [sys.executable, "-m", "polyurn.sweeps.flower_run", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line["accuracy"] for line in lines]


def main() -> None:
    """Run what is missing, then print the table."""
    grid = [{"seed": s, "trainer": t} for s in range(6) for t in ("ours", "again", "flower")]
    scores: dict[tuple[int, str], float] = {}
    for record in run_all("flower_app", grid, run):
        accuracy = record["accuracy"]
        assert len(accuracy) == SETTINGS.n_rounds
        seed, trainer = record["settings"].values()
        scores[seed, trainer] = 100 * float(np.mean(accuracy[len(accuracy) // 2 :]))
    print("| seed | our engine | again | Flower |\n|---|---|---|---|")
    differences: dict[str, list[float]] = {"again - ours": [], "Flower - mean of both": []}
    for seed in range(6):
        ours, again, flower = (scores[seed, name] for name in ("ours", "again", "flower"))
        differences["again - ours"].append(again - ours)
        differences["Flower - mean of both"].append(flower - (ours + again) / 2)
        print(f"| {seed} | {ours:.2f} | {again:.2f} | {flower:.2f} |")
    for name, found in differences.items():
        half = (
            2.571 * np.std(found, ddof=1) / np.sqrt(6)
        )  # Student's t with five degrees of freedom
        print(
            f"{name}: mean {np.mean(found):+.2f} points, 95 % interval {np.mean(found) - half:+.2f} to "
            f"{np.mean(found) + half:+.2f}; mean size {np.mean(np.abs(found)):.2f}"
        )


if __name__ == "__main__":
    main()
