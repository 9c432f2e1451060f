"""The protocol of an engine, and the simplest one: clients one after the other, in this process.

An engine answers two questions: what a cohort's mean update is, and how weights do on the test points.
Several processes are `worker_pool.py`, all clients at once is `batched.py`, and who is asked when is
`federated.py`.
"""

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from polyurn.training.engines.worker import TEST_CHUNK, Work, Worker, blocks, shares
from polyurn.training.fedavg import FedAvg
from polyurn.typed.declared import Floats, Ints


class Engine(Protocol):
    """Trains cohorts. Weights are matrices with one row per column of a sweep."""

    def mean_updates(
        self, columns: Sequence[FedAvg], weights: Tensor, cohort: Ints, round_: int
    ) -> Tensor:
        """The mean update of a cohort from each row of `weights` (n_columns, size)."""
        ...

    def test_means(self, weights: Tensor) -> Floats:
        """Means over the test points, of shape (n_columns, 1 + n_metrics): loss, metrics."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class LocalEngine:
    """One worker, in this process."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._worker = Worker(work)

    def mean_updates(
        self, columns: Sequence[FedAvg], weights: Tensor, cohort: Ints, round_: int
    ) -> Tensor:
        """The mean update of a cohort from each row of `weights`, summed in the cohort's order."""
        totals, part = torch.zeros_like(weights), torch.empty_like(weights[0])
        sizes = self._work.clients.sizes[cohort].tolist()
        for settings, row, total in zip(columns, weights, totals, strict=True):
            members = list(zip(cohort.tolist(), shares(settings, sizes), strict=True))
            for block in blocks(len(members), row.nbytes):
                self._worker.block_sum(settings, row, members[block], round_=round_, out=part)
                total.add_(part)
        return totals

    def test_means(self, weights: Tensor) -> Floats:
        """Means over the test points, of shape (n_columns, 1 + n_metrics)."""
        n_test = len(self._work.points.test_labels)
        sums = [
            [self._worker.test_sums(row, chunk) for chunk in range(-(-n_test // TEST_CHUNK))]
            for row in weights
        ]
        return ordered_sum(sums) / n_test

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def ordered_sum(sums: Sequence[Sequence[Sequence[float]]]) -> Floats:
    """The chunks' sums added one after the other: (columns, chunks, values) to (columns, values)."""
    table = np.asarray(sums, dtype=np.float64)
    total = np.zeros((table.shape[0], table.shape[2]))
    for chunk in range(table.shape[1]):
        total += table[:, chunk]
    return total
