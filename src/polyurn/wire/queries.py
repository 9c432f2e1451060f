"""What crosses from server to client: frozen values that say what the server wants to know.

"All K in one round", "many starts in one round", "only these clients" and "with noise" are queries too.
How a client answers is `client/answer.py`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import InputError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.typed.arguments import expected_as
from polyurn.typed.arrays import plain_array
from polyurn.wire.envelope import LARGEST
from polyurn.wire.statistics import (
    BatchStatistics,
    ContrastStatistics,
    Dimensions,
    ExpectStatistics,
    GroupStatistics,
    S,
    ScoreStatistics,
    StartStatistics,
    Statistics,
    SurveyStatistics,
    UpdateStatistics,
)


@dataclass(frozen=True, eq=False)
class Parameters:
    """τ, A and Π with the components in an order that does not change: what a fit works on.

    An `MDM` sorts its components; a fit has to know which one is which from round to round.
    """

    weights: NDArray[np.float64]
    alphas: NDArray[np.float64]
    sizes: Sizes

    def mdm(self) -> MDM:
        """The distribution with these parameters."""
        return MDM(self.weights, self.alphas, self.sizes)


@expected_as("a query of polyurn.wire")
class Query(ABC, Generic[S]):
    """What the server wants to know; S is the kind of statistics that answers it."""

    answer_type: ClassVar[type[Statistics]]
    # Whether one client's answer is a vector of norm at most 1 on the grid of `grid.py`, which the
    # client sees to: only then does noise of a known size hide it.
    unit_norm: ClassVar[bool] = False
    # How far the answer moves at most if one record of the client becomes another; 2 follows from the
    # norm, and less has to be proved.
    change_norm: ClassVar[float] = 2.0

    @property
    @abstractmethod
    def dimensions(self) -> Dimensions:
        """The lengths that the answer's shapes are made of."""

    @property
    def n_numbers(self) -> int:
        """How many numbers one client sends in answer."""
        return sum(self.answer_type.lengths(self.dimensions))

    def read(self, vector: ArrayLike) -> S:
        """The answer whose `to_vector` is `vector`, which came from outside.

        Raises
        ------
        InputError
            Not as many real, finite numbers as the query asks for, or one beyond 1e150.
        """
        return self.shaped(_real(vector, self.n_numbers))

    def shaped(self, vector: NDArray[np.float64]) -> S:
        """The same of a sum that this process made or recorded: a log-likelihood in it may be -inf."""
        return cast(S, self.answer_type.from_vector(vector, self.dimensions))


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


@dataclass(frozen=True)
class Survey(Query[SurveyStatistics]):
    """How do clients vary? Sums of features and their products, and how many clients have which size.

    `size_bins` may be as fine as one size each; `pairs` asks for all products, a covariance matrix, and
    without it for squares only.
    """

    n_categories: int
    size_bins: SizeBins
    pairs: bool

    answer_type = SurveyStatistics

    @property
    def dimensions(self) -> Dimensions:
        f = self.n_categories + 2
        products = f * (f + 1) // 2 if self.pairs else f
        n_bins = self.size_bins.n_bins
        return Dimensions(0, self.n_categories, n_bins, n_features=f, n_products=products)


@dataclass(frozen=True, eq=False)
class Group(Query[GroupStatistics]):
    """Join the group whose linear score of your features is highest, and send your moments.

    Attributes
    ----------
    directions : float array of shape (n_components, n_categories + 2)
    offsets : float array of shape (n_components,)
    size_bins : SizeBins
    """

    directions: NDArray[np.float64]
    offsets: NDArray[np.float64]
    size_bins: SizeBins

    answer_type = GroupStatistics

    @property
    def dimensions(self) -> Dimensions:
        k, f = self.directions.shape
        return Dimensions(k, f - 2, self.size_bins.n_bins)


@dataclass(frozen=True, eq=False)
class Expect(Query[ExpectStatistics]):
    """How likely are you under these parameters, and where should each component go?

    `curvature` names the components whose curvature is asked for as well, in increasing order.
    """

    parameters: Parameters
    curvature: tuple[int, ...] = ()

    answer_type = ExpectStatistics

    @property
    def dimensions(self) -> Dimensions:
        k, c = self.parameters.alphas.shape
        p = len(self.curvature) * (c + 1)
        triangle = p * (p + 1) // 2
        return Dimensions(k, c, self.parameters.sizes.bins.n_bins, n_curvature=triangle)


@dataclass(frozen=True, eq=False)
class Score(Query[ScoreStatistics]):
    """How likely are you under each of these MDMs?"""

    mdms: tuple[MDM, ...]

    answer_type = ScoreStatistics

    @property
    def dimensions(self) -> Dimensions:
        return Dimensions(0, self.mdms[0].n_categories, n_models=len(self.mdms))


