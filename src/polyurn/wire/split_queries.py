"""The questions about a tree over the categories, and about splits on it; each beside its answer.

J = C - 1 is the number of splits, whose two sides are the 2J nodes but the root. `model/splits.py` has
the model, and `client/e_step.py` how a client answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.splits import Splits
from polyurn.model.trees import MOST_LEARNED
from polyurn.typed.declared import Between, Floats, Shape
from polyurn.wire.bounds import largest_sums, log_bound
from polyurn.wire.queries import Answerable, InTheirBins
from polyurn.wire.query import Query, Statistics


@dataclass(frozen=True, eq=False, repr=False)
class AffinityStatistics(Statistics):
    """Answer to `Affinity`: sums of √p and of √p √pᵀ, p the shares of a client's points.

    - `n_clients`: 1.
    - `roots`: norm 1, as p adds up to one.
    - `affinities`: the lower triangle of √p √pᵀ, whose norm is 1; sensitivity 1.
    """

    n_clients: float
    roots: Annotated[Floats, Shape("C")]
    affinities: Annotated[Floats, Shape("P")]


@dataclass(frozen=True)
class Affinity(Query[AffinityStatistics], kind="affinity"):
    """Which categories do clients have together?"""

    answer_type = AffinityStatistics
    max_size = None

    n_categories: Annotated[int, Between(2, MOST_LEARNED)]

    @property
    def lengths(self) -> Mapping[str, int]:
        return {"P": self.n_categories * (self.n_categories + 1) // 2}

    def largest(self) -> Mapping[str, ArrayLike]:
        """√p_i √p_j is at most 1/2, as p_i + p_j ≤ 1, and at most 1 for i = j."""
        c = self.n_categories
        return {"affinities": np.where(np.eye(c, dtype=bool), 1.0, 0.5)[np.tril_indices(c)]}


@dataclass(frozen=True, eq=False, repr=False)
class DivideStatistics(Statistics):
    """Answer to `Divide`: what an M-step of splits needs, at fixed responsibilities ω.

    A is 2J and S is J without laws; H is 2J and T is J times the number of knots with laws. The others
    are 0.

    - `n_clients`: 1.
    - `log_likelihood`, `size_counts`: as in `ExpectStatistics`.
    - `present`, `tables`, `spread`: those of `ExpectStatistics`, for c points on each side.
    - `total_present`, `total_tables`, `total_spread`: for the points that arrive at each split.
    - `bends`: ω (h(c) - E[h(c) | N]) for the hat functions h of each side, the gradient in θ; at most 1
      each, and hats of one side add up to one: norm at most 2 √J.
    - `arrivals`: ω h(N) for each split; norm at most √J.
    """

    n_clients: float
    log_likelihood: float
    size_counts: Annotated[Floats, Shape("K", "B")]
    present: Annotated[Floats, Shape("K", "A")]
    tables: Annotated[Floats, Shape("K", "A")]
    spread: Annotated[Floats, Shape("K", "A")]
    total_present: Annotated[Floats, Shape("K", "S")]
    total_tables: Annotated[Floats, Shape("K", "S")]
    total_spread: Annotated[Floats, Shape("K", "S")]
    bends: Annotated[Floats, Shape("K", "H")]
    arrivals: Annotated[Floats, Shape("K", "T")]


@dataclass(frozen=True, eq=False)
class Divide(InTheirBins[DivideStatistics], kind="divide"):
    """How likely are you under a mixture with splits, and where should each of its splits go?"""

    answer_type = DivideStatistics

    mdm: Annotated[MDM, Answerable()]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mdm.splits is None or not (self.splits.concentrations > 0).all():
            raise ParameterError("expected a mixture with splits of positive concentrations")

    @property
    def splits(self) -> Splits:
        assert self.mdm.splits is not None
        return self.mdm.splits

    @property
    def lengths(self) -> Mapping[str, int]:
        j, laws = self.splits.tree.n_splits, self.splits.laws
        if laws is None:
            return {"A": 2 * j, "S": j, "H": 0, "T": 0}
        n_knots = len(laws.knots)
        return {"A": 0, "S": 0, "H": 2 * j * n_knots, "T": j * n_knots}

    def largest(self) -> Mapping[str, ArrayLike]:
        """As in `Expect`, split by split."""
        found: dict[str, ArrayLike] = {"log_likelihood": log_bound(self.mdm)}
        if self.splits.laws is None:
            each = self.splits.concentrations.reshape(-1, 2)
            names = ("tables", "spread", "total_tables", "total_spread")
            sums = (one.reshape(self.n_components, -1) for one in largest_sums(each, self.max_size))
            found |= zip(names, sums, strict=True)
        return found
