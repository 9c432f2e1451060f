"""What a federation is asked for: a mixture of its clients, or their style.

A job has the terms on which nodes are asked, which are the same whatever the question is: who is asked,
how sums are made, and what is guaranteed. How a job becomes files is `job_folder.py`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from polyurn.errors import ParameterError
from polyurn.model.style_coordinates import StyleSpace
from polyurn.privacy.ledger import Budget
from polyurn.storage.style_json import check_feature_names, space_from_record, space_to_record
from polyurn.typed.records import Count, Finite, read_record, to_record

# Who can add noise, by whether sums are secure: a share of it hides nothing in a plain answer.
_ADDERS = {True: ("distributed", "central", "local"), False: ("central", "local")}


@dataclass(frozen=True, kw_only=True)
class Job:
    """The terms on which nodes are asked; what they are asked is a `MixtureJob` or a `StyleJob`.

    Attributes
    ----------
    federation : str
        The folder of the federation.
    command : str or None
        How the user asked.
    secure : bool
    min_nodes, retries : int
    min_fraction, timeout, settling, dropout : float
    epsilon, delta : float or None
        What the run may spend; None: there is no guarantee.
    trust : str or None
        With a guarantee, who adds the noise: "distributed", "central" or "local"; plain sums have no
        distributed one.
    ledger_epsilon : float or None
        The whole budget of the federation's clients; None: as its ledger has it, or `epsilon`.
    """

    federation: str
    command: str | None
    secure: bool = True
    min_nodes: Count = 3
    retries: Count = 2
    min_fraction: Finite = 0.7
    timeout: Finite = 60.0
    settling: Finite = 60.0
    dropout: Finite = 0.3
    epsilon: Finite | None = None
    delta: Finite | None = None
    trust: str | None = None
    ledger_epsilon: Finite | None = None

    def __post_init__(self) -> None:
        self._check_guarantee()
        if self.min_nodes < 1:
            raise ParameterError("expected min_nodes of at least 1")
        if self.secure and self.min_nodes < 2:
            raise ParameterError(
                "expected min_nodes of at least 2 for secure sums: a sum over one node is its answer"
            )
        if not 0 <= self.min_fraction <= 1 or self.timeout <= 0 or self.settling < 0:
            raise ParameterError(
                "expected min_fraction from 0 to 1, a timeout above 0 and a settling time of at least 0"
            )
        if self.secure and not 0 <= self.dropout < 0.5:
            raise ParameterError(
                f"expected dropout from 0 to less than 0.5, got {self.dropout:g}: where half of the "
                "nodes leave, no majority is left"
            )

    def _check_guarantee(self) -> None:
        rest = (self.delta, self.trust, self.ledger_epsilon)
        if self.epsilon is None:
            if rest != (None, None, None):
                raise ParameterError("expected delta, trust and ledger_epsilon with epsilon only")
            return
        if self.delta is None:
            raise ParameterError("expected delta with epsilon")
        Budget(self.epsilon, self.delta)
        if self.ledger_epsilon is not None:
            Budget(self.ledger_epsilon, self.delta)
        if self.trust not in _ADDERS[self.secure]:
            raise ParameterError(
                f"expected trust {', '.join(_ADDERS[self.secure])} in "
                f"{'secure' if self.secure else 'plain'} sums, got {self.trust}"
            )


@dataclass(frozen=True, kw_only=True)
class MixtureJob(Job):
    """Which kinds of clients are there?

    Attributes
    ----------
    selects : bool
        Whether the number of components is chosen, or `components` has the one that is wanted.
    components : tuple of int
        Empty for "auto".
    max_size, max_rounds, patience, max_upload, seed : int
    tol, held_out : float
    cohort_size : int or None
        A number of nodes.
    sizes : str
    checkpoint : str or None
        Folder that keeps the sum of every round.
    """

    asks: ClassVar[str] = "mixture"

    selects: bool
    components: tuple[Count, ...]
    max_size: Count
    max_rounds: Count = 50
    patience: Count = 3
    max_upload: Count = 50_000
    seed: Count = 0
    tol: Finite = 1e-3
    held_out: Finite = 0.2
    cohort_size: Count | None = None
    sizes: str = "binned"
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(*self.components, self.max_rounds, 1) < 1:
            raise ParameterError("expected numbers of components and of rounds of at least 1")
        if self.epsilon is None:
            return
        if self.selects and not self.components:
            raise ParameterError("expected components as 1:6 or 2,4,8 with epsilon, got auto")
        if self.cohort_size is not None or self.sizes == "exact":
            raise ParameterError(
                "expected all nodes (no cohort) and sizes binned or shared with epsilon"
            )

    @property
    def search(self) -> dict[str, Any]:
        """The parameters of `learn` that the job has."""
        names = (
            "max_size", "max_rounds", "cohort_size", "tol", "patience", "max_upload", "sizes",
            "held_out", "epsilon", "delta",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    @property
    def settings(self) -> dict[str, Any]:
        """What decides about the rounds: a run that goes on has to have the same."""
        record = to_record(self)
        no_matter = ("command", "checkpoint", "timeout", "settling", "retries", "ledger_epsilon")
        kept = {name: value for name, value in record.items() if name not in no_matter}
        if not self.selects:
            del kept["max_rounds"]  # a fit that was to take fewer rounds begins in the same way
        return kept

    def to_record(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return to_record(self)

    @classmethod
    def from_record(cls, record: object) -> Self:
        """What `to_record` wrote, checked."""
        return read_record(cls, record)


@dataclass(frozen=True, kw_only=True)
class StyleJob(Job):
    """What do clients differ in besides their labels?

    It is one question, so that there is nothing to go on from, and nothing in it is random.

    Attributes
    ----------
    space : StyleSpace
        Of as many labels as the federation has categories, in their order.
    features : tuple of str, or None
        The name of each feature.
    ties : bool
        As in `fit_style`.
    """

    asks: ClassVar[str] = "style"

    space: StyleSpace
    features: tuple[str, ...] | None = None
    ties: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_feature_names(self.features, self.space)

    def to_record(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return {**to_record(self), "space": space_to_record(self.space)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """What `to_record` wrote, checked."""
        space = space_from_record(record.get("space"), where="space")
        return read_record(cls, record, parsed={"space": space})
