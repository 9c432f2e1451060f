"""Sweeps: every setting on every population under every seed, in parallel, never twice.

It decides which runs are done, and where. `storage/run_log.py` keeps them, `training/federated.py`
trains, and `verdict.py` says what they mean. joblib distributes runs over its active backend (processes
of this machine, Dask, Ray).
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from polyurn.errors import MissingDependencyError, ParameterError, TrainingError
from polyurn.typed.arguments import checked

try:
    import joblib
    import torch
    from torch import nn
except ImportError as error:
    raise MissingDependencyError(error.name or "torch", "train", "a sweep") from error

from polyurn.partitioning.result import Partition
from polyurn.storage.run_log import FinishedRun, RunLog, run_key
from polyurn.sweeps.optuna_search import OptunaSearch, Studies, check_search
from polyurn.sweeps.sweep_clients import Clients, clients_by_seed
from polyurn.sweeps.task import Training, engine_of, function_fingerprint, run_columns
from polyurn.training.building import build
from polyurn.training.engines.vectors import layout
from polyurn.training.engines.worker import check_batches
from polyurn.training.examples import Examples, fingerprint
from polyurn.training.fedavg import COLUMN_FIELDS, EngineName, FedAvg, plain
from polyurn.training.losses import PerExample, accuracy, cross_entropy
from polyurn.training.networks import ModelFunction
from polyurn.training.server_optimizer import check_server
from polyurn.typed.json_form import shown
from polyurn.wording import counted

_MOST_JOBS = 10_000
_MANY_ROUNDS = 1_000_000  # a sweep of so many rounds is timed before it begins
_TIMED_ROUNDS = 3
MOST_COLUMNS = 16  # settings trained side by side in one task


@checked
@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep.

    Attributes
    ----------
    runs : tuple of FinishedRun
        In the order in which they ended.
    folder : Path or None
    """

    runs: tuple[FinishedRun, ...] = field(repr=False)
    folder: Path | None


@dataclass(frozen=True)
class SweepProgress:
    """The progress of a sweep.

    Attributes
    ----------
    n_done, n_total : int
        Runs; those of an earlier start count as done.
    run : FinishedRun or None
        The run that just ended; None at the start.
    seconds_left : float or None
        An estimate: the other runs take as long as those since this start. At the start of a sweep of
        very many rounds: all rounds take as long as the first rounds of one run.
    """

    n_done: int
    n_total: int
    run: FinishedRun | None
    seconds_left: float | None = None


