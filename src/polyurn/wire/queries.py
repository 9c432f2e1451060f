"""The questions whose sums are exact, each beside its answer, and those around other questions.

"All K in one round", "many starts in one round", "only these clients" and "with noise" are queries too.
The docstring of each answer states what one client adds and its sensitivity, the largest L2 norm of one
client's block. K, C and B are the numbers of components, categories and size bins. How a client answers
is `client/answers.py`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM, Parameters
from polyurn.model.rising_factorials import digamma_rise
from polyurn.model.sizes import SUM_TOLERANCE, SizeBins
from polyurn.model.splits import Splits
from polyurn.model.trees import MOST_LEARNED
from polyurn.typed.arrays import EqualArrays
from polyurn.typed.declared import (
    IF_GIVEN,
    Above,
    AtLeast,
    Between,
    Floats,
    Shape,
    check_declared,
)
from polyurn.wire.bounds import largest_curvature, largest_sums, log_bound
from polyurn.wire.query import LARGEST, Around, InBins, Leaves, Query, S, Several, Statistics

# A Gaussian draw is farther away than so many standard deviations with probability below 1e-300.
TAIL = 40.0


class Answerable:
    """Marks parameters of a mixture, or several, that are checked when they come in a message.

    A client's kernels rely on the shapes, and a positive alpha below 1e-150 has sums beyond all bounds.
    """

    def __init__(self, *, zeros: bool = True) -> None:
        self._zeros = zeros

    def check_received(self, value: Any) -> None:
        """Refuse parameters in a message that no client could answer about."""
        for one in value if isinstance(value, tuple) else (value,):
            check_declared(one)
            self._check(one.weights, one.alphas)
            sizes = getattr(one, "sizes", None)
            if sizes is not None and len(sizes.masses) != len(one.weights):
                raise ParameterError("expected size probabilities of as many components as weights")

    def _check(self, weights: Floats, alphas: Floats) -> None:
        least = weights.min()
        if not (least >= 0 and abs(weights.sum() - 1) <= SUM_TOLERANCE):
            raise ParameterError("expected weights of at least 0 that sum to 1")
        positive = alphas >= 1 / LARGEST
        if positive.all() and (self._zeros or least > 0):
            return
        if not self._zeros:
            raise ParameterError(
                f"expected weights above 0, and alphas of at least {1 / LARGEST:g}"
            )
        if not ((positive | (alphas == 0)).all() and positive.any(axis=1).all()):
            raise ParameterError(
                f"expected alphas of 0 or at least {1 / LARGEST:g}, with a positive one in each row"
            )


class OfMixtures(Query[S]):
    """A query about mixtures of the same categories."""

    def __post_init__(self) -> None:
        if len({mixture.alphas.shape[1] for mixture in self.all_mixtures()}) != 1:
            raise ParameterError("expected mixtures, all of the same number of categories")
        super().__post_init__()

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return int(next(self.all_mixtures()).alphas.shape[1])

    @property
    def n_components(self) -> int:
        return len(next(self.all_mixtures()).weights)


class InTheirBins(OfMixtures[S], InBins[S]):
    """A query about a mixture, whose sizes are in bins."""

    @property
    def size_bins(self) -> SizeBins:  # type: ignore[override]
        bins: SizeBins = next(self.all_mixtures()).sizes.bins
        return bins


# ------------------------------------------------------------------------------ the paper's questions


@dataclass(frozen=True, eq=False, repr=False)
class StartStatistics(Statistics):
    """Answer to `Initialise`: the moments of the clients that joined each component.

    - `n_clients`: 1.
    - `size_counts`, E of the paper: one entry 1; sensitivity 1.
    - `first_moments`, P: one row of proportions c/n; sensitivity 1.
    - `second_moments`, Q: one row of squared proportions; sensitivity 1.
    """

    n_clients: float
    size_counts: Annotated[Floats, Shape("K", "B")]
    first_moments: Annotated[Floats, Shape("K", "C")]
    second_moments: Annotated[Floats, Shape("K", "C")]


@dataclass(frozen=True)
class Initialise(InBins[StartStatistics], kind="initialise"):
    """Algorithm 1's question: join one of K components at random and send your moments."""

    answer_type = StartStatistics
    method = "fit_paper"

    n_components: Annotated[int, AtLeast(1)]
    n_categories: Annotated[int, AtLeast(2)]
    size_bins: SizeBins


