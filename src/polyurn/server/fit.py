"""Fitting an MDM: the rounds, when they stop, and what they came to.

The server's side. It sees sums and declared bounds, never a client. What one round does is `search/`;
the paper's algorithms are `paper.py`.
"""

from collections.abc import Callable, Iterator

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import Sizes
from polyurn.server.results import Fit, Round
from polyurn.server.search.problem import Problem
from polyurn.server.search.screening import AnySearch, begin_search
from polyurn.server.search.starts import landscape, survey
from polyurn.server.settings import SizeModel, check_settings, size_bins
from polyurn.wire import Aggregator, Batch, Parameters, SurveyStatistics


def fit(
    aggregator: Aggregator,
    *,
    n_components: int,
    n_categories: int,
    max_size: int,
    max_rounds: int = 50,
    cohort_size: int | None = None,
    tol: float = 1e-3,
    max_upload: int = 50_000,
    sizes: SizeModel = "binned",
    size_prior: float = 1.0,
    category_prior: float = 1e-3,
    rng: int | np.random.Generator | None = None,
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Learn a mixture of Dirichlet-multinomials from sums over clients.

    Many starts climb in the same rounds; ten to thirty do. The algorithms of the paper are `fit_paper`.

    Parameters
    ----------
    aggregator : Aggregator
        Puts queries to clients, e.g. a `LocalAggregator`.
    n_components, n_categories, max_size : int
        K, C and N. Declared, never measured from clients.
    max_rounds : int
        Maximum number of rounds.
    cohort_size : int, optional
        Clients per round, another cohort each time; every client by default.
    tol : float
        The rounds stop when less than this seems to be left to gain, in nats per client.
    max_upload : int
        Numbers that a client may send in a round; starts and trials are fitted into it.
    sizes : {"exact", "binned", "shared"} or SizeBins
        Probabilities for every single size (the paper), for logarithmic bins (most sizes of real clients
        are seen once or never), or for bins that all components share, so that sizes do not tell
        components apart.
    size_prior, category_prior : float
        Pseudo-clients per component, and pseudo-tables per category: they keep what a cohort did not
        show possible. The paper has none.
    rng : int or numpy.random.Generator
        For the random starts.
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
    check_settings(
        n_components=n_components, max_rounds=max_rounds, tol=tol, max_upload=max_upload,
        size_prior=size_prior, category_prior=category_prior,
    )  # fmt: skip
    bins = size_bins(sizes, max_size)
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


def _shown(
    progress: Iterator[Round], on_round: Callable[[Round], None] | None
) -> tuple[Round, ...]:
    rounds = []
    for done in progress:
        rounds.append(done)
        if on_round is not None:
            on_round(done)
    return tuple(rounds)


def check_answered(said: SurveyStatistics) -> None:
    """Refuse to begin with a cohort of nobody."""
    if said.n_clients == 0:
        raise ParameterError("no client answered the first question; ask a larger cohort")
