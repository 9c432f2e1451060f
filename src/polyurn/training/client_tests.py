"""How a model does on each client's own test points: the mean over clients, and the lowest tenth.

A forecast of one mean hides who is served badly; the spread over clients is forecast as well.
"""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from polyurn.training.engines.worker import Work, per_example
from polyurn.typed.declared import Floats

_LOW = 0.1  # the quantile over clients
_CHUNK = 1_000  # points looked at together


def client_metrics(metrics: Iterable[str]) -> tuple[str, ...]:
    """What the metrics of clients are called.

    >>> client_metrics(["accuracy"])
    ('client accuracy', 'client accuracy, 10th percentile')
    """
    return tuple(f"client {name}{low}" for name in metrics for low in ("", ", 10th percentile"))


class ClientTests:
    """The test points of clients, and what weights come to on them."""

    def __init__(self, work: Work) -> None:
        assert work.clients.test is not None
        self._work, self._tests = work, work.clients.test

    def measure(self, weights: Tensor) -> dict[str, float]:
        """Each metric's mean over clients, and its tenth percentile."""
        work, tests = self._work, self._tests
        state = work.layout.state(weights)
        model, training = work.model, work.model.training
        model.eval()
        try:
            values = [self._values(state, part) for part in _chunks(len(tests.indices))]
        finally:
            model.train(training)
        by_client = np.add.reduceat(np.concatenate(values, axis=1), tests.offsets[:-1], axis=1)
        means = by_client / tests.sizes
        found = np.stack([means.mean(axis=1), np.quantile(means, _LOW, axis=1)], axis=1)
        return dict(zip(client_metrics(work.metrics), found.ravel().tolist(), strict=True))

    def _values(self, state: dict[str, Tensor], part: slice) -> Floats:
        """Each metric of some test points, shape (n_metrics, n_points)."""
        points = self._work.points
        index = torch.from_numpy(self._tests.indices[part]).to(points.device)
        labels = points.labels[index]
        with torch.no_grad():
            outputs = functional_call(self._work.model, state, (points.features[index],))
            return np.stack(
                [
                    per_example(function, outputs, labels).double().cpu().numpy()
                    for function in self._work.metrics.values()
                ]
            )


def _chunks(n_points: int) -> list[slice]:
    return [slice(i, i + _CHUNK) for i in range(0, n_points, _CHUNK)]
