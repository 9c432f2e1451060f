"""The rounds of a fit: ask, update, stop.

The server's side of Algorithms 1 and 2. It sees sums and declared bounds, never a client.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.mdm import MDM
from polyurn.server.start import Moments, initialise
from polyurn.server.update import update
from polyurn.sizes import SizeBins
from polyurn.wire import Aggregator, Initialise, Update

SizeModel: TypeAlias = Literal["exact", "binned"] | SizeBins


@dataclass(frozen=True)
class Round:
    """What one round of a fit came to.

    Attributes
    ----------
    number : int
        0 is the start (Algorithm 1); the updates count from 1.
    mdm : MDM
        The parameters after this round.
    log_likelihood : float
        Mean over the cohort, under the parameters that were *sent* in this round; NaN for round 0.
    n_clients : int
        How many clients answered.
    """

    number: int
    mdm: MDM
    log_likelihood: float
    n_clients: int


@dataclass(frozen=True)
class Fit:
    """A fitted MDM and how it came about.

    Attributes
    ----------
    mdm : MDM
    rounds : tuple of Round
        Round 0 is the start.
    """

    mdm: MDM
    rounds: tuple[Round, ...] = field(repr=False)

    @property
    def n_rounds(self) -> int:
        """How often clients were asked, the start included."""
        return len(self.rounds)

    @property
    def log_likelihoods(self) -> NDArray[np.float64]:
        """Mean log-likelihood per client of the parameters sent in each round after the start."""
        return np.array([r.log_likelihood for r in self.rounds[1:]])


def fit(
    aggregator: Aggregator,
    *,
    n_components: int,
    n_categories: int,
    max_size: int,
    method: Literal["paper"] = "paper",
    n_rounds: int = 50,
    cohort_size: int | None = None,
    moments: Moments = "first",
    sizes: SizeModel = "exact",
    size_prior: float = 0.0,
    category_prior: float = 0.0,
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Learn a mixture of Dirichlet-multinomials from sums over clients.

    Parameters
    ----------
    aggregator : Aggregator
        Puts queries to clients, e.g. a `LocalAggregator`.
    n_components, n_categories, max_size : int
        K, C and N. Declared, never measured from clients.
    method : {"paper"}
        Algorithms 1 and 2 of Scott and Cahill (2024), line by line.
    n_rounds : int
        T: rounds of Algorithm 2, after the one of Algorithm 1.
    cohort_size : int, optional
        Clients per round; every client by default.
    moments : {"first", "most_frequent", "pooled"}
        Which category's moments fix the first concentrations; the paper takes the first.
    sizes : {"exact", "binned"} or SizeBins
        The paper keeps a probability for every size up to `max_size`. Real data want "binned"
        (logarithmic bins): most sizes are seen once or never.
    size_prior, category_prior : float
        Pseudo-observations that keep what a cohort did not show possible; see `update`. The paper
        has none.
    on_round : callable, optional
        Called with each `Round` as it ends: to show progress, or to keep what there is.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.truths import truth
    >>> clients = pu.LocalAggregator(truth("medium/2").sample(2000, rng=0), rng=1)
    >>> fit = pu.fit(clients, n_components=2, n_categories=10, max_size=20, n_rounds=100)
    >>> fit.mdm.weights.round(1).tolist()
    [0.6, 0.4]
    """
    if method != "paper":
        raise ParameterError(f"expected method 'paper', got {method!r}")
    if n_rounds < 0 or size_prior < 0 or category_prior < 0:
        raise ParameterError("expected n_rounds and priors of at least 0")
    query = Initialise(n_components, n_categories, size_bins(sizes, max_size))
    rounds: list[Round] = []
    for done in paper_rounds(
        aggregator,
        query,
        n_rounds=n_rounds,
        cohort_size=cohort_size,
        moments=moments,
        size_prior=size_prior,
        category_prior=category_prior,
    ):
        rounds.append(done)
        if on_round is not None:
            on_round(done)
    return Fit(rounds[-1].mdm, tuple(rounds))


def paper_rounds(
    aggregator: Aggregator,
    query: Initialise,
    *,
    n_rounds: int,
    cohort_size: int | None,
    moments: Moments,
    size_prior: float,
    category_prior: float,
) -> Iterator[Round]:
    """Algorithm 2: start with Algorithm 1, then T times ask a fresh cohort and update."""
    start = aggregator.aggregate(query, cohort_size)
    priors = {"size_prior": size_prior, "category_prior": category_prior}
    mdm = initialise(query, start, moments=moments, **priors)
    yield Round(0, mdm, float("nan"), int(start.n_clients))
    for t in range(1, n_rounds + 1):
        statistics = aggregator.aggregate(Update(mdm), cohort_size)
        mdm = update(mdm, statistics, **priors)
        mean = float(statistics.log_likelihood / statistics.n_clients)
        yield Round(t, mdm, mean, int(statistics.n_clients))


def size_bins(sizes: SizeModel, max_size: int) -> SizeBins:
    """The bins that a name of a size model stands for."""
    match sizes:
        case SizeBins():
            if sizes.max_size != max_size:
                raise ParameterError(
                    f"expected size bins that end at max_size {max_size}, got {sizes.max_size}"
                )
            return sizes
        case "exact":
            return SizeBins.exact(max_size)
        case "binned":
            return SizeBins.logarithmic(max_size)
        case _:
            raise ParameterError(f"expected sizes 'exact', 'binned' or SizeBins, got {sizes!r}")
