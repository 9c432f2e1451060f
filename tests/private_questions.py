"""A private question that is none of the package's, and clients of it, for the tests of `privacy/`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyurn.client.unit_norm import unit_rows
from polyurn.wire import Dimensions, Query, Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Shares(Statistics):
    """Sums of what clients hold of each category, as vectors of norm at most 1."""

    shares: np.ndarray

    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {"shares": ("n_categories",)}


@dataclass(frozen=True)
class AskShares(Query[Shares]):
    """How much of each category do you hold? Clipped at norm 1."""

    n_categories: int

    answer_type = Shares
    unit_norm = True

    @property
    def dimensions(self):
        return Dimensions(0, self.n_categories)


class Clients:
    """An aggregator over vectors; it remembers what it was asked."""

    def __init__(self, vectors, *, gate=unit_rows):
        self._vectors, self._gate, self.asked = np.asarray(vectors, dtype=float), gate, []

    def aggregate(self, query, cohort_size):
        assert cohort_size is None
        self.asked.append(query)
        return query.shaped(self._gate(self._vectors).sum(axis=0))
