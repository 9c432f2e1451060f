"""What an engine is, and one worker, which trains whole clients one after the other.

An engine answers two questions: what a cohort's mean update is, and how weights do on the test points.
A worker keeps one model, which lives in one flat vector, and nothing else between clients. Several
processes are `worker_pool.py`, all clients at once is `batched.py`, and who is asked when is
`federated.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from polyurn.errors import ParameterError
from polyurn.partitioning.result import Partition
from polyurn.training import schedule
from polyurn.training.engines.vectors import VectorLayout
from polyurn.training.fedavg import FedAvg
from polyurn.training.losses import PerExample
from polyurn.typed.declared import Floats, Ints
from polyurn.wording import counted

TEST_CHUNK = 200  # test points looked at together; the means are sums over these, in order
_SUMS_BYTES = 512 * 2**20  # memory for the sums of blocks of clients
_ALONE = RLock()


@dataclass(frozen=True, eq=False)
class TensorPoints:
    """The examples as tensors on one device, in the model's type."""

    features: Tensor
    labels: Tensor
    test_features: Tensor
    test_labels: Tensor

    @property
    def device(self) -> torch.device:
        return self.features.device


@dataclass(frozen=True, eq=False)
class Work:
    """What every engine needs to know about a run."""

    model: nn.Module
    layout: VectorLayout
    points: TensorPoints
    clients: Partition
    loss: PerExample
    metrics: Mapping[str, PerExample]
    seed: int


class Engine(Protocol):
    """Trains cohorts. Weights are matrices with one row per column of a sweep."""

    name: str

    def mean_updates(
        self, columns: Sequence[FedAvg], weights: Tensor, cohort: Ints, round_: int
    ) -> Tensor:
        """The mean update of a cohort from each row of `weights` (n_columns, size)."""
        ...

    def test_means(self, weights: Tensor) -> Floats:
        """Means over the test points, of shape (n_columns, 1 + n_metrics): loss, metrics."""
        ...


