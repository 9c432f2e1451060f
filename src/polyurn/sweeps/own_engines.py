"""A sweep with our own engines: what its workers run, which write nothing."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyurn.errors import MissingDependencyError
from polyurn.model.names import Match

try:
    import torch
    from torch import nn
except ImportError as error:
    raise MissingDependencyError(error.name or "torch", "train", "a sweep") from error

from polyurn.sweeps.grid import Sweep, SweepProgress, sweep_trainer
from polyurn.sweeps.optuna_search import OptunaSearch
from polyurn.sweeps.sweep_clients import Clients
from polyurn.sweeps.trainable import (
    ClientsBySeed,
    EndedRun,
    OnRound,
    RunSettings,
    Task,
    end_with,
    finished_run,
    function_fingerprint,
)
from polyurn.training.building import LearningProblem, build, prepare
from polyurn.training.engines.choice import suits_batching
from polyurn.training.engines.vectors import layout
from polyurn.training.engines.worker import check_cohorts
from polyurn.training.examples import Examples
from polyurn.training.fedavg import COLUMN_FIELDS, EngineName, Evaluation, FedAvg
from polyurn.training.federated import client_metrics, train_columns
from polyurn.training.losses import PerExample, accuracy, cross_entropy
from polyurn.training.networks import ModelFunction
from polyurn.training.server_optimizer import check_server
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import Count


@dataclass(frozen=True, eq=False, kw_only=True)
class Training(LearningProblem):
    """What all runs of a sweep share, as it is sent to workers."""

    tests_clients: bool = False
    started_by: int = field(default_factory=os.getpid)  # the sweep's own process

    def __sizeof__(self) -> int:
        """The data's size: Dask sends what is large to each of its workers once, not with each run."""
        return sum(array.nbytes for array in vars(self.data).values())

    @property
    def metric_names(self) -> tuple[str, ...]:
        return (*self.metrics, *(client_metrics(self.metrics) if self.tests_clients else ()))

    def described(self) -> dict[str, Any]:
        module = build(self, seed=0)
        return {
            "data": self.data.fingerprint(),
            "model": {name: list(value.shape) for name, value in module.state_dict().items()},
            "layers": repr(module),
            "first_weights": _weights_digest(module),
            "loss": getattr(self.loss, "__name__", "loss"),
            "loss_code": function_fingerprint(self.loss),
            "metrics": list(self.metrics),
            "metrics_code": {name: function_fingerprint(one) for name, one in self.metrics.items()},
        }

    def whole(self, settings: RunSettings) -> RunSettings:
        return FedAvg.from_json(settings).to_json()

    def check(self, points: Sequence[RunSettings], clients: ClientsBySeed) -> None:
        module = build(self, seed=0)
        found, settings = layout(module), [FedAvg.from_json(point) for point in points]
        for (name, _), held in clients.items():
            for point in settings:
                check_cohorts(point, module, held, name=name)
        for point in settings:
            check_server(point, found, found.pack(module))

    def columns(self, task: Task) -> frozenset[str]:
        engine = self.engine
        if engine == "auto":
            work = prepare(self, task.clients, seed=task.seed)
            engine = "batched" if suits_batching(work) else "workers"
        return COLUMN_FIELDS if engine == "batched" else frozenset()

    def n_rounds(self, settings: RunSettings) -> int:
        return int(settings["n_rounds"])

    def run(
        self, task: Task, columns: Sequence[RunSettings], on_round: OnRound | None = None
    ) -> list[EndedRun]:
        end_with(self.started_by)
        pruned = False

        def watch(_: int, evaluation: Evaluation) -> bool:
            nonlocal pruned
            pruned = on_round is not None and on_round(evaluation)
            return pruned

        settings = [FedAvg.from_json(point) for point in columns]
        runs = train_columns(
            settings, self, task.clients, seed=task.seed, n_workers=1, on_round=watch
        )
        return [
            finished_run(
                task, point, run.curve, engine=run.engine, seconds=run.seconds,
                names=run.metric_names, diverged_at=run.diverged_at, pruned=pruned,
            )
            for point, run in zip(columns, runs, strict=True)
        ]  # fmt: skip