@dataclass(frozen=True, eq=False, repr=False)
class UpdateStatistics(Statistics):
    """Answer to `Update`: Algorithm 2's ω, E, u and v, and the log-likelihood.

    - `n_clients`: 1.
    - `log_likelihood`: log q(c, n); bounded by the parameters only (`bounds.log_bound`), so it must be
      clipped before noise is added.
    - `responsibilities`, ω: sums to one; sensitivity 1.
    - `size_counts`, E: one column ω; sensitivity 1.
    - `numerators`, u: unbounded as α → 0. α·u is the expected number of tables of a Chinese
      restaurant, at most c_j in column j, so its norm is at most max_size.
    - `denominators`, v: unbounded as α_0 → 0. α_0·v is at most max_size.
    """

    n_clients: float
    log_likelihood: float
    responsibilities: Annotated[Floats, Shape("K")]
    size_counts: Annotated[Floats, Shape("K", "B")]
    numerators: Annotated[Floats, Shape("K", "C")]
    denominators: Annotated[Floats, Shape("K")]


@dataclass(frozen=True)
class Update(InTheirBins[UpdateStatistics], kind="update"):
    """Algorithm 2's question: how well does each component explain you, and where should it go?"""

    answer_type = UpdateStatistics
    method = "fit_paper"

    mdm: Annotated[MDM, Answerable()]

    def __post_init__(self) -> None:
        if self.mdm.splits is not None:
            raise ParameterError(
                "expected a mixture of Dirichlet-multinomials, which the paper's update is of, got one "
                "with splits"
            )
        super().__post_init__()

    def largest(self) -> Mapping[str, ArrayLike]:
        """With ω ≤ 1, u = ω (ψ(c + α) - ψ(α)) ≤ t̄ / α, and v likewise; where α is 0, ω and u are."""
        alphas, n = self.mdm.alphas, self.max_size
        with np.errstate(divide="ignore"):
            numerators = np.where(alphas > 0, digamma_rise(alphas, n), 0.0)
        denominators = digamma_rise(alphas.sum(axis=1), n)
        logs = log_bound(self.mdm)
        return {"log_likelihood": logs, "numerators": numerators, "denominators": denominators}


# ----------------------------------------------------------------------------------- before a fit


@dataclass(frozen=True, eq=False, repr=False)
class SurveyStatistics(Statistics):
    """Answer to `Survey`: sums of a client's features, p, Σ p² and log n / log max_size, and its size.

    - `n_clients`: 1.
    - `features`: each at most 1; sensitivity √3.
    - `products`: their products in pairs, or only their squares; sensitivity 3.
    - `size_counts`: one entry 1; sensitivity 1. A size that nobody else has shows that a client of
      that size exists.
    """

    n_clients: float
    features: Annotated[Floats, Shape("F")]
    products: Annotated[Floats, Shape("P")]
    size_counts: Annotated[Floats, Shape("B")]


@dataclass(frozen=True)
class Survey(InBins[SurveyStatistics], kind="survey"):
    """How do clients vary? Sums of features and their products, and the number of clients by size.

    `size_bins` may be as fine as one size each; `pairs` asks for all products, a covariance matrix, and
    without it for squares only.
    """

    answer_type = SurveyStatistics

    n_categories: Annotated[int, AtLeast(2)]
    size_bins: SizeBins
    pairs: bool

    @property
    def lengths(self) -> Mapping[str, int]:
        f = self.n_categories + 2
        products = f * (f + 1) // 2 if self.pairs else f
        return {"F": f, "P": products}

    def largest(self) -> Mapping[str, ArrayLike]:
        """Proportions and Σ p² are at most 1, log n at most log N; p_i p_j at most 1/4."""
        c, log_size = self.n_categories, np.log(self.max_size)
        features = np.append(np.ones(c + 1), log_size / max(log_size, 1.0))
        if not self.pairs:
            return {"features": features, "products": features**2}
        products = np.outer(features, features)
        products[:c, :c] = np.where(np.eye(c, dtype=bool), 1.0, 0.25)
        return {"features": features, "products": products[np.tril_indices(len(features))]}


@dataclass(frozen=True, eq=False, repr=False)
class GroupStatistics(Statistics):
    """Answer to `Group`: the moments of the clients that fell into each group.

    A group can by chance hold few clients, or one; only noise protects those.

    - `n_clients`: 1.
    - `size_counts`: one entry 1; sensitivity 1.
    - `proportions`: one row c/n; sensitivity 1.
    - `squares`: one entry Σ (c/n)²; sensitivity 1.
    """

    n_clients: float
    size_counts: Annotated[Floats, Shape("G", "B")]
    proportions: Annotated[Floats, Shape("G", "C")]
    squares: Annotated[Floats, Shape("G")]