@checked
def sweep(
    settings: FedAvg,
    model: ModelFunction | str,
    data: Examples,
    *,
    populations: Mapping[str, Clients],
    seeds: Sequence[int],
    grid: Mapping[str, Sequence[Any]] | None = None,
    optuna: OptunaSearch | None = None,
    n_clients: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    loss: PerExample = cross_entropy,
    metrics: Mapping[str, PerExample] | None = None,
    engine: EngineName = "auto",
    device: str | None = None,
    true: str = "true",
    noise_floor: bool = True,
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
    folder : path, optional
        Keeps every run as soon as it ends. The same call continues a stopped sweep.
    n_jobs : int, optional
        Runs at a time, as in joblib. By default what `joblib.parallel_config` says, else one per core.
    noise_floor : bool
        Train the population `true` once more as "again", in another order for each seed, so that cohorts
        differ: the difference is chance. Nothing is added without `true`, or if there is a population
        "again" already.
    on_run : function of a SweepProgress, optional
        Called at the start and after every run.

    Returns
    -------
    Sweep

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
    >>> sorted((run.population, run.settings.local_learning_rate) for run in done.runs)
    [('again', 0.01), ('again', 0.1), ('iid', 0.01), ('iid', 0.1), ('true', 0.01), ('true', 0.1)]
    """
    if (grid is None) == (optuna is None):
        raise ParameterError("expected either a grid or optuna")
    if n_jobs is not None and not 1 <= abs(n_jobs) <= _MOST_JOBS:
        raise ParameterError(f"expected n_jobs as a number of runs at a time, got {shown(n_jobs)}")
    if n_clients is not None and n_clients < 1:
        raise ParameterError(f"expected n_clients of at least 1, got {n_clients}")
    seeds = _checked_seeds(seeds)
    if not populations:
        raise ParameterError("expected at least one population")
    training = Training(model, data, loss, metrics or {"accuracy": accuracy}, engine, device)
    clients = clients_by_seed(
        populations, data, seeds=seeds, n_clients=n_clients, true=true, noise_floor=noise_floor
    )
    grid = None if grid is None else _plain_grid(grid)
    points = [] if grid is None else grid_points(settings, grid)
    extremes = [] if optuna is None else optuna.extremes(settings)
    if optuna is not None:
        check_search(optuna, training.metrics)
    _check_points(training, points or extremes, clients)
    asked = {key: held for key, held in clients.items() if key[0] in populations}
    described = _described(training, settings, asked, grid=grid, search=optuna)
    described["noise_floor"] = len(asked) < len(clients)  # it follows from the true clients
    with _kept_in(folder) as path, RunLog(path, described) as log:
        report = _Reporter(log, on_run)
        if optuna is None:
            wanted = [(name, seed, point) for name, seed in clients for point in points]
            tasks, _ = _grid_tasks(training, clients, wanted, log.runs)
            n_rounds = [max(point.n_rounds for point in columns) for _, (*_, columns), _ in tasks]
            left = _expected_seconds(training, clients, points, n_rounds, n_jobs)
            report.begin(len(wanted), left)
            _run_all(tasks, report, n_jobs)
        else:
            studies = Studies(path, optuna, settings, training, clients)
            log.append(studies.recovered({run.key for run in log.runs}))
            winners = [key for key in clients if key[0] != true and (true, key[1]) in clients]
            n_rounds = [settings.n_rounds] * (len(clients) * optuna.n_trials)
            left = _expected_seconds(training, clients, extremes, n_rounds, n_jobs)
            report.begin(len(clients) * optuna.n_trials + len(winners), left)
            _run_all(studies.tasks(), report, n_jobs)
            chosen = studies.winners(winners, true)
            tasks, n_left = _grid_tasks(training, clients, chosen, log.runs)
            report.begin(len(log.runs) + n_left)
            _run_all(tasks, report, n_jobs)
        return Sweep(tuple(log.runs), None if folder is None else Path(folder))


def grid_points(settings: FedAvg, grid: Mapping[str, Sequence[Any]]) -> list[FedAvg]:
    """All combinations of a grid.

    Examples
    --------
    >>> base = FedAvg(n_rounds=9, cohort_size=5)
    >>> found = grid_points(base, {"local_epochs": [1, 2], "local_learning_rate": [0.1, 0.2]})
    >>> [(point.local_epochs, point.local_learning_rate) for point in found]
    [(1, 0.1), (1, 0.2), (2, 0.1), (2, 0.2)]
    """
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ParameterError(f"expected a list of values for {name} in the grid")
        keys = [run_key("", 0, settings.with_changes({name: value})) for value in values]
        twice = next((v for v, key in zip(values, keys, strict=True) if keys.count(key) > 1), None)
        if twice is not None:
            raise ParameterError(
                f"the grid has a value twice: expected different values of {name}, "
                f"got {shown(twice)} more than once"
            )
    return [
        settings.with_changes(dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    ]


def _plain_grid(grid: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """The grid with arrays as lists, and with Python's numbers."""
    lists = {name: getattr(values, "tolist", lambda v=values: v)() for name, values in grid.items()}
    return {
        name: [plain(value) for value in values] if isinstance(values, list | tuple) else values
        for name, values in lists.items()
    }


def _checked_seeds(seeds: Sequence[int]) -> list[int]:
    checked: list[Any] = list(seeds)
    for seed in checked:
        if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
            raise ParameterError(f"expected seeds as integers of at least 0, got {shown(seed)}")
    if not checked or len(set(checked)) != len(checked):
        raise ParameterError("expected at least one seed, and different seeds")
    return [int(seed) for seed in checked]


def _check_points(
    training: Training, points: Sequence[FedAvg], clients: Mapping[tuple[str, int], Partition]
) -> None:
    """Find errors before the first run that would stop a later one."""
    module = build(training.model, training.data, seed=0, loss=training.loss)
    found = layout(module)
    for (name, _), held in clients.items():
        for point in points:
            if point.cohort_size > len(held):
                raise ParameterError(
                    f"{name}: expected a cohort of at most {counted(len(held), 'client')}, "
                    f"got {point.cohort_size}"
                )
            check_batches(point, module, held.sizes)
    fields = ("server_optimizer", "server_options", "server_learning_rate")
    servers = {json.dumps([getattr(point, name) for name in fields]): point for point in points}
    for point in servers.values():
        check_server(point, found, found.pack(module))


def _grid_tasks(
    training: Training,
    clients: Mapping[tuple[str, int], Partition],
    wanted: Iterable[tuple[str, int, FedAvg]],
    finished: Sequence[FinishedRun],
) -> tuple[list[Any], int]:
    """The tasks that are left, with runs that can be trained side by side, and the number of runs."""
    done = {run_key(run.population, run.seed, run.settings) for run in finished if not run.pruned}
    left: dict[str, tuple[str, int, list[FedAvg]]] = {}
    (_, first), some = next(iter(clients.items()))
    side_by_side = engine_of(training, first, some) == "batched"
    for name, seed, point in wanted:
        key = run_key(name, seed, point)
        if key in done:
            continue
        done.add(key)
        fixed = {k: v for k, v in point.to_json().items() if k not in COLUMN_FIELDS}
        shared = json.dumps([name, seed, fixed]) if side_by_side else key
        left.setdefault(shared, (name, seed, []))[2].append(point)
    tasks = [
        joblib.delayed(run_columns)(training, name, seed, clients[name, seed], columns)
        for name, seed, group in left.values()
        for columns in _batched(group, MOST_COLUMNS)
    ]
    return tasks, sum(len(group) for _, _, group in left.values())


def _expected_seconds(
    training: Training,
    clients: Mapping[tuple[str, int], Partition],
    points: Sequence[FedAvg],
    n_rounds: Sequence[int],
    n_jobs: int | None,
) -> float | None:
    """Seconds that tasks of very many rounds will take, from the first rounds of one; None for fewer."""
    if sum(n_rounds) < _MANY_ROUNDS:
        return None
    (name, seed), held = next(iter(clients.items()))
    began = monotonic()
    run_columns(training, name, seed, held, [points[0].with_changes({"n_rounds": _TIMED_ROUNDS})])
    n_at_once: int = min(len(n_rounds), joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs))
    return (monotonic() - began) / _TIMED_ROUNDS * sum(n_rounds) / n_at_once


