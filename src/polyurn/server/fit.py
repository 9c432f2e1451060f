"""Fitting an MDM: the rounds, when they stop, and what they came to.

The server's side. It sees sums and declared bounds, never a client. What one round does is `search.py`
for the default method, and `start.py` and `update.py` for the paper's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.search.m_step import multinomial
from polyurn.server.search.problem import Problem
from polyurn.server.search.screening import AnySearch, begin_search
from polyurn.server.search.starts import landscape, survey
from polyurn.server.start import Moments, initialise
from polyurn.server.update import update
from polyurn.wire import Aggregator, Batch, Initialise, Parameters, SurveyStatistics, Update

SizeModel: TypeAlias = Literal["exact", "binned", "shared"] | SizeBins
Method: TypeAlias = Literal["search", "paper"]


@dataclass(frozen=True)
class Round:
    """What one round of a fit came to.

    Attributes
    ----------
    number : int
        Rounds count from 1; the first ones find where to start.
    mdm : MDM or None
        The best parameters after this round; None while there are none.
    log_likelihood : float
        Mean over the cohort. Of the best parameters judged so far ("search"), or of those that were
        sent in this round ("paper"); NaN while there are none.
    n_clients : int
        How many clients judged them. Where there are many, a part of them does at first, and the path
        of log-likelihoods has a step when all of them do.
    n_numbers : int
        How many numbers a client sent, at most.
    starts : dict of int to float
        The mean log-likelihood of every start that is still in the race, by its number.
    """

    number: int
    mdm: MDM | None
    log_likelihood: float
    n_clients: int
    n_numbers: int
    starts: Mapping[int, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Fit:
    """A fitted MDM and how it came about.

    Attributes
    ----------
    mdm : MDM
    rounds : tuple of Round
    converged : bool
        Whether less than `tol` nats per client seem to be left to gain. Never for method "paper",
        which does not look.
    stopped : str
        What ended the rounds, with advice if it was not convergence.
    n_dropped : int
        Components that were left with less than half a client, and dropped.
    """

    mdm: MDM
    rounds: tuple[Round, ...] = field(repr=False)
    converged: bool
    stopped: str
    n_dropped: int = 0

    @property
    def n_rounds(self) -> int:
        """How often clients were asked, starts included."""
        return len(self.rounds)

    @property
    def log_likelihoods(self) -> NDArray[np.float64]:
        """Mean log-likelihood per client of each round that has one."""
        values = np.array([r.log_likelihood for r in self.rounds])
        return np.asarray(values[~np.isnan(values)])

    @property
    def multinomial(self) -> tuple[int, ...]:
        """Components whose concentration is at its cap of a million, as good as multinomials.

        Clients of n points can tell from about n² = 10⁶ on: the cap costs them some n²/10⁶ nats.
        """
        return multinomial(self.mdm.alphas)


def fit(
    aggregator: Aggregator,
    *,
    n_components: int,
    n_categories: int,
    max_size: int,
    method: Method = "search",
    max_rounds: int = 50,
    cohort_size: int | None = None,
    tol: float = 1e-3,
    max_upload: int = 50_000,
    sizes: SizeModel | None = None,
    size_prior: float | None = None,
    category_prior: float | None = None,
    moments: Moments = "first",
    rng: int | np.random.Generator | None = None,
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Learn a mixture of Dirichlet-multinomials from sums over clients.

    Parameters
    ----------
    aggregator : Aggregator
        Puts queries to clients, e.g. a `LocalAggregator`.
    n_components, n_categories, max_size : int
        K, C and N. Declared, never measured from clients.
    method : {"search", "paper"}
        "search" climbs from many starts in the same rounds; ten to thirty do. "paper" is
        Algorithms 1 and 2 of Scott and Cahill (2024), line by line.
    max_rounds : int
        How often clients may be asked. "paper" always uses all of them: one for Algorithm 1 and the
        others for Algorithm 2.
    cohort_size : int, optional
        Clients per round, another cohort each time; every client by default.
    tol : float
        "search" stops when less than this seems to be left to gain, in nats per client.
    max_upload : int
        Numbers that a client may send in a round; "search" fits its starts and trials into it.
    sizes : {"exact", "binned", "shared"} or SizeBins
        Probabilities for every single size (the paper), for logarithmic bins (the default of
        "search": most sizes of real clients are seen once or never), or for bins that all components
        share, so that sizes do not tell components apart.
    size_prior, category_prior : float
        Pseudo-clients per component, and pseudo-tables per category: they keep what a cohort did not
        show possible. 1 and 0.001 for "search"; the paper has none.
    moments : {"first", "most_frequent", "pooled"}
        For "paper": which category's moments fix the first concentrations.
    rng : int or numpy.random.Generator
        For the random starts of "search".
    on_round : callable, optional
        Called with each `Round` as it ends: to show progress, or to keep what there is.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> clients = pu.LocalAggregator(truth("medium/2").sample(2000, rng=0), rng=1)
    >>> fit = pu.fit(clients, n_components=2, n_categories=10, max_size=20, rng=2)
    >>> fit.mdm.weights.round(1).tolist(), fit.converged
    ([0.6, 0.4], True)
    """
    if method not in ("search", "paper"):
        raise ParameterError(f"expected method 'search' or 'paper', got {method!r}")
    paper = method == "paper"
    sizes = ("exact" if paper else "binned") if sizes is None else sizes
    size_prior = (0.0 if paper else 1.0) if size_prior is None else size_prior
    category_prior = (0.0 if paper else 1e-3) if category_prior is None else category_prior
    check_settings(
        n_components=n_components, max_rounds=max_rounds, tol=tol, max_upload=max_upload,
        size_prior=size_prior, category_prior=category_prior,
    )  # fmt: skip
    bins = size_bins(sizes, max_size)
    if paper:
        progress = _paper_rounds(
            aggregator,
            Initialise(n_components, n_categories, bins),
            max_rounds=max_rounds,
            cohort_size=cohort_size,
            moments=moments,
            priors={"size_prior": size_prior, "category_prior": category_prior},
        )
        rounds = _shown(progress, on_round)
        stopped = f"asked for {max_rounds} rounds, and did them"
        return Fit(_last(rounds), rounds, converged=False, stopped=stopped)
    problem = Problem(
        n_components, n_categories, bins, sizes == "shared", size_prior, category_prior
    )
    problem.check_room(max_upload)
    searches: list[AnySearch] = []
    progress = _search_rounds(
        aggregator,
        problem,
        searches,
        max_rounds=max_rounds,
        cohort_size=cohort_size,
        tol=tol,
        max_upload=max_upload,
        rng=np.random.default_rng(rng),
    )
    rounds = _shown(progress, on_round)
    (search,) = searches
    mdm, n_dropped = populated(search)
    asked = cohort_size or rounds[0].n_clients
    reason = _reason(search, tol, max_rounds, asked)
    return Fit(mdm, rounds, search.converged, reason, n_dropped)