class LocalEngine:
    """One worker, in this process."""

    name = "workers"

    def __init__(self, work: Work) -> None:
        self._work, self._worker = work, Worker(work)

    def mean_updates(
        self, columns: Sequence[FedAvg], weights: Tensor, cohort: Ints, round_: int
    ) -> Tensor:
        """See `Engine`; summed in the cohort's order."""
        totals, part = torch.zeros_like(weights), torch.empty_like(weights[0])
        sizes = self._work.clients.sizes[cohort].tolist()
        for settings, row, total in zip(columns, weights, totals, strict=True):
            members = list(zip(cohort.tolist(), shares(settings, sizes), strict=True))
            for block in blocks(len(members), row.nbytes):
                self._worker.block_sum(settings, row, members[block], round_=round_, out=part)
                total.add_(part)
        return totals

    def test_means(self, weights: Tensor) -> Floats:
        """See `Engine`."""
        n_test = len(self._work.points.test_labels)
        chunks = range(-(-n_test // TEST_CHUNK))
        sums = [[self._worker.test_sums(row, chunk) for chunk in chunks] for row in weights]
        return ordered_sum(sums) / n_test


def ordered_sum(sums: Sequence[Sequence[Sequence[float]]]) -> Floats:
    """The chunks' sums added one after the other: (columns, chunks, values) to (columns, values)."""
    total: Floats = np.cumsum(np.asarray(sums, dtype=np.float64), axis=1)[:, -1]
    return total


class Worker:
    """Trains clients of `work`, whose model it takes over."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._vector = work.layout.pack(work.model).to(work.points.device)
        self._model = work.model.to(work.points.device)
        work.layout.bind(self._model, self._vector)
        self._parameters = [p for p in self._model.parameters() if p.requires_grad]
        self._norms = batch_norms(self._model)

    def block_sum(
        self,
        settings: FedAvg,
        weights: Tensor,
        members: Sequence[tuple[int, float]],
        *,
        round_: int,
        out: Tensor,
    ) -> None:
        """Σ share · (client's weights - weights) over (client, share) pairs, in their order."""
        for i, (client, share) in enumerate(members):
            self._train(settings, weights, round_=round_, client=client)
            if i == 0:
                torch.sub(self._vector, weights, out=out).mul_(share)
            else:
                out.add_(self._vector.sub_(weights), alpha=share)

    def test_sums(self, weights: Tensor, chunk: int) -> list[float]:
        """Sums of the loss and of each metric over one chunk of the test points."""
        work = self._work
        self._load(weights)
        self._model.eval()
        part = slice(chunk * TEST_CHUNK, (chunk + 1) * TEST_CHUNK)
        labels = work.points.test_labels[part]
        with torch.inference_mode():
            # A copy: a model may change its input in place.
            outputs = self._model(work.points.test_features[part].clone())
            sums = [
                per_example(function, outputs, labels).sum(dtype=torch.float64).item()
                for function in (work.loss, *work.metrics.values())
            ]
        work.layout.take_buffers(self._model, self._vector)
        return sums

    def _train(self, settings: FedAvg, weights: Tensor, *, round_: int, client: int) -> None:
        """Local SGD from `weights`; the result stays in the vector."""
        work, held = self._work, self._work.clients[client]
        size, who = np.array([len(held)]), np.array([client])
        self._load(weights)
        self._model.train()
        if len(held) == 1:
            for norm in self._norms:  # a single point has no statistics
                norm.eval()
        lengths = batch_lengths(len(held), settings.batch_size, joined=bool(self._norms))
        anchors = [slot.view(weights) for slot in work.layout.trained]
        torch.manual_seed(schedule.client_stream(seed=work.seed, round_=round_, client=client))
        for order in schedule.orders(settings, size, who, seed=work.seed, round_=round_)[0]:
            index = torch.from_numpy(held[order]).to(work.points.device)
            features, labels = work.points.features[index], work.points.labels[index]
            for x, y in zip(
                torch.split(features, lengths), torch.split(labels, lengths), strict=True
            ):
                self._step(settings, x, y, anchors)
        with torch.no_grad():
            work.layout.take_buffers(self._model, self._vector)

    def _step(self, settings: FedAvg, x: Tensor, y: Tensor, anchors: Sequence[Tensor]) -> None:
        half = settings.precision == "bfloat16"
        with torch.autocast(x.device.type, torch.bfloat16, enabled=half):
            outputs = self._model(x)
        outputs = outputs.float() if half else outputs
        loss = per_example(self._work.loss, outputs, y).mean()
        gradients = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        # One pass over each tensor, as fast as torch.optim.SGD(fused=True), whose import alone
        # takes two seconds of every worker's start.
        with torch.no_grad():
            for parameter, gradient, anchor in zip(
                self._parameters, gradients, anchors, strict=True
            ):
                if settings.proximal:
                    gradient.add_(parameter - anchor, alpha=settings.proximal)
                parameter.add_(gradient, alpha=-settings.local_learning_rate)

    def _load(self, weights: Tensor) -> None:
        self._vector.copy_(weights)
        self._work.layout.load_counters(self._model, self._vector)


def batch_norms(model: nn.Module) -> list[nn.Module]:
    """The layers that need the statistics of a batch."""
    kind = nn.modules.batchnorm._BatchNorm
    return [module for module in model.modules() if isinstance(module, kind)]


def check_cohorts(
    settings: FedAvg, model: nn.Module, clients: Partition, *, name: str = "clients"
) -> None:
    """Refuse cohorts larger than the clients, and batches of one point where batch norm needs more."""
    if settings.cohort_size > len(clients):
        raise ParameterError(
            f"{name}: expected a cohort of at most {counted(len(clients), 'client')}, "
            f"got {settings.cohort_size}"
        )
    norms = batch_norms(model)
    if norms and settings.batch_size == 1:
        raise ParameterError("expected batch_size of at least 2: the model has batch norm")
    if any(getattr(norm, "running_mean", None) is None for norm in norms) and 1 in clients.sizes:
        raise ParameterError(
            "a client holds a single point, and batch norm without running statistics has none for "
            "it: drop clients of one point, or set track_running_stats=True"
        )


def batch_lengths(size: int, batch_size: int, *, joined: bool) -> list[int]:
    """How many points each batch of an epoch has.

    `joined`: a single point that is left over joins the batch before it, as batch norm needs.

    >>> batch_lengths(7, 3, joined=False), batch_lengths(7, 3, joined=True)
    ([3, 3, 1], [3, 4])
    """
    n_full, rest = divmod(size, batch_size)
    lengths = [batch_size] * n_full + [rest] * (rest > 0)
    if joined and rest == 1 and n_full > 0:
        lengths[-2:] = [batch_size + 1]
    return lengths


def per_example(function: PerExample, outputs: Tensor, labels: Tensor) -> Tensor:
    """The values of a loss or metric, which must be one per example."""
    values = function(outputs, labels)
    if not isinstance(values, Tensor) or values.shape != (len(labels),):
        arrived = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ParameterError(
            f"expected {getattr(function, '__name__', 'the loss')} to return one value per "
            f"example, shape ({len(labels)},), got {arrived}: do not average"
        )
    return values


def shares(settings: FedAvg, sizes: Sequence[int]) -> list[float]:
    """The weight of each client of a cohort in the mean of updates."""
    if settings.weighting == "uniform":
        return [1 / len(sizes)] * len(sizes)
    total = sum(sizes)
    return [size / total for size in sizes]


def blocks(cohort_size: int, n_bytes: int) -> list[slice]:
    """How a cohort is cut into blocks whose sums are taken one by one, then added in order.

    It depends on the cohort and on the size of the weights, never on the workers: that is why a sum
    has the same bits for any number of them. One client each, as long as the sums fit into memory.
    """
    n_blocks = min(cohort_size, max(8, _SUMS_BYTES // max(n_bytes, 1)))
    length = -(-cohort_size // n_blocks)
    return [slice(i, min(i + length, cohort_size)) for i in range(0, cohort_size, length)]


@contextmanager
def alone(gpus: Sequence[torch.device] = ()) -> Iterator[None]:
    """Torch's random stream and threads for one run at a time, put back as they were.

    They belong to the process: runs in two of its threads would draw from each other's stream. One torch
    thread, since workers are one per core, and sums on several would differ in their bits.
    """
    with _ALONE, torch.random.fork_rng(gpus):
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
