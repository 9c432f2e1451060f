"""All clients of a cohort at once: one tensor operation serves every client and every column.

For small models, where calling torch costs more than the arithmetic. Clients are stacked along a new
axis with `torch.func.vmap`; clients with less work are padded with points of weight zero, which leave
no trace in a gradient. Layers that mix the points of a batch (batch norm) cannot be padded and are
refused.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from polyurn.training import schedule
from polyurn.training.local import Work, per_example, shares
from polyurn.training.settings import FedAvg

_COPIES_BYTES = 64 * 2**20  # weights of the clients that are trained together
_TEST_BYTES = 16 * 2**20
_LEVELS = 8  # distinct numbers of clients that a step is traced for; those in between are padded

# A step is always the same list of operations, dice included: written down once, vmap's bookkeeping is
# left out of the loop, which halves the time of a small step. Writing it down takes as long as this
# many steps save.
TRACE_AFTER = 50

Gradients = Callable[[list[Tensor], Tensor, Tensor, Tensor], list[Tensor]]


class BatchedEngine:
    """Trains a cohort, and all columns of a sweep, in the same tensor operations."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._model = work.model.to(work.points.device)
        self._traced: dict[int, Gradients] = {}
        self._n_calls: Counter[int] = Counter()

    def mean_updates(
        self, columns: Sequence[FedAvg], weights: Tensor, cohort: NDArray[np.int64], round_: int
    ) -> Tensor:
        """The mean update of a cohort from each row of `weights`.

        Columns must have the same batches: they differ in `COLUMN_FIELDS` only.
        """
        sizes = self._work.holdings.sizes[cohort]
        share = np.stack([shares(settings, sizes.tolist()) for settings in columns], axis=1)
        longest_first = np.argsort(-sizes, kind="stable")
        n_together = max(1, _COPIES_BYTES // weights.nbytes)
        mean = torch.zeros_like(weights)
        torch.manual_seed(schedule.dice(seed=self._work.seed, round_=round_, client=0))
        self._model.train()
        for first in range(0, len(cohort), n_together):
            part = longest_first[first : first + n_together]
            batches = self._batches(columns[0], cohort[part], round_)
            copies = weights.repeat(len(part), 1, 1)
            self._descend(columns, copies, batches)
            copies -= weights
            factors = torch.as_tensor(share[part], dtype=weights.dtype, device=weights.device)
            mean += torch.einsum("kc,kcp->cp", factors, copies)
        return mean

    def test_means(self, weights: Tensor) -> NDArray[np.float64]:
        """Means over the test points, of shape (n_columns, 1 + n_metrics)."""
        points, model = self._work.points, self._model.eval()
        functions = (self._work.loss, *self._work.metrics.values())

        def sums(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            outputs = functional_call(model, parameters, (x,))
            return torch.stack([per_example(f, outputs, y).double().sum() for f in functions])

        names = {slot.name: slot.view(weights) for slot in self._work.layout.trained}
        total = torch.zeros(len(weights), len(functions), dtype=torch.float64)
        width = points.test_features[0].nbytes * len(weights)
        length = min(max(100, _TEST_BYTES // max(width, 1)), 10_000)
        with torch.no_grad():
            for x, y in zip(
                torch.split(points.test_features, length),
                torch.split(points.test_labels, length),
                strict=True,
            ):
                total += vmap(sums, in_dims=(0, None, None))(names, x, y).cpu()
        return total.numpy() / len(points.test_labels)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._traced.clear()

    def _batches(
        self, settings: FedAvg, clients: NDArray[np.int64], round_: int
    ) -> tuple[Tensor, Tensor, list[int]]:
        """The points of every step, what they weigh, and how many clients still have work.

        Clients have decreasing sizes. Returns indices and weights of shape (n_steps, n_clients,
        batch_size), and a list of length n_steps.
        """
        sizes, width = self._work.holdings.sizes[clients], settings.batch_size
        n_batches = -(-sizes // width)
        n_steps = settings.local_epochs * n_batches
        order = schedule.orders(settings, sizes, clients, seed=self._work.seed, round_=round_)
        client, epoch, place = np.nonzero(
            np.broadcast_to(np.arange(sizes[0]) < sizes[:, None, None], order.shape)
        )
        batch, slot = np.divmod(place, width)
        where = (epoch * n_batches[client] + batch, client, slot)
        index = np.zeros((n_steps[0], len(clients), width), dtype=np.int64)
        first = self._work.holdings.offsets[clients]
        index[where] = self._work.holdings.indices[first[client] + order[client, epoch, place]]
        factor = np.zeros(index.shape)
        factor[where] = 1.0 / np.minimum(width, sizes[client] - batch * width)
        active = np.searchsorted(-n_steps, -np.arange(n_steps[0]), side="left")
        device = self._work.points.device
        return (
            torch.from_numpy(index).to(device),
            torch.from_numpy(factor).to(device, self._work.layout.dtype),
            active.tolist(),
        )

    def _descend(
        self, columns: Sequence[FedAvg], copies: Tensor, batches: tuple[Tensor, Tensor, list[int]]
    ) -> None:
        """Local SGD of every copy (n_clients, n_columns, size), in place."""
        index, factor, active = batches
        points, n_columns = self._work.points, len(columns)
        flat = copies.view(-1, copies.shape[-1])
        parameters = [slot.view(flat) for slot in self._work.layout.trained]
        rates = [settings.local_learning_rate for settings in columns]
        proximal = [settings.proximal for settings in columns]
        anchors = [p.clone() for p in parameters] if any(proximal) else None
        rate, pull = (
            torch.tensor(values * len(copies), dtype=flat.dtype, device=flat.device)
            for values in (rates, proximal)
        )
        level = -(-len(copies) // _LEVELS)
        for step, n_active in enumerate(active):
            n_clients = min(-(-n_active // level) * level, len(copies))
            n = n_clients * n_columns
            x = points.features[index[step, :n_clients]]
            y, w = points.labels[index[step, :n_clients]], factor[step, :n_clients]
            if n_columns > 1:
                x, y, w = (t.repeat_interleave(n_columns, dim=0) for t in (x, y, w))
            now = [p[:n] for p in parameters]
            gradients = self._gradients(now, x, y, w)
            if anchors is not None:
                # a client that is done feels no pull either
                felt = pull[:n] * (w.sum(dim=1) > 0)
                gradients = [
                    g + _like(felt, p) * (p - a[:n])
                    for g, p, a in zip(gradients, now, anchors, strict=True)
                ]
            for p, g in zip(now, gradients, strict=True):
                if n_columns == 1:
                    p.add_(g, alpha=-rates[0])
                else:
                    p.addcmul_(g, _like(rate[:n], p), value=-1.0)

    def _gradients(self, parameters: list[Tensor], x: Tensor, y: Tensor, w: Tensor) -> list[Tensor]:
        key = len(x)
        self._n_calls[key] += 1
        if key not in self._traced:
            function = stacked_gradients(self._work)
            if self._n_calls[key] <= TRACE_AFTER:
                return function(parameters, x, y, w)
            self._traced[key] = _traced(function, parameters, x, y, w)
        return self._traced[key](parameters, x, y, w)


def stacked_gradients(work: Work) -> Gradients:
    """Gradients of stacked clients: every argument has the clients as its first axis."""
    names = [slot.name for slot in work.layout.trained]

    def loss(parameters: list[Tensor], x: Tensor, y: Tensor, w: Tensor) -> Tensor:
        outputs = functional_call(work.model, dict(zip(names, parameters, strict=True)), (x,))
        return (per_example(work.loss, outputs, y) * w).sum()

    stacked: Gradients = vmap(grad(loss), randomness="different")
    return stacked


def _traced(function: Gradients, *arguments: Any) -> Gradients:
    """The operations of a call, without those that change nothing."""
    aten = torch.ops.aten
    traced = make_fx(function)(*arguments)
    for node in traced.graph.nodes:
        source = node.args[0] if node.args else None
        if not isinstance(source, torch.fx.Node):
            continue
        reshapes = node.target in (
            aten.expand.default,
            aten.view.default,
            aten._unsafe_view.default,
        )
        same = reshapes and node.meta["val"].shape == source.meta["val"].shape
        if same or (node.target is aten.mul.Scalar and node.args[1] == 1):
            node.replace_all_uses_with(source)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    return cast(Gradients, traced)


def _like(values: Tensor, other: Tensor) -> Tensor:
    """A vector shaped so that it multiplies the first axis of `other`."""
    shape: Any = (-1, *[1] * (other.dim() - 1))
    return values.view(shape)
