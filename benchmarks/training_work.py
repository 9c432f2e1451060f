"""The work of `training_speed.py`: models, clients, our engines, and loops without any library.

Nothing is measured here.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from peers.clock import Clock
from peers.environments import Block
from polyurn.partitioning.result import Partition
from polyurn.training.building import LearningProblem, prepare
from polyurn.training.engines.choice import open_engine
from polyurn.training.engines.worker import Engine, Work
from polyurn.training.examples import Examples
from polyurn.training.fedavg import EngineName, FedAvg
from polyurn.training.networks import convolutional, perceptron, softmax_regression
from polyurn.training.server_optimizer import Server

N_CLASSES, CLIENT_SIZE, BATCH_SIZE, RATE = 62, 100, 10, 0.01
MODELS = {"softmax": softmax_regression, "mlp": perceptron, "cnn": convolutional}


@dataclass(frozen=True)
class Case:
    """A model and its clients."""

    model: str
    shape: tuple[int, ...]
    n_clients: int = 50
    epochs: int = 1

    def build(self) -> nn.Module:
        return MODELS[self.model](self.shape, N_CLASSES)

    @property
    def settings(self) -> FedAvg:
        return FedAvg(
            n_rounds=1,
            cohort_size=self.n_clients,
            local_epochs=self.epochs,
            local_learning_rate=RATE,
            batch_size=BATCH_SIZE,
        )

    @property
    def n_steps(self) -> int:
        """Of all clients, in one round."""
        return self.n_clients * self.epochs * CLIENT_SIZE // BATCH_SIZE


CNN = Case("cnn", (1, 28, 28))
SMALL = (Case("softmax", (16,)), Case("mlp", (16,)))


def make_data(case: Case) -> tuple[Examples, Partition]:
    """Points without any structure: only time is measured."""
    rng = np.random.default_rng(0)
    n_points = case.n_clients * CLIENT_SIZE
    features = rng.normal(size=(n_points, *case.shape)).astype(np.float32)
    labels = rng.integers(0, N_CLASSES, n_points)
    clients = Partition.by_owner(np.arange(n_points) // CLIENT_SIZE)
    return Examples(features, labels, features[:100], labels[:100]), clients


# ------------------------------------------------------------------------------------- ours


@dataclass(frozen=True, eq=False)
class Ours:
    """An open engine of ours, with the first weights."""

    case: Case
    engine: Engine
    work: Work
    start: Tensor

    def one_round(self) -> Tensor:
        """The mean update of all clients from the first weights."""
        cohort = np.arange(self.case.n_clients)
        return self.engine.mean_updates([self.case.settings], self.start, cohort, 1)

    def block(self, *, n_warm_up: int, n_rounds: int) -> Block:
        """Rounds from the first weights on, the server's steps included."""
        weights, cohort = self.start.clone(), np.arange(self.case.n_clients)
        server = Server(self.case.settings, self.work.layout, weights[0])
        clock = Clock(os.getpid())
        for round_ in range(1, n_warm_up + n_rounds + 1):
            update = self.engine.mean_updates([self.case.settings], weights, cohort, round_)
            server.step(update[0])
            clock.mark()
        return Block(
            seconds=clock.seconds[n_warm_up:],
            processor_seconds=clock.processor_seconds[n_warm_up:],
            loss=self._loss(weights[0]),
            n_steps=self.case.n_steps * (n_warm_up + n_rounds),
            n_threads=1,
        )

    def save(self, path: Path) -> None:
        """The same work for a peer: a model of torch's own layers with the same first weights."""
        path.parent.mkdir(parents=True, exist_ok=True)
        work = {
            "model": self._model(self.start[0]),
            "features": self.work.points.features,
            "labels": self.work.points.labels,
            "n_clients": self.case.n_clients,
            "epochs": self.case.epochs,
            "rate": RATE,
            "batch_size": BATCH_SIZE,
        }
        torch.save(work, path)

    def _model(self, weights: Tensor) -> nn.Module:
        model = self.case.build()
        model.load_state_dict(self.work.layout.state(weights))
        return model

    def _loss(self, weights: Tensor) -> float:
        points = self.work.points
        with torch.no_grad():
            outputs = self._model(weights)(points.features)
        return nn.functional.cross_entropy(outputs, points.labels).item()


@contextmanager
def opened(case: Case, engine: EngineName, n_workers: int) -> Iterator[Ours]:
    """An engine on the CPU."""
    data, clients = make_data(case)
    work = prepare(LearningProblem(case.build, data, metrics={}, device="cpu"), clients, seed=0)
    start = work.layout.pack(work.model)[None].clone()
    with open_engine(engine, work, case.settings, n_workers=n_workers) as found:
        yield Ours(case, found, work, start)


# ---------------------------------------------------------------------------- the bare loops


class Loop:
    """What one writes without a library: clients one after the other, and the mean of their weights."""

    def __init__(self, case: Case, kind: str) -> None:
        self.case, self.model = case, case.build()
        data, _ = make_data(case)
        self.features = torch.from_numpy(data.features)
        self.labels = torch.from_numpy(data.labels)
        if kind == "tuned":
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE, fused=kind == "tuned")
        self.start = {name: value.clone() for name, value in self.model.state_dict().items()}

    def clients(self, numbers: Iterable[int]) -> None:
        total = {name: torch.zeros_like(value) for name, value in self.start.items()}
        for client in numbers:
            self.model.load_state_dict(self.start)
            points = torch.arange(client * CLIENT_SIZE, (client + 1) * CLIENT_SIZE)
            for _ in range(self.case.epochs):
                order = points[torch.randperm(CLIENT_SIZE)]
                for batch in order.split(BATCH_SIZE):
                    self.optimizer.zero_grad()
                    outputs = self.model(self.features[batch])
                    nn.functional.cross_entropy(outputs, self.labels[batch]).backward()
                    self.optimizer.step()
            for name, value in self.model.state_dict().items():
                total[name] += value


LOOP: Loop | None = None  # each process of a pool has its own


def prepare_loop(case: Case, kind: str) -> None:
    """What a process of the bare loop does once."""
    global LOOP  # noqa: PLW0603
    torch.set_num_threads(1)
    LOOP = Loop(case, kind)


def loop_clients(numbers: Iterable[int]) -> None:
    """Train some clients in a process of the bare loop."""
    assert LOOP is not None
    LOOP.clients(numbers)


# ----------------------------------------------------------------------------- the arithmetic


def flops(case: Case) -> float:
    """Multiplications and additions of one round.

    Backward takes twice as many as forward, but for the first layer, whose input needs no gradient.
    """
    model, total = case.build(), 0
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]

    def count(module: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        per_output = module.weight[0].numel()  # type: ignore[operator, index, union-attr]
        total += (2 if module is layers[0] else 3) * 2 * per_output * output.numel()

    for layer in layers:
        layer.register_forward_hook(count)
    model(torch.zeros(1, *case.shape))
    return float(total) * case.n_clients * case.epochs * CLIENT_SIZE
