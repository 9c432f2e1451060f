"""What a sweep needs of whatever trains: `own_engines.py`, or the user's own, `trainers.py`.

A sweep decides which runs are done, and where; a `Trainable` does them. It is sent to other processes.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import current_process
from typing import Any, Protocol, Self, TypeAlias

from polyurn.partitioning.result import Partition
from polyurn.storage.run_log import FinishedRun, finite
from polyurn.training.fedavg import Evaluation

_WATCHED_EVERY = 1.0  # seconds


class Settings(Protocol):
    """The settings of a run: names and values that JSON can hold."""

    def to_json(self) -> dict[str, Any]: ...
    def with_changes(self, changes: Mapping[str, Any]) -> Self: ...


@dataclass(frozen=True)
class FailedRun:
    """A run that ended without a result.

    Attributes
    ----------
    population : str
    seed : int
    settings : dict
    error : str
        What went wrong, in one line.
    output : str
        What the trainer printed, or its traceback.
    """

    population: str
    seed: int
    settings: Mapping[str, Any]
    error: str
    output: str = ""


EndedRun: TypeAlias = FinishedRun | FailedRun
# Called with the position of a column and its evaluation. What it raises ends the runs.
OnRound: TypeAlias = Callable[[int, Evaluation], object]
ClientsBySeed: TypeAlias = Mapping[tuple[str, int], Partition]


class Trainable(Protocol):
    """What all runs of a sweep share."""

    @property
    def metric_names(self) -> tuple[str, ...] | None:
        """The metrics of every run; None if only the runs will tell."""

    def described(self) -> dict[str, Any]:
        """All that runs depend on beside settings and clients, as JSON values."""

    def check(self, points: Sequence[Any], clients: ClientsBySeed) -> None:
        """Raise a `ParameterError` for what would stop a later run."""

    def columns(self, seed: int, clients: Partition) -> frozenset[str]:
        """The settings in which the runs of one task may differ; none if each has a task of its own."""

    def n_rounds(self, settings: Any) -> int | None:
        """How many rounds a run has, if that is known."""

    def run(
        self,
        population: str,
        seed: int,
        clients: Partition,
        columns: Sequence[Any],
        on_round: OnRound | None = None,
    ) -> list[EndedRun]:
        """Train columns in this process."""

    def finished(
        self,
        population: str,
        seed: int,
        clients: Partition,
        settings: Any,
        curve: Sequence[Evaluation],
        seconds: float,
    ) -> FinishedRun:
        """The run that was stopped after these evaluations."""


def finished_run(
    settings: Settings,
    curve: Sequence[Evaluation],
    *,
    population: str,
    seed: int,
    clients: Partition,
    engine: str,
    seconds: float,
    metric_names: Sequence[str],
    diverged_at: int | None = None,
) -> FinishedRun:
    """A run as `runs.jsonl` keeps it."""
    curves = {name: finite(one.metrics[name] for one in curve) for name in metric_names}
    diverged = diverged_at is not None
    return FinishedRun(
        population=population,
        seed=seed,
        settings=settings.to_json(),
        engine=engine,
        rounds=[one.round for one in curve],
        loss=finite(one.loss for one in curve),
        metrics=curves,
        final={
            name: None if diverged or not values else values[-1] for name, values in curves.items()
        },
        diverged_at=diverged_at,
        seconds=round(seconds, 4),
        styled=clients.report is not None and clients.report.style is not None,
    )


@cache
def end_with(parent: int) -> None:
    """End this process soon after `parent` does, if it is a worker that joblib started for it.

    joblib's workers on this machine (loky) would finish their task first, which may take hours, and wait
    five minutes for another. A task in the sweep's own process, or on another machine, is left alone.
    """
    if current_process().name.startswith("LokyProcess"):
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


# Called when this process ends with its parent: a trainer's own processes would outlive it.
AT_END: list[Callable[[], object]] = []


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # an orphan has another parent
        time.sleep(_WATCHED_EVERY)
    for end in [*AT_END]:
        end()
    os._exit(1)
