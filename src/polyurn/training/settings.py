"""What federated averaging, and a search for its settings, are told: frozen values.

Settings are plain numbers and texts, so that they are the same in Python, JSON and TOML. No torch
here: nothing is trained.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal

from polyurn.errors import ParameterError

EngineName = Literal["auto", "workers", "batched"]

# A sweep may train settings that differ in nothing else side by side: they see the same cohorts
# and the same batches.
COLUMN_FIELDS = frozenset(
    {
        "local_learning_rate",
        "server_learning_rate",
        "weighting",
        "proximal",
        "server_optimizer",
        "server_options",
    }
)


@dataclass(frozen=True)
class FedAvg:
    """Settings of federated averaging.

    Attributes
    ----------
    n_rounds : int
    cohort_size : int
        Clients per round, drawn without replacement.
    local_epochs : int
        Passes of a client over its points.
    local_learning_rate : float
        Of the clients' SGD.
    batch_size : int
        A client's last batch of an epoch may be smaller. In a model with batch norm, a last single
        point joins the batch before it, and a client with one point keeps the running statistics.
    server_learning_rate : float
        Passed to the server optimiser as `lr`.
    weighting : {"points", "uniform"}
        The mean of the clients' updates is weighted by their points, or not.
    proximal : float
        μ of FedProx: clients also minimise μ/2 ‖w - w_server‖². 0 is FedAvg.
    server_optimizer : str
        A class of `torch.optim`, which sees minus the mean update as its gradient. "SGD" with rate 1
        is FedAvg; with server_options={"momentum": 0.9} it is FedAvgM; "Adam" is FedAdam.
    server_options : mapping
        The optimiser's other arguments.
    evaluate_every : int
        The test points are looked at every so many rounds, and after the last one.

    Examples
    --------
    >>> settings = FedAvg(n_rounds=100, cohort_size=50, local_learning_rate=0.05)
    >>> settings.with_changes({"local_epochs": 5}).local_epochs
    5
    >>> settings.with_changes({"local_epoch": 5})
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: FedAvg has no setting 'local_epoch'; did you mean 'local_epochs'?
    """

    n_rounds: int
    cohort_size: int
    local_epochs: int = 1
    local_learning_rate: float = 0.1
    batch_size: int = 10
    server_learning_rate: float = 1.0
    weighting: Literal["points", "uniform"] = "points"
    proximal: float = 0.0
    server_optimizer: str = "SGD"
    server_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    evaluate_every: int = 10

    def __post_init__(self) -> None:
        for name in ("n_rounds", "cohort_size", "local_epochs", "batch_size", "evaluate_every"):
            value: Any = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, Integral)
                or not 1 <= int(value) < 2**63
            ):
                raise ParameterError(f"expected {name} as an integer of at least 1, got {value!r}")
            object.__setattr__(self, name, int(value))
        for name in ("local_learning_rate", "server_learning_rate"):
            if not _is_number(getattr(self, name)) or getattr(self, name) <= 0:
                raise ParameterError(f"expected {name} above 0, got {getattr(self, name)!r}")
        if not _is_number(self.proximal) or self.proximal < 0:
            raise ParameterError(f"expected proximal of at least 0, got {self.proximal!r}")
        if self.weighting not in ("points", "uniform"):
            raise ParameterError(
                f"expected weighting 'points' or 'uniform', got {self.weighting!r}"
            )
        if not isinstance(self.server_optimizer, str):
            raise ParameterError("expected server_optimizer as the name of a torch.optim class")
        if not isinstance(self.server_options, Mapping) or "lr" in self.server_options:
            raise ParameterError(
                "expected server_options as a mapping without 'lr', which is server_learning_rate"
            )
        for name in ("local_learning_rate", "server_learning_rate", "proximal"):
            object.__setattr__(self, name, float(getattr(self, name)))  # 1 and 1.0 are one setting
        options = {name: plain(value) for name, value in self.server_options.items()}
        object.__setattr__(self, "server_options", options)

    def to_record(self) -> dict[str, Any]:
        """The settings as JSON values, in the order of the fields."""
        return asdict(self) | {"server_options": dict(self.server_options)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "FedAvg":
        """The settings that `to_record` wrote; unknown names are an error."""
        check_names(record)
        missing = [name for name in ("n_rounds", "cohort_size") if name not in record]
        if missing:
            raise ParameterError(f"FedAvg needs {' and '.join(missing)}")
        return cls(**record)

    def with_changes(self, changes: Mapping[str, Any]) -> "FedAvg":
        """The same settings with some of them changed."""
        check_names(changes)
        return replace(self, **changes)

    def evaluates(self, round_: int) -> bool:
        """Whether the test points are looked at after this round, counted from 1."""
        return round_ % self.evaluate_every == 0 or round_ == self.n_rounds


@dataclass(frozen=True)
class Search:
    """An adaptive search for the settings with the largest metric.

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
        if not isinstance(self.space, Mapping) or not self.space:
            raise ParameterError("expected a space of at least one setting")
        if type(self.n_trials) is not int or self.n_trials < 1:
            raise ParameterError(f"expected n_trials as an integer above 0, got {self.n_trials!r}")
        if self.storage not in ("journal", "sqlite"):
            raise ParameterError(f"expected storage 'journal' or 'sqlite', got {self.storage!r}")
        check_names(self.space)
        for name, bounds in self.space.items():
            if not isinstance(bounds, Mapping):
                raise ParameterError(f"expected a table of bounds for {name}, got {bounds!r}")
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
        >>> search = Search({"local_epochs": {"low": 1, "high": 5}}, n_trials=3)
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

    def to_record(self) -> dict[str, Any]:
        """The search as JSON values."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        record["space"] = {name: dict(bounds) for name, bounds in self.space.items()}
        return record


def _check_bounds(name: str, bounds: Mapping[str, Any]) -> None:
    if "choices" in bounds:
        choices = bounds["choices"]
        if isinstance(choices, str) or not isinstance(choices, Sequence) or not choices:
            raise ParameterError(f"expected choices for {name} as a list, got {choices!r}")
        return
    low, high, step = bounds["low"], bounds["high"], bounds.get("step")
    if not (_is_number(low) and _is_number(high) and low <= high):
        raise ParameterError(f"expected numbers low <= high for {name}, got {low!r} and {high!r}")
    if bounds.get("log") and (low <= 0 or step is not None):
        raise ParameterError(f"expected low above 0 and no step for {name}, which is log")
    if step is not None and (not _is_number(step) or step <= 0):
        raise ParameterError(f"expected step above 0 for {name}, got {step!r}")


def check_names(names: Mapping[str, Any]) -> None:
    """Raise a `ParameterError` that says the nearest setting, if one of the names is none."""
    known = [item.name for item in fields(FedAvg)]
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
            raise ParameterError(f"FedAvg has no setting {name!r}; {hint}")


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    # False for NaN, and for an integer that no float can hold.
    return is_real and bool(abs(value) <= sys.float_info.max)


def plain(value: Any) -> Any:
    """A number of numpy as Python has it; all else as it is."""
    return value.item() if isinstance(value, Real) and hasattr(value, "item") else value
