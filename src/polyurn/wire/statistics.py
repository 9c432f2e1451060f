"""What crosses from client to server: blocks of numbers that can be added, and nothing else.

The docstring of each class states what one client adds and its sensitivity; the largest value in each
place is `bounds.py`. How a client computes it is `client/`; what a sum is used for is `server/`.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import InputError


class Dimensions(NamedTuple):
    """The lengths that the shapes of a `Statistics` are made of."""

    n_components: int
    n_categories: int
    n_size_bins: int = 0
    n_features: int = 0
    n_products: int = 0
    n_curvature: int = 0
    n_models: int = 0
    n_labels: int = 0
    n_values: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Blocks of numbers that can be added and nothing else."""

    # The shape of each field, as attribute names of `Dimensions`; () is a single number.
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        blocks = {}
        for name in self.SHAPES:
            mine, theirs = np.asarray(getattr(self, name)), np.asarray(getattr(other, name))
            if mine.shape != theirs.shape:
                raise InputError(
                    f"cannot add {name} of shape {mine.shape} and {theirs.shape}: "
                    "answers to different queries"
                )
            blocks[name] = mine + theirs
        return type(self)(**blocks)

    def to_vector(self) -> NDArray[np.float64]:
        """All blocks, one after the other, as one float vector."""
        return np.concatenate([np.ravel(getattr(self, name)) for name in self.SHAPES])

    @classmethod
    def from_vector(cls, vector: ArrayLike, dimensions: Dimensions) -> Self:
        """The statistics whose `to_vector` is `vector`.

        Parameters
        ----------
        vector : float array of shape (n,)
        dimensions : Dimensions
            Of the query that was answered.
        """
        vector = np.asarray(vector, dtype=np.float64)
        shapes = [cls._shape(name, dimensions) for name in cls.SHAPES]
        lengths = cls.lengths(dimensions)
        if vector.shape != (sum(lengths),):
            raise InputError(
                f"expected a vector of {sum(lengths)} numbers for {cls.__name__}, "
                f"got shape {vector.shape}"
            )
        parts = np.split(vector, np.cumsum(lengths)[:-1])
        blocks = zip(cls.SHAPES, parts, shapes, strict=True)
        return cls(**{name: part.reshape(shape)[()] for name, part, shape in blocks})

    @classmethod
    @functools.cache  # asked for each of many queries of the same dimensions, round after round
    def lengths(cls, dimensions: Dimensions) -> tuple[int, ...]:
        """How many numbers each block holds."""
        return tuple(math.prod(cls._shape(name, dimensions)) for name in cls.SHAPES)

    @classmethod
    def _shape(cls, name: str, dimensions: Dimensions) -> tuple[int, ...]:
        return tuple(getattr(dimensions, length) for length in cls.SHAPES[name])

    def __repr__(self) -> str:
        shapes = ", ".join(f"{f.name}{np.shape(getattr(self, f.name))}" for f in fields(self))
        return f"{type(self).__name__}({shapes})"  # shapes only: a summand is a client's secret


@dataclass(frozen=True, eq=False, repr=False)
class StartStatistics(Statistics):
    """Answer to `Initialise`: the moments of the clients that joined each component.

    What one client adds, and its L2 sensitivity (the largest norm of one client's block):

    - `n_clients`: 1.
    - `size_counts` (K, n_size_bins), E of the paper: one entry 1; sensitivity 1.
    - `first_moments` (K, C), P: one row of proportions c/n; sensitivity 1.
    - `second_moments` (K, C), Q: one row of squared proportions; sensitivity 1.
    """

    n_clients: float
    size_counts: NDArray[np.float64]
    first_moments: NDArray[np.float64]
    second_moments: NDArray[np.float64]

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "n_clients": (),
        "size_counts": ("n_components", "n_size_bins"),
        "first_moments": ("n_components", "n_categories"),
        "second_moments": ("n_components", "n_categories"),
    }


