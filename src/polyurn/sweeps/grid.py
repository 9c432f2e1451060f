"""Sweeps: every setting on every population under every seed, in parallel, never twice.

It decides which runs are done, and where. A `Trainable` does them, `storage/run_log.py` keeps them, and
`verdict.py` says what they mean. joblib distributes runs over its active backend (processes of this
machine, Dask, Ray).
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Annotated, Any

from numpy.typing import ArrayLike

from polyurn.errors import MissingDependencyError, ParameterError, TrainingError
from polyurn.model.names import Match

try:
    import joblib
except ImportError as error:
    raise MissingDependencyError(error.name or "joblib", "sweep", "a sweep") from error

from polyurn.storage.run_log import FinishedRun, RunLog, run_key
from polyurn.sweeps.optuna_search import OptunaSearch, Studies, extremes
from polyurn.sweeps.sweep_clients import Clients, clients_by_seed
from polyurn.sweeps.trainable import (
    ClientsBySeed,
    EndedRun,
    FailedRun,
    RunSettings,
    Task,
    Trainable,
)
from polyurn.sweeps.trainers import CommandTrainer, Trainer, UserTraining
from polyurn.training.examples import fingerprint
from polyurn.training.fedavg import plain
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import numbers, plain_array
from polyurn.typed.declared import AtLeast
from polyurn.typed.json_form import Count, shown, to_json

_MOST_JOBS = 10_000
_MANY_ROUNDS = 1_000_000  # a sweep of so many rounds is timed before it begins
_TIMED_ROUNDS = 3
_MOST_COLUMNS = 16  # settings trained side by side in one task


@checked
@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep.

    Attributes
    ----------
    runs : tuple of FinishedRun
        In the order in which they ended.
    folder : Path or None
    failed : tuple of FailedRun
        Runs of a trainer of your own that gave no result; what they printed is in `folder/failed`.
    """

    runs: tuple[FinishedRun, ...] = field(repr=False)
    folder: Path | None
    failed: tuple[FailedRun, ...] = ()


@dataclass(frozen=True)
class SweepProgress:
    """The progress of a sweep, in runs; those of an earlier start count as done.

    `run` is the one that just ended, None at the start. `seconds_left` is an estimate: the other runs
    take as long as those since this start; at the start of a sweep of very many rounds, all rounds take
    as long as the first rounds of one run.
    """

    n_done: int
    n_total: int
    run: EndedRun | None
    seconds_left: float | None = None


@checked
def sweep_trainer(
    trainer: Trainer | CommandTrainer | Trainable,
    labels: ArrayLike,
    *,
    populations: Mapping[str, Clients],
    seeds: Sequence[Count],
    settings: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    optuna: OptunaSearch | None = None,
    n_clients: Annotated[int, AtLeast(1)] | None = None,
    features: ArrayLike | None = None,
    match: Match | None = None,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    true: str = "true",
    noise_floor: bool = True,
    client_test: float | None = None,
    on_run: Callable[[SweepProgress], object] | None = None,
) -> Sweep:
    """Train every setting on every population under every seed, with a trainer of your own.

    Parameters
    ----------
    trainer : function of (clients, settings, seed), or CommandTrainer
        It trains on the points of a `Partition` and yields, or returns, a report after each evaluation:
        {"round": 10, "accuracy": 0.71}. What it raises fails its own run only.
    labels : array of shape (n_points,)
        Of the points that clients are given; a client holds positions in it.
    settings : mapping, optional
        What the grid, or the search, does not change.
    features : array of shape (n_points, ...), optional
        For a `Styled` population.
    match : mapping of str to str, or "position", optional
        What labels are called in populations with names, as in `partition`.
    populations, seeds, grid, optuna, n_clients, folder, n_jobs, true, noise_floor, client_test,
    on_run : see `sweep`

    Returns
    -------
    Sweep
        With the runs that failed. They are repeated by the same call.

    Examples
    --------
    >>> import numpy as np
    >>> from polyurn import Partition
    >>> def train(clients, settings, seed):
    ...     for round_ in (1, 2):
    ...         yield {"round": round_, "accuracy": round_ * settings["lr"]}
    >>> labels = np.arange(12) % 3
    >>> done = sweep_trainer(
    ...     train, labels, populations={"true": Partition.by_owner(np.arange(12) // 3)}, seeds=[0],
    ...     grid={"lr": [0.1, 0.3]}, noise_floor=False, n_jobs=1,
    ... )
    >>> [(run.settings, run.final) for run in done.runs]
    [({'lr': 0.1}, {'accuracy': 0.2}), ({'lr': 0.3}, {'accuracy': 0.6})]
    """
    codes = plain_array(labels, "labels")
    if codes.ndim == 0:
        raise ParameterError(f"expected labels of shape (n_points,), got shape {codes.shape}")
    if (grid is None) == (optuna is None):
        raise ParameterError("expected either a grid or optuna")
    if n_jobs is not None and not 1 <= abs(n_jobs) <= _MOST_JOBS:
        raise ParameterError(f"expected n_jobs as a number of runs at a time, got {shown(n_jobs)}")
    if not populations:
        raise ParameterError("expected at least one population")
    if len(seeds) == 0 or len(set(seeds)) != len(seeds):
        raise ParameterError("expected at least one seed, and different seeds")
    training = trainer if isinstance(trainer, Trainable) else UserTraining(trainer)
    fixed = dict(settings or {})
    features = None if features is None else numbers(features, "features")
    clients = clients_by_seed(
        populations, codes, features, seeds=[int(seed) for seed in seeds], n_clients=n_clients,
        true=true, noise_floor=noise_floor, client_test=client_test, match=match,
    )  # fmt: skip
    grid = None if grid is None else _plain_grid(grid)
    if optuna is None:
        points = _grid_points(training, fixed, grid or {})
    else:
        points = extremes(optuna, training, fixed)
    training.check(points, clients)
    described = _described(training, fixed, clients, [*populations], grid=grid, search=optuna)
    kept_in = TemporaryDirectory(prefix="polyurn-sweep-") if folder is None else nullcontext(folder)
    with kept_in as path, RunLog(path, described) as log:
        runner = _Runner(training, clients, log, n_jobs, on_run)
        if optuna is None:
            runner.run_grid(points)
        else:
            studies = Studies(path, optuna, fixed, training, clients)
            runner.run_search(studies, points[0], optuna.n_trials, true)
        where = None if folder is None else Path(folder)
        return Sweep(tuple(log.runs), where, tuple(runner.failed))