def _search_rounds(
    aggregator: Aggregator,
    problem: Problem,
    searches: list[AnySearch],
    *,
    max_rounds: int,
    cohort_size: int | None,
    tol: float,
    max_upload: int,
    rng: np.random.Generator,
) -> Iterator[Round]:
    """Survey the clients once, then ask and learn until the search has converged."""
    question = survey(problem.n_categories, problem.size_bins.max_size, max_upload=max_upload)
    said = aggregator.aggregate(question, cohort_size)
    check_answered(said)
    yield Round(1, None, float("nan"), int(said.n_clients), question.n_numbers)
    search = begin_search(
        problem,
        landscape(question, said, sizes=not problem.shared_sizes),
        n_clients=said.n_clients,
        sampled=cohort_size is not None,
        max_upload=max_upload,
        tol=tol,
        rng=rng,
    )
    searches.append(search)
    for number in range(2, max_rounds + 1):
        batch = Batch(tuple(search.queries()))
        search.learn(list(aggregator.aggregate(batch, cohort_size).answers))
        yield search_round(search, number, batch.n_numbers)
        if search.converged:
            return


def search_round(search: AnySearch, number: int, n_numbers: int) -> Round:
    """A search's last round, for whoever watches."""
    if not search.has_values:
        return Round(number, None, float("nan"), int(search.n_clients), n_numbers)
    mdm, _ = populated(search)
    return Round(number, mdm, search.value, int(search.n_clients), n_numbers, search.values)


