"""A private question that is none of the package's, and clients of it, for the tests of `privacy/`."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from polyurn.typed.declared import Shape
from polyurn.wire import Query, Statistics
from polyurn.wire.private_grid import unit_rows


@dataclass(frozen=True, eq=False, repr=False)
class Shares(Statistics):
    """Sums of what clients hold of each category, as vectors of norm at most 1."""

    shares: Annotated[np.ndarray, Shape("C")]


@dataclass(frozen=True)
class AskShares(Query[Shares]):
    """How much of each category do you hold? Clipped at norm 1."""

    n_categories: int

    answer_type = Shares
    unit_norm = True

    @property
    def lengths(self):
        return {"C": self.n_categories}


class Clients:
    """An aggregator over vectors; it remembers what it was asked."""

    def __init__(self, vectors, *, gate=unit_rows):
        self._vectors, self._gate, self.asked = np.asarray(vectors, dtype=float), gate, []

    def aggregate(self, query, cohort_size):
        assert cohort_size is None
        self.asked.append(query)
        return query.shaped(self._gate(self._vectors).sum(axis=0))