@checked
def sweep(
    settings: FedAvg,
    model: ModelFunction | str,
    data: Examples,
    *,
    populations: Mapping[str, Clients],
    seeds: Sequence[Count],
    grid: Mapping[str, Sequence[Any]] | None = None,
    optuna: OptunaSearch | None = None,
    n_clients: int | None = None,
    match: Match | None = None,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    loss: PerExample = cross_entropy,
    metrics: Mapping[str, PerExample] | None = None,
    engine: EngineName = "auto",
    device: str | None = None,
    true: str = "true",
    noise_floor: bool = True,
    client_test: float | None = None,
    on_run: Callable[[SweepProgress], object] | None = None,
) -> Sweep:
    """Train every setting on every population under every seed.

    Parameters
    ----------
    settings : FedAvg
        The settings that the grid, or the search, does not change.
    model, data, loss, metrics, engine, device : see `train`
    populations : mapping of name to Partition, Population or function
        A `Partition` says which points of `data` each client holds. The clients of a population (an
        MDM, `IID`, ...) are drawn anew for each seed, and given points of `data` by their labels; those
        of a `Styled` population by the features, too. A function of the seed returns a Partition, which
        can do more than a population: use another feature than the label, or only some of the points.
    seeds : sequence of int
    grid : mapping of a setting's name to its values
        All combinations are run. The engine "batched" trains those side by side that differ only in
        learning rates and similar settings.
    optuna : OptunaSearch
        Instead of a grid: an adaptive search per population and seed. The winners on the other
        populations are then trained on the population `true` as well.
    n_clients : int, optional
        How many clients of each population are drawn; by default as many as the Partition `true` has.
        More are better where an MDM is sparse: 400 draws of one have a noisy marginal of their own.
    match : mapping of str to str, or "position", optional
        What labels are called in populations with names, as in `partition`: {"0": "cat"}, say.
    folder : path, optional
        Keeps every run as soon as it ends. The same call continues a stopped sweep.
    n_jobs : int, optional
        Runs at a time, as in joblib. By default what `joblib.parallel_config` says, else one per core.
    noise_floor : bool
        Train the population `true` once more as "again", in another order for each seed, so that cohorts
        differ: the difference is chance. Nothing is added without `true`, or if there is a population
        "again" already.
    client_test : float, optional
        The share of each client's points that is kept for testing. Each metric is then also measured
        on each client: its mean over clients and its lowest tenth join the metrics.
    on_run : function of a SweepProgress, optional
        Called at the start and after every run.

    Raises
    ------
    FileError
        The folder holds another sweep, or cannot be written.
    TrainingError
        A worker died. Finished runs are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from polyurn import IID, Partition
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> data = Examples(x[:200], y[:200], x[200:], y[200:])
    >>> true = Partition.by_owner(10 * y[:200] + np.arange(200) % 10)  # a label each
    >>> iid = IID.like(true.histograms(y[:200], 2))
    >>> done = sweep(
    ...     FedAvg(n_rounds=3, cohort_size=5), "softmax", data,
    ...     populations={"true": true, "iid": iid},
    ...     grid={"local_learning_rate": [0.01, 0.1]}, seeds=[0], n_jobs=1,
    ... )
    >>> sorted((run.population, run.settings["local_learning_rate"]) for run in done.runs)
    [('again', 0.01), ('again', 0.1), ('iid', 0.01), ('iid', 0.1), ('true', 0.01), ('true', 0.1)]
    """
    training = Training(
        model=model, data=data, loss=loss, metrics=metrics or {"accuracy": accuracy}, engine=engine,
        device=device, tests_clients=client_test is not None,
    )  # fmt: skip
    return sweep_trainer(
        training, data.labels, features=data.features, settings=settings.to_json(),
        populations=populations, seeds=seeds, grid=grid, optuna=optuna, n_clients=n_clients, match=match,
        folder=folder, n_jobs=n_jobs, true=true, noise_floor=noise_floor, client_test=client_test,
        on_run=on_run,
    )  # fmt: skip


def _weights_digest(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
