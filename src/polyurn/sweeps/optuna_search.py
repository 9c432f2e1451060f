"""What an adaptive search with Optuna is told: a frozen value of plain numbers and texts.

No Optuna here: `studies.py` runs the search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from polyurn.errors import ParameterError
from polyurn.training.fedavg import FedAvg, check_names, is_number
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import shown


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
    n_trials: int
    metric: str = "accuracy"
    sampler: str = "TPESampler"
    pruner: str = "MedianPruner"
    sampler_options: Mapping[str, Any] = field(default_factory=dict)
    pruner_options: Mapping[str, Any] = field(default_factory=dict)
    storage: Literal["journal", "sqlite"] = "journal"

    def __post_init__(self) -> None:
        if not self.space:
            raise ParameterError("expected a space of at least one setting")
        if self.n_trials < 1:
            raise ParameterError(
                f"expected n_trials as an integer above 0, got {shown(self.n_trials)}"
            )
        check_names(self.space)
        for name, bounds in self.space.items():
            known = {"choices"} if "choices" in bounds else {"low", "high", "log", "step"}
            if not set(bounds) <= known or not (
                {"low", "high"} <= set(bounds) or "choices" in bounds
            ):
                raise ParameterError(
                    f"expected low and high (and log or step), or choices, for {name}, "
                    f"got {', '.join(bounds)}"
                )
            _check_bounds(name, bounds)

    def extremes(self, settings: FedAvg) -> list[FedAvg]:
        """Settings that have every bound and every choice between them, to be checked.

        Examples
        --------
        >>> search = OptunaSearch({"local_epochs": {"low": 1, "high": 5}}, n_trials=3)
        >>> [found.local_epochs for found in search.extremes(FedAvg(n_rounds=1, cohort_size=1))]
        [1, 5]
        """
        values = {
            name: list(bounds["choices"])
            if "choices" in bounds
            else [bounds["low"], bounds["high"]]
            for name, bounds in self.space.items()
        }
        longest = max(map(len, values.values()))
        return [
            settings.with_changes({name: some[i % len(some)] for name, some in values.items()})
            for i in range(longest)
        ]

    def to_json(self) -> dict[str, Any]:
        """The search as JSON values."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        record["space"] = {name: dict(bounds) for name, bounds in self.space.items()}
        return record


def _check_bounds(name: str, bounds: Mapping[str, Any]) -> None:
    if "choices" in bounds:
        choices = bounds["choices"]
        if isinstance(choices, str) or not isinstance(choices, Sequence) or not choices:
            raise ParameterError(f"expected choices for {name} as a list, got {shown(choices)}")
        return
    low, high, step = bounds["low"], bounds["high"], bounds.get("step")
    if not (is_number(low) and is_number(high) and low <= high):
        raise ParameterError(
            f"expected numbers low <= high for {name}, got {shown(low)} and {shown(high)}"
        )
    if bounds.get("log") and (low <= 0 or step is not None):
        raise ParameterError(f"expected low above 0 and no step for {name}, which is log")
    if step is not None and (not is_number(step) or step <= 0):
        raise ParameterError(f"expected step above 0 for {name}, got {shown(step)}")