def _grid_points(
    training: Trainable, settings: RunSettings, grid: Mapping[str, Sequence[Any]]
) -> list[RunSettings]:
    """All combinations of a grid."""
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ParameterError(f"expected a list of values for {name} in the grid")
        keys = [run_key("", 0, training.whole({**settings, name: value})) for value in values]
        twice = next((v for v, key in zip(values, keys, strict=True) if keys.count(key) > 1), None)
        if twice is not None:
            raise ParameterError(
                f"the grid has a value twice: expected different values of {name}, "
                f"got {shown(twice)} more than once"
            )
    return [
        training.whole({**settings, **dict(zip(grid, values, strict=True))})
        for values in itertools.product(*grid.values())
    ]


def _plain_grid(grid: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """The grid with arrays as lists, and with Python's numbers."""
    lists = {name: getattr(values, "tolist", lambda v=values: v)() for name, values in grid.items()}
    return {
        name: [plain(value) for value in values] if isinstance(values, list | tuple) else values
        for name, values in lists.items()
    }


class _Runner:
    """Does the runs that are left, keeps each as it arrives, and reports the progress."""

    def __init__(
        self,
        training: Trainable,
        clients: ClientsBySeed,
        log: RunLog,
        n_jobs: int | None,
        on_run: Callable[[SweepProgress], object] | None,
    ) -> None:
        self._training, self._clients, self._log, self._on_run = training, clients, log, on_run
        if n_jobs is None and joblib.parallel.get_active_backend()[1] is None:
            n_jobs = -1
        self._n_jobs, self.failed = n_jobs, list[FailedRun]()
        self._n_total, self._n_before, self._started = 0, 0, 0.0

    def run_grid(self, points: Sequence[RunSettings]) -> None:
        """Every setting on every population under every seed."""
        wanted = [(name, seed, point) for name, seed in self._clients for point in points]
        tasks, _ = self._tasks(wanted)
        n_rounds = [max(map(self._training.n_rounds, columns)) for _, (_, columns), _ in tasks]
        self._begin(len(wanted), self._expected_seconds(points[0], n_rounds))
        self._run(tasks)

    def run_search(self, studies: Studies, bound: RunSettings, n_trials: int, true: str) -> None:
        """The trials of every study, then what won on other populations on the true clients."""
        self._log.append(studies.recovered({run.key for run in self._log.runs}))
        others = [
            key for key in self._clients if key[0] != true and (true, key[1]) in self._clients
        ]
        n_runs = len(self._clients) * n_trials
        seconds = self._expected_seconds(bound, [self._training.n_rounds(bound)] * n_runs)
        self._begin(n_runs + len(others), seconds)
        self._run(studies.tasks())
        tasks, n_left = self._tasks(studies.winners(others, true))
        self._begin(len(self._log.runs) + n_left)
        self._run(tasks)

    def _tasks(self, wanted: Iterable[tuple[str, int, RunSettings]]) -> tuple[list[Any], int]:
        """The tasks that are left, with runs to be trained side by side, and the number of runs."""
        done = {run_key(r.population, r.seed, r.settings) for r in self._log.runs if not r.pruned}
        left: dict[str, tuple[Task, list[RunSettings]]] = {}
        tasks = {key: Task(*key, held) for key, held in self._clients.items()}
        columns = self._training.columns(next(iter(tasks.values())))
        for name, seed, settings in wanted:
            key = run_key(name, seed, settings)
            if key in done:
                continue
            done.add(key)
            fixed = {k: v for k, v in settings.items() if k not in columns}
            shared = json.dumps([name, seed, fixed]) if columns else key
            left.setdefault(shared, (tasks[name, seed], []))[1].append(settings)
        found = [
            joblib.delayed(self._training.run)(task, group[i : i + _MOST_COLUMNS])
            for task, group in left.values()
            for i in range(0, len(group), _MOST_COLUMNS)
        ]
        return found, sum(len(group) for _, group in left.values())

    def _expected_seconds(self, point: RunSettings, n_rounds: Sequence[int]) -> float | None:
        """Seconds that tasks of very many rounds will take, from the first rounds of one."""
        if sum(n_rounds) < _MANY_ROUNDS:
            return None
        key, held = next(iter(self._clients.items()))
        began = monotonic()
        self._training.run(Task(*key, held), [{**point, "n_rounds": _TIMED_ROUNDS}])
        n_jobs: int = joblib.effective_n_jobs(-1 if self._n_jobs is None else self._n_jobs)
        each = (monotonic() - began) / _TIMED_ROUNDS
        return each * sum(n_rounds) / min(len(n_rounds), n_jobs)

    def _run(self, tasks: Iterable[Any]) -> None:
        """Run tasks on joblib's backend, and keep each result as it arrives."""
        backend, _ = joblib.parallel.get_active_backend()
        if backend.supports_return_generator:
            groups, how = iter([tasks]), "generator_unordered"
        else:  # Ray's returns all results at once: so many tasks at a time
            left, n = iter(tasks), joblib.effective_n_jobs(self._n_jobs or -1)
            groups, how = iter(lambda: list(itertools.islice(left, n)), []), "list"
        parallel = joblib.Parallel(n_jobs=self._n_jobs, return_as=how)
        try:
            for runs in itertools.chain.from_iterable(map(parallel, groups)):
                self._ended(runs)
        except BrokenExecutor as error:
            raise TrainingError(
                f"a worker died, perhaps because memory ran out; {len(self._log.runs)} finished runs "
                "are kept: start the sweep again, with fewer jobs"
            ) from error

    @property
    def _n_done(self) -> int:
        return len(self._log.runs) + len(self.failed)

    def _begin(self, n_total: int, seconds_left: float | None = None) -> None:
        self._n_total, self._n_before, self._started = n_total, self._n_done, monotonic()
        self._report(None, seconds_left=seconds_left)

    def _ended(self, runs: Sequence[EndedRun]) -> None:
        self._log.append([run for run in runs if isinstance(run, FinishedRun)])
        for run in runs:
            if isinstance(run, FailedRun):
                self.failed.append(run)
                self._log.keep_output(_file_name(run), run.output or run.error)
        n_done = self._n_done  # those trained side by side ended together
        left = (monotonic() - self._started) / (n_done - self._n_before) * (self._n_total - n_done)
        for n_unreported, run in zip(reversed(range(len(runs))), runs, strict=True):
            self._report(run, n_unreported, left)

    def _report(
        self, run: EndedRun | None, n_unreported: int = 0, seconds_left: float | None = None
    ) -> None:
        if self._on_run is not None:
            n_done = self._n_done - n_unreported
            self._on_run(SweepProgress(n_done, self._n_total, run, seconds_left))


def _file_name(run: FailedRun) -> str:
    """The name of the file with a failed run's output, which the same run always has."""
    key = run_key(run.population, run.seed, run.settings)
    called = "".join(c if c.isalnum() else "-" for c in run.population)
    return f"{called}-seed-{run.seed}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _described(
    training: Trainable,
    settings: RunSettings,
    clients: ClientsBySeed,
    asked: Sequence[str],
    *,
    grid: Mapping[str, Sequence[Any]] | None,
    search: OptunaSearch | None,
) -> dict[str, Any]:
    """Everything that the runs of a sweep depend on, with the populations that were asked for."""
    populations: dict[str, dict[str, str]] = {name: {} for name in asked}
    for (name, seed), held in clients.items():
        tests = [] if held.test is None else [held.test.indices, held.test.offsets]
        if name in populations:
            populations[name][str(seed)] = fingerprint(held.indices, held.offsets, *tests)
    return {
        "settings": dict(settings),
        "grid": grid,
        "search": None if search is None else to_json(search),
        "seeds": list(dict.fromkeys(seed for _, seed in clients)),
        "populations": populations,
        **training.described(),
        # The clients of the noise floor follow from the true ones.
        "noise_floor": any(name not in populations for name, _ in clients),
    }
