"""Queries that noise can protect: one client's whole answer is a vector of L2 norm at most 1.

Each docstring says what one client sends, and proves the bound. The client does not rely on the proof:
it scales down whatever is longer (`client/bounded.py`), so that no query that a server can write moves
a sum by more than 1. In each of them c are a client's counts, n its size, p = c / n, and

    κ = Σ_j c_j (c_j - 1) / (n (n - 1)),

the share of its pairs of points that agree: between 0 and 1, and 0 for a client of one point. A client
of more than `max_size` points answers for so many of them, drawn at random; none refuses, because a
refusal would be seen. Adding noise and keeping accounts is not done here.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins
from polyurn.wire.queries import Query
from polyurn.wire.statistics import BoundedStatistics, Dimensions

# Parts of the squared norm: of the count of clients, of κ, of the size and of p.
SURVEY_PARTS = (0.1, 0.3, 0.2, 0.4)
# The same of a sketch: of the count of clients, of the residual of p and of κ.
SKETCH_PARTS = (0.3, 0.6, 0.1)

# Shares of one round may miss 1 by the rounding of a few additions, not by more.
_SUM_TOLERANCE = 1e-12


class Bounded(Query[BoundedStatistics]):
    """A query to which the answer of one client has L2 norm at most 1.

    `change_norm` is the largest norm by which an answer changes when one record of a client does, and
    the number of its records does not: twice the norm, or less where that is proved.
    """

    answer_type = BoundedStatistics
    unit_norm = True

    n_categories: int
    max_size: int


@dataclass(frozen=True)
class BoundedSurvey(Bounded):
    """How many clients are there, of which sizes, and what do they hold?

    One client sends (√.1, √.3 κ, √.2 · 1 at the bin of its size, √.4 p), 2 + B + C numbers. Its squared
    norm is .1 + .3 κ² + .2 + .4 |p|² ≤ 1, since κ ≤ 1 and |p|² ≤ Σ p = 1.

    Another record leaves the first and third blocks, moves p by √2 / n, and κ by at most min(1, 2 / n),
    or 0 if n = 1: it is in n - 1 of n (n - 1) / 2 pairs. The sum of .4 · 2 / n² and .3 times the square
    of the latter is largest at n = 1, where it is .8.
    """

    change_norm = math.sqrt(0.8)

    n_categories: int
    size_bins: SizeBins

    @property
    def max_size(self) -> int:  # type: ignore[override]
        return self.size_bins.max_size

    @property
    def dimensions(self) -> Dimensions:
        n = 2 + self.size_bins.n_bins + self.n_categories
        return Dimensions(0, self.n_categories, self.size_bins.n_bins, n_values=n)


@dataclass(frozen=True, eq=False)
class Sketch(Bounded):
    """Which prototype are you most like, and how do you differ from it?

    A client's prototype is the first g whose directions[g] · p is highest. One client sends
    (√.3, √.6 clip(p - prototypes[g]) / radius, √.1 κ) as row g of a table that is 0 elsewhere, with
    clip(x) = x · min(1, radius / |x|). Its squared norm is at most .3 + .6 + .1 κ² ≤ 1.

    With another record the row is another one, and two rows in different places are at most √2 apart;
    or it is the same, where the first number does not change, the next move by at most 2 √.6, and the
    last by at most √.1: √2.5 in all.

    Attributes
    ----------
    prototypes, directions : float arrays of shape (n_groups, n_categories)
    radius : float
        Positive.
    max_size : int
    """

    change_norm = math.sqrt(2.5)

    prototypes: NDArray[np.float64]
    directions: NDArray[np.float64]
    radius: float
    max_size: int

    def __post_init__(self) -> None:
        _check_positive("radius", self.radius)

    @property
    def n_groups(self) -> int:
        return len(self.prototypes)

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return int(self.prototypes.shape[1])

    @property
    def dimensions(self) -> Dimensions:
        g, c = self.prototypes.shape
        return Dimensions(g, c, n_values=g * (c + 2))


@dataclass(frozen=True, eq=False)
class WhitenedScore(Bounded):
    """Where should these parameters go, as far as you are concerned?

    With s the client's score (`model/scores.py`) and z = whitener' s, one client sends
    z · min(1, clip / |z|) / clip, of norm at most 1 whatever its score is.

    Attributes
    ----------
    mixture : Mixture
    whitener : float array of shape (n_coordinates, n_directions)
    clip : float
        Positive.
    max_size : int
    """

    mixture: Mixture
    whitener: NDArray[np.float64]
    clip: float
    max_size: int

    def __post_init__(self) -> None:
        _check_positive("clip", self.clip)
        if self.whitener.ndim != 2 or len(self.whitener) != self.mixture.n_coordinates:
            raise ParameterError(
                f"expected a whitener of {self.mixture.n_coordinates} rows, "
                f"got shape {self.whitener.shape}"
            )

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return self.mixture.n_categories

    @property
    def dimensions(self) -> Dimensions:
        k, c = self.mixture.alphas.shape
        return Dimensions(k, c, n_values=self.whitener.shape[1])


@dataclass(frozen=True, eq=False)
class Differences(Bounded):
    """How much likelier do you find each of these mixtures than the first?

    One client sends clip(log q_m - log q_0) / (bounds[m] √(M - 1)) for each of M mixtures but the
    first, with clip to ± bounds[m]: M - 1 numbers of at most 1 / √(M - 1) each, of norm at most 1.
    Log-likelihoods themselves are never sent: differences are small, and need less noise.

    Attributes
    ----------
    mixtures : tuple of Mixture
    bounds : tuple of float
        Positive, one for each mixture but the first.
    max_size : int
    """

    mixtures: tuple[Mixture, ...]
    bounds: tuple[float, ...]
    max_size: int

    def __post_init__(self) -> None:
        for bound in self.bounds:
            _check_positive("bound", bound)
        if len(self.mixtures) < 2 or len(self.mixtures) != len(self.bounds) + 1:
            raise ParameterError(
                f"expected a bound for each mixture but the first, got {len(self.bounds)} for "
                f"{len(self.mixtures)}"
            )

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return self.mixtures[0].n_categories

    @property
    def dimensions(self) -> Dimensions:
        n = len(self.mixtures)
        return Dimensions(0, self.n_categories, n_models=n, n_values=n - 1)


@dataclass(frozen=True, eq=False)
class SizeMembership(Bounded):
    """How large are the clients of each component?

    One client sends its responsibilities ω in the column of its size's bin, K × B numbers that are 0
    elsewhere. Its norm is |ω|, and |ω|² ≤ Σ ω = 1. Another record leaves the column: two probability
    vectors are at most √2 apart.
    """

    change_norm = math.sqrt(2.0)

    mixture: Mixture
    size_bins: SizeBins

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return self.mixture.n_categories

    @property
    def max_size(self) -> int:  # type: ignore[override]
        return self.size_bins.max_size

    @property
    def dimensions(self) -> Dimensions:
        k, b = self.mixture.n_components, self.size_bins.n_bins
        return Dimensions(k, self.n_categories, b, n_values=k * b)


@dataclass(frozen=True, eq=False)
class Shares(Bounded):
    """Several bounded queries in one round, each with a share of the squared norm.

    One client sends its answer to each query times the square root of the query's share, one after the
    other. Every answer has norm at most 1 and the shares add up to at most 1, so the squared norm of
    all is at most Σ share · 1 ≤ 1.
    """

    queries: tuple[Bounded, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.queries or len(self.queries) != len(self.shares):
            raise ParameterError(
                f"expected a share for each of at least one query, got {len(self.shares)} for "
                f"{len(self.queries)}"
            )
        if not all(0 < share <= 1 for share in self.shares) or sum(self.shares) > (
            1 + _SUM_TOLERANCE
        ):
            raise ParameterError(
                f"expected shares above 0 that sum to at most 1, got {self.shares}"
            )
        if not all(isinstance(query, Bounded) for query in self.queries):
            raise ParameterError("expected queries whose answers are bounded, got another kind")

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return self.queries[0].n_categories

    @property
    def max_size(self) -> int:  # type: ignore[override]
        return max(query.max_size for query in self.queries)

    @property
    def dimensions(self) -> Dimensions:
        n = sum(query.n_numbers for query in self.queries)
        return Dimensions(0, self.n_categories, n_values=n)

    @property
    def change_norm(self) -> float:  # type: ignore[override]
        parts = zip(self.queries, self.shares, strict=True)
        return math.sqrt(sum(share * query.change_norm**2 for query, share in parts))

    def split(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The sum of the answers to each query, the share taken out again."""
        ends = np.cumsum([query.n_numbers for query in self.queries])
        parts = zip(np.split(values, ends[:-1]), self.shares, strict=True)
        return [part / np.sqrt(share) for part, share in parts]


def _check_positive(name: str, value: Any) -> None:
    if not 0 < value < np.inf:  # NaN is not
        raise ParameterError(f"expected a finite {name} above 0, got {value}")
