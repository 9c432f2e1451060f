"""Fitting an MDM: the rounds, when they stop, and what they came to.

The server's side. It sees sums and declared bounds, never a client. What one round does is `search/`;
the paper's algorithms are `paper.py`.
"""

from collections.abc import Callable

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import Sizes
from polyurn.server.em.first_round import survey
from polyurn.server.em.problem import Problem
from polyurn.server.few_clients import check_components, few_clients
from polyurn.server.results import Fit, Round
from polyurn.server.search.policy import DEFAULT, Policy
from polyurn.server.search.race import State
from polyurn.server.search.screening import begin_search
from polyurn.server.search.starts import landscape
from polyurn.server.settings import SizeModel, check_settings, size_bins
from polyurn.typed.arguments import checked
from polyurn.wire import Aggregator, Batch, Parameters, SurveyStatistics
from polyurn.wording.numbers import counted


@checked
def fit(
    aggregator: Aggregator,
    *,
    n_components: int,
    n_categories: int,
    max_size: int,
    max_rounds: int = 50,
    cohort_size: int | None = None,
    tol: float = 1e-3,
    patience: int = 3,
    max_upload: int = 50_000,
    sizes: SizeModel = "binned",
    size_prior: float = 1.0,
    category_prior: float = 1e-3,
    policy: Policy = DEFAULT,
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
    patience : int
        Rounds without a gain of `tol` before it stops: in each of them new combinations of starts try
        to find a better optimum. Not for sampled cohorts.
    max_upload : int
        Numbers that a client may send in a round; starts and trials are fitted into it.
    sizes : {"exact", "binned", "shared"} or SizeBins
        Probabilities for every single size (the paper), for logarithmic bins (most sizes of real clients
        are seen once or never), or for bins that all components share, so that sizes do not tell
        components apart. Inside a bin, sizes are spread as those of all clients together.
    size_prior, category_prior : float
        Pseudo-clients per component and per size bin, and pseudo-tables per category: they keep what a
        cohort did not show possible. The paper has none.
    policy : Policy
        Every tuned number of the search; the defaults serve all data that we know.
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
        n_components=n_components, n_categories=n_categories, max_rounds=max_rounds, tol=tol,
        patience=patience, max_upload=max_upload, size_prior=size_prior,
        category_prior=category_prior, policy=policy,
    )  # fmt: skip
    bins = size_bins(sizes, max_size)
    shared = sizes == "shared"
    problem = Problem(n_components, n_categories, bins, shared, size_prior, category_prior)
    problem.check_upload(max_upload)
    cohort_size = None if asks_everyone(aggregator, cohort_size) else cohort_size
    question = survey(n_categories, bins, max_upload=max_upload)
    said = aggregator.aggregate(question, cohort_size)
    check_answered(said, n_components)
    problem = problem.surveyed(question, said)
    rounds = Rounds(on_round)
    rounds.add(Round(1, None, float("nan"), int(said.n_clients), question.n_numbers))
    search = begin_search(
        problem, landscape(question, said, sizes=not shared), n_clients=said.n_clients,
        sampled=cohort_size is not None, policy=policy, patience=patience, max_upload=max_upload,
        tol=tol, rng=np.random.default_rng(rng),
    )  # fmt: skip
    n_changed = 0
    for number in range(2, max_rounds + 1):
        batch = Batch(tuple(search.queries()))
        state = search.learn(list(aggregator.aggregate(batch, cohort_size).answers))
        rounds.add(search_round(state, number, batch.n_numbers))
        n_changed += state.changed
        if state.converged:
            break
    mdm, n_dropped = populated(state)
    few = few_clients(cohort_size or said.n_clients, [n_components])
    stopped = _reason(state, tol, max_rounds, cohort_size or said.n_clients, few, n_changed)
    return Fit(mdm, tuple(rounds.done), state.converged, stopped, n_dropped, state.n_agreeing)


class Rounds:
    """The rounds so far; whoever watches is told of each."""

    def __init__(self, on_round: Callable[[Round], None] | None) -> None:
        self.done: list[Round] = []
        self._on_round = on_round

    def add(self, done: Round) -> None:
        self.done.append(done)
        if self._on_round is not None:
            self._on_round(done)


def asks_everyone(aggregator: Aggregator, cohort_size: int | None) -> bool:
    """Whether a cohort is all clients there are, as far as the aggregator says how many there are."""
    return cohort_size is None or cohort_size == getattr(aggregator, "n_clients", None)


def search_round(state: State, number: int, n_numbers: int) -> Round:
    """A search's round, for whoever watches."""
    mdm = None if state.best is None else populated(state)[0]
    return Round(number, mdm, state.value, int(state.n_clients), n_numbers, state.starts)


def populated(state: State) -> tuple[MDM, int]:
    """The best MDM without the components that hold less than half a client, and how many those are."""
    best = state.best
    if best is None:
        raise ParameterError(
            "no cohort has judged any parameters, because too many were empty; ask larger cohorts, "
            "or allow more rounds"
        )
    kept = best.weights * state.n_supporting >= 0.5
    weights = best.weights[kept] / best.weights[kept].sum()
    masses = Sizes.unchecked(best.sizes.bins, best.sizes.masses[kept])
    return Parameters(weights, best.alphas[kept], masses).mdm(), int((~kept).sum())


def _reason(
    state: State, tol: float, max_rounds: int, n_clients: float, few: str, n_changed: int
) -> str:
    if state.converged and few:
        return (
            f"converged: rounds gain less than {tol:g} nats per client; so few clients tell no more"
        )
    if state.converged:
        return f"converged: less than {tol:g} nats per client seem to be left to gain"
    fewer = state.n_clients < n_clients
    some = f", judged by {counted(state.n_clients, 'client')} only" if fewer else ""
    advice = f"{few}; take fewer components" if few else "allow more rounds, or fewer components"
    if n_changed:
        some += f", while clients left or came in {counted(n_changed, 'round')}"
        advice += "; if they always do, ask samples of them (cohort_size)"
    return f"stopped at max_rounds={max_rounds} before it converged{some}; {advice}"


def check_answered(said: SurveyStatistics, n_components: int) -> None:
    """Refuse to begin with a cohort that is empty, or smaller than the number of components."""
    if said.n_clients == 0:
        raise ParameterError("no client answered the first question; ask a larger cohort")
    check_components(said.n_clients, n_components)
