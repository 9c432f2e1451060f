"""The paper's own fit: Algorithms 1 and 2 of Scott and Cahill (2024) on sums over clients.

These are the server's lines; `client/answers.py` has the clients'. `polyurn.reference` has the same on a
plain table, without aggregation. `fitting.py` needs fewer rounds.
"""

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

import numpy as np

from polyurn.errors import EmptyComponentError, FitError, ZeroLikelihoodError
from polyurn.model.mdm import MDM
from polyurn.model.names import names_of
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.fit_results import Fit, Round
from polyurn.server.fit_settings import (
    MOST_ROUNDS,
    NCategories,
    NComponents,
    Prior,
    check_components,
    size_bins,
)
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Between, Floats
from polyurn.wire import Aggregator, Initialise, StartStatistics, Update, UpdateStatistics
from polyurn.wording import counted

Moments: TypeAlias = Literal["first", "most_frequent", "pooled"]


@checked
def fit_paper(
    aggregator: Aggregator,
    *,
    n_components: NComponents,
    n_categories: NCategories,
    max_size: int,
    n_rounds: Annotated[int, Between(2, MOST_ROUNDS)],
    cohort_size: int | None = None,
    sizes: Literal["exact", "binned"] | SizeBins = "exact",
    size_prior: Prior = 0.0,
    category_prior: Prior = 0.0,
    moments: Moments = "first",
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Learn a mixture of Dirichlet-multinomials by the paper's Algorithms 1 and 2, line by line.

    Parameters
    ----------
    aggregator : Aggregator
        Puts queries to clients, e.g. a `LocalAggregator`. It makes all random draws: the cohorts, and
        the component that each client joins at the start.
    n_components, n_categories, max_size : int
        K, C and N. Declared, never measured from clients.
    n_rounds : int
        How often clients are asked: once for Algorithm 1 and T = n_rounds - 1 times for Algorithm 2.
        At least 2; all of them are used.
    cohort_size : int, optional
        Clients per round, another cohort each time; every client by default.
    sizes : {"exact", "binned"} or SizeBins
        Probabilities for every single size (the paper), or for logarithmic or other bins.
    size_prior, category_prior : float
        Pseudo-clients per component, and pseudo-tables per category (see `update`). The paper has none.
    moments : {"first", "most_frequent", "pooled"}
        Which category's moments fix the first concentrations (see `initialise`). The paper takes the
        first.
    on_round : callable, optional
        Called with each `Round` as it ends: to show progress, or to keep what there is.

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> clients = pu.LocalAggregator(truth("medium/2").sample(2000, rng=0), rng=1)
    >>> fit = pu.fit_paper(clients, n_components=2, n_categories=10, max_size=20, n_rounds=101)
    >>> fit.mdm.weights.round(1).tolist(), fit.n_rounds
    ([0.6, 0.4], 101)
    """
    report = on_round or (lambda _: None)
    priors = {"size_prior": size_prior, "category_prior": category_prior}

    start = Initialise(n_components, n_categories, size_bins(sizes, max_size))
    first = aggregator.aggregate(start, cohort_size)
    mdm = initialise(start, first, moments=moments, **priors)
    rounds = [Round(1, mdm, float("nan"), int(first.n_clients), start.n_numbers)]
    report(rounds[-1])
    for number in range(2, n_rounds + 1):
        query = Update(mdm)
        statistics = aggregator.aggregate(query, cohort_size)
        mdm = update(mdm, statistics, **priors)
        mean = float(statistics.log_likelihood / statistics.n_clients)
        rounds.append(Round(number, mdm, mean, int(statistics.n_clients), query.n_numbers))
        report(rounds[-1])

    stopped = f"asked for {counted(n_rounds, 'round')}, and did them"
    why = "the paper's algorithms do not ask for the information"
    done = Fit(mdm, tuple(rounds), converged=False, stopped=stopped, no_errors=why)
    return done.named(names_of(aggregator))


def initialise(
    query: Initialise,
    statistics: StartStatistics,
    *,
    moments: Moments = "first",
    size_prior: float = 0.0,
    category_prior: float = 0.0,
) -> MDM:
    """The MDM whose components match the moments of their clients (Algorithm 1, lines 10 to 15).

    `moments` says which category's second moment fixes α_0: the paper's first one; the component's most
    frequent one, which cannot be empty; or all of them, Σ(P - Q) / Σ(Q - P²). Here `category_prior`
    counts pseudo-clients with uniform proportions.
    """
    check_components(statistics.n_clients, query.n_components)
    joined = statistics.size_counts.sum(axis=1)  # line 10: m_k
    if (joined == 0).any():
        raise EmptyComponentError(
            f"{int((joined == 0).sum())} of {query.n_components} components received no client "
            "at the start; use fewer components or a larger cohort"
        )
    pseudo = category_prior / query.n_categories
    m = (joined + category_prior)[:, None]
    first = (statistics.first_moments + pseudo) / m  # line 11, equation 8: P̄
    second = (statistics.second_moments + pseudo / query.n_categories) / m  # and Q̄
    weights = np.full(query.n_components, 1.0 / query.n_components)  # line 12, equation 5
    masses = size_masses(statistics.size_counts, size_prior=size_prior)  # line 13, equation 6
    alphas = concentrations(first, second, moments)[:, None] * first  # line 14, equation 9
    return MDM(weights, alphas, Sizes(query.size_bins, masses))


def concentrations(first: Floats, second: Floats, moments: Moments) -> Floats:
    """α_0 of each component from the moments of its clients' proportions (equation 9)."""
    spread, variance = first - second, second - first**2
    match moments:
        case "first":
            spread, variance = spread[:, 0], variance[:, 0]
        case "most_frequent":
            each, most = np.arange(len(first)), first.argmax(axis=1)
            spread, variance = spread[each, most], variance[each, most]
        case "pooled":
            spread, variance = spread.sum(axis=1), variance.sum(axis=1)
    if not ((spread > 0).all() and (variance > 0).all()):
        raise FitError(
            f"moments of {moments!r} give no concentration: that category is absent or "
            "never varies in some component; use moments='pooled'"
        )
    return spread / variance


def update(
    mdm: MDM, statistics: UpdateStatistics, *, size_prior: float = 0.0, category_prior: float = 0.0
) -> MDM:
    """The MDM after one round (Algorithm 2, lines 14 to 16; Theorem 3.1).

    On the full cohort and without priors the likelihood never decreases; with priors, the
    likelihood times the prior never does. `size_prior` counts pseudo-clients per component, spread
    evenly over the size bins. `category_prior` counts pseudo-tables: α·u is the number of tables that a
    category is expected to open in the component's Chinese restaurants, and this is added to it (the
    prior ∏ α^category_prior), so that a category that a cohort did not show is not lost for ever.
    """
    if np.isneginf(statistics.log_likelihood):
        raise ZeroLikelihoodError(
            "a client of this cohort has probability zero: it has a category or a size that no "
            "earlier cohort had; use size bins and priors (sizes='binned', size_prior=1, "
            "category_prior=0.01)"
        )
    omega = statistics.responsibilities
    if not ((omega > 0).all() and (statistics.denominators > 0).all()):
        raise EmptyComponentError(
            f"{int((omega <= 0).sum()) or 1} of {mdm.n_components} components received no client; "
            "use fewer components or a larger cohort"
        )
    weights = omega / statistics.n_clients  # line 14, equation 17
    masses = size_masses(statistics.size_counts, size_prior=size_prior)  # line 15, equation 18
    # α ⊙ u; a category that the component cannot produce stays at zero.
    tables = np.where(mdm.alphas > 0, mdm.alphas * statistics.numerators, 0.0)
    alphas = (tables + category_prior) / statistics.denominators[:, None]  # line 16, equation 19
    return MDM(weights, alphas, Sizes(mdm.sizes.bins, masses))


def size_masses(size_counts: Floats, *, size_prior: float) -> Floats:
    """π_k: the size histogram of each component, normalised, with `size_prior` pseudo-clients; shape
    (n_components, n_bins).
    """
    masses = size_counts + size_prior / size_counts.shape[1]
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))