def populated(search: AnySearch) -> tuple[MDM, int]:
    """The best MDM without the components that hold less than half a client, and how many those are."""
    best = search.best
    kept = best.weights * search.n_supporting >= 0.5
    weights = best.weights[kept] / best.weights[kept].sum()
    masses = Sizes.unchecked(best.sizes.bins, best.sizes.masses[kept])
    return Parameters(weights, best.alphas[kept], masses).mdm(), int((~kept).sum())


def _reason(search: AnySearch, tol: float, max_rounds: int, n_clients: int) -> str:
    if search.converged:
        return f"converged: less than {tol:g} nats per client seem to be left to gain"
    some = (
        f", judged by {search.n_clients:,.0f} clients only" if search.n_clients < n_clients else ""
    )
    return (
        f"stopped at max_rounds={max_rounds} before it converged{some}; allow more rounds, "
        "or fewer components"
    )


def _paper_rounds(
    aggregator: Aggregator,
    query: Initialise,
    *,
    max_rounds: int,
    cohort_size: int | None,
    moments: Moments,
    priors: dict[str, float],
) -> Iterator[Round]:
    """Algorithm 2: start with Algorithm 1, then T times ask a fresh cohort and update."""
    start = aggregator.aggregate(query, cohort_size)
    mdm = initialise(query, start, moments=moments, **priors)
    yield Round(1, mdm, float("nan"), int(start.n_clients), query.n_numbers)
    for number in range(2, max_rounds + 1):
        question = Update(mdm)
        statistics = aggregator.aggregate(question, cohort_size)
        mdm = update(mdm, statistics, **priors)
        mean = float(statistics.log_likelihood / statistics.n_clients)
        yield Round(number, mdm, mean, int(statistics.n_clients), question.n_numbers)


def _shown(
    progress: Iterator[Round], on_round: Callable[[Round], None] | None
) -> tuple[Round, ...]:
    rounds = []
    for done in progress:
        rounds.append(done)
        if on_round is not None:
            on_round(done)
    return tuple(rounds)


def _last(rounds: tuple[Round, ...]) -> MDM:
    mdm = rounds[-1].mdm
    assert mdm is not None
    return mdm


def check_answered(said: SurveyStatistics) -> None:
    """Refuse to begin with a cohort of nobody."""
    if said.n_clients == 0:
        raise ParameterError("no client answered the first question; ask a larger cohort")


def check_settings(
    *,
    n_components: int,
    max_rounds: int,
    tol: float,
    max_upload: int,
    size_prior: float,
    category_prior: float,
) -> None:
    """Refuse settings out of range before any client is asked."""
    if not (hasattr(n_components, "__index__") and 1 <= n_components < 2**16):
        raise ParameterError(f"expected n_components of 1 to 65535, got {n_components}")
    if max_rounds < 3:
        raise ParameterError(f"expected max_rounds of at least 3, got {max_rounds}")
    if not (tol > 0 and max_upload >= 1):
        raise ParameterError("expected a positive tol and max_upload")
    for name, prior in (("size_prior", size_prior), ("category_prior", category_prior)):
        if not (np.isfinite(prior) and prior >= 0):
            raise ParameterError(f"expected a finite {name} of at least 0, got {prior}")


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
        case "binned" | "shared":
            return SizeBins.logarithmic(max_size)
        case _:
            raise ParameterError(
                f"expected sizes 'exact', 'binned', 'shared' or SizeBins, got {sizes!r}"
            )