@dataclass(frozen=True, eq=False, repr=False)
class UpdateStatistics(Statistics):
    """Answer to `Update`: Algorithm 2's ω, E, u and v, and the log-likelihood.

    What one client adds, and its L2 sensitivity (the largest norm of one client's block):

    - `n_clients`: 1.
    - `log_likelihood`: log q(c, n); bounded by the parameters only (`bounds.log_bound`), so it must be
      clipped before noise is added.
    - `responsibilities` (K,), ω: sums to one; sensitivity 1.
    - `size_counts` (K, n_size_bins), E: one column ω; sensitivity 1.
    - `numerators` (K, C), u: unbounded as α → 0. α·u is the expected number of tables of a Chinese
      restaurant, at most c_j in column j, so its norm is at most max_size.
    - `denominators` (K,), v: unbounded as α_0 → 0. α_0·v is at most max_size.
    """

    n_clients: float
    log_likelihood: float
    responsibilities: NDArray[np.float64]
    size_counts: NDArray[np.float64]
    numerators: NDArray[np.float64]
    denominators: NDArray[np.float64]

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "n_clients": (),
        "log_likelihood": (),
        "responsibilities": ("n_components",),
        "size_counts": ("n_components", "n_size_bins"),
        "numerators": ("n_components", "n_categories"),
        "denominators": ("n_components",),
    }


@dataclass(frozen=True, eq=False, repr=False)
class SurveyStatistics(Statistics):
    """Answer to `Survey`: sums of a client's features, p, Σ p² and log n / log max_size, and its size.

    What one client adds, and its L2 sensitivity:

    - `n_clients`: 1.
    - `features` (C + 2,): each at most 1; sensitivity √3.
    - `products` (n_products,): their products in pairs, or only their squares; sensitivity 3.
    - `size_counts` (n_size_bins,): one entry 1; sensitivity 1. A size that nobody else has shows that
      a client of that size exists.
    """

    n_clients: float
    features: NDArray[np.float64]
    products: NDArray[np.float64]
    size_counts: NDArray[np.float64]

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "n_clients": (),
        "features": ("n_features",),
        "products": ("n_products",),
        "size_counts": ("n_size_bins",),
    }


@dataclass(frozen=True, eq=False, repr=False)
class GroupStatistics(Statistics):
    """Answer to `Group`: the moments of the clients that fell into each group.

    A group can by chance hold few clients, or one; only noise protects those.

    What one client adds, and its L2 sensitivity:

    - `n_clients`: 1.
    - `size_counts` (K, n_size_bins): one entry 1; sensitivity 1.
    - `proportions` (K, C): one row c/n; sensitivity 1.
    - `squares` (K,): one entry Σ (c/n)²; sensitivity 1.
    """

    n_clients: float
    size_counts: NDArray[np.float64]
    proportions: NDArray[np.float64]
    squares: NDArray[np.float64]

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "n_clients": (),
        "size_counts": ("n_components", "n_size_bins"),
        "proportions": ("n_components", "n_categories"),
        "squares": ("n_components",),
    }


@dataclass(frozen=True, eq=False, repr=False)
class ExpectStatistics(Statistics):
    """Answer to `Expect`: what an M-step at any nearby α needs, at fixed responsibilities ω.

    What one client adds, and its L2 sensitivity:

    - `n_clients`: 1.
    - `log_likelihood`: log q(c, n); bounded by the parameters only (`bounds.log_bound`): clip before
      noise.
    - `size_counts` (K, n_size_bins): one column ω; sensitivity 1.
    - `present` (K, C): ω where the category occurs; norm at most √C.
    - `tables` (K, C): ω α (ψ(c + α) - ψ(α)), the expected number of tables of a Chinese restaurant;
      at most ω c in each column, so its norm is at most max_size.
    - `spread` (K, C): ω α² (ψ′(α) - ψ′(c + α)); at most `tables`.
    - `total_tables`, `total_spread` (K,): the same of n and α_0; at most max_size.
    - `curvature` (n_curvature,): the lower triangle of the Hessian of log q in (log α, log τ)
      of the components asked for; at most max_size + max_size² / 4 in each place, clip before noise.
    """

    n_clients: float
    log_likelihood: float
    size_counts: NDArray[np.float64]
    present: NDArray[np.float64]
    tables: NDArray[np.float64]
    spread: NDArray[np.float64]
    total_tables: NDArray[np.float64]
    total_spread: NDArray[np.float64]
    curvature: NDArray[np.float64]

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "n_clients": (),
        "log_likelihood": (),
        "size_counts": ("n_components", "n_size_bins"),
        "present": ("n_components", "n_categories"),
        "tables": ("n_components", "n_categories"),
        "spread": ("n_components", "n_categories"),
        "total_tables": ("n_components",),
        "total_spread": ("n_components",),
        "curvature": ("n_curvature",),
    }