def _run_all(tasks: Iterable[Any], report: "_Reporter", n_jobs: int | None) -> None:
    """Run tasks on joblib's backend, and keep each result as it arrives."""
    if n_jobs is None and joblib.parallel.get_active_backend()[1] is None:
        n_jobs = -1
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    try:
        for runs in parallel(tasks):
            report.ended(runs)
    except BrokenExecutor as error:
        raise TrainingError(
            f"a worker died, perhaps because memory ran out; {len(report.log.runs)} finished runs "
            "are kept: start the sweep again, with fewer jobs"
        ) from error


class _Reporter:
    """Keeps runs and reports the progress."""

    def __init__(self, log: RunLog, on_run: Callable[[SweepProgress], object] | None) -> None:
        self.log, self._on_run = log, on_run
        self._n_total, self._n_before, self._started = 0, 0, 0.0

    def begin(self, n_total: int, seconds_left: float | None = None) -> None:
        self._n_total, self._n_before, self._started = n_total, len(self.log.runs), monotonic()
        self._report(None, seconds_left=seconds_left)

    def ended(self, runs: Sequence[FinishedRun]) -> None:
        self.log.append(runs)
        n_done = len(self.log.runs)  # those trained side by side ended together
        each = (monotonic() - self._started) / (n_done - self._n_before)
        left = each * (self._n_total - n_done)
        for n_unreported, run in zip(reversed(range(len(runs))), runs, strict=True):
            self._report(run, n_unreported, left)

    def _report(
        self, run: FinishedRun | None, n_unreported: int = 0, seconds_left: float | None = None
    ) -> None:
        if self._on_run is not None:
            n_done = len(self.log.runs) - n_unreported
            self._on_run(SweepProgress(n_done, self._n_total, run, seconds_left))


def _described(
    training: Training,
    settings: FedAvg,
    clients: Mapping[tuple[str, int], Partition],
    *,
    grid: Mapping[str, Sequence[Any]] | None,
    search: OptunaSearch | None,
) -> dict[str, Any]:
    """The description of a sweep: everything that its runs depend on."""
    module = build(training.model, training.data, seed=0)
    populations: dict[str, dict[str, str]] = {}
    for (name, seed), held in clients.items():
        populations.setdefault(name, {})[str(seed)] = fingerprint(held.indices, held.offsets)
    return {
        "settings": settings.to_json(),
        "grid": None if grid is None else {name: list(values) for name, values in grid.items()},
        "search": None if search is None else search.to_json(),
        "seeds": list(dict.fromkeys(seed for _, seed in clients)),
        "populations": populations,
        "data": training.data.fingerprint(),
        "model": {name: list(value.shape) for name, value in module.state_dict().items()},
        "layers": repr(module),
        "first_weights": _weights_digest(module),
        "loss": getattr(training.loss, "__name__", "loss"),
        "loss_code": function_fingerprint(training.loss),
        "metrics": list(training.metrics),
        "metrics_code": {
            name: function_fingerprint(function) for name, function in training.metrics.items()
        },
    }


def _weights_digest(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def _kept_in(folder: str | os.PathLike[str] | None) -> AbstractContextManager[Any]:
    return TemporaryDirectory(prefix="polyurn-sweep-") if folder is None else nullcontext(folder)


def _batched(columns: Sequence[FedAvg], n: int) -> Iterator[Sequence[FedAvg]]:
    for i in range(0, len(columns), n):
        yield columns[i : i + n]
