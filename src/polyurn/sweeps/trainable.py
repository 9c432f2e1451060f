"""What a sweep needs of whatever trains: `own_engines.py`, or the user's own, `trainers.py`.

A sweep decides which runs are done, and where; a `Trainable` does them. It is sent to other processes,
says what its runs depend on, and returns them as `runs.jsonl` keeps them.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import current_process
from types import CodeType
from typing import Any, Protocol, TypeAlias, runtime_checkable

from polyurn.partitioning.result import Partition
from polyurn.storage.run_log import FinishedRun, finite
from polyurn.training.fedavg import Evaluation

_WATCHED_EVERY = 1.0  # seconds


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
RunSettings: TypeAlias = Mapping[str, Any]
ClientsBySeed: TypeAlias = Mapping[tuple[str, int], Partition]
# Called after each evaluation; true cuts the run short.
OnRound: TypeAlias = Callable[[Evaluation], bool]


@dataclass(frozen=True, eq=False)
class Task:
    """Whose clients are trained on, and the seed."""

    population: str
    seed: int
    clients: Partition


@runtime_checkable
class Trainable(Protocol):
    """What all runs of a sweep share."""

    @property
    def metric_names(self) -> tuple[str, ...] | None:
        """The metrics of every run; None if only the runs will tell."""

    def described(self) -> dict[str, Any]:
        """All that runs depend on beside settings and clients, as JSON values."""

    def whole(self, settings: RunSettings) -> RunSettings:
        """All settings of a run, those that are not named with their defaults; checked."""

    def check(self, points: Sequence[RunSettings], clients: ClientsBySeed) -> None:
        """Raise a `ParameterError` for what would stop a later run."""

    def columns(self, task: Task) -> frozenset[str]:
        """The settings in which runs of one task may differ; none if each has a task of its own."""

    def n_rounds(self, settings: RunSettings) -> int:
        """How many rounds a run has; 0 if that is not known."""

    def run(
        self, task: Task, columns: Sequence[RunSettings], on_round: OnRound | None = None
    ) -> list[EndedRun]:
        """Train settings in this process; `on_round` watches a single one."""


def finished_run(
    task: Task,
    settings: RunSettings,
    curve: Sequence[Evaluation],
    *,
    engine: str,
    seconds: float,
    names: Sequence[str],
    diverged_at: int | None = None,
    pruned: bool = False,
) -> FinishedRun:
    """A run as `runs.jsonl` keeps it."""
    curves = {name: finite(one.metrics[name] for one in curve) for name in names}
    ended = diverged_at is None
    report = task.clients.report
    return FinishedRun(
        population=task.population,
        seed=task.seed,
        settings=settings,
        engine=engine,
        rounds=[one.round for one in curve],
        loss=finite(one.loss for one in curve),
        metrics=curves,
        final={name: values[-1] if ended and values else None for name, values in curves.items()},
        diverged_at=diverged_at,
        seconds=round(seconds, 4),
        pruned=pruned,
        styled=report is not None and report.style is not None,
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


# ------------------------------------------------------------------------ functions as texts


def function_fingerprint(function: Callable[..., Any]) -> str:
    """A text that changes with a function's name, its instructions, or what they were given.

    >>> one, other = (lambda x: x + 1), (lambda x: x + 2)
    >>> function_fingerprint(one) == function_fingerprint(other)
    False
    """
    inner = getattr(function, "func", function)  # of functools.partial
    called = inner if hasattr(inner, "__code__") else type(inner).__call__
    name = f"{getattr(called, '__module__', '')}.{getattr(called, '__qualname__', '')}"
    given = [getattr(function, "args", ()), getattr(function, "keywords", {})]
    given += [getattr(called, "__defaults__", None), getattr(called, "__kwdefaults__", None)]
    given += [cell.cell_contents for cell in getattr(called, "__closure__", None) or ()]
    if called is not inner:
        given.append(getattr(inner, "__dict__", {}))
    text = f"{_code_text(getattr(called, '__code__', None))}{[_plain(value) for value in given]}"
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _code_text(code: CodeType | None) -> str:
    """Instructions and constants, without file names and line numbers."""
    if code is None:
        return ""
    constants = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _plain(value: Any) -> str:
    """Numbers, texts and tables of them as they are; of all else the kind, without an address."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, Mapping):
        return str({str(name): _plain(part) for name, part in value.items()})
    if isinstance(value, list | tuple | set | frozenset):
        return str([_plain(part) for part in value])
    if callable(value) and hasattr(value, "__code__"):
        return function_fingerprint(value)
    return type(value).__qualname__