@dataclass(frozen=True, eq=False, repr=False)
class ScoreStatistics(Statistics):
    """Answer to `Score`: log-likelihoods under several MDMs, and their products in pairs.

    One client adds log q under each MDM; bounded by the parameters only (`bounds.log_bound`): clip
    before noise.
    """

    n_clients: float
    log_likelihoods: NDArray[np.float64]
    products: NDArray[np.float64]

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "n_clients": (),
        "log_likelihoods": ("n_models",),
        "products": ("n_models", "n_models"),
    }


@dataclass(frozen=True, eq=False, repr=False)
class ContrastStatistics(Statistics):
    """Answer to `Contrast`: how alike a client's own points are in label, feature and both.

    A client of fewer than two points has no pair of points, and adds nothing. What any other adds, and
    its L2 sensitivity (the largest norm of one client's block); no number is larger than 1:

    - `n_clients`: 1.
    - `proportions` (C,): c/n of label × value, label after label; sensitivity 1.
    - `squares` (n_labels,): Σ over values of the squared proportions; add up to at most 1.
    - `label_squares` (n_labels,): the squared proportion of the label; add up to at most 1.
    - `pairs` (n_labels,): the share of its pairs of points that both have the label,
      n_y (n_y - 1) / (n (n - 1)); add up to at most 1.
    - `matches` (n_labels,): the share of its pairs that have the label and the same value; at most
      `pairs`.
    - `feature_squares`: Σ over values of their squared proportions, whatever the label; at most 1.
    - `feature_matches`: the share of its pairs that have the same value; at most 1.
    """

    n_clients: float
    proportions: NDArray[np.float64]
    squares: NDArray[np.float64]
    label_squares: NDArray[np.float64]
    pairs: NDArray[np.float64]
    matches: NDArray[np.float64]
    feature_squares: float
    feature_matches: float

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "n_clients": (),
        "proportions": ("n_categories",),
        "squares": ("n_labels",),
        "label_squares": ("n_labels",),
        "pairs": ("n_labels",),
        "matches": ("n_labels",),
        "feature_squares": (),
        "feature_matches": (),
    }


@dataclass(frozen=True, eq=False, repr=False)
class BoundedStatistics(Statistics):
    """Answer to any `Bounded` query: one vector, of L2 norm at most 1 for one client.

    What stands where, and the proof, is in the docstring of each query (`bounded.py`).
    """

    values: NDArray[np.float64]

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {"values": ("n_values",)}


@dataclass(frozen=True, eq=False, repr=False)
class BatchStatistics(Statistics):
    """Answers of the same clients to several queries."""

    answers: tuple[Statistics, ...]

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self) or len(other.answers) != len(self.answers):
            return NotImplemented
        pairs = zip(self.answers, other.answers, strict=True)
        return type(self)(tuple(mine + theirs for mine, theirs in pairs))

    def to_vector(self) -> NDArray[np.float64]:
        return np.concatenate([answer.to_vector() for answer in self.answers])

    def __repr__(self) -> str:
        return f"BatchStatistics({', '.join(map(repr, self.answers))})"


S = TypeVar("S", bound=Statistics)


def total(statistics: Sequence[S]) -> S:
    """The sum of at least one answer to the same query."""
    if not statistics:
        raise InputError("expected at least one answer to add, got none")
    result = statistics[0]
    for more in statistics[1:]:
        result = result + more
    return result
