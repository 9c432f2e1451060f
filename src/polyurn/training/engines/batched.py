"""The batched engine: one tensor operation (`torch.func.vmap`) serves every client of a cohort.

For small models, where calling torch costs more than the arithmetic. Clients are stacked along a new
axis with `torch.func.vmap`; clients with less work are padded with points of weight zero, which leave
no trace in a gradient. Layers that mix the points of a batch (batch norm) cannot be padded and are
refused.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from polyurn.training import schedule
from polyurn.training.engines.worker import Work, per_example, shares
from polyurn.training.fedavg import FedAvg
from polyurn.typed.declared import Floats, Ints

# Memory of the clients that are trained together: their weights, the activations of one step, and the
# list of all their points.
_COPIES_BYTES = 64 * 2**20
_STEP_BYTES = 256 * 2**20
_LIST_BYTES = 16 * 2**20
_TEST_BYTES = 64 * 2**20
_MOST_COLUMNS = 16  # reckoned with, whatever their number: a run must not depend on those beside it
_LEVELS = 8  # distinct numbers of clients that a step is traced for; those in between are padded

# A step is always the same list of operations, random draws included: written down once, vmap's
# bookkeeping is left out of the loop, which halves the time of a small step. Writing it down takes as
# long as this many steps save.
TRACE_AFTER = 50

_aten = torch.ops.aten
_RESHAPES = (_aten.expand.default, _aten.view.default, _aten._unsafe_view.default)

Gradients = Callable[[list[Tensor], Tensor, Tensor, Tensor], list[Tensor]]


class BatchedEngine:
    """Trains a cohort, and all columns of a sweep, in the same tensor operations."""

    name = "batched"

    def __init__(self, work: Work) -> None:
        self._work = work
        self._model = work.model.to(work.points.device)
        self._point_bytes = activation_bytes(work)
        self._traced: dict[tuple[int, ...], Gradients] = {}
        self._n_calls: Counter[tuple[int, ...]] = Counter()

    def mean_updates(
        self, columns: Sequence[FedAvg], weights: Tensor, cohort: Ints, round_: int
    ) -> Tensor:
        """See `Engine`. Columns must have the same batches: they differ in `COLUMN_FIELDS` only."""
        sizes = self._work.clients.sizes[cohort]
        share = np.stack([shares(settings, sizes.tolist()) for settings in columns], axis=1)
        longest_first = np.argsort(-sizes, kind="stable")
        mean = torch.zeros_like(weights)
        torch.manual_seed(schedule.client_stream(seed=self._work.seed, round_=round_, client=0))
        self._model.train()
        for cut in parts(
            sizes[longest_first],
            columns[0],
            copy_bytes=weights[0].nbytes,
            point_bytes=self._point_bytes,
        ):
            part = longest_first[cut]
            batches = self._batches(columns[0], cohort[part], round_)
            copies = weights.repeat(len(part), 1, 1)
            self._descend(columns, copies, weights, batches)
            copies -= weights
            factors = torch.as_tensor(share[part], dtype=weights.dtype, device=weights.device)
            mean += torch.einsum("kc,kcp->cp", factors, copies)
        return mean

    def test_means(self, weights: Tensor) -> Floats:
        """See `Engine`."""
        points, model = self._work.points, self._model.eval()
        functions = (self._work.loss, *self._work.metrics.values())

        def sums(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            outputs = functional_call(model, parameters, (x,))
            return torch.stack([per_example(f, outputs, y).double().sum() for f in functions])

        names = {slot.name: slot.view(weights) for slot in self._work.layout.trained}
        total = torch.zeros(len(weights), len(functions), dtype=torch.float64)
        length = min(max(1, _TEST_BYTES // (self._point_bytes * len(weights))), 10_000)
        with torch.no_grad():
            for x, y in zip(
                torch.split(points.test_features, length),
                torch.split(points.test_labels, length),
                strict=True,
            ):
                total += vmap(sums, in_dims=(0, None, None))(names, x, y).cpu()
        return total.numpy() / len(points.test_labels)

    def _batches(
        self, settings: FedAvg, clients: Ints, round_: int
    ) -> tuple[Tensor, Tensor, list[int]]:
        """The points of every step, what they weigh, and how many clients still have work.

        Clients have decreasing sizes. Returns indices and weights of shape (n_steps, n_clients,
        width of the widest batch), and a list of length n_steps.
        """
        sizes = self._work.clients.sizes[clients]
        width = min(settings.batch_size, int(sizes[0]))
        n_batches = -(-sizes // width)
        n_steps = settings.local_epochs * n_batches
        order = schedule.orders(settings, sizes, clients, seed=self._work.seed, round_=round_)
        client, epoch, position = np.nonzero(
            np.broadcast_to(np.arange(sizes[0]) < sizes[:, None, None], order.shape)
        )
        batch, slot = np.divmod(position, width)
        where = (epoch * n_batches[client] + batch, client, slot)
        first = self._work.clients.offsets[clients]
        padding = self._work.clients.indices[first]  # a point of its own: others may be anything
        index = np.tile(padding[:, None], (n_steps[0], 1, width))
        index[where] = self._work.clients.indices[first[client] + order[client, epoch, position]]
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
        self,
        columns: Sequence[FedAvg],
        copies: Tensor,
        weights: Tensor,
        batches: tuple[Tensor, Tensor, list[int]],
    ) -> None:
        """Local SGD of every copy (n_clients, n_columns, size) of the weights, in place."""
        index, factor, active = batches
        points, slots = self._work.points, self._work.layout.trained
        rates = [settings.local_learning_rate for settings in columns]
        pulls = [settings.proximal for settings in columns]
        if len(columns) == 1:  # one axis less is faster
            copies, weights = copies[:, 0], weights[0]
        shape = copies.shape[1:-1]
        rate, pull = (
            torch.tensor(values, dtype=copies.dtype, device=copies.device).reshape(shape)
            for values in (rates, pulls)
        )
        anchors = [slot.view(weights) for slot in slots] if any(pulls) else None
        level = -(-len(copies) // _LEVELS)
        n, now = 0, list[Tensor]()
        for step, n_active in enumerate(active):
            before, n = n, min(-(-n_active // level) * level, len(copies))
            if n != before:
                now = [slot.view(copies[:n]) for slot in slots]
            x, y = (_taken(t, index[step, :n]) for t in (points.features, points.labels))
            w = factor[step, :n]
            gradients = self._gradients(len(columns), now, x, y, w)
            if anchors is not None:
                # a client that is done feels no pull either
                felt = _like(w.sum(dim=1) > 0, copies[:n, ..., 0]) * pull
                gradients = [
                    g + _like(felt, p) * (p - a)
                    for g, p, a in zip(gradients, now, anchors, strict=True)
                ]
            for p, g in zip(now, gradients, strict=True):
                if len(columns) == 1:
                    p.add_(g, alpha=-rates[0])
                else:
                    p.addcmul_(g, _like(rate.unsqueeze(0), p), value=-1.0)

    def _gradients(
        self, n_columns: int, parameters: list[Tensor], x: Tensor, y: Tensor, w: Tensor
    ) -> list[Tensor]:
        key = (n_columns, *w.shape)
        self._n_calls[key] += 1
        if key not in self._traced:
            function = stacked_gradients(self._work, several=n_columns > 1)
            if self._n_calls[key] <= TRACE_AFTER:
                return function(parameters, x, y, w)
            self._traced[key] = _traced(function, parameters, x, y, w)
        return self._traced[key](parameters, x, y, w)


def parts(sizes: Ints, settings: FedAvg, *, copy_bytes: int, point_bytes: int) -> list[slice]:
    """Clients of decreasing sizes, shape (n_clients,), cut into those that are trained together.

    `copy_bytes` is the memory of the weights, `point_bytes` that of the activations of a point.
    """
    cut, first = [], 0
    while first < len(sizes):
        largest = int(sizes[first])
        width = min(settings.batch_size, largest)
        n = min(
            _COPIES_BYTES // (copy_bytes * _MOST_COLUMNS),
            _STEP_BYTES // (width * point_bytes * _MOST_COLUMNS),
            _LIST_BYTES // (8 * settings.local_epochs * largest),
        )
        cut.append(slice(first, min(first + max(n, 1), len(sizes))))
        first = cut[-1].stop
    return cut


def activation_bytes(work: Work) -> int:
    """Memory that the layers' inputs and outputs take for one point, tried on one."""
    point = work.points.test_features[:1].clone()
    n_bytes = [point.nbytes]

    def measure(_: object, __: object, output: object) -> None:
        if isinstance(output, Tensor):
            n_bytes.append(output.nbytes)

    layers = [m for m in work.model.modules() if not any(m.children())]
    hooks = [layer.register_forward_hook(measure) for layer in layers]
    try:
        with torch.no_grad():
            work.model.eval()(point)
    finally:
        for hook in hooks:
            hook.remove()
    return max(sum(n_bytes), 1)


