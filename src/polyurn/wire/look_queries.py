"""What is asked to look at a federation: how it is, and whether it still is what a mixture says.

One client's answer to each question is a vector of norm at most 1 (`private_queries.py`), so that the
same question is asked exactly and with noise. Every block of it has norm at most 1 before it is
multiplied by the root of its part, and the parts add up to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins
from polyurn.model.standing import Yardstick
from polyurn.typed.declared import AtLeast
from polyurn.wire.private_queries import BoundedStatistics, InBlocks
from polyurn.wire.queries import Answerable, OfMixtures, RecordColumn
from polyurn.wire.query import InBins


@dataclass(frozen=True)
class Describe(InBlocks, InBins[BoundedStatistics], kind="describe"):
    """How many are you, of which sizes, what do you hold, and how alike are your own points?

    One client sends 1; κ and κ², with κ the share of its pairs of points that agree, between 0 and 1;
    1 at the bin of its size; p; and 1 / √C for every category of which it has a point. The squared
    norms of these are at most 1, since |p|² ≤ Σ p = 1, and C (1 / √C)² = 1.
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
