"""The data, the network and the training loop."""

from functools import cache

import numpy as np
import torch
from flwr_datasets.partitioner import IidPartitioner, Partitioner
from sklearn.datasets import load_digits
from torch import nn

from datasets import Dataset
from polyurn.integrations.flwr_datasets import partitioner_from_environment

N_TRAIN = 1437  # the first points are the clients', the others the test's


def network(seed: int) -> nn.Module:
    """A perceptron with one hidden layer."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


@cache
def points() -> tuple[np.ndarray, np.ndarray]:
    """All images, with values from 0 to 1, and their labels."""
    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype(np.float32), labels.astype(np.int64)


@cache
def clients() -> Partitioner:
    """Who holds which of the training points."""
    images, labels = points()
    partitioner = partitioner_from_environment(IidPartitioner(num_partitions=40))  # the one line
    partitioner.dataset = Dataset.from_dict(
        {"image": images[:N_TRAIN], "label": labels[:N_TRAIN]}
    ).with_format("torch")
    return partitioner


def train(
    model: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    *,
    epochs: int,
    rate: float,
    batch: int,
) -> float:
    """A client's epochs of SGD, over its points in an order of chance; returns the last loss."""
    optimizer, loss = torch.optim.SGD(model.parameters(), lr=rate), torch.tensor(0.0)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(batch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
    return loss.item()


def test(model: nn.Module) -> dict[str, float]:
    """Loss and accuracy on the test points."""
    images, labels = (torch.from_numpy(part[N_TRAIN:]) for part in points())
    with torch.no_grad():
        logits = model(images)
    return {
        "loss": float(nn.functional.cross_entropy(logits, labels)),
        "accuracy": float((logits.argmax(1) == labels).float().mean()),
    }
