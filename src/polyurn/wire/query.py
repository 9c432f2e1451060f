"""A question and its answer: what every query declares once, and what follows from the declaration.

A *query* is a frozen value that says what the server wants to know. The codec and the checks walk its
fields, with their types and ranges (`codec.py`, `typed/declared.py`). Beside them it declares its kind,
the shape of each block of its answer, bounds of one client's numbers, and the facts that an owner's
policy decides by. A client answers with a `Statistics`, whose only operation is `+`: the server sees the
sum over a cohort, never a summand.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import InputError, ParameterError
from polyurn.model.sizes import SizeBins
from polyurn.typed.arguments import expected_as
from polyurn.typed.arrays import plain_array
from polyurn.typed.declared import Floats, axes_of, check_declared, marks_of

# The square of a larger number may be infinite; no parameter comes near it.
LARGEST = 1e150
# Bounds hold in exact arithmetic; a client's float64 sums may be off by a few thousand roundings.
ROUNDING = 1e-9

# Axes that have one meaning in all answers, and the attribute of the query that is their length.
_AXES = {
    "C": attrgetter("n_categories"),
    "B": attrgetter("size_bins.n_bins"),
    "K": attrgetter("n_components"),
    "G": attrgetter("n_groups"),
    "V": attrgetter("n_numbers"),
}

Shapes = Mapping[str, tuple[int, ...]]
Leaves: TypeAlias = Iterator[tuple["Query[Any]", float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Blocks of numbers that can be added and nothing else.

    The axes of each block are declared beside its type, one letter each; a query gives their lengths.
    """

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        blocks = {}
        for name, mine in self._blocks():
            theirs = np.asarray(getattr(other, name))
            if mine.shape != theirs.shape:
                shapes = f"{mine.shape} and {theirs.shape}"
                raise InputError(
                    f"cannot add {name} of shape {shapes}: answers to different queries"
                )
            blocks[name] = mine + theirs
        return type(self)(**blocks)

    def to_vector(self) -> Floats:
        """All blocks, one after the other, as one float vector."""
        return np.concatenate([np.ravel(block) for _, block in self._blocks()])

    @classmethod
    def from_vector(cls, vector: Floats, shapes: Shapes) -> Self:
        """The statistics whose `to_vector` is `vector`, in blocks of these shapes."""
        lengths = [math.prod(shape) for shape in shapes.values()]
        if vector.shape != (sum(lengths),):
            many = f"{sum(lengths)} numbers for {cls.__name__}"
            raise InputError(f"expected a vector of {many}, got shape {vector.shape}")
        parts = np.split(vector, np.cumsum(lengths)[:-1])
        blocks = zip(shapes.items(), parts, strict=True)
        return cls(**{name: part.reshape(shape)[()] for (name, shape), part in blocks})

    def _blocks(self) -> Iterator[tuple[str, Floats]]:
        return ((field.name, np.asarray(getattr(self, field.name))) for field in fields(self))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{block.shape}" for name, block in self._blocks())
        return f"{type(self).__name__}({shapes})"  # shapes only: a summand is a client's secret


@cache
def _blocks(kind: Any) -> list[tuple[str, tuple[str, ...]]]:
    """The blocks of an answer and their axes; a single number has none."""
    return [(field.name, axes_of(kind).get(field.name, ())) for field in fields(kind)]


S = TypeVar("S", bound=Statistics)


def total(statistics: Sequence[S]) -> S:
    """The sum of at least one answer to the same query."""
    if not statistics:
        raise InputError("expected at least one answer to add, got none")
    result = statistics[0]
    for more in statistics[1:]:
        result = result + more
    return result


