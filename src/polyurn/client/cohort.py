"""The clients of one round: members of a population, with a random stream and their buckets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.rows import Rows
from polyurn.errors import CountsError
from polyurn.typed.declared import Floats, Ints


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """The members of a population, `rows`, that answer a query; `rng` is for random answers.

    `buckets` has the number between 0 and 1 that every client drew for itself, shape (n_clients,).
    """

    rows: Rows
    members: NDArray[np.uint32]
    rng: np.random.Generator
    buckets: Floats | None = None
    n_threads: int = 1

    def __len__(self) -> int:
        return len(self.members)

    @property
    def sizes(self) -> Ints:
        """How many points each member has."""
        return self.rows.size_values[self.rows.size_index[self.members]]

    def counts(self) -> sparse.csr_array[Any]:
        """The members' histograms, shape (n_members, n_categories)."""
        return self.rows.counts_of(self.members)

    def blocks(self, n_together: int) -> Iterator["Cohort"]:
        """The members in blocks of at most `n_together`."""
        for start in range(0, len(self), n_together):
            yield replace(self, members=self.members[start : start + n_together])

    def part(self, low: float, high: float) -> "Cohort":
        """The members whose bucket is in [low, high)."""
        if self.buckets is None:
            raise CountsError("a query to a part of the clients needs each client's bucket")
        mine = self.buckets[self.members]
        return replace(self, members=self.members[(mine >= low) & (mine < high)])