def stacked_gradients(work: Work, *, several: bool) -> Gradients:
    """Gradients of stacked clients.

    Every argument has the clients as its first axis; with `several` columns, the parameters have those
    as their second. Clients draw on their own; all columns of a client see the same draws, so that a run
    does not depend on those beside it.
    """
    names = [slot.name for slot in work.layout.trained]

    def loss(parameters: list[Tensor], x: Tensor, y: Tensor, w: Tensor) -> Tensor:
        outputs = functional_call(work.model, dict(zip(names, parameters, strict=True)), (x,))
        return (per_example(work.loss, outputs, y) * w).sum()

    one = grad(loss)
    if several:
        one = vmap(one, in_dims=(0, None, None, None), randomness="same")
    stacked: Gradients = vmap(one, randomness="different")
    return stacked


def _traced(function: Gradients, *arguments: Any) -> Gradients:
    """The operations of a call, without those that change nothing."""
    traced = make_fx(function)(*arguments)
    ones = {
        one
        for node in traced.graph.nodes
        if node.target is _aten.ones_like.default
        for one in _only_multiplied(node)
    }
    for node in traced.graph.nodes:
        kept = _same_as(node, ones)
        if kept is not None:
            node.replace_all_uses_with(kept)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    return cast(Gradients, traced.forward)