@dataclass(frozen=True, eq=False)
class Group(InBins[GroupStatistics], kind="group"):
    """Join the group whose linear score of your features (C + 2) is highest, and send your moments."""

    answer_type = GroupStatistics

    directions: Annotated[Floats, Shape("K", "C + 2")]
    offsets: Annotated[Floats, Shape("K")]
    size_bins: SizeBins

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return int(self.directions.shape[1]) - 2

    @property
    def n_groups(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, eq=False, repr=False)
class ContrastStatistics(Statistics):
    """Answer to `Contrast`: how alike a client's own points are in label, feature and both.

    A client of fewer than two points has no pair of points, and adds nothing. No number is larger than
    1. L is the number of labels.

    - `n_clients`: 1.
    - `proportions`: c/n of label × value, label after label; sensitivity 1.
    - `squares`: Σ over values of the squared proportions; add up to at most 1.
    - `label_squares`: the squared proportion of the label; add up to at most 1.
    - `pairs`: the share of its pairs of points that both have the label,
      n_y (n_y - 1) / (n (n - 1)); add up to at most 1.
    - `matches`: the share of its pairs that have the label and the same value; at most `pairs`.
    - `feature_squares`: Σ over values of their squared proportions, whatever the label; at most 1.
    - `feature_matches`: the share of its pairs that have the same value; at most 1.
    - `moments`: m², m d and d², with m the sum of its `matches` and d that of its `pairs` less m;
      m + d ≤ 1, so that they add up to at most 1.
    """

    n_clients: float
    proportions: Annotated[Floats, Shape("C")]
    squares: Annotated[Floats, Shape("L")]
    label_squares: Annotated[Floats, Shape("L")]
    pairs: Annotated[Floats, Shape("L")]
    matches: Annotated[Floats, Shape("L")]
    feature_squares: float
    feature_matches: float
    moments: Annotated[Floats, Shape("M")]


@dataclass(frozen=True, eq=False)
class RecordColumn(EqualArrays):
    """A column of clients' records, cut into bins: the feature with this index, of n_features.

    A number below the first edge is in the first bin and one from the last edge on in the last, so that
    every number has one.
    """

    index: Annotated[int, AtLeast(0)]
    n_features: Annotated[int, AtLeast(1)]
    edges: Annotated[Floats, Shape("E")]

    def __post_init__(self) -> None:
        check_declared(self)
        increasing = np.isfinite(self.edges).all() and (np.diff(self.edges) > 0).all()
        if self.index >= self.n_features or not increasing:
            raise ParameterError(
                f"expected increasing edges of one of {self.n_features} features, got number "
                f"{self.index} and {len(self.edges)} edges"
            )

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1


@dataclass(frozen=True)
class Contrast(Query[ContrastStatistics], kind="contrast"):
    """How alike are your own points, in the label, in a feature, and in the feature given the label?

    For clients whose categories are label × value, label after label: category y * n_values + f. With a
    `column`, for clients whose categories are the labels, and who hold records: the values are its bins.
    """

    answer_type = ContrastStatistics
    method = "feature_differences"
    max_size = None

    n_labels: Annotated[int, AtLeast(2)]
    n_values: Annotated[int, AtLeast(2)]
    column: RecordColumn | None = field(default=None, metadata=IF_GIVEN)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.column is not None and self.column.n_bins != self.n_values:
            raise ParameterError(
                f"expected a column of {self.n_values} bins, got {self.column.n_bins}"
            )

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return self.n_labels * (self.n_values if self.column is None else 1)

    @property
    def n_features(self) -> int | None:
        return None if self.column is None else self.column.n_features

    @property
    def lengths(self) -> Mapping[str, int]:
        return {"C": self.n_labels * self.n_values, "L": self.n_labels, "M": 3}

    def largest(self) -> Mapping[str, ArrayLike]:
        """Of the moments, m d is at most 1/4, as m + d is at most 1."""
        return {"moments": [1.0, 0.25, 1.0]}


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


# ------------------------------------------------------------------------------- about parameters


