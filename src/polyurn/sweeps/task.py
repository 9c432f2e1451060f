"""One task of a sweep: trains some settings on one population, and returns the finished runs.

This is what is sent to other processes and machines. Nothing is written here.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import current_process
from types import CodeType
from typing import Any

from polyurn.partitioning.result import Partition
from polyurn.storage.run_log import FinishedRun, finite
from polyurn.training.building import prepare
from polyurn.training.engines.choice import suits_batching
from polyurn.training.examples import Examples
from polyurn.training.fedavg import EngineName, FedAvg
from polyurn.training.federated import Evaluation, Run, train_columns
from polyurn.training.losses import PerExample
from polyurn.training.networks import ModelFunction

_WATCHED_EVERY = 1.0  # seconds


@dataclass(frozen=True, eq=False)
class Training:
    """The data and settings that all runs of a sweep share, as they are sent to workers."""

    model: ModelFunction | str
    data: Examples
    loss: PerExample
    metrics: Mapping[str, PerExample]
    engine: EngineName
    device: str | None
    started_by: int = field(default_factory=os.getpid)  # the sweep's own process

    def __sizeof__(self) -> int:
        """The data's size: Dask sends what is large to each of its workers once, not with each run."""
        return sum(array.nbytes for array in vars(self.data).values())


def run_columns(
    training: Training,
    population: str,
    seed: int,
    clients: Partition,
    columns: Sequence[FedAvg],
    on_round: Callable[[int, Evaluation], object] | None = None,
) -> list[FinishedRun]:
    """Train columns in this process and return the finished runs."""
    end_with(training.started_by)
    runs = train_columns(
        columns,
        training.model,
        training.data,
        clients,
        seed=seed,
        loss=training.loss,
        metrics=training.metrics,
        n_workers=1,
        engine=training.engine,
        device=training.device,
        on_round=on_round,
    )
    return [finished_run(run, population, styled=has_style(clients)) for run in runs]


def engine_of(training: Training, seed: int, clients: Partition) -> str:
    """The engine that trains these clients."""
    if training.engine != "auto":
        return training.engine
    work = prepare(
        training.model,
        training.data,
        clients,
        seed=seed,
        loss=training.loss,
        metrics=training.metrics,
        device=training.device,
    )
    return "batched" if suits_batching(work) else "workers"


def has_style(clients: Partition) -> bool:
    """Whether clients have styles, and were given points that suit them."""
    return clients.report is not None and clients.report.style is not None


def finished_run(run: Run, population: str, *, styled: bool) -> FinishedRun:
    """A run as `runs.jsonl` keeps it."""
    curves = {name: finite(curve) for name, curve in run.metrics.items()}
    final = {
        name: None if run.diverged or not curve else curve[-1] for name, curve in curves.items()
    }
    return FinishedRun(
        population=population,
        seed=run.seed,
        settings=run.settings,
        engine=run.engine,
        rounds=run.rounds,
        loss=finite(run.loss),
        metrics=curves,
        final=final,
        diverged_at=run.diverged_at,
        seconds=round(run.seconds, 4),
        styled=styled,
    )


def function_fingerprint(function: Callable[..., Any]) -> str:
    """A text that changes with a function's name, its instructions, or what they were given.

    Examples
    --------
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


@cache
def end_with(parent: int) -> None:
    """End this process soon after `parent` does, if it is a worker that joblib started for it.

    joblib's workers on this machine (loky) would finish their task first, which may take hours, and wait
    five minutes for another. A task in the sweep's own process, or on another machine, is left alone.
    """
    if current_process().name.startswith("LokyProcess"):
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # an orphan has another parent
        time.sleep(_WATCHED_EVERY)
    os._exit(1)
