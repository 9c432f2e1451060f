"""An aggregator over a table of clients in this process: draws cohorts and sums their answers.

It connects both sides in one process, and sends nothing. Besides the framework adapters, only
`aggregate/` may import `client/`.
"""

from typing import Literal

import numpy as np

from polyurn.client.answers import Threads, answer_rows
from polyurn.client.rows import packed
from polyurn.errors import ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Bools, Seed
from polyurn.wire import Query, S
from polyurn.wording import counted


@checked
class LocalAggregator:
    """Plays every client of a table of histograms, or of records.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories), Histograms or Records
        The clients' histograms; or their records: the same object then serves `fit` with the counts of
        their labels, and `fit_style` with their features. A fit has the names of `Histograms`.
    rng : int or numpy.random.Generator
        Chooses the cohorts and makes the clients' own draws.
    sampling : {"fixed", "poisson"}
        A cohort is `cohort_size` clients drawn without replacement, or every client joins on its
        own with probability cohort_size / n_clients, as privacy accounting assumes.
    n_threads : int
        Sums differ in the last digits (1e-12) between numbers of threads; curvatures also between
        numbers of BLAS threads, which the environment sets.

    Examples
    --------
    >>> from polyurn.model.sizes import SizeBins
    >>> from polyurn.wire import Initialise
    >>> clients = LocalAggregator([[3, 1], [0, 2], [1, 1]], rng=0)
    >>> float(clients.aggregate(Initialise(1, 2, SizeBins.exact(9)), None).n_clients)
    3.0
    """

    def __init__(
        self,
        counts: object,
        *,
        rng: Seed = None,
        sampling: Literal["fixed", "poisson"] = "fixed",
        n_threads: Threads = 1,
    ) -> None:
        self._rows = packed(counts)
        self.categories = self._rows.categories
        self._rng = np.random.default_rng(rng)
        self._buckets = self._rng.spawn(1)[0].random(self._rows.n_clients)
        self._sampling = sampling
        self._n_threads = n_threads

    @property
    def n_clients(self) -> int:
        return self._rows.n_clients

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of a fresh cohort; None asks every client."""
        choose, play = self.skip()
        members = None if cohort_size is None else self._cohort(cohort_size, choose)
        return answer_rows(
            query, self._rows, members=members, buckets=self._buckets, rng=play,
            n_threads=self._n_threads,
        )  # fmt: skip

    def held_out(self, share: float) -> Bools:
        """Who scores and is never fitted, shape (n_clients,), in a selection that holds out a share."""
        return np.asarray(self._buckets >= 1.0 - share)

    def skip(self) -> list[np.random.Generator]:
        """Skip a round: later rounds draw as if it had been asked."""
        return self._rng.spawn(2)

    def _cohort(self, cohort_size: int, rng: np.random.Generator) -> np.ndarray:
        check_cohort(cohort_size, self.n_clients)
        if self._sampling == "poisson":
            return np.flatnonzero(rng.random(self.n_clients) < cohort_size / self.n_clients)
        return rng.choice(self.n_clients, size=cohort_size, replace=False)

    def __repr__(self) -> str:
        return f"LocalAggregator({counted(self.n_clients, 'client')}, sampling={self._sampling!r})"


def check_cohort(cohort_size: int, n_clients: int) -> None:
    """Refuse a cohort of nobody, or of more clients than there are."""
    if not 1 <= cohort_size <= n_clients:
        raise ParameterError(
            f"expected a cohort of 1 to {counted(n_clients, 'client')}, got {cohort_size}"
        )
