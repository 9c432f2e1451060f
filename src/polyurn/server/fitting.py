"""Fitting an MDM and choosing its number of components: the rounds, when they stop, and the result.

The server's side: it sees sums and declared bounds, never a client. `fit` is one search; `select` is one
search for each number of components, in the same rounds, on a part of the clients; the held-out part
scores them all (Appendix A of the paper), and is fitted once it has chosen. A client's own bucket
decides its part: the parts share no client. `search.py` has what a search asks and learns, `stages.py`
what follows a choice, `paper.py` the paper's algorithms.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.em import Problem
from polyurn.server.fit_results import Candidate, Fit, Round, Selection, SelectionRound
from polyurn.server.fit_settings import (
    DEFAULT,
    Policy,
    Settings,
    SizeModel,
    check_components,
    check_model,
    check_parts,
    few_clients,
    size_bins,
)  # fmt: skip
from polyurn.server.sampled import Sampled
from polyurn.server.search import Race, Screened, Search, State
from polyurn.server.stages import join
from polyurn.server.starts import Landscape, landscape, random_groups, survey, with_profile
from polyurn.typed.arguments import checked
from polyurn.wire import (
    Aggregator,
    Batch,
    BatchStatistics,
    Parameters,
    Part,
    Query,
    Score,
    ScoreStatistics,
    Statistics,
)  # fmt: skip
from polyurn.wording import counted

# The numbers of components that "auto" tries, in turn, while the held-out likelihood rises.
GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# The most numbers of components that are fitted in the same rounds, if an upload allows it.
_AT_ONCE = 4
# "auto" ends after this many numbers larger than the best one, and leaves each component at least this
# many clients on average.
_WORSE, _CLIENTS_EACH = 2, 2
# Two rounds to find starts, one to fit, and one to score.
_FEWEST_ROUNDS = 4
# Once fewer components have converged, held-out clients score all candidates every so many rounds, to
# see whether more components can still do better; not before the race of the starts is over.
_ASK_EVERY, _ASK_FROM = 4, 8
# Among ties the smallest number of components is chosen: those behind the best by at most so many
# standard errors. One is generous where clients are few (experiments/choose_then_fit.py).
_TIE = 0.25
# Digits of a start's likelihood in a file: it need not publish more than the page shows.
_DIGITS = 6


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

    Many starts climb in the same rounds; ten to thirty rounds are enough. `fit_paper` has the
    algorithms of the paper.

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
        Numbers that a client may send in a round; they limit the starts and trials of a round.
    sizes : {"exact", "binned", "shared"} or SizeBins
        Probabilities for every single size (the paper), for logarithmic bins (most sizes of real clients
        are seen once or never), or for bins that all components share, so that sizes do not tell
        components apart. Inside a bin, sizes are spread as those of all clients together.
    size_prior, category_prior : float
        Pseudo-clients per component and per size bin, and pseudo-tables per category: sizes and
        categories that a cohort did not show stay possible. The paper has no priors.
    policy : Policy
        Every tuned number of the search; the defaults serve all data that we know.
    rng : int or numpy.random.Generator
        For the random starts.
    on_round : callable, optional
        Called with each `Round` as it ends, to show progress or to keep the parameters.

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
    settings = Settings(
        max_rounds=max_rounds, cohort_size=cohort_size, tol=tol, patience=patience,
        max_upload=max_upload, policy=policy,
    )  # fmt: skip
    problem = _problem(n_components, n_categories, max_size, sizes, size_prior, category_prior)
    problem.check_upload(max_upload)
    done: list[Round] = []

    def report(n_clients: int, n_numbers: int, climbing: Sequence[int]) -> None:
        state = rounds.climbs[n_components].state if climbing else State(n_clients, n_clients)
        mdm = None if state.best is None else populated(state)[0]
        number = rounds.n_rounds
        done.append(Round(number, mdm, state.value, n_clients, n_numbers, _shown(state)))
        if on_round is not None:
            on_round(done[-1])

    random = np.random.default_rng(rng)
    rounds = _Rounds(aggregator, problem, settings, random, on_round=report)
    rounds.survey()
    check_components(rounds.n_fitted, n_components)
    rounds.climb([n_components], [random])
    climb = rounds.climbs[n_components]
    mdm, n_dropped = populated(climb.state)
    stopped = _reason(climb, rounds.settings, rounds.n_fitted, n_components)
    return Fit(mdm, tuple(done), climb.state.converged, stopped, n_dropped, climb.state.n_agreeing)


@checked
def select(
    aggregator: Aggregator,
    n_components: Iterable[int] | Literal["auto"],
    *,
    n_categories: int,
    max_size: int,
    held_out: float = 0.2,
    refit: bool = True,
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
    on_round: Callable[[SelectionRound], None] | None = None,
) -> Selection:
    """Choose the number of components by the likelihood of clients that were not fitted.

    Parameters
    ----------
    aggregator : Aggregator
    n_components : iterable of int, or "auto"
        The candidates, all fitted in the same rounds; "auto" tries more and more components until the
        held-out likelihood has stopped rising.
    n_categories, max_size : int
        Declared, never measured from clients.
    held_out : float
        The share of the clients that scores.
    refit : bool
        After the choice, the chosen mixture goes on with all clients for up to six rounds (not with
        sampled cohorts). Without, the clients that scored are never fitted.
    max_rounds, cohort_size, tol, patience, max_upload, sizes, size_prior, category_prior, policy, rng
        As in `fit`; `max_upload` holds for all candidates of a round together. Candidates that do not
        fit into it side by side are fitted in groups, those of "auto" four at a time at most, and
        `max_rounds` holds for each group.
    on_round : callable, optional
        Called with a `SelectionRound` after each round.

    Returns
    -------
    Selection
        With the smallest number of components whose held-out likelihood is within a quarter of a
        standard error of the best one's, judged on the difference between the two, client by client.

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> clients = pu.LocalAggregator(truth("appendix-a").sample(1000, rng=0), rng=1)
    >>> choice = pu.select(clients, range(1, 5), n_categories=5, max_size=100, rng=2)
    >>> choice.n_components, choice.mdm.n_components
    (3, 3)
    """
    asked = GRID if n_components == "auto" else _numbers(n_components)
    settings = Settings(
        max_rounds=max_rounds, cohort_size=cohort_size, tol=tol, patience=patience,
        max_upload=max_upload, policy=policy,
    )  # fmt: skip
    model = (n_categories, max_size, sizes, size_prior, category_prior)
    smallest, largest = _problem(asked[0], *model), _problem(asked[-1], *model)
    if max_rounds < _FEWEST_ROUNDS:
        raise ParameterError(
            f"expected max_rounds of at least {_FEWEST_ROUNDS} for a selection, got {max_rounds}"
        )
    if not 0 < held_out < 1:
        raise ParameterError(f"expected held_out between 0 and 1, got {held_out}")
    (smallest if n_components == "auto" else largest).check_upload(max_upload)
    done: list[SelectionRound] = []

    def report(n_clients: int, n_numbers: int, climbing: Sequence[int]) -> None:
        climbs = dict(sorted(rounds.climbs.items()))
        values = {k: c.state.value for k, c in climbs.items() if c.state.best is not None}
        running = tuple(k for k, c in climbs.items() if c.goes_on)
        starts = {k: _shown(climbs[k].state) for k in climbing if k in values}
        done.append(SelectionRound(rounds.n_rounds, n_clients, n_numbers, values, running, starts))
        if on_round is not None:
            on_round(done[-1])

    random = np.random.default_rng(rng)
    rounds = _Rounds(aggregator, smallest, settings, random, held_out=held_out, on_round=report)
    rounds.survey()
    # A cohort that is a sample may be smaller next time.
    whole = n_components != "auto" and rounds.settings.cohort_size is None
    most = max(rounds.n_fitted / (1 if whole else _CLIENTS_EACH), 1.0)
    todo = [k for k in asked if k <= most]
    skipped = tuple(k for k in asked if k > most)
    at_most = len(todo)
    if n_components == "auto":
        todo = [k for k in todo if rounds.problem(k).trial_cost <= max_upload]
        skipped, at_most = (), _AT_ONCE
    if not todo:
        needs = counted(asked[0], "component needs", "components need")
        raise ParameterError(f"{needs} at least as many clients, got {rounds.n_fitted:.0f} to fit")
    for group in _groups(rounds, todo, at_most):
        rounds.climb(group, random.spawn(len(group)))
        chosen, candidates = _choose(rounds)
        best = max(candidates, key=lambda c: c.log_likelihood).n_components
        if n_components == "auto" and sum(c.n_components > best for c in candidates) >= _WORSE:
            break
    assert rounds.scores is not None
    n_held_out = int(rounds.scores.n_clients)
    mdm, joined = rounds.join(chosen, random) if refit else (cast(MDM, chosen.mdm), ())
    return Selection(
        chosen.n_components, mdm, candidates, rounds.n_rounds, n_held_out, tuple(done), skipped,
        joined=joined,
    )  # fmt: skip


def _numbers(n_components: Iterable[int]) -> tuple[int, ...]:
    numbers = tuple(sorted(set(n_components)))
    if not numbers:
        raise ParameterError("expected at least one number of components to choose from, got none")
    return numbers


def _shown(state: State) -> dict[int, float]:
    """The likelihood of every start, with the digits that a file keeps."""
    return {start: round(value, _DIGITS) for start, value in state.starts.items()}


def _problem(
    n_components: int, n_categories: int, max_size: int, sizes: SizeModel, size_prior: float,
    category_prior: float,
) -> Problem:  # fmt: skip
    """The problem to fit, after a check of all ranges."""
    check_model(
        n_components=n_components, n_categories=n_categories, size_prior=size_prior,
        category_prior=category_prior,
    )  # fmt: skip
    bins = size_bins(sizes, max_size)
    return Problem(n_components, n_categories, bins, sizes == "shared", size_prior, category_prior)


@dataclass
class _Climb:
    """The search for one number of components, and its state."""

    search: Search
    state: State
    n_rounds: int = 1  # with the survey
    n_changed: int = 0  # rounds in which clients left or came
    overtaken: bool = False  # fewer components do better than it could become
    scored: MDM | None = None  # the mixture that the held-out clients scored

    @property
    def goes_on(self) -> bool:
        return not (self.state.converged or self.overtaken)


class _Rounds:
    """Searches that climb in the same rounds; with `held_out`, the rest of the clients scores them.

    `on_round` is called with the number of clients and of numbers, and the K that climbed.
    """

    def __init__(
        self, aggregator: Aggregator, problem: Problem, settings: Settings,
        rng: np.random.Generator, *, held_out: float = 0.0,
        on_round: Callable[[int, int, Sequence[int]], None],
    ) -> None:  # fmt: skip
        if settings.cohort_size == getattr(aggregator, "n_clients", None):  # that is everybody
            settings = replace(settings, cohort_size=None)
        self.settings, self.n_rounds = settings, 0
        self.climbs: dict[int, _Climb] = {}
        self.scores: ScoreStatistics | None = None  # of what there is now
        self._aggregator, self._problem, self._rng = aggregator, problem, rng
        self._held_out, self._on_round = held_out, on_round

    def problem(self, n_components: int) -> Problem:
        """The problem with this number of components."""
        return replace(self._problem, n_components=n_components)

    def survey(self) -> None:
        """The first round: how the fitted clients vary, and how many clients are held out."""
        problem, max_upload = self._problem, self.settings.max_upload
        question = survey(problem.n_categories, problem.size_bins, max_upload=max_upload)
        if self._held_out:
            any_size = Sizes(SizeBins([1, problem.size_bins.max_size + 1]), [[1.0]])
            anyone = MDM([1.0], np.ones((1, problem.n_categories)), any_size)
            both = Batch((self._fitted(question), self._judged((anyone,))))
            surveyed, judged = cast(Any, self._aggregate(both)).answers
            check_parts(surveyed.n_clients, judged.n_clients, held_out=self._held_out)
        else:
            surveyed = self._aggregate(question)
        self.n_fitted = float(surveyed.n_clients)
        if self.n_fitted == 0:
            raise ParameterError("no client answered the first question; ask a larger cohort")
        bins = with_profile(
            problem.size_bins,
            question.size_bins,
            surveyed.size_counts,
            size_prior=problem.size_prior,
        )
        self._problem = replace(problem, size_bins=bins)
        self._land = landscape(question, surveyed, sizes=not problem.shared_sizes)
        self._on_round(int(self.n_fitted), question.n_numbers, ())

    def climb(self, numbers: Sequence[int], streams: Sequence[np.random.Generator]) -> None:
        """Fit these numbers of components side by side, then let the held-out clients score all."""
        for k, upload, stream in zip(numbers, self._uploads(numbers), streams, strict=True):
            search = begin_search(
                self.problem(k), self._land, replace(self.settings, max_upload=upload), stream,
                n_clients=self.n_fitted, buckets=1.0 - self._held_out,
            )  # fmt: skip
            self.climbs[k] = _Climb(search, State(self.n_fitted, self.n_fitted))
        self.scores = None
        n_scoring = 1 if self._held_out else 0  # a round of its own, at worst
        for left in range(self.settings.max_rounds - 1 - n_scoring, 0, -1):
            climbing = [k for k in numbers if self.climbs[k].goes_on]
            if not climbing:
                break
            # Held-out clients score in the round that may be the last: they need no round of their own.
            ends = all(self.climbs[k].state.nearly_done for k in climbing)
            scoring = n_scoring and left > 1 and (ends or self._doubts(climbing))
            before = {k: self.climbs[k].state for k in climbing if scoring}
            n_numbers = self._learn(climbing, scoring=bool(scoring))
            if scoring:
                self._give_up(before)
            n_clients = min(self.climbs[k].state.n_clients for k in climbing)
            self._on_round(int(n_clients), n_numbers, climbing)
        if n_scoring and self.scores is None:
            self._keep(self._aggregate(self._score()))

    def join(self, chosen: Candidate, rng: np.random.Generator) -> tuple[MDM, tuple[float, ...]]:
        """The chosen mixture after a few rounds with all clients, and its likelihood in each of them."""
        mdm = cast(MDM, chosen.mdm)
        if self.settings.cohort_size is not None:  # another sample has no place to go on from
            return mdm, ()
        climb, problem = self.climbs[chosen.n_components], self.problem(chosen.n_components)
        number = 1 + max(climb.state.starts, default=0)  # judged by other clients, another path
        values = []
        for state, n_numbers in join(
            mdm, problem, self.settings, self._aggregate, number=number, rng=rng
        ):
            climb.state = state
            values.append(state.value)
            self._on_round(int(state.n_clients), n_numbers, [chosen.n_components])
        return populated(climb.state)[0], tuple(values)

    def _uploads(self, numbers: Sequence[int]) -> list[int]:
        """The upload of each search: all of it in a fit, else room for the same number of trials."""
        if not self._held_out:
            return [self.settings.max_upload]
        costs = [self.problem(k).trial_cost for k in numbers]
        trials = self.settings.max_upload / sum(costs)
        return [int(trials * cost) for cost in costs]

    def _learn(self, numbers: Sequence[int], *, scoring: bool) -> int:
        """One round with the queries of all searches; return how many numbers a client sends."""
        climbs = [self.climbs[k] for k in numbers]
        asked = [climb.search.queries() for climb in climbs]
        for climb, upload in zip(climbs, self._uploads(numbers), strict=True):
            climb.search.max_upload = upload  # with the upload that others no longer need
        batch = self._fitted(Batch(tuple(q for queries in asked for q in queries)))
        self.scores = None
        if scoring:
            both = self._aggregate(Batch((batch, self._score())))
            fitted, scores = cast(tuple[BatchStatistics, ScoreStatistics], both.answers)
            self._keep(scores)
        else:
            fitted = self._aggregate(batch)
        answers: list[Statistics] = list(fitted.answers)
        for climb, queries in zip(climbs, asked, strict=True):
            climb.state = climb.search.learn(answers[: len(queries)])
            climb.n_rounds += 1
            climb.n_changed += climb.state.changed
            del answers[: len(queries)]
        return batch.n_numbers  # a client is either fitted or scores

    def _doubts(self, climbing: Sequence[int]) -> bool:
        """Whether to test now if larger candidates that still climb can do better than others."""
        if self.settings.cohort_size is not None:  # the remaining gain is not known
            return False
        done = [k for k, climb in self.climbs.items() if climb.state.converged]
        old = [k for k in climbing if self.climbs[k].n_rounds > _ASK_FROM]
        return bool(done and old) and max(old) > min(done) and self.n_rounds % _ASK_EVERY == 0

    def _give_up(self, before: dict[int, State]) -> None:
        """Stop candidates with more components that can no longer overtake the best smaller one.

        A candidate is stopped if it is behind by more than its possible gain plus a standard error. The
        states `before` the round were scored: its gain counts if the same clients judged both states.
        """
        assert self.scores is not None
        numbers = sorted(self.climbs)
        done = [i for i, k in enumerate(numbers) if self.climbs[k].state.converged]
        if not done:
            return
        best = max(done, key=self.scores.log_likelihoods.__getitem__)
        short, errors = behind(self.scores, best)
        for i, k in enumerate(numbers):
            climb = self.climbs[k]
            if k <= numbers[best] or k not in before or not climb.goes_on:
                continue
            after, earlier = climb.state, before[k]
            to_gain = after.value - earlier.value + after.promise
            same = after.n_clients == earlier.n_clients and not after.changed
            old = climb.n_rounds > _ASK_FROM
            climb.overtaken = old and same and bool(short[i] - errors[i] > to_gain)

    def _score(self) -> Part[Any]:
        """The query to held-out clients: their likelihood under the current mixtures."""
        mdms = []
        for _, climb in sorted(self.climbs.items()):
            climb.scored, _ = populated(climb.state)
            mdms.append(climb.scored)
        return self._judged(tuple(mdms))

    def _keep(self, scores: ScoreStatistics) -> None:
        self.scores = scores
        check_parts(self.n_fitted, scores.n_clients, held_out=self._held_out)
        if not np.isfinite(scores.log_likelihoods).any():
            raise ZeroLikelihoodError(
                "some held-out client has probability zero for every number of components: one larger "
                "than max_size, or of a size that no fitted client has and size_prior=0 rules out"
            )

    def _aggregate(self, query: Query[Any]) -> Any:
        self.n_rounds += 1
        return self._aggregator.aggregate(query, self.settings.cohort_size)

    def _fitted(self, query: Query[Any]) -> Query[Any]:
        return Part(query, 0.0, 1.0 - self._held_out) if self._held_out else query

    def _judged(self, mdms: tuple[MDM, ...]) -> Part[Any]:
        return Part(Score(mdms), 1.0 - self._held_out, 1.0)


def begin_search(
    problem: Problem, land: Landscape, settings: Settings, rng: np.random.Generator, *,
    n_clients: float, buckets: float = 1.0,
) -> Search:  # fmt: skip
    """The kind of search for this number of clients, whose buckets are between 0 and `buckets`."""
    problem.check_upload(settings.max_upload)
    k, policy = problem.n_components, settings.policy
    n_ways = 1 if k == 1 else min(policy.starts, settings.max_upload // problem.trial_cost)
    groups = random_groups(land, k, problem.size_bins, n_ways=n_ways, rng=rng)
    if settings.cohort_size is not None:
        return Sampled(problem, groups, settings)
    n_part = max(policy.fewest_clients, policy.clients_per_parameter * problem.n_parameters)
    # Without a prior, sizes that do not occur in the part would be impossible for all clients.
    if n_clients < policy.screened_from * n_part or k == 1 or problem.size_prior == 0:
        return Race(problem, groups, settings, rng)
    precision = problem.n_parameters / (2 * n_part)
    share = buckets * n_part / n_clients
    return Screened(problem, groups, settings, rng, buckets=share, precision=precision)


def populated(state: State) -> tuple[MDM, int]:
    """The best MDM without components of less than half a client, and the number of these."""
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


def _reason(climb: _Climb, settings: Settings, n_surveyed: float, n_components: int) -> str:
    """What ended the rounds, with advice if it was not convergence."""
    state, n_clients = climb.state, settings.cohort_size or n_surveyed
    few = few_clients(n_clients, [n_components])
    if state.converged and few:
        return (
            f"converged: rounds gain less than {settings.tol:g} nats per client; so few clients tell "
            "no more"
        )
    if state.converged:
        return f"converged: less than {settings.tol:g} nats per client seem to be left to gain"
    fewer = state.n_clients < n_clients
    some = f", judged by {counted(state.n_clients, 'client')} only" if fewer else ""
    advice = f"{few}; take fewer components" if few else "allow more rounds, or fewer components"
    if climb.n_changed:
        some += f", while clients left or came in {counted(climb.n_changed, 'round')}"
        advice += "; if they always do, ask samples of them (cohort_size)"
    return f"stopped at max_rounds={settings.max_rounds} before it converged{some}; {advice}"


def _groups(rounds: _Rounds, numbers: Sequence[int], at_most: int) -> Iterator[tuple[int, ...]]:
    """The numbers of components in groups, as large as an upload allows, of at least one."""
    todo = list(numbers)
    while todo:
        left = rounds.settings.max_upload
        group: list[int] = []
        while todo and len(group) < at_most:
            left -= rounds.problem(todo[0]).trial_cost
            if group and left < 0:
                break
            group.append(todo.pop(0))
        yield tuple(group)


def _choose(rounds: _Rounds) -> tuple[Candidate, tuple[Candidate, ...]]:
    """The smallest number of components that is about as good as the best, and all candidates."""
    assert rounds.scores is not None
    scores, n = rounds.scores, rounds.scores.n_clients
    means = scores.log_likelihoods / n
    short, errors = behind(scores, int(np.argmax(means)))
    spread = np.maximum(np.diag(scores.products) / n - means**2, 0.0)
    candidates = tuple(
        Candidate(
            n_components=k,
            mdm=cast(MDM, climb.scored),
            log_likelihood=float(means[i]),
            standard_error=float(np.sqrt(spread[i] / max(n - 1, 1))),
            behind=float(short[i]),
            behind_error=float(errors[i]),
            n_rounds=climb.n_rounds,
            converged=climb.state.converged,
            overtaken=climb.overtaken,
            n_agreeing=climb.state.n_agreeing,
        )
        for i, (k, climb) in enumerate(sorted(rounds.climbs.items()))
    )
    return next(c for c in candidates if c.behind <= _TIE * c.behind_error), candidates


def behind(scores: ScoreStatistics, best: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean difference from the best candidate over the same clients, and its standard error."""
    n = scores.n_clients
    sums, products = scores.log_likelihoods, scores.products
    mean = (sums[best] - sums) / n
    square = (products[best, best] - 2 * products[best] + np.diag(products)) / n
    variance = np.maximum(square - mean**2, 0.0)
    return mean, np.sqrt(variance / max(n - 1, 1))
