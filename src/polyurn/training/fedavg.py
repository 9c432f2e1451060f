"""What federated averaging is told, and what it reports: frozen values.

Settings are plain numbers and texts, so that they are the same in Python, JSON and TOML. No torch
here: nothing is trained.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from numbers import Real
from typing import Annotated, Any, Literal, TypeAlias

from polyurn.errors import ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.declared import AtLeast, Between
from polyurn.typed.json_form import shown

EngineName = Literal["auto", "workers", "batched"]

# Of the 32-bit floats that models have: a larger rate could only diverge, and a smaller one is 0.
SMALLEST_RATE, LARGEST_RATE = 1e-38, 1e38
_Rate: TypeAlias = Annotated[float, Between(SMALLEST_RATE, LARGEST_RATE)]
Positive: TypeAlias = Annotated[int, AtLeast(1)]

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
class Evaluation:
    """How the weights of a round, counted from 1, do on the test points."""

    round: int
    loss: float
    metrics: Mapping[str, float]


@checked
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
    precision : {"float32", "bfloat16"}
        What clients' products are computed in. "bfloat16" keeps the weights as they are and needs the
        engine "workers" and a processor that has it, on which convolutions are faster.

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

    n_rounds: Positive
    cohort_size: Positive
    local_epochs: Annotated[int, Between(1, 10**9)] = 1
    local_learning_rate: _Rate = 0.1
    batch_size: Positive = 10
    server_learning_rate: _Rate = 1.0
    weighting: Literal["points", "uniform"] = "points"
    proximal: Annotated[float, Between(0, LARGEST_RATE)] = 0.0
    server_optimizer: str = "SGD"
    server_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    evaluate_every: Positive = 10
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        if "lr" in self.server_options:
            raise ParameterError(
                "expected server_options as a mapping without 'lr', which is server_learning_rate"
            )
        options = {name: plain(value) for name, value in self.server_options.items()}
        object.__setattr__(self, "server_options", options)

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values, in the order of the fields."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "FedAvg":
        """The settings that `to_json` wrote; unknown names are an error."""
        cls._check_names(document)
        missing = [name for name in ("n_rounds", "cohort_size") if name not in document]
        if missing:
            raise ParameterError(f"FedAvg needs {' and '.join(missing)}")
        return cls(**document)

    def with_changes(self, changes: Mapping[str, Any]) -> "FedAvg":
        """The same settings with some of them changed."""
        self._check_names(changes)
        return replace(self, **changes)

    @classmethod
    def _check_names(cls, names: Mapping[str, Any]) -> None:
        check_names(names, [item.name for item in fields(cls)], "FedAvg has no setting")

    def evaluates(self, round_: int) -> bool:
        """Whether the test points are looked at after this round, counted from 1."""
        return round_ % self.evaluate_every == 0 or round_ == self.n_rounds


def check_names(names: Iterable[str], known: Sequence[str], has_no: str) -> None:
    """Raise a `ParameterError` that says the nearest known name, if one of the names is none."""
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
            raise ParameterError(f"{has_no} {shown(name)}; {hint}")


def plain(value: Any) -> Any:
    """A number of numpy as Python has it; all else as it is."""
    return value.item() if isinstance(value, Real) and hasattr(value, "item") else value
