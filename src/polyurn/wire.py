"""Everything that crosses between server and clients: queries down, addable statistics up.

A query is a frozen value that says what the server wants to know. A client answers with a
`Statistics`, whose only operation is `+`; the server sees the sum over a cohort, never a summand.
Both have a flat-vector form for transport, masking and noise. How a client computes its answer is
`client/answer.py`; what the server does with a sum is `server/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import InputError, ParameterError
from polyurn.mdm import MDM
from polyurn.sizes import SizeBins


@dataclass(frozen=True)
class Dimensions:
    """The lengths that the shapes of a `Statistics` are made of."""

    n_components: int
    n_categories: int
    n_size_bins: int


# ------------------------------------------------------------- statistics: client to server


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
    def lengths(cls, dimensions: Dimensions) -> list[int]:
        """How many numbers each block holds."""
        return [int(np.prod(cls._shape(name, dimensions))) for name in cls.SHAPES]

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
    - `log_likelihood`: log q(c, n); unbounded below, so it must be clipped before noise is added.
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


# ---------------------------------------------------------------- queries: server to client


S = TypeVar("S", bound=Statistics)


class Query(ABC, Generic[S]):
    """What the server wants to know; S is the kind of statistics that answers it."""

    answer_type: ClassVar[type[Statistics]]

    @property
    @abstractmethod
    def dimensions(self) -> Dimensions:
        """The lengths that the answer's shapes are made of."""

    @property
    def n_numbers(self) -> int:
        """How many numbers one client sends in answer."""
        return sum(self.answer_type.lengths(self.dimensions))


@dataclass(frozen=True)
class Initialise(Query[StartStatistics]):
    """Algorithm 1's question: join one of K components at random and send your moments."""

    answer_type = StartStatistics

    n_components: int
    n_categories: int
    size_bins: SizeBins

    def __post_init__(self) -> None:
        if int(self.n_components) != self.n_components or self.n_components < 1:
            raise ParameterError(f"expected n_components of at least 1, got {self.n_components}")
        if int(self.n_categories) != self.n_categories or self.n_categories < 2:
            raise ParameterError(f"expected n_categories of at least 2, got {self.n_categories}")

    @property
    def dimensions(self) -> Dimensions:
        return Dimensions(self.n_components, self.n_categories, self.size_bins.n_bins)


@dataclass(frozen=True)
class Update(Query[UpdateStatistics]):
    """Algorithm 2's question: how well does each component explain you, and where should it go?"""

    answer_type = UpdateStatistics

    mdm: MDM

    @property
    def dimensions(self) -> Dimensions:
        mdm = self.mdm
        return Dimensions(mdm.n_components, mdm.n_categories, mdm.sizes.bins.n_bins)


def total(statistics: Sequence[S]) -> S:
    """The sum of at least one answer to the same query."""
    if not statistics:
        raise InputError("expected at least one answer to add, got none")
    result = statistics[0]
    for more in statistics[1:]:
        result = result + more
    return result


class Aggregator(Protocol):
    """Whoever can put a query to a cohort of clients and bring back the sum of their answers."""

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of `cohort_size` clients; None asks every client there is."""