@dataclass(frozen=True, eq=False, repr=False)
class ExpectStatistics(Statistics):
    """Answer to `Expect`: what an M-step at any nearby α needs, at fixed responsibilities ω.

    - `n_clients`: 1.
    - `log_likelihood`: log q(c, n); bounded by the parameters only (`bounds.log_bound`): clip before
      noise.
    - `size_counts`: one column ω; sensitivity 1.
    - `present`: ω where the category occurs; norm at most √C.
    - `tables`: ω α (ψ(c + α) - ψ(α)), the expected number of tables of a Chinese restaurant;
      at most ω c in each column, so its norm is at most max_size.
    - `spread`: ω α² (ψ′(α) - ψ′(c + α)); at most `tables`.
    - `total_tables`, `total_spread`: the same of n and α_0; at most max_size.
    - `curvature`: the lower triangle of the Hessian of log q in (log α, log τ)
      of the components asked for; each entry at most max_size + max_size² / 4, clip before noise.
    """

    n_clients: float
    log_likelihood: float
    size_counts: Annotated[Floats, Shape("K", "B")]
    present: Annotated[Floats, Shape("K", "C")]
    tables: Annotated[Floats, Shape("K", "C")]
    spread: Annotated[Floats, Shape("K", "C")]
    total_tables: Annotated[Floats, Shape("K")]
    total_spread: Annotated[Floats, Shape("K")]
    curvature: Annotated[Floats, Shape("H")]


