"""A pfl-research training script that a sweep of polyurn's runs, on clients that polyurn simulates.

    pip install polyurn 'pfl>=0.6' scikit-learn torch     # an environment of its own: pfl_dataset.py
    python examples/pfl_trainer.py --partition clients.json --metrics out.jsonl --learning-rate 0.1

`--partition` is what `polyurn partition` writes, with row numbers of the first 1,437 digits that come
with scikit-learn; the other 360 are the test's. A line of JSON for each evaluation goes to `--metrics`.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from pfl_dataset import federated_dataset
from sklearn.datasets import load_digits
from torch import Tensor, nn

import polyurn as pu

N_TRAIN = 1437


def main() -> None:
    """Federated averaging, as pfl's documentation writes it."""
    given = arguments()
    np.random.seed(given.seed)  # noqa: NPY002 - pfl draws from the global state
    torch.manual_seed(given.seed)
    images, labels = load_digits(return_X_y=True)
    points = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    users = federated_dataset(
        [part[:N_TRAIN] for part in points], pu.load_partition(given.partition), sampling="random"
    )
    module = Classifier()
    model = PyTorchModel(
        model=module,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
    )
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=given.rounds,
            evaluation_frequency=given.rounds,
            train_cohort_size=given.cohort_size,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=users, val_data=users),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=given.local_epochs,
            local_learning_rate=given.learning_rate,
            local_batch_size=given.batch_size,
        ),
        callbacks=[Reports(given.metrics, [part[N_TRAIN:] for part in points])],
    )


def arguments() -> argparse.Namespace:
    """What a sweep sets; names of options are those of its settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partition", type=Path, required=True)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--local-epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--cohort-size", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=10)
    return parser.parse_args()


class Classifier(nn.Module):
    """A perceptron with the two functions that pfl asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """What clients minimise."""
        return nn.functional.cross_entropy(self.layers(images), labels)

    @torch.no_grad()
    def metrics(self, images: Tensor, labels: Tensor) -> dict[str, Weighted]:
        """What pfl reports of clients."""
        total = self.loss(images, labels).item() * len(labels)
        return {"loss": Weighted(total, len(labels))}


class Reports(TrainingProcessCallback):
    """Appends loss and accuracy on the test points after each round."""

    def __init__(self, path: Path, test: list[Tensor]) -> None:
        self.path, self.test = path, test

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """A line of JSON; rounds are counted from 1."""
        images, labels = self.test
        with torch.no_grad():
            logits = model.pytorch_model.layers(images)
        report = {
            "round": central_iteration + 1,
            "loss": nn.functional.cross_entropy(logits, labels).item(),
            "accuracy": (logits.argmax(1) == labels).float().mean().item(),
        }
        with self.path.open("a") as file:
            file.write(json.dumps(report) + "\n")
        return False, Metrics()


if __name__ == "__main__":
    main()
