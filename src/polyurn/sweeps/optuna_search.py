"""Adaptive searches with Optuna: one study per population and seed, kept in the sweep's folder.

Optuna's storage is the memory: a finished trial carries its run, so that nothing is lost between the end
of a run and its line in `runs.jsonl`. Trials that were interrupted are marked as failed and drawn again.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from polyurn.errors import MissingDependencyError, ParameterError, TrainerError
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.trainable import (
    ClientsBySeed,
    EndedRun,
    FailedRun,
    RunSettings,
    Task,
    Trainable,
)
from polyurn.training.fedavg import Evaluation
from polyurn.typed.arguments import check_options, checked
from polyurn.typed.declared import AtLeast
from polyurn.typed.json_form import from_json, is_number, shown, to_json

_FILES = {"journal": "optuna.journal", "sqlite": "optuna.db"}
_LOCK_SECONDS = 600  # SQLite has one writer at a time; the others wait


@checked
@dataclass(frozen=True)
class OptunaSearch:
    """An adaptive search with Optuna for the settings with the largest metric.

    Attributes
    ----------
    space : mapping of a setting's name to its range
        {"low": 0.001, "high": 1.0, "log": True}, optionally with "step", or {"choices": [1, 2, 5]}. A
        range with two whole numbers gives whole numbers.
    n_trials : int
        Runs per population and seed.
    metric : str
        Looked at after every evaluated round; a larger one is better.
    sampler, pruner : str
        Classes of `optuna.samplers` and `optuna.pruners`.
    sampler_options, pruner_options : mapping
        Their arguments. The sampler's seed follows from the run's.
    storage : {"journal", "sqlite"}
        How Optuna keeps its studies in the sweep's folder: `optuna.journal`, or `optuna.db`.
    """

    space: Mapping[str, Mapping[str, Any]]
    n_trials: Annotated[int, AtLeast(1)]
    metric: str = "accuracy"
    sampler: str = "TPESampler"
    pruner: str = "MedianPruner"
    sampler_options: Mapping[str, Any] = field(default_factory=dict)
    pruner_options: Mapping[str, Any] = field(default_factory=dict)
    storage: Literal["journal", "sqlite"] = "journal"

    def __post_init__(self) -> None:
        if not self.space:
            raise ParameterError("expected a space of at least one setting")


def extremes(search: OptunaSearch, training: Trainable, settings: RunSettings) -> list[RunSettings]:
    """Settings that have every bound and every choice between them, to be checked.

    An unknown metric, sampler, pruner or option of theirs is a `ParameterError`.
    """
    metrics = training.metric_names
    if metrics is not None and search.metric not in metrics:
        raise ParameterError(
            f"the search looks at {shown(search.metric)}, which is not a metric; "
            f"expected one of {', '.join(metrics)}"
        )
    _sampler(search, (0, 0))
    _pruner(search)
    values = {
        name: getattr(found, "choices", None) or [found.low, found.high]
        for name, found in _distributions(search).items()
    }
    longest = max(map(len, values.values()))
    return [
        training.whole({**settings, **{name: some[i % len(some)] for name, some in values.items()}})
        for i in range(longest)
    ]


class Studies:
    """The studies of a sweep; `settings` are what the search does not change."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        search: OptunaSearch,
        settings: RunSettings,
        training: Trainable,
        clients: ClientsBySeed,
    ) -> None:
        # Absolute: workers may run in another folder.
        self._path = str(Path(folder).resolve() / _FILES[search.storage])
        self._search, self._settings = search, settings
        self._training, self._clients = training, clients
        optuna = _optuna()
        for key in clients:
            study = optuna.create_study(
                storage=_storage(self._path), study_name=_study_name(*key), direction="maximize",
                load_if_exists=True,
            )  # fmt: skip
            for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    def recovered(self, known: set[str]) -> list[FinishedRun]:
        """Finished trials that are in Optuna's storage but not in `runs.jsonl`."""
        runs = (run for key in self._clients for run in self._runs(*key))
        return [run for run in runs if run.key not in known]

    def tasks(self) -> Iterator[Any]:
        """The trials that are left, the studies in turn."""
        import joblib

        done = {
            key: {trial.user_attrs.get("turn", trial.number) for trial in self._finished(*key)}
            for key in self._clients
        }
        given = (self._search, self._settings, self._training)
        for turn in range(self._search.n_trials):
            for key, clients in self._clients.items():
                if turn not in done[key]:
                    yield joblib.delayed(run_trial)(self._path, turn, *given, Task(*key, clients))

    def winners(
        self, keys: Iterable[tuple[str, int]], true: str
    ) -> list[tuple[str, int, RunSettings]]:
        """Runs on the population `true` of what won on other populations."""
        found = []
        for key in keys:
            whole = [run for run in self._runs(*key) if not run.pruned and not run.diverged]
            if whole:
                best = max(whole, key=lambda run: _score(run, self._search.metric))
                found.append((true, key[1], best.settings))
        return found

    def _runs(self, population: str, seed: int) -> Iterator[FinishedRun]:
        for trial in self._finished(population, seed):
            yield from_json(FinishedRun, trial.user_attrs["run"])

    def _finished(self, population: str, seed: int) -> list[Any]:
        study = _study(self._path, population, seed)
        states = ("COMPLETE", "PRUNED")
        return [t for t in study.get_trials(deepcopy=False) if t.state.name in states]


