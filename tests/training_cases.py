"""Small data and clients for the tests of training."""

import numpy as np
import torch
from torch import nn

from polyurn.partitioning.result import Partition
from polyurn.training.building import LearningProblem, prepare
from polyurn.training.examples import Examples


def tabular(*, n_points=400, n_features=5, n_classes=3, seed=0):
    """Points whose label is the largest of a few linear functions."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_points + 100, n_features))
    labels = (features @ rng.normal(size=(n_features, n_classes))).argmax(axis=1)
    labels[:n_classes] = range(n_classes)
    return Examples(features[:-100], labels[:-100], features[-100:], labels[-100:])


def images(*, n_points=60, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_points + 20, 1, 8, 8))
    labels = (features.mean(axis=(1, 2, 3)) > 0).astype(int)
    return Examples(features[:-20], labels[:-20], features[-20:], labels[-20:])


def ragged(n_points, sizes, *, seed=0):
    """Clients of these sizes; points may be shared."""
    rng = np.random.default_rng(seed)
    return Partition.from_lists(rng.choice(n_points, size=size, replace=False) for size in sizes)


def one_client(n_points):
    """A client that holds the first points."""
    return Partition.by_owner([0] * n_points)


def doubled(build):
    """The same model in float64, where engines agree to many digits."""
    return lambda: build().double()


class EveryLayer(nn.Module):
    """Convolution, batch norm, dropout and a weight that is used twice."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.dropout = nn.Dropout(0.5)
        self.dense = nn.Linear(3, 3)
        self.out = nn.Linear(3, 2)
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        hidden = self.norm(self.convolution(x)).relu().mean(dim=(2, 3))
        return self.out(self.dropout(self.dense(self.dense(hidden * self.frozen))))


class MovingMean(nn.Module):
    """Re-assigns its buffer in every step instead of changing it in place."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, 3)
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(dim=0)
        return self.out(x - self.mean)


def close(a, b, tolerance=1e-10):
    """Whether two runs came to the same weights, but for rounding."""
    return all(torch.allclose(a.state[name], b.state[name], atol=tolerance) for name in a.state)


def same_bits(a, b):
    """Whether two runs came to the same weights, to the bit."""
    return a.state.keys() == b.state.keys() and all(
        torch.equal(a.state[name], b.state[name]) for name in a.state
    )


def work(model, data):
    """What an engine is opened with, for a single client."""
    clients = one_client(9)
    return prepare(LearningProblem(model, data, metrics={}), clients, seed=0)