def _only_multiplied(node: torch.fx.Node) -> list[torch.fx.Node]:
    """A tensor and its views, if they are used as factors only: nothing can be written into them."""
    found = [node]
    for user in node.users:
        if user.target in _RESHAPES:
            more = _only_multiplied(user)
            if not more:
                return []
            found += more
        elif user.target is not _aten.mul.Tensor:
            return []
    return found


def _same_as(node: torch.fx.Node, ones: Set[torch.fx.Node]) -> torch.fx.Node | None:
    """The input that an operation returns as it is, if there is one.

    A loss's own gradient is one, so that what follows from its value alone falls away with it.
    """
    inputs = [argument for argument in node.args if isinstance(argument, torch.fx.Node)]

    def like(other: torch.fx.Node) -> bool:
        mine, its = node.meta["val"], other.meta["val"]
        return bool(mine.shape == its.shape and mine.dtype == its.dtype)

    if node.target in _RESHAPES and like(inputs[0]):
        return inputs[0]
    if node.target is _aten.mul.Scalar and node.args[1] == 1 and like(inputs[0]):
        return inputs[0]
    if node.target is _aten.mul.Tensor and len(inputs) == 2:
        for one, other in (inputs, reversed(inputs)):
            if one in ones and like(other):
                return other
    return None


def _taken(points: Tensor, index: Tensor) -> Tensor:
    """`points[index]`, faster."""
    rows = torch.index_select(points, 0, index.reshape(-1))
    return rows.view(*index.shape, *points.shape[1:])


def _like(values: Tensor, other: Tensor) -> Tensor:
    """Values shaped so that they multiply the first axes of `other`."""
    shape: Any = (*values.shape, *[1] * (other.dim() - values.dim()))
    return values.view(shape)