def run_trial(
    path: str,
    turn: int,
    search: OptunaSearch,
    settings: RunSettings,
    training: Trainable,
    task: Task,
) -> list[EndedRun]:
    """Ask a study for settings, train, and report the score to it."""
    states = _optuna().trial.TrialState
    study = _study(path, task.population, task.seed, pruner=_pruner(search))
    # Each trial has a new sampler, so its seed has to differ by trial. The turn is used, not the number
    # of trials so far, which depends on the order in which workers ask. Populations share the seeds, so
    # that their draws can be compared.
    study.sampler = _sampler(search, (task.seed, turn))
    trial = study.ask(_distributions(search))
    trial.set_user_attr("turn", turn)
    whole = training.whole({**settings, **trial.params})
    last = training.n_rounds(whole)

    def watch(evaluation: Evaluation) -> bool:
        if search.metric not in evaluation.metrics:
            raise TrainerError(
                f"the search looks at {shown(search.metric)}, which the trainer does not report; "
                f"it reports {', '.join(evaluation.metrics)}"
            )
        if math.isfinite(value := evaluation.metrics[search.metric]):
            trial.report(value, evaluation.round)
        return evaluation.round != last and bool(trial.should_prune())

    (run,) = training.run(task, [whole], watch)
    if isinstance(run, FailedRun):
        study.tell(trial, state=states.FAIL)
        return [run]
    run = replace(run, trial=trial.number)
    trial.set_user_attr("run", to_json(run))
    if run.pruned:
        study.tell(trial, state=states.PRUNED)
    else:
        study.tell(trial, _score(run, search.metric))
    return [run]


def _score(run: FinishedRun, metric: str) -> float:
    """A run that diverged is worse than any other."""
    value = run.final[metric]
    return -math.inf if value is None else value


def _distributions(search: OptunaSearch) -> dict[str, Any]:
    """The ranges of a search as Optuna's, which checks them."""
    known, found = _optuna().distributions, {}
    for name, bounds in search.space.items():
        ends = [bounds[end] for end in ("low", "high") if end in bounds]
        kind = known.FloatDistribution
        if "choices" in bounds:
            kind = known.CategoricalDistribution
        elif all(isinstance(end, int) for end in ends):
            kind = known.IntDistribution
        try:
            if isinstance(bounds.get("choices"), str) or not all(map(is_number, ends)):
                raise TypeError(f"got {shown(dict(bounds))}")
            found[name] = kind(**bounds)
        except (TypeError, ValueError, OverflowError) as error:
            raise ParameterError(
                "expected numbers low and high (and log or step), or a list of choices, for "
                f"{name}: {error}"
            ) from error
    return found


def _sampler(search: OptunaSearch, words: tuple[int, int]) -> Any:
    seed = int(np.random.SeedSequence((5, *words)).generate_state(1)[0])
    return _built("samplers", search.sampler, {"seed": seed, **search.sampler_options})


def _pruner(search: OptunaSearch) -> Any:
    return _built("pruners", search.pruner, search.pruner_options)


def _built(kind: str, name: str, options: Mapping[str, Any]) -> Any:
    module = getattr(_optuna(), kind)
    known = [one for one in module.__all__ if one[0].isupper() and not one.startswith("Base")]
    if name not in known:
        raise ParameterError(
            f"optuna.{kind} has no {shown(name)}; expected one of {', '.join(known)}"
        )
    class_ = getattr(module, name)
    check_options(f"optuna.{kind}.{name}", class_, options)
    try:
        return class_(**options)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"optuna.{kind}.{name}: {error}; check its options") from error


def _study_name(population: str, seed: int) -> str:
    return f"{population}, seed {seed}"


def _study(path: str, population: str, seed: int, **options: Any) -> Any:
    name = _study_name(population, seed)
    return _optuna().load_study(storage=_storage(path), study_name=name, **options)


def _storage(path: str) -> Any:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if path.endswith(_FILES["sqlite"]):
        return RDBStorage(
            f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": _LOCK_SECONDS}}
        )
    return JournalStorage(JournalFileBackend(path))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingDependencyError("optuna", "hpo", "an adaptive search") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # polyurn reports progress itself
    return optuna