@dataclass(frozen=True)
class Contrast(Query[ContrastStatistics]):
    """How alike are your own points, in the label, in a feature, and in the feature given the label?

    For clients whose categories are label × value, label after label: category y * n_values + f.
    """

    n_labels: int
    n_values: int

    answer_type = ContrastStatistics

    def __post_init__(self) -> None:
        if self.n_labels < 2 or self.n_values < 2:
            raise ParameterError(
                "expected at least two labels and two values of the feature, got "
                f"{self.n_labels} and {self.n_values}"
            )

    @property
    def dimensions(self) -> Dimensions:
        return Dimensions(0, self.n_labels * self.n_values, n_labels=self.n_labels)


@dataclass(frozen=True, eq=False)
class Batch(Query[BatchStatistics]):
    """Several queries to the same cohort in one round."""

    queries: tuple[Query[Any], ...]

    answer_type = BatchStatistics

    @property
    def dimensions(self) -> Dimensions:
        return self.queries[0].dimensions

    @property
    def n_numbers(self) -> int:
        return sum(query.n_numbers for query in self.queries)

    def shaped(self, vector: NDArray[np.float64]) -> BatchStatistics:
        ends = np.cumsum([query.n_numbers for query in self.queries])
        answers = zip(self.queries, np.split(vector, ends[:-1]), strict=True)
        return BatchStatistics(tuple(query.shaped(part) for query, part in answers))


@dataclass(frozen=True, eq=False)
class Part(Query[S]):
    """A query to the clients whose bucket lies in [low, high).

    A client draws its bucket, a number between 0 and 1, once and for itself, so two parts that do not
    overlap never share a client, whoever is in the cohorts.
    """

    query: Query[S]
    low: float
    high: float

    @property
    def dimensions(self) -> Dimensions:
        return self.query.dimensions

    @property
    def n_numbers(self) -> int:
        return self.query.n_numbers

    def shaped(self, vector: NDArray[np.float64]) -> S:
        return self.query.shaped(vector)


@dataclass(frozen=True, eq=False)
class Noised(Query[S]):
    """A private query whose clients add noise themselves, before anybody adds their answers.

    Attributes
    ----------
    query : Query
        One whose answer has norm at most 1.
    sigma : float
        The noise multiplier of the release: the standard deviation of the noise in each place of the
        sum, or of each client's answer.
    trust : {"local", "distributed"}
        Every client adds all of the noise to its own answer; or every node adds its share inside a
        secure sum, which is no noise to speak of in its own answer: such a question is answered in
        secure sums only.
    n_reporters : int
        Distributed: a node takes part in no sum over fewer nodes of its neighbourhood, itself included.
    n_colluding : int
        Distributed: how many of these may tell the server their noise, or add none. Each node adds a
        variance of sigma² / (n_reporters - n_colluding).
    """

    query: Query[S]
    sigma: float
    trust: Literal["local", "distributed"] = "local"
    n_reporters: int = 1
    n_colluding: int = 0

    def __post_init__(self) -> None:
        if not self.query.unit_norm:
            raise ParameterError(
                "expected a query whose answer has norm at most 1 to be noised, got "
                f"{type(self.query).__name__}"
            )
        if not 0 <= self.n_colluding < self.n_reporters:
            raise ParameterError(
                "expected n_colluding of at least 0 and below n_reporters, got "
                f"{self.n_colluding} and {self.n_reporters}"
            )
        if not 0 < self.share < math.inf:
            raise ParameterError(f"expected a noise multiplier above 0, got {self.sigma}")

    @property
    def share(self) -> float:
        """The standard deviation of what one client (local) or one node (distributed) adds."""
        return self.sigma / math.sqrt(self.n_reporters - self.n_colluding)

    @property
    def dimensions(self) -> Dimensions:
        return self.query.dimensions

    @property
    def n_numbers(self) -> int:
        return self.query.n_numbers

    def shaped(self, vector: NDArray[np.float64]) -> S:
        return self.query.shaped(vector)


@expected_as(
    "an aggregator, an object with aggregate(query, cohort_size)",
    advice="wrap the counts: LocalAggregator(counts)",
)
class Aggregator(Protocol):
    """Whoever can put a query to a cohort of clients and bring back the sum of their answers.

    Its clients keep their bucket from round to round: `Part` goes by it. An aggregator that knows how
    many there are says so in `n_clients`: a cohort of all of them is not a sample.
    """

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of `cohort_size` clients; None asks every client there is."""


def _real(vector: ArrayLike, n_numbers: int) -> NDArray[np.float64]:
    """So many real, finite numbers; what is refused is not shown, for it is a client's."""
    given = plain_array(vector, f"an answer of {n_numbers} numbers", error=InputError)
    if given.dtype.kind not in "iuf":
        raise InputError(f"expected an answer of {n_numbers} real numbers, got other values")
    if given.shape != (n_numbers,):
        raise InputError(f"expected an answer of {n_numbers} numbers, got shape {given.shape}")
    with np.errstate(over="ignore"):  # of longer floats than float64: infinite, and refused below
        values = given.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(
            f"expected an answer of {n_numbers} finite numbers, got infinite ones or NaN; ask with "
            "priors, under which no client has probability zero"
        )
    if not (np.abs(values) <= LARGEST).all():
        raise InputError(
            f"expected an answer of {n_numbers} numbers from {-LARGEST:g} to {LARGEST:g}, got a larger "
            "one; leave that answer out"
        )
    return values