@expected_as("a query of polyurn.wire")
class Query(Generic[S]):
    """What the server wants to know; S is the kind of statistics that answers it.

    A new question is a frozen dataclass of this class with a `kind`, its `answer_type` and the `lengths`
    of its axes, the `largest` of what is not at most 1, and a function that answers it
    (`client/answers.py`).
    """

    # Every kind of query by its name in a message.
    KINDS: ClassVar[dict[str, type["Query[Any]"]]] = {}

    # A query without one can be asked in this process, and not be sent.
    kind: ClassVar[str] = ""
    answer_type: ClassVar[type[Statistics]]
    # The function of polyurn that asks it: an owner allows questions by it.
    method: ClassVar[str] = "fit"
    # Whether the client cuts its answer to norm 1 on the grid of `private_grid.py`: only then does noise
    # of a known size hide it.
    unit_norm: ClassVar[bool] = False
    # The largest change of the answer when one record of the client is replaced; 2 follows from the
    # norm, less must be proved.
    change_norm: ClassVar[float] = 2.0

    n_categories: int
    # The size of the largest client that may answer; None if any may.
    max_size: int | None

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:
            cls.kind = kind
            cls.KINDS[kind] = cls

    def __post_init__(self) -> None:
        check_declared(self)
        if self.n_categories < 2:
            raise ParameterError(f"expected n_categories of at least 2, got {self.n_categories}")

    @property
    def lengths(self) -> Mapping[str, int]:
        """The lengths of axes of the answer's blocks that are not among `_AXES`."""
        return {}

    @property
    def shapes(self) -> Shapes:
        """The shape of each block of the answer, in the order of its fields."""
        kind: Any = self.answer_type
        own = self.lengths
        return {
            name: tuple([own[axis] if axis in own else _AXES[axis](self) for axis in axes])
            for name, axes in _blocks(kind)
        }

    @property
    def n_numbers(self) -> int:
        """How many numbers one client sends in answer."""
        return sum(map(math.prod, self.shapes.values()))

    @property
    def n_features(self) -> int | None:
        """How many features each point has, of a question about clients' records; None for others."""
        return None

    @property
    def n_groups(self) -> int:
        """How many groups it puts clients into by their data, beside the components of mixtures."""
        return 0

    def all_mixtures(self) -> Iterator[Any]:
        """The mixtures that the question is about: objects with weights and alphas, or sizes too."""
        kind: Any = type(self)
        for name, _ in marks_of(kind, "check_received"):
            value = getattr(self, name)
            yield from value if isinstance(value, tuple) else (value,)

    def largest(self) -> Mapping[str, ArrayLike]:
        """The largest |value| of one client, for the blocks where it is not 1; see `bounds`."""
        return {}

    def bounds(self) -> Floats:
        """The largest |value| of one client for each number of its answer, shape (n_numbers,).

        All are finite and positive. Clients with probability zero under the query's parameters have no
        finite answer, and are left out.

        >>> from polyurn.model.sizes import SizeBins
        >>> from polyurn.wire import Survey
        >>> Survey(2, SizeBins.exact(9), pairs=True).bounds().round(6).tolist()[:8]
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.25, 1.0]
        """
        found = self.largest()
        blocks = [
            np.ravel(np.broadcast_to(found.get(name, 1.0), shape))
            for name, shape in self.shapes.items()
        ]
        bounds = np.concatenate(blocks) * (1 + ROUNDING)
        # 0 where α is 0: masked sums divide by the bounds.
        return np.where(bounds > 0, bounds, ROUNDING)

    def leaves(self, low: float = 0.0, high: float = 1.0) -> "Leaves":
        """The plain queries inside this one, in the order of the answer, with ranges of buckets."""
        yield self, low, high

    @property
    def text(self) -> str:
        """A short description: its kind, and the number of queries of each kind inside it.

        >>> from polyurn.model.sizes import SizeBins
        >>> from polyurn.wire import Batch, Part, Survey
        >>> survey = Survey(2, SizeBins.exact(50), pairs=False)
        >>> survey.text, Batch((survey, Part(survey, 0.0, 0.5))).text
        ('survey', 'batch of 2 survey')
        """
        inside = [leaf.text for leaf, _, _ in self.leaves() if leaf is not self]
        counts = ", ".join(f"{n} {text}" for text, n in Counter(inside).items())
        return f"{self.kind} of {counts}" if inside else self.kind

    def read(self, vector: ArrayLike) -> S:
        """The answer whose `to_vector` is `vector`, for a vector from outside this process.

        A wrong number of values, and one that is not real, not finite or beyond 1e150, is an
        `InputError`.
        """
        return self.shaped(_real(vector, self.n_numbers))

    def shaped(self, vector: Floats) -> S:
        """`read` without checks, for this process's own sums: a log-likelihood may be -inf."""
        return cast(S, self.answer_type.from_vector(vector, self.shapes))


