"""pfl on the work of `training_speed.py`: federated averaging as its documentation writes it.

    python pfl_training.py work.pt 1 3                          # one process, torch's own threads
    torchrun --nproc-per-node 2 pfl_training.py work.pt 1 3     # one process per core

One warm-up round and three that count; one JSON object on the last line.
"""

import json
import os
import sys

import numpy as np
import torch
from clock import Clock
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn


def main(path: str, n_warm_up: int, n_rounds: int) -> None:
    """Train, and print what it took."""
    work = torch.load(path, weights_only=False)
    x, y, clients = work["features"], work["labels"], range(work["n_clients"])
    np.random.seed(0)  # noqa: NPY002 (pfl draws from it, and all processes must draw the same)
    module = Module(work["model"])
    model = PyTorchModel(
        model=module,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
    )
    points = zip(x.chunk(len(clients)), y.chunk(len(clients)), strict=True)
    datasets = {client: Dataset(list(pair)) for client, pair in zip(clients, points, strict=True)}
    population = FederatedDataset(
        datasets.__getitem__, get_user_sampler("minimize_reuse", list(clients))
    )
    launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else os.getpid()
    rounds = Rounds(launcher)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=n_warm_up + n_rounds,
            evaluation_frequency=n_warm_up + n_rounds,  # the first round, which is not counted
            train_cohort_size=len(clients),
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=population, val_data=population),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=work["epochs"],
            local_learning_rate=work["rate"],
            local_batch_size=work["batch_size"],
        ),
        callbacks=[rounds],
    )
    if int(os.environ.get("RANK", "0")) > 0:
        return
    n_steps = module.n_steps * int(os.environ.get("WORLD_SIZE", "1"))
    with torch.no_grad():
        loss = module.loss(x, y).item()
    record = {
        "seconds": rounds.clock.seconds[n_warm_up:],
        "processor_seconds": rounds.clock.processor_seconds[n_warm_up:],
        "loss": loss,
        "n_steps": n_steps,
        "n_threads": torch.get_num_threads(),
    }
    print(json.dumps(record), flush=True)


class Module(nn.Module):
    """A model with the two functions that pfl asks for; it counts its steps."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.n_steps = model, 0

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        self.n_steps += self.training
        return nn.functional.cross_entropy(self.model(x), y)

    @torch.no_grad()
    def metrics(self, x: Tensor, y: Tensor) -> dict[str, Weighted]:
        total = nn.functional.cross_entropy(self.model(x), y, reduction="sum").item()
        return {"loss": Weighted(total, len(y))}


class Rounds(TrainingProcessCallback):
    """Reads the clock at the end of each round."""

    def __init__(self, root: int) -> None:
        self.clock = Clock(root)

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        del aggregate_metrics, model, central_iteration
        self.clock.mark()
        return False, Metrics()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
