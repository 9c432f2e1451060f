"""One task of a sweep: train, and return what is kept of it.

This is what is sent to other processes and machines. Nothing is written here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from polyurn.training.examples import Examples, Holdings
from polyurn.training.federated import Evaluation, Run, train_columns
from polyurn.training.losses import PerExample
from polyurn.training.models import ModelFunction
from polyurn.training.records import RunRecord, finite
from polyurn.training.settings import EngineName, FedAvg


@dataclass(frozen=True, eq=False)
class Training:
    """What all runs of a sweep have in common, as it is sent to whoever runs them."""

    model: ModelFunction | str
    data: Examples
    loss: PerExample
    metrics: Mapping[str, PerExample]
    engine: EngineName
    device: str | None

    def __sizeof__(self) -> int:
        """The data's size: Dask sends what is large to each of its workers once, not with each run."""
        return sum(array.nbytes for array in vars(self.data).values())


def run_columns(
    training: Training,
    population: str,
    seed: int,
    clients: Holdings,
    columns: Sequence[FedAvg],
    on_round: Callable[[int, Evaluation], object] | None = None,
) -> list[RunRecord]:
    """Train columns in this process and return their records."""
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
    return [record_of(run, population, list(training.metrics)) for run in runs]


def record_of(run: Run, population: str, metrics: Sequence[str]) -> RunRecord:
    """The record of a run."""
    curves = {name: finite(run.metrics.get(name, [])) for name in metrics}
    final = {
        name: None if run.diverged or not curve else curve[-1] for name, curve in curves.items()
    }
    return RunRecord(
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
    )