@dataclass(frozen=True, eq=False)
class Expect(InTheirBins[ExpectStatistics], kind="expect"):
    """How likely are you under these parameters, and where should each component go?

    `curvature` names the components whose curvature is asked for as well, in increasing order.
    """

    answer_type = ExpectStatistics

    parameters: Annotated[Parameters, Answerable()]
    curvature: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        k, some = len(self.parameters.weights), self.curvature
        if not some:
            return
        if any(i >= j for i, j in pairwise((-1, *some, k))):
            raise ParameterError(f"expected curvature of components from 0 to {k - 1}, increasing")
        if not (self.parameters.alphas[list(some)] > 0).all():
            raise ParameterError("expected positive alphas where curvature is asked for, got 0")

    @property
    def lengths(self) -> Mapping[str, int]:
        p = len(self.curvature) * (self.n_categories + 1)
        return {"H": p * (p + 1) // 2}

    def largest(self) -> Mapping[str, ArrayLike]:
        """ω ≤ 1 times the largest t, σ, T and S; all of them are attained if K = 1."""
        found: dict[str, ArrayLike] = {"log_likelihood": log_bound(self.parameters)}
        found |= largest_sums(self.parameters.alphas, self.max_size)
        if self.curvature:
            found["curvature"] = largest_curvature(self.parameters, list(self.curvature))
        return found


@dataclass(frozen=True, eq=False, repr=False)
class ScoreStatistics(Statistics):
    """Answer to `Score`: log-likelihoods under several MDMs, and their products in pairs.

    One client adds log q under each MDM; bounded by the parameters only (`bounds.log_bound`): clip
    before noise.
    """

    n_clients: float
    log_likelihoods: Annotated[Floats, Shape("M")]
    products: Annotated[Floats, Shape("M", "M")]


@dataclass(frozen=True, eq=False)
class Score(OfMixtures[ScoreStatistics], kind="score"):
    """How likely are you under each of these MDMs?"""

    answer_type = ScoreStatistics

    mdms: Annotated[tuple[MDM, ...], Answerable()]

    @property
    def max_size(self) -> int:  # type: ignore[override]
        return max(mdm.max_size for mdm in self.mdms)

    @property
    def lengths(self) -> Mapping[str, int]:
        return {"M": len(self.mdms)}

    def largest(self) -> Mapping[str, ArrayLike]:
        logs = np.array([log_bound(mdm) for mdm in self.mdms])
        return {"log_likelihoods": logs, "products": np.outer(logs, logs)}


@dataclass(frozen=True, eq=False, repr=False)
class DivideStatistics(Statistics):
    """Answer to `Divide`: what an M-step of splits needs, at fixed responsibilities ω.

    J = C - 1 is the number of splits, whose two sides are the 2J nodes but the root (`model/splits.py`).
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
            sums = largest_sums(each, self.max_size)
            found |= {name: one.reshape(self.n_components, -1) for name, one in sums.items()}
        return found


# ---------------------------------------------------------------------------- around other questions


@dataclass(frozen=True, eq=False, repr=False)
class BatchStatistics(Statistics):
    """Answers of the same clients to several queries."""

    answers: tuple[Statistics, ...]

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self) or len(other.answers) != len(self.answers):
            return NotImplemented
        pairs = zip(self.answers, other.answers, strict=True)
        return type(self)(tuple(mine + theirs for mine, theirs in pairs))

    def to_vector(self) -> Floats:
        return np.concatenate([answer.to_vector() for answer in self.answers])

    def __repr__(self) -> str:
        return f"BatchStatistics({', '.join(map(repr, self.answers))})"


@dataclass(frozen=True, eq=False)
class Batch(Several[BatchStatistics], kind="batch"):
    """Several queries to the same cohort in one round."""

    answer_type = BatchStatistics

    queries: tuple[Query[Any], ...]

    def leaves(self, low: float = 0.0, high: float = 1.0) -> Leaves:
        for query in self.queries:
            yield from query.leaves(low, high)

    def shaped(self, vector: Floats) -> BatchStatistics:
        parts = zip(self.queries, self.split(vector), strict=True)
        return BatchStatistics(tuple(query.shaped(part) for query, part in parts))


@dataclass(frozen=True, eq=False)
class Part(Around[S], kind="part"):
    """A query to the clients whose bucket lies in [low, high).

    A client draws its bucket, a number between 0 and 1, once and for itself, so two parts that do not
    overlap never share a client, whoever is in the cohorts.
    """

    query: Query[S]
    low: Annotated[float, Between(0, 1)]
    high: Annotated[float, Between(0, 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ParameterError(f"expected a part from low to high, got {self.low} to {self.high}")

    def leaves(self, low: float = 0.0, high: float = 1.0) -> Leaves:
        return self.query.leaves(max(low, self.low), min(high, self.high))


@dataclass(frozen=True, eq=False)
class Noised(Around[S], kind="noised"):
    """A private query whose clients add noise themselves, before anybody adds their answers.

    The answer to `query` has norm at most 1. `sigma` is the noise multiplier of the release: the
    standard deviation of the noise of each number of the sum, or of each client's answer. With local
    `trust` every client adds all of the noise to its own answer. Distributed, every node adds a variance
    of sigma² / (n_reporters - n_colluding) inside a secure sum, and only there, because a share alone
    hides little. A node takes part with at least `n_reporters` nodes of its neighbourhood, itself
    included; `n_colluding` of these may reveal their noise to the server, or add none.
    """

    query: Query[S]
    sigma: Annotated[float, Above(0)]
    trust: Literal["local", "distributed"] = "local"
    n_reporters: Annotated[int, AtLeast(1)] = 1
    n_colluding: Annotated[int, AtLeast(0)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trust not in ("local", "distributed"):
            raise ParameterError(f"expected trust local or distributed, got {self.trust[:80]!r}")
        if not self.query.unit_norm:
            raise ParameterError(
                "expected a query whose answer has norm at most 1 to be noised, got "
                f"{type(self.query).__name__}"
            )
        if self.trust == "local" and (self.n_reporters, self.n_colluding) != (1, 0):
            raise ParameterError(
                "expected n_reporters 1 and n_colluding 0 with local noise, all of which each client "
                f"adds, got {self.n_reporters} and {self.n_colluding}"
            )
        if self.n_colluding >= self.n_reporters or not self.share > 0:
            raise ParameterError(
                "expected n_colluding of at least 0 and below n_reporters, got "
                f"{self.n_colluding} and {self.n_reporters}"
            )

    @property
    def share(self) -> float:
        """The standard deviation of the noise of one client (local) or one node (distributed)."""
        return self.sigma / math.sqrt(self.n_reporters - self.n_colluding)

    @property
    def text(self) -> str:
        return f"noised {self.query.text}"

    def bounds(self) -> Floats:
        return self.query.bounds() + TAIL * self.share


def node_bounds(query: Query[Any], clients_per_node: int) -> Floats:
    """Bounds of the sum over a node's clients as powers of two, which masked sums are scaled by.

    Server and nodes compute them separately and compare digests. Logarithms of two machines may differ
    in the last bit; the power of two above them does not. Shape (n_numbers,).

    >>> node_bounds(Contrast(2, 2), 25)[:2].tolist()
    [32.0, 32.0]
    """
    if isinstance(query, Noised) and query.trust == "distributed":
        # One share of noise, however many clients.
        bounds = query.query.bounds() * clients_per_node + TAIL * query.share
    else:
        bounds = query.bounds() * clients_per_node
    _, exponents = np.frexp(bounds)
    return np.ldexp(np.ones(query.n_numbers), exponents)
