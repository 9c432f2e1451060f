"""Federated averaging: rounds of cohorts, a server step after each, and a learning curve.

This is the algorithm; how a cohort is trained is an engine's business (`engines/`), and who the
clients are was decided before.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from polyurn.errors import MissingDependencyError, TrainingError
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import Count

try:
    import torch
    from torch import Tensor
    from torch.func import functional_call
except ImportError as error:
    raise MissingDependencyError("torch", "train", "federated training") from error

from polyurn.partitioning.result import Partition
from polyurn.training import schedule
from polyurn.training.building import LearningProblem, prepare
from polyurn.training.engines.choice import open_engine
from polyurn.training.engines.worker import Engine, Work, alone, check_cohorts, per_example
from polyurn.training.examples import Examples, check_clients
from polyurn.training.fedavg import EngineName, Evaluation, FedAvg
from polyurn.training.losses import PerExample, cross_entropy
from polyurn.training.networks import ModelFunction
from polyurn.training.server_optimizer import Server, check_server
from polyurn.typed.declared import AtLeast, Ints

_LOW = 0.1  # the quantile over clients
_CHUNK = 1_000  # clients' test points that are looked at together


@checked
@dataclass(frozen=True, eq=False)
class Run:
    """What training came to.

    Attributes
    ----------
    settings : FedAvg
    seed : int
    engine : {"workers", "batched"}
    curve : tuple of Evaluation
        The learning curve; shorter if the run diverged or was stopped.
    diverged_at : int or None
        The round after which a weight, or the loss, was not a finite number; training stopped there.
    seconds : float
    metric_names : tuple of str
    state : dict of str to tensor
        The last weights, for `module.load_state_dict(state)`.
    """

    settings: FedAvg
    seed: int
    engine: str
    curve: tuple[Evaluation, ...]
    diverged_at: int | None
    seconds: float
    metric_names: tuple[str, ...]
    state: Mapping[str, Tensor] = field(repr=False)

    @property
    def diverged(self) -> bool:
        return self.diverged_at is not None

    @property
    def rounds(self) -> list[int]:
        return [point.round for point in self.curve]

    @property
    def loss(self) -> list[float]:
        """The test loss after each of `rounds`."""
        return [point.loss for point in self.curve]

    @property
    def metrics(self) -> dict[str, list[float]]:
        """Each metric after each of `rounds`."""
        return {name: [point.metrics[name] for point in self.curve] for name in self.metric_names}

    @property
    def final(self) -> dict[str, float]:
        """The metrics after the last round; NaN if the run diverged."""
        if self.diverged:
            return dict.fromkeys(self.metric_names, float("nan"))
        return dict(self.curve[-1].metrics)


@checked
def train(
    settings: FedAvg,
    model: ModelFunction | str,
    data: Examples,
    clients: Partition,
    *,
    seed: Count,
    loss: PerExample = cross_entropy,
    metrics: Mapping[str, PerExample] | None = None,
    n_workers: Annotated[int, AtLeast(1)] | None = None,
    engine: EngineName = "auto",
    device: str | None = None,
    on_round: Callable[[Evaluation], object] | None = None,
) -> Run:
    """Train a model with federated averaging on clients that are played here.

    Parameters
    ----------
    settings : FedAvg
    model : function without arguments that returns a torch.nn.Module, or "softmax", "mlp" or "cnn"
    data : Examples
    clients : Partition
        Which points of `data` each client holds, from `partition` for instance, or
        `Partition.by_owner`.
    seed : int
        Decides the first weights, the cohorts, the batches and the clients' random streams. The same
        seed gives the same bits for any number of workers, and the same numbers up to rounding on the
        other engine; a model with dropout draws otherwise there.
    loss : function (outputs, labels) → one value per example
        Its mean over a batch is minimised.
    metrics : mapping of str to such functions
        {"accuracy": accuracy} by default; their means over the test points make the curves. Where
        clients have test points of their own (`Partition.with_test`), "client accuracy" is the mean
        over clients, and "client accuracy, 10th percentile" what nine of ten clients reach.
    n_workers : int, optional
        Processes of the engine "workers": one per core by default, one on a GPU. 1 stays in this
        process.
    engine : {"auto", "workers", "batched"}
        Whole clients in single-threaded workers, or all clients at once for small models.
    device : str, optional
        A torch device; a GPU by default if torch sees one.
    on_round : function of an Evaluation, optional
        Called after each round that is evaluated. If it returns True, or raises, training stops.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 2))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> data = Examples(x[:200], y[:200], x[200:], y[200:])
    >>> clients = Partition.by_owner(np.arange(200) // 10)
    >>> settings = FedAvg(n_rounds=20, cohort_size=10, local_learning_rate=0.5)
    >>> run = train(settings, "softmax", data, clients, seed=0)
    >>> run.engine, run.rounds, run.final["accuracy"] > 0.9
    ('batched', [10, 20], True)
    """
    report = None if on_round is None else lambda _, evaluation: on_round(evaluation)
    given: dict[str, Any] = {} if metrics is None else {"metrics": metrics}
    return train_columns(
        [settings], LearningProblem(model, data, loss, engine=engine, device=device, **given),
        check_clients(clients, n_points=len(data)), seed=seed, n_workers=n_workers, on_round=report,
    )[0]  # fmt: skip


def train_columns(
    columns: Sequence[FedAvg],
    problem: LearningProblem,
    clients: Partition,
    *,
    seed: int,
    n_workers: int | None = None,
    on_round: Callable[[int, Evaluation], object] | None = None,
) -> list[Run]:
    """`train` for settings that share their cohorts and batches: the columns of a sweep.

    They may differ in `COLUMN_FIELDS` only. On the engine "batched" they are trained side by side.
    `on_round` also takes the index of the column; True stops all of them.
    """
    started = time.perf_counter()
    settings = columns[0]
    work = prepare(problem, clients, seed=seed)
    check_cohorts(settings, work.model, clients)
    weights = work.layout.pack(work.model).to(work.points.device).repeat(len(columns), 1)
    for column in columns:
        check_server(column, work.layout, weights[0])
    names = (*work.metrics, *(client_metrics(work.metrics) if clients.test is not None else ()))
    trained = _Columns(columns, work, weights)
    with (
        _memory_errors(),
        alone([work.points.device] if work.points.device.type == "cuda" else []),
        open_engine(problem.engine, work, settings, n_workers=n_workers) as trainer,
    ):
        for round_ in range(1, settings.n_rounds + 1):
            cohort = schedule.cohort(settings, len(clients), seed=seed, round_=round_)
            trained.step(trainer, cohort, round_)
            if not trained.live:
                break
            if settings.evaluates(round_) and trained.evaluate(trainer, round_, on_round):
                break
    seconds = (time.perf_counter() - started) / len(columns)
    return [
        Run(
            settings=column,
            seed=seed,
            engine=trainer.name,
            curve=tuple(curve),
            diverged_at=trained.diverged_at.get(c),
            seconds=seconds,
            metric_names=names,
            state=work.layout.state(row.cpu()),
        )
        for c, (column, curve, row) in enumerate(zip(columns, trained.curves, weights, strict=True))
    ]


class _Columns:
    """Columns in training: weights of shape (n_columns, size), server optimisers and learning curves."""

    def __init__(self, columns: Sequence[FedAvg], work: Work, weights: Tensor) -> None:
        self._columns, self._work, self._weights = columns, work, weights
        # A server's step changes its row of the weights in place.
        rows = zip(columns, weights, strict=True)
        self._servers = [Server(column, work.layout, row) for column, row in rows]
        self.curves: list[list[Evaluation]] = [[] for _ in columns]
        self.diverged_at: dict[int, int] = {}

    @property
    def live(self) -> list[int]:
        """The columns that have not diverged."""
        return [c for c in range(len(self._columns)) if c not in self.diverged_at]

    def step(self, engine: Engine, cohort: Ints, round_: int) -> None:
        live = self.live
        settings = [self._columns[c] for c in live]
        updates = engine.mean_updates(settings, self._weights[live], cohort, round_)
        for c, update in zip(live, updates, strict=True):
            self._servers[c].step(update)
            if not bool(self._weights[c].isfinite().all()):
                self.diverged_at[c] = round_

    def evaluate(
        self, engine: Engine, round_: int, on_round: Callable[[int, Evaluation], object] | None
    ) -> bool:
        """Test all that have not diverged; true if training is to stop."""
        live, stops = self.live, False
        for c, means in zip(live, engine.test_means(self._weights[live]), strict=True):
            metrics = dict(zip(self._work.metrics, means[1:].tolist(), strict=True))
            if self._work.clients.test is not None:
                metrics |= _on_clients(self._work, self._weights[c], self._work.clients.test)
            found = Evaluation(round_, float(means[0]), metrics)
            self.curves[c].append(found)
            if not np.isfinite(means[0]):
                self.diverged_at[c] = round_
            if on_round is not None:
                stops = on_round(c, found) is True or stops
        return stops or not self.live


def client_metrics(metrics: Iterable[str]) -> tuple[str, ...]:
    """What the metrics on clients' own test points are called."""
    return tuple(f"client {name}{low}" for name in metrics for low in ("", ", 10th percentile"))


def _on_clients(work: Work, weights: Tensor, tests: Partition) -> dict[str, float]:
    """Each metric on clients' own test points: the mean over clients, and their tenth percentile."""
    model, training, points = work.model, work.model.training, work.points
    state, values = work.layout.state(weights), []
    model.eval()
    try:
        with torch.no_grad():
            for rows in torch.split(torch.from_numpy(tests.indices).to(points.device), _CHUNK):
                labels = points.labels[rows]
                outputs = functional_call(model, state, (points.features[rows],))
                found = [per_example(one, outputs, labels) for one in work.metrics.values()]
                values.append(torch.stack(found).double().cpu().numpy())
    finally:
        model.train(training)
    by_client = np.add.reduceat(np.concatenate(values, axis=1), tests.offsets[:-1], axis=1)
    means = by_client / tests.sizes
    both = np.stack([means.mean(axis=1), np.quantile(means, _LOW, axis=1)], axis=1)
    return dict(zip(client_metrics(work.metrics), both.ravel().tolist(), strict=True))


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Say what to do when memory runs out."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise TrainingError(f"out of memory: take a smaller batch or cohort ({error})") from error
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise TrainingError("out of memory: take a smaller batch, cohort or model") from error
