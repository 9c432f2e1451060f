"""Questions that noise can protect: one client's whole answer is a vector of L2 norm at most 1.

Each docstring says what one client sends, and proves the bound. The client does not rely on the proof:
it scales longer vectors down (`client/private_answers.py`), so that no query that a server can write
moves a sum by more than 1. In each of them c are a client's counts, n its size, p = c / n, and

    κ = Σ_j c_j (c_j - 1) / (n (n - 1)),

the share of its pairs of points that agree: between 0 and 1, and 0 for a client of one point. A client
of more than `max_size` points answers for so many of them, drawn at random; none refuses, because a
refusal would be seen. Adding noise and keeping accounts is not done here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins
from polyurn.model.standing import Yardstick
from polyurn.typed.declared import Above, AtLeast, Floats, Shape
from polyurn.wire.queries import (
    Answerable,
    Contrast,
    ContrastStatistics,
    OfMixtures,
    RecordColumn,
)
from polyurn.wire.query import Around, InBins, Query, Several, Statistics

# Parts of the squared norm of a sketch: of the count of clients, of the residual of p and of κ.
SKETCH_PARTS = (0.3, 0.6, 0.1)

# The same of the blocks of a `Contrast`: squares are divided by the number of pairs of clients, and may
# have much noise.
CONTRAST_PARTS = (0.05, 0.5, 0.02, 0.02, 0.13, 0.18, 0.01, 0.05, 0.04)

# Shares of one round may miss 1 by the rounding of a few additions, not by more.
_SUM_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class BoundedStatistics(Statistics):
    """Answer to any `Bounded` query: one vector, of L2 norm at most 1 for one client.

    The docstring of each query has the order of its numbers, and the proof.
    """

    values: Annotated[Floats, Shape("V")]


class Bounded(Query[BoundedStatistics]):
    """A query to which the answer of one client is one vector of `n_numbers`, of L2 norm at most 1.

    `change_norm` is the largest norm by which an answer changes when one record of a client does, and
    the number of its records does not: twice the norm, or less where that is proved.
    """

    answer_type = BoundedStatistics
    method = "fit_private"
    unit_norm = True


class InBlocks(Bounded):
    """A bounded question whose vector is blocks, each times the root of its part of the squared norm.

    Every block has norm at most 1 before that, and the parts add up to 1.
    """

    PARTS: ClassVar[Mapping[str, float]]

    @property
    def block_lengths(self) -> Mapping[str, int]:
        """The length of each block, in their order."""
        raise NotImplementedError

    @property
    def n_numbers(self) -> int:
        return sum(self.block_lengths.values())

    @property
    def scales(self) -> Floats:
        """What each number is multiplied by, shape (n_numbers,)."""
        lengths = self.block_lengths
        roots = [np.full(n, np.sqrt(self.PARTS[name])) for name, n in lengths.items()]
        return np.concatenate(roots)

    def blocks(self, vector: Floats) -> dict[str, Floats]:
        """A vector of unscaled numbers, block by block."""
        ends = np.cumsum(list(self.block_lengths.values()))[:-1]
        return dict(zip(self.block_lengths, np.split(vector, ends), strict=True))


# ----------------------------------------------------------------------------- the rounds of a fit


@dataclass(frozen=True)
class BoundedSurvey(InBlocks, InBins[BoundedStatistics], kind="bounded_survey"):
    """How many clients are there, of which sizes, and what do they hold?

    One client sends (√.1, √.3 κ, √.2 · 1 at the bin of its size, √.4 p), 2 + B + C numbers. Its squared
    norm is .1 + .3 κ² + .2 + .4 |p|² ≤ 1, since κ ≤ 1 and |p|² ≤ Σ p = 1.

    Another record leaves the first and third blocks, moves p by √2 / n, and κ by at most min(1, 2 / n),
    or 0 if n = 1: it is in n - 1 of n (n - 1) / 2 pairs. The sum of .4 · 2 / n² and .3 times the square
    of the latter is largest at n = 1, where it is .8.
    """

    change_norm = math.sqrt(0.8)
    PARTS: ClassVar = {"clients": 0.1, "alike": 0.3, "sizes": 0.2, "p": 0.4}

    n_categories: Annotated[int, AtLeast(2)]
    size_bins: SizeBins

    @property
    def block_lengths(self) -> Mapping[str, int]:
        return {"clients": 1, "alike": 1, "sizes": self.size_bins.n_bins, "p": self.n_categories}


@dataclass(frozen=True, eq=False)
class Sketch(Bounded, kind="sketch"):
    """Which prototype are you most like, and how do you differ from it?

    A client's prototype is the first g whose directions[g] · p is highest. One client sends
    (√.3, √.6 clip(p - prototypes[g]) / radius, √.1 κ) as row g of a table that is 0 elsewhere, with
    clip(x) = x · min(1, radius / |x|). Its squared norm is at most .3 + .6 + .1 κ² ≤ 1.

    With another record the row is another one, and two different rows of the table are at most √2 apart;
    or it is the same, where the first number does not change, the next move by at most 2 √.6, and the
    last by at most √.1: √2.5 in all.
    """

    change_norm = math.sqrt(2.5)

    prototypes: Annotated[Floats, Shape("G", "C")]
    directions: Annotated[Floats, Shape("G", "C")]
    radius: Annotated[float, Above(0)]
    max_size: Annotated[int, AtLeast(1)]

    @property
    def n_groups(self) -> int:
        return len(self.prototypes)

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        return int(self.prototypes.shape[1])

    @property
    def n_numbers(self) -> int:
        return self.n_groups * (self.n_categories + 2)


@dataclass(frozen=True, eq=False)
class WhitenedScore(OfMixtures[BoundedStatistics], Bounded, kind="whitened_score"):
    """Where should these parameters go, as far as you are concerned?

    With s the client's score (`model/scores.py`) and z = whitener' s, one client sends
    z · min(1, clip / |z|) / clip, of norm at most 1 whatever its score is.
    """

    mixture: Annotated[Mixture, Answerable(zeros=False)]
    whitener: Annotated[Floats, Shape("n_coordinates", "n_directions")]
    clip: Annotated[float, Above(0)]
    max_size: Annotated[int, AtLeast(1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.whitener) != self.mixture.n_coordinates:
            raise ParameterError(
                f"expected a whitener of {self.mixture.n_coordinates} rows, "
                f"got shape {self.whitener.shape}"
            )

    @property
    def n_numbers(self) -> int:
        return int(self.whitener.shape[1])


@dataclass(frozen=True, eq=False)
class Differences(OfMixtures[BoundedStatistics], Bounded, kind="differences"):
    """How much likelier do you find each of these mixtures than the first?

    One client sends clip(log q_m - log q_0) / (clips[m] √(M - 1)) for each of M mixtures but the
    first, with clip to ± clips[m]: M - 1 numbers of at most 1 / √(M - 1) each, of norm at most 1.
    Log-likelihoods themselves are never sent: differences are small, and need less noise.
    """

    mixtures: Annotated[tuple[Mixture, ...], Answerable(zeros=False)]
    clips: Annotated[tuple[float, ...], Above(0)]
    max_size: Annotated[int, AtLeast(1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.mixtures) < 2 or len(self.mixtures) != len(self.clips) + 1:
            raise ParameterError(
                f"expected a clip for each mixture but the first, got {len(self.clips)} for "
                f"{len(self.mixtures)}"
            )

    @property
    def n_numbers(self) -> int:
        return len(self.clips)


@dataclass(frozen=True, eq=False)
class SizeMembership(
    OfMixtures[BoundedStatistics], Bounded, InBins[BoundedStatistics], kind="size_membership"
):
    """How large are the clients of each component?

    One client sends its responsibilities ω in the column of its size's bin, K × B numbers that are 0
    elsewhere. Its norm is |ω|, and |ω|² ≤ Σ ω = 1. Another record leaves the column: two probability
    vectors are at most √2 apart.
    """

    change_norm = math.sqrt(2.0)

    mixture: Annotated[Mixture, Answerable(zeros=False)]
    size_bins: SizeBins

    @property
    def n_numbers(self) -> int:
        return self.mixture.n_components * self.size_bins.n_bins


@dataclass(frozen=True, eq=False)
class Shares(Several[BoundedStatistics], Bounded, kind="shares"):
    """Several bounded queries in one round, each with a share of the squared norm.

    One client sends its answer to each query times the square root of the query's share, one after the
    other. Every answer has norm at most 1 and the shares add up to at most 1, so the squared norm of
    all is at most Σ share · 1 ≤ 1.
    """

    queries: tuple[Bounded, ...]
    shares: Annotated[tuple[float, ...], Above(0)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.queries) != len(self.shares):
            raise ParameterError(
                f"expected a share for each query, got {len(self.shares)} for {len(self.queries)}"
            )
        if sum(self.shares) > 1 + _SUM_TOLERANCE:
            raise ParameterError(
                f"expected shares above 0 that sum to at most 1, got {self.shares}"
            )
        if not all(isinstance(query, Bounded) for query in self.queries):
            raise ParameterError("expected queries whose answers are bounded, got another kind")
        if any(query.method != self.method for query in self.queries):
            raise ParameterError(f"expected queries of {self.method}, got those of another method")

    @property
    def change_norm(self) -> float:  # type: ignore[override]
        parts = zip(self.queries, self.shares, strict=True)
        return math.sqrt(sum(share * query.change_norm**2 for query, share in parts))

    def bounds(self) -> Floats:
        parts = zip(self.queries, self.shares, strict=True)
        return np.concatenate([query.bounds() * np.sqrt(share) for query, share in parts])

    def split(self, vector: Floats) -> list[Floats]:
        """The sum of the answers to each query, the share taken out again."""
        parts = zip(super().split(vector), self.shares, strict=True)
        return [part / np.sqrt(share) for part, share in parts]


@dataclass(frozen=True, eq=False)
class Scaled(Around[ContrastStatistics], kind="scaled"):
    """`Contrast`, each number times its scale, cut to norm 1.

    Every block of `Contrast` has norm at most 1, as its numbers are at least 0 and add up to at most 1.
    No number is negative, so that two vectors of norm at most 1 are at most √2 apart.
    """

    query: Contrast

    unit_norm = True
    change_norm: ClassVar[float] = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if not isinstance(self.query, Contrast):
            raise ParameterError(f"expected Contrast to be scaled, got {type(self.query).__name__}")
        super().__post_init__()

    @property
    def text(self) -> str:
        return self.query.text

    def bounds(self) -> Floats:
        return Query.bounds(self)

    @property
    def scales(self) -> Floats:
        """What each number is multiplied by, shape (n_numbers,)."""
        lengths = map(math.prod, self.shapes.values())
        return np.repeat(np.sqrt(CONTRAST_PARTS), list(lengths))


# -------------------------------------- how a federation is, and whether it still is what a mixture says


@dataclass(frozen=True)
class Describe(InBlocks, InBins[BoundedStatistics], kind="describe"):
    """How many are you, of which sizes, what do you hold, and how alike are your own points?

    One client sends 1; κ and κ²; 1 at the bin of its size; p; and 1 / √C for every category of which it
    has a point. The squared norms of these are at most 1, since |p|² ≤ Σ p = 1, and C (1 / √C)² = 1.
    """

    method = "describe"
    PARTS: ClassVar = {
        "clients": 0.1, "alike": 0.2, "squares": 0.05, "sizes": 0.15, "p": 0.3, "holders": 0.2,
    }  # fmt: skip

    n_categories: Annotated[int, AtLeast(2)]
    size_bins: SizeBins

    @property
    def block_lengths(self) -> Mapping[str, int]:
        c, b = self.n_categories, self.size_bins.n_bins
        return {"clients": 1, "alike": 1, "squares": 1, "sizes": b, "p": c, "holders": c}


@dataclass(frozen=True, eq=False)
class Spread(InBlocks, kind="spread"):
    """Which shares of your points have a number of this column in each of its bins?

    For clients with records. One client sends 1, and its shares s of the bins: |s|² ≤ Σ s = 1. No answer
    depends on the labels, and a client may have any size.
    """

    method = "describe_column"
    max_size = None
    PARTS: ClassVar = {"clients": 0.1, "shares": 0.9}

    n_categories: Annotated[int, AtLeast(2)]
    column: RecordColumn

    @property
    def n_features(self) -> int:
        return self.column.n_features

    @property
    def block_lengths(self) -> Mapping[str, int]:
        return {"clients": 1, "shares": self.column.n_bins}


@dataclass(frozen=True, eq=False)
class Standing(OfMixtures[BoundedStatistics], InBlocks, InBins[BoundedStatistics], kind="standing"):
    """How do you stand to this mixture? See `model/standing.py`.

    One client sends 1, its responsibilities ω with |ω|² ≤ Σ ω = 1, 1 at the bin of its size, p, its
    log-likelihood in units of the yardstick, between -1 and 1, the square of that, and 1 if no component
    explains it.
    """

    method = "score"
    PARTS: ClassVar = {
        "clients": 0.1, "components": 0.25, "sizes": 0.15, "p": 0.25, "fit": 0.15, "squares": 0.05,
        "unexplained": 0.05,
    }  # fmt: skip

    mdm: Annotated[MDM, Answerable()]
    size_bins: SizeBins
    yardstick: Yardstick

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.yardstick.centres) != self.size_bins.n_bins:
            raise ParameterError(
                f"expected a yardstick of {self.size_bins.n_bins} size bins, got "
                f"{len(self.yardstick.centres)}"
            )
        if self.size_bins.max_size != self.mdm.max_size:
            raise ParameterError(
                f"expected size bins up to the mixture's {self.mdm.max_size}, got "
                f"{self.size_bins.max_size}"
            )

    @property
    def block_lengths(self) -> Mapping[str, int]:
        c, b, k = self.n_categories, self.size_bins.n_bins, self.mdm.n_components
        return {
            "clients": 1, "components": k, "sizes": b, "p": c, "fit": 1, "squares": 1, "unexplained": 1,
        }  # fmt: skip