class InBins(Query[S]):
    """A query about sizes in bins; the last bin ends at the size of the largest client."""

    size_bins: SizeBins

    @property
    def max_size(self) -> int:  # type: ignore[override]
        return self.size_bins.max_size


class Several(Query[S]):
    """Several queries to the same clients, about the same categories."""

    queries: tuple[Query[Any], ...]

    def __post_init__(self) -> None:
        check_inside(self.queries)
        super().__post_init__()

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return self.queries[0].n_categories

    @property
    def max_size(self) -> int | None:  # type: ignore[override]
        return max(query.max_size or 0 for query in self.queries) or None

    @property
    def n_numbers(self) -> int:
        return sum(query.n_numbers for query in self.queries)

    def all_mixtures(self) -> Iterator[Any]:
        return chain.from_iterable(query.all_mixtures() for query in self.queries)

    def bounds(self) -> Floats:
        return np.concatenate([query.bounds() for query in self.queries])

    def split(self, vector: Floats) -> list[Floats]:
        """A vector of all answers, cut into the vector of each query."""
        return np.split(vector, np.cumsum([query.n_numbers for query in self.queries])[:-1])


class Around(Several[S]):
    """A query around a single other one, whose answer has the same blocks."""

    query: Query[S]

    @property
    def queries(self) -> tuple[Query[Any], ...]:  # type: ignore[override]
        return (self.query,)

    @property
    def n_features(self) -> int | None:
        return self.query.n_features

    @property
    def method(self) -> str:  # type: ignore[override]
        return self.query.method

    @property
    def shapes(self) -> Shapes:
        return self.query.shapes

    def shaped(self, vector: Floats) -> S:
        return self.query.shaped(vector)


def check_inside(queries: Sequence[Query[Any]]) -> None:
    """Refuse queries that no client could answer together."""
    if not queries:
        raise ParameterError("expected at least one of queries, got none")
    # A client's kernels use the number of the first: another would read beyond the end of an array.
    if len({query.n_categories for query in queries}) > 1:
        raise ParameterError("expected queries about the same number of categories, got several")
    if any(query.kind == "noised" for query in queries):
        raise ParameterError(
            "expected a noised query as the whole question, got one inside another"
        )


@expected_as(
    "an aggregator, an object with aggregate(query, cohort_size)",
    advice="wrap the counts: LocalAggregator(counts)",
)
class Aggregator(Protocol):
    """Sends a query to a cohort of clients and returns the sum of their answers.

    Clients keep their bucket from round to round, as `Part` selects by it. An aggregator that knows the
    number of clients has it as `n_clients`: a cohort of all of them is not a sample.
    """

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of `cohort_size` clients; None asks all clients."""


def check_answer(query: Query[Any], statistics: Statistics, bounds: Floats | None = None) -> None:
    """Refuse a client's answer that is not within its bounds, before it is sent.

    `bounds`, of shape (n_numbers,), are `query.bounds()` by default; of n clients together, n times
    that. The `InputError` has the index of the number, and no value.

    >>> from polyurn.wire import Contrast
    >>> query = Contrast(2, 2)
    >>> check_answer(query, query.read(np.full(query.n_numbers, 2.0)))
    Traceback (most recent call last):
    ...
    polyurn.errors.InputError: expected an answer within its bounds, got number 0 beyond 1 (18 of ...
    """
    limits = query.bounds() if bounds is None else bounds
    if limits.shape != (query.n_numbers,):
        raise InputError(f"expected {query.n_numbers} bounds, got shape {limits.shape}")
    values = query.read(statistics.to_vector()).to_vector()
    beyond = np.flatnonzero(np.abs(values) > limits)
    if len(beyond):
        raise InputError(
            f"expected an answer within its bounds, got number {beyond[0]} beyond "
            f"{limits[beyond[0]]:.6g} ({len(beyond)} of {len(values)} are); send nothing, and report it"
        )


def _real(vector: ArrayLike, n_numbers: int) -> Floats:
    """Check for `n_numbers` real, finite numbers; an error shows no value, as values are a client's."""
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
