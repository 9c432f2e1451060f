"""Adaptive searches with Optuna: one study per population and seed, kept in the sweep's folder.

Optuna's storage is the memory: a finished trial carries its record, so that nothing is lost between
the end of a run and its line in `runs.jsonl`. Trials that were cut off are given up and asked anew.
"""

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.partitioning.result import Partition
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.optuna_search import OptunaSearch
from polyurn.sweeps.task import Training, engine_of, has_style, record_of, run_columns
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import Evaluation, Run
from polyurn.typed.arguments import check_options
from polyurn.typed.json_form import from_json, shown, to_json

DIVERGED_SCORE = -math.inf  # what Optuna is told of a run that diverged: worse than any other
_FILES = {"journal": "optuna.journal", "sqlite": "optuna.db"}
_LOCK_SECONDS = 600  # SQLite has one writer at a time; the others wait


class Studies:
    """The studies of a sweep; `settings` are what the search does not change."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        search: OptunaSearch,
        settings: FedAvg,
        training: Training,
        clients: Mapping[tuple[str, int], Partition],
    ) -> None:
        # Workers may stand in another folder.
        self._place = str(Path(folder).resolve() / _FILES[search.storage])
        self._search, self._settings = search, settings
        self._training, self._clients = training, clients
        optuna = _optuna()
        for key in clients:
            study = optuna.create_study(
                storage=_storage(self._place),
                study_name=_study_name(*key),
                direction="maximize",
                load_if_exists=True,
            )
            for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    def recovered(self, known: set[str]) -> list[FinishedRun]:
        """Records of finished trials that are in the journal but not in `runs.jsonl`."""
        records = (record for key in self._clients for record in self._records(*key))
        return [record for record in records if record.key not in known]

    def tasks(self) -> Iterator[Any]:
        """The trials that are left, the studies in turn."""
        done = {
            key: {t.user_attrs.get("turn", t.number) for t in self._finished(*key)}
            for key in self._clients
        }
        for turn in range(self._search.n_trials):
            for population, seed in self._clients:
                if turn not in done[population, seed]:
                    yield joblib.delayed(run_trial)(
                        self._place,
                        turn,
                        self._search,
                        self._settings,
                        self._training,
                        population,
                        seed,
                        self._clients[population, seed],
                    )

    def winners(self, keys: Iterable[tuple[str, int]], true: str) -> list[tuple[str, int, FedAvg]]:
        """Runs on the population `true` of what won on other populations."""
        found = []
        for population, seed in keys:
            whole = [
                run
                for run in self._records(population, seed)
                if not run.pruned and not run.diverged
            ]
            if whole:
                best = max(whole, key=lambda run: _score(run, self._search.metric))
                found.append((true, seed, best.settings))
        return found

    def _records(self, population: str, seed: int) -> Iterator[FinishedRun]:
        for trial in self._finished(population, seed):
            yield from_json(FinishedRun, trial.user_attrs["record"])

    def _finished(self, population: str, seed: int) -> list[Any]:
        study = _optuna().load_study(
            storage=_storage(self._place), study_name=_study_name(population, seed)
        )
        states = ("COMPLETE", "PRUNED")
        return [t for t in study.get_trials(deepcopy=False) if t.state.name in states]


def run_trial(
    place: str,
    turn: int,
    search: OptunaSearch,
    settings: FedAvg,
    training: Training,
    population: str,
    seed: int,
    clients: Partition,
) -> list[FinishedRun]:
    """Ask a study for settings, train, and tell it what came of them."""
    optuna = _optuna()
    study = optuna.load_study(
        storage=_storage(place), study_name=_study_name(population, seed), pruner=_pruner(search)
    )
    # A sampler is made anew for each trial: with the same seed its first draws would be the same. The
    # turn, not the number of trials so far, which depends on who asks first.
    # They are the same for every population, so that populations can be compared there.
    study.sampler = _sampler(search, (seed, turn))
    trial = study.ask()
    trial.set_user_attr("turn", turn)
    chosen = settings.with_changes(
        {name: _suggested(trial, name, bounds) for name, bounds in search.space.items()}
    )
    seen: list[Evaluation] = []
    started = time.perf_counter()

    def watch(_: int, evaluation: Evaluation) -> None:
        seen.append(evaluation)
        value = evaluation.metrics[search.metric]
        if np.isfinite(value):
            trial.report(value, evaluation.round)
        if evaluation.round < chosen.n_rounds and trial.should_prune():
            raise optuna.TrialPruned

    try:
        (run,) = run_columns(training, population, seed, clients, [chosen], on_round=watch)
    except optuna.TrialPruned:
        engine, seconds = engine_of(training, seed, clients), time.perf_counter() - started
        names = tuple(training.metrics)
        short = Run(chosen, seed, engine, tuple(seen), None, seconds, names, state={})
        run = replace(record_of(short, population, styled=has_style(clients)), pruned=True)
    run = replace(run, trial=trial.number)
    trial.set_user_attr("record", to_json(run))
    if run.pruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        study.tell(trial, _score(run, search.metric))
    return [run]


def _score(run: FinishedRun, metric: str) -> float:
    value = run.final[metric]
    return DIVERGED_SCORE if value is None else value


def _suggested(trial: Any, name: str, bounds: Mapping[str, Any]) -> Any:
    if "choices" in bounds:
        return trial.suggest_categorical(name, list(bounds["choices"]))
    whole = isinstance(bounds["low"], int) and isinstance(bounds["high"], int)
    suggest = trial.suggest_int if whole else trial.suggest_float
    return suggest(name, **bounds)


def check_search(search: OptunaSearch, metrics: Collection[str]) -> None:
    """Raise a `ParameterError` for a metric, a sampler, a pruner or options that there are not."""
    if search.metric not in metrics:
        raise ParameterError(
            f"the search looks at {shown(search.metric)}, which is not a metric; "
            f"expected one of {', '.join(metrics)}"
        )
    _sampler(search, (0, 0))
    _pruner(search)


def _sampler(search: OptunaSearch, words: tuple[int, int]) -> Any:
    seed = int(np.random.SeedSequence((5, *words)).generate_state(1)[0])
    return _made("samplers", search.sampler, {"seed": seed, **search.sampler_options})


def _pruner(search: OptunaSearch) -> Any:
    return _made("pruners", search.pruner, search.pruner_options)


def _made(kind: str, name: str, options: Mapping[str, Any]) -> Any:
    module = getattr(_optuna(), kind)
    known = [one for one in module.__all__ if one[0].isupper() and not one.startswith("Base")]
    if name not in known:
        raise ParameterError(
            f"optuna.{kind} has no {shown(name)}; expected one of {', '.join(known)}"
        )
    made = getattr(module, name)
    check_options(f"optuna.{kind}.{name}", made, options)
    try:
        return made(**options)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"optuna.{kind}.{name}: {error}; check its options") from error


def _study_name(population: str, seed: int) -> str:
    return f"{population}, seed {seed}"


def _storage(place: str) -> Any:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if place.endswith(_FILES["sqlite"]):
        return RDBStorage(
            f"sqlite:///{place}", engine_kwargs={"connect_args": {"timeout": _LOCK_SECONDS}}
        )
    return JournalStorage(JournalFileBackend(place))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingDependencyError("optuna", "hpo", "an adaptive search") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # polyurn reports progress itself
    return optuna
