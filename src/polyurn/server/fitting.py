"""Fitting an MDM and choosing its number of components: the rounds, when they stop, and the result.

The server's side: it sees sums and declared bounds, never a client. One number of components is one
search; several are one search each, in the same rounds, on a part of the clients, and the held-out part
scores them all (Appendix A of the paper), and is fitted once it has chosen. A client's own bucket
decides its part: the parts share no client. `search.py` has what a search asks and learns, `stages.py`
what follows a choice, `paper.py` the paper's algorithms; users call `integrations/fit_tables.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.em import Problem, covariance
from polyurn.server.fit_results import Candidate, Fit, Round, ShapeScore, behind
from polyurn.server.fit_settings import (
    Settings,
    SizeModel,
    check_components,
    check_parts,
    few_clients,
    size_bins,
)  # fmt: skip
from polyurn.server.sampled import Sampled
from polyurn.server.search import Climber, Race, Screened, State
from polyurn.server.stages import LARGEST_BENT, MOST_JOINED, Bent, SplitClimb, joining, run_stages
from polyurn.server.starts import Landscape, landscape, random_groups, survey, with_profile
from polyurn.typed.declared import Floats, Seed
from polyurn.wire import (
    Aggregator,
    Batch,
    BatchStatistics,
    Divide,
    Expect,
    Parameters,
    Part,
    Query,
    Score,
    ScoreStatistics,
    Statistics,
)  # fmt: skip
from polyurn.wording import counted, ranges

Components: TypeAlias = int | Iterable[int] | Literal["auto"]
# Says what to ask in a round (`queries`) and learns from the answers (`learn`).
Search: TypeAlias = Race | Screened | Sampled

# The numbers of components that "auto" tries, group after group, where rounds cost only time.
GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# The most numbers of components that are fitted in the same rounds, if an upload allows it.
_AT_ONCE = 4
# What "auto" offers where rounds are dear, all in the same ones: as many as an upload allows so many
# trials of each, and no more than leave each component at least this many clients on average.
DOUBLINGS = tuple(2**i for i in range(16))
_TRIALS_EACH, _CLIENTS_EACH = 8, 2
# The most rounds up to a choice, by default; those of "auto" where they are dear: 40 with the rounds
# after it.
ROUNDS, DEAR_ROUNDS = 50, 34
# The share of the clients that scores several numbers of components.
HELD_OUT = 0.2
# Two rounds to find starts, one to fit, and one to score.
_FEWEST_ROUNDS = 4
# Once fewer components have converged, held-out clients score all candidates every so many rounds, to
# see whether more components can still do better; not before the race of the starts is over.
_ASK_EVERY, _ASK_FROM = 4, 8
# Among ties the smallest number of components is chosen: those behind the best by at most so many
# standard errors. One is generous where clients are few (experiments/choose_then_fit.py).
_TIE = 0.25
# With a bias of half a standard error a 95 % interval still covers 92 %.
_NEAR = 0.5
# Digits of a start's likelihood in a file: it need not publish more than the page shows.
_DIGITS = 6


def fit_sums(
    aggregator: Aggregator,
    n_components: Components,
    *,
    n_categories: int,
    max_size: int,
    settings: Settings,
    held_out: float | None = None,
    at_once: bool = True,
    sizes: SizeModel = "binned",
    size_prior: float = 1.0,
    category_prior: float = 1e-3,
    start: MDM | None = None,
    rng: Seed = None,
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Learn a mixture from sums: see `integrations.fit_tables.fit`, whose parameters these are.

    With `at_once` the numbers of "auto" climb in the same rounds, for clients whose rounds are dear.
    """
    if start is not None:
        _check_start(start, n_components, n_categories, settings, held_out)
        n_components = start.n_components
    numbers = _numbers(n_components, at_once=at_once)
    several = isinstance(n_components, Iterable)
    share = HELD_OUT if held_out is None and several else held_out
    first = Problem(
        numbers[0], n_categories, size_bins(sizes, max_size), sizes == "shared", size_prior,
        category_prior,
    )  # fmt: skip
    largest = replace(first, n_components=numbers[-1])
    if share is not None:
        _check_choice(settings, share)
    (first if n_components == "auto" else largest).check_upload(settings.max_upload)
    random = np.random.default_rng(rng)
    rounds = _Rounds(
        aggregator, first, settings, random, held_out=share, start=start, on_round=on_round
    )
    _check_shape(rounds.settings, n_categories, max_size, is_scored=share is not None)
    rounds.survey()
    if share is None:
        return _fit_one(rounds, numbers[0], random)
    return _fit_several(
        rounds,
        numbers,
        random,
        auto=n_components == "auto",
        at_once=at_once,
        refit=held_out is None,
    )


def _numbers(n_components: Components, *, at_once: bool) -> tuple[int, ...]:
    """The numbers of components that are offered, each once, in increasing order."""
    if n_components == "auto":
        return DOUBLINGS if at_once else GRID
    several = n_components if isinstance(n_components, Iterable) else (n_components,)
    numbers = tuple(sorted({int(k) for k in several}))
    if not numbers:
        raise ParameterError("expected at least one number of components to choose from, got none")
    return numbers


def _check_choice(settings: Settings, share: float) -> None:
    if settings.max_rounds < _FEWEST_ROUNDS:
        raise ParameterError(
            f"expected max_rounds of at least {_FEWEST_ROUNDS} for a choice of n_components, got "
            f"{settings.max_rounds}"
        )
    if not 0 < share < 1:
        raise ParameterError(f"expected held_out between 0 and 1, got {share}")


def _check_shape(settings: Settings, n_categories: int, max_size: int, *, is_scored: bool) -> None:
    """Refuse a shape or a tree that no stage would take up."""
    shape, tree = settings.shape, settings.tree
    if tree is None and shape not in ("tree", "laws"):
        return
    asked = "a tree" if tree is not None else f"shape={shape!r}"
    if shape == "dirichlet":
        raise ParameterError("expected no tree with shape='dirichlet', which has no splits")
    if not is_scored:
        raise ParameterError(
            f"expected held_out, or several n_components, with {asked}: held-out clients judge it"
        )
    if settings.cohort_size is not None:
        raise ParameterError(
            f"expected no cohort_size with {asked}: stages compare sums over the same clients"
        )
    if shape == "laws" and max_size > LARGEST_BENT:
        raise ParameterError(
            f"expected max_size of at most {LARGEST_BENT:,} with shape='laws', got {max_size:,}"
        )
    if tree is not None and tree.n_categories != n_categories:
        raise ParameterError(
            f"expected a tree of {counted(n_categories, 'category')}, got {tree.n_categories}"
        )


def _fit_one(rounds: "_Rounds", n_components: int, random: np.random.Generator) -> Fit:
    """The search for one number of components, to which every client contributes."""
    check_components(rounds.n_fitted, n_components)
    rounds.climb([n_components], [random])
    climb = rounds.climbs[n_components]
    mdm, no_errors = rounds.settled(climb.state)
    stopped = _reason(climb, rounds.settings, rounds.n_fitted)
    agreeing = None if mdm.as_given else climb.state.n_agreeing
    return Fit(
        mdm, tuple(rounds.done), climb.state.converged, stopped, agreeing, n_components=n_components,
        no_errors=no_errors,
    )  # fmt: skip


def _fit_several(
    rounds: "_Rounds", numbers: Sequence[int], random: np.random.Generator, *, auto: bool,
    at_once: bool, refit: bool,
) -> Fit:  # fmt: skip
    """Searches for several numbers of components, and the choice that held-out clients make."""
    # A cohort that is a sample may be smaller next time.
    whole = not auto and rounds.settings.cohort_size is None
    most = max(rounds.n_fitted / (1 if whole else _CLIENTS_EACH), 1.0)
    todo = [k for k in numbers if k <= most]
    if auto:
        todo = _affordable(rounds, todo, at_once=at_once)
    if not todo:
        needs = counted(numbers[0], "component needs", "components need")
        raise ParameterError(f"{needs} at least as many clients, got {rounds.n_fitted:.0f} to fit")
    for group in _groups(rounds, todo, _AT_ONCE if auto and not at_once else len(todo)):
        rounds.climb(group, random.spawn(len(group)))
        candidates = _candidates(rounds)
        largest = candidates[-1].n_components
        half = [c for c in candidates if 2 * c.n_components <= largest]
        saturated = auto and any(c.behind <= c.behind_error for c in half)
        if saturated:
            break
    assert rounds.scores is not None
    chosen = _smallest_good(candidates, rounds.scores, len(half if saturated else candidates))
    n_held_out = int(rounds.scores.n_clients)
    end, stages = rounds.bend(chosen, candidates)
    mdm, joined = rounds.join(end, random) if refit else (end.mdm, ())
    no_errors = "components have splits"
    if mdm.splits is None:
        climb = rounds.climbs[end.n_components]
        state = climb.state if joined else replace(climb.scored, converged=climb.state.converged)
        mdm, no_errors = rounds.settled(state)
    chosen = next(c for c in candidates if c.n_components == end.n_components)
    unfinished = [c.n_components for c in candidates if not (c.converged or c.overtaken)]
    return Fit(
        mdm, rounds.done_with(chosen.n_components), not unfinished,
        _reason_of_several(unfinished, largest if saturated else 0),
        rounds.climbs[chosen.n_components].state.n_agreeing,
        n_components=chosen.n_components, candidates=candidates, n_held_out=n_held_out,
        skipped=() if auto else tuple(k for k in numbers if k > most), joined=joined,
        stages=stages, no_errors=no_errors,
    )  # fmt: skip


def _affordable(rounds: "_Rounds", numbers: Sequence[int], *, at_once: bool) -> list[int]:
    """The numbers of components that an upload allows: one at a time, or several trials of all."""
    costs = np.array([rounds.problem(k).trial_cost for k in numbers])
    fits = costs.cumsum() * _TRIALS_EACH if at_once else costs
    n = max(int((fits <= rounds.settings.max_upload).sum()), 1)
    return list(numbers[:n])


def _shown(state: State) -> dict[int, float]:
    """The likelihood of every start, with the digits that a file keeps."""
    return {start: round(value, _DIGITS) for start, value in state.starts.items()}


@dataclass
class _Climb:
    """The search for one number of components, and its state."""

    search: Search
    state: State
    n_rounds: int = 1  # with the survey
    n_changed: int = 0  # rounds in which clients left or came
    overtaken: bool = False  # fewer components do better than it could become
    scored: State = field(default_factory=lambda: State(0.0, 0.0))  # that held-out clients scored

    @property
    def goes_on(self) -> bool:
        return not (self.state.converged or self.overtaken)


class _Rounds:
    """Searches that climb in the same rounds; with `held_out`, the rest of the clients scores them."""

    def __init__(
        self, aggregator: Aggregator, problem: Problem, settings: Settings,
        rng: np.random.Generator, *, held_out: float | None = None, start: MDM | None = None,
        on_round: Callable[[Round], None] | None,
    ) -> None:  # fmt: skip
        if settings.cohort_size == getattr(aggregator, "n_clients", None):  # that is everybody
            settings = replace(settings, cohort_size=None)
        self.settings, self.n_rounds = settings, 0
        self.climbs: dict[int, _Climb] = {}
        self.scores: ScoreStatistics | None = None  # of what there is now
        self.done: list[Round] = []
        self._starts: list[
            dict[int, dict[int, float]]
        ] = []  # in each round, of each K that climbed
        self._aggregator, self._problem, self._rng = aggregator, problem, rng
        self._held_out, self._start, self._on_round = held_out or 0.0, start, on_round

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
        self._end(self.n_fitted, {"survey": question.n_numbers})

    def climb(self, numbers: Sequence[int], streams: Sequence[np.random.Generator]) -> None:
        """Fit these numbers of components side by side, then let the held-out clients score all."""
        for k, upload, stream in zip(numbers, self._uploads(numbers), streams, strict=True):
            settings = replace(self.settings, max_upload=upload)
            if self._start is not None:
                search = search_from(self._start, self.problem(k), settings, stream, self.n_fitted)
            else:
                search = begin_search(
                    self.problem(k), self._land, settings, stream, n_clients=self.n_fitted,
                    buckets=1.0 - self._held_out,
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
            sent = self._learn(climbing, scoring=bool(scoring))
            if scoring:
                self._give_up(before)
            n_clients = min(self.climbs[k].state.n_clients for k in climbing)
            self._end(n_clients, sent, climbing)
        if n_scoring and self.scores is None:
            question = self._score()
            self._keep(self._aggregate(question))
            self._end(self.n_fitted, {"scores": question.n_numbers})

    def done_with(self, n_components: int) -> tuple[Round, ...]:
        """The rounds, with the likelihoods of one number of components, whose starts are published."""
        rounds = zip(self.done, self._starts, strict=True)
        return tuple(
            replace(
                one,
                log_likelihood=round(one.values.get(n_components, np.nan), _DIGITS),
                starts=starts.get(n_components, {}),
            )
            for one, starts in rounds
        )

    def _end(self, n_clients: float, sent: dict[str, int], climbing: Sequence[int] = ()) -> None:
        """Note a round that has ended, and report it."""
        climbs = dict(sorted(self.climbs.items()))
        judged = {k: c.state for k, c in climbs.items() if c.state.best is not None}
        one = None if self._held_out else next(iter(judged.values()), None)
        self._starts.append({k: _shown(judged[k]) for k in climbing if k in judged})
        done = Round(
            self.n_rounds,
            None if one is None else self._populated(one),
            np.nan if one is None else one.value,
            int(n_clients),
            sum(sent.values()),
            {} if one is None else _shown(one),
            sent,
            {k: state.value for k, state in judged.items()},
            tuple(k for k, c in climbs.items() if c.goes_on),
        )
        self.done.append(done)
        if self._on_round is not None:
            self._on_round(done)

    def bend(
        self, chosen: Candidate, candidates: Sequence[Candidate]
    ) -> tuple[Bent, tuple[ShapeScore, ...]]:
        """The mixture after the stages of its shape. Of very many clients, a part is enough for them."""
        policy, problem = self.settings.policy, self.problem(chosen.n_components)
        n_part = max(policy.fewest_clients, policy.clients_per_parameter * problem.n_parameters)
        share = min(1.0, policy.screened_from * n_part / self.n_fitted)

        def ask(queries: Sequence[Query[Any]], mdms: Sequence[MDM]) -> tuple[list[Any], Any]:
            batch = Batch(tuple(queries)) if queries else None
            judged = self._judged(tuple(mdms)) if mdms else None
            part = batch and Part(batch, 0.0, share * (1.0 - self._held_out))
            first, *rest = self._aggregate(Batch(tuple(q for q in (part, judged) if q))).answers
            if batch is None:
                self._end(self.n_fitted, {"scores": cast(Any, judged).n_numbers})
                return [], first
            fitted = list(first.answers)
            self._end(fitted[0].n_clients, {"splits": batch.n_numbers})
            return fitted, rest[-1] if rest else None

        return run_stages(chosen, candidates, problem, self.settings, ask, tie=_TIE)

    def join(self, end: Bent, rng: np.random.Generator) -> tuple[MDM, tuple[float, ...]]:
        """The mixture after a few rounds with all clients, and its likelihood after each of them."""
        if self.settings.cohort_size is not None:  # another sample has no place to go on from
            return end.mdm, ()
        climb, values = self.climbs[end.n_components], []
        problem = self.problem(end.mdm.n_components)
        number = 1 + max(climb.state.starts, default=0)  # judged by other clients, another path
        search = joining(end, problem, self.settings, number=number, rng=rng)
        bent = isinstance(search, SplitClimb)
        for left in range(MOST_JOINED, 0, -1):
            batch = Batch(tuple(search.queries()))
            state = search.learn(list(self._aggregate(batch).answers))
            state = replace(state, converged=state.converged or left == 1)
            climb.state = climb.state if bent else state
            values.append(state.value)
            sent = _purposes(batch, problem.trial_cost)
            self._end(state.n_clients, sent, [] if bent else [end.n_components])
            if state.converged:
                break
        joined = search.mdm if isinstance(search, SplitClimb) else self._populated(state)
        return joined, tuple(values)

    def settled(self, state: State) -> tuple[MDM, str]:
        """The mixture of a last state, and why there are no standard errors."""
        found, why, problem = None, "", self._problem
        if self.settings.cohort_size is not None:
            why = "cohorts are samples of the clients"
        elif not state.converged:
            why = "the search has not converged"
        elif state.hessian is None or state.point is None:
            k, upload = self._populated(state).n_components, self.settings.max_upload
            n = problem.hessian_cost(k)
            why = f"the last rounds did not ask for their {n:,} numbers (max_upload={upload})"
        else:
            prior = None if problem.shared_sizes else problem.size_prior
            found = covariance(state.hessian, state.point, state.n_clients, size_prior=prior)
            if found is None:
                why = (
                    "the information is singular: clients do not tell the parameters apart, or the "
                    f"search stopped where there is no maximum (tol={self.settings.tol:g})"
                )
            elif found[1] > _NEAR:
                why = (
                    f"the search stopped {found[1]:.1f} of them before the optimum; "
                    f"take a tol below {self.settings.tol:g}, and more rounds if it takes these"
                )
        return self._populated(state, None if why or found is None else found[0]), why

    def _uploads(self, numbers: Sequence[int]) -> list[int]:
        """The upload of each search: all of it in a fit, else room for the same number of trials."""
        if not self._held_out:
            return [self.settings.max_upload]
        costs = [self.problem(k).trial_cost for k in numbers]
        trials = self.settings.max_upload / sum(costs)
        return [int(trials * cost) for cost in costs]

    def _learn(self, numbers: Sequence[int], *, scoring: bool) -> dict[str, int]:
        """One round with the queries of all searches; return what the numbers of a client are for."""
        climbs = [self.climbs[k] for k in numbers]
        asked = [climb.search.queries() for climb in climbs]
        for climb, upload in zip(climbs, self._uploads(numbers), strict=True):
            climb.search.max_upload = upload  # with the upload that others no longer need
        batch = self._fitted(Batch(tuple(q for queries in asked for q in queries)))
        sent = Counter[str]()
        for climb, queries in zip(climbs, asked, strict=True):
            for query in queries:
                sent.update(_purposes(query, climb.search.problem.trial_cost))
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
        return sent  # a client is either fitted or scores

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
            climb.scored = climb.state
            mdms.append(self.scored(climb))
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

    def scored(self, climb: _Climb) -> MDM:
        """The mixture that held-out clients scored."""
        return self._populated(climb.scored)

    def _populated(self, state: State, found: Floats | None = None) -> MDM:
        return populated(state, as_given=self._start is not None, found=found)

    def _fitted(self, query: Query[Any]) -> Query[Any]:
        return Part(query, 0.0, 1.0 - self._held_out) if self._held_out else query

    def _judged(self, mdms: tuple[MDM, ...]) -> Part[Any]:
        return Part(Score(mdms), 1.0 - self._held_out, 1.0)


def _purposes(query: Query[Any], trial_cost: int) -> dict[str, int]:
    """How many of the numbers of an answer are for what."""
    inner = query.query if isinstance(query, Part) else query
    if isinstance(inner, Batch):
        parts = Counter[str]()
        for one in inner.queries:
            parts.update(_purposes(one, trial_cost))
        return parts
    if not isinstance(inner, Expect):
        return {"splits" if isinstance(inner, Divide) else "starts": inner.n_numbers}
    curvature = inner.n_numbers - trial_cost
    return {"steps": trial_cost, **({"curvature": curvature} if curvature else {})}


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


def search_from(
    start: MDM, problem: Problem, settings: Settings, rng: np.random.Generator, n_clients: float
) -> Search:
    """The search that begins at a mixture alone, with the Hessian of all components if there is room."""
    problem.check_upload(settings.max_upload)
    bins, sizes = problem.size_bins, start.sizes.bins.fine[:-1]
    which = bins.locate(sizes[sizes <= bins.max_size])
    fine = n_clients * start.weights[:, None] * start.sizes.fine_masses()[:, : len(which)]
    counts = np.array([np.bincount(which, of, bins.n_bins) for of in fine], np.float64)
    masses = counts / counts.sum(axis=1, keepdims=True)
    if problem.shared_sizes or not (masses > 0).all():  # larger clients than before, say
        masses = problem.size_masses(counts)
    begin = Parameters(start.weights, start.alphas, Sizes.unchecked(bins, masses))
    if settings.cohort_size is not None:
        return Sampled(problem, [], settings, starts=[begin])
    k = problem.n_components
    room = problem.trial_cost + problem.hessian_cost(k) <= settings.max_upload
    climber = Climber.begin(begin, 1, settings.policy, curved=tuple(range(k)) if room else ())
    return Race(problem, [], replace(settings, patience=1), rng, begin=climber)


def _check_start(
    start: MDM, n_components: Components, n_categories: int, settings: Settings,
    held_out: float | None,
) -> None:  # fmt: skip
    """Refuse a mixture that no search can begin at, and settings that it leaves nothing to do for."""
    if start.splits is not None:
        raise ParameterError(
            "expected a start of Dirichlet-multinomials, got one with splits: they follow a choice of "
            "n_components; fit anew, and with shape='dirichlet' what later fits can start from"
        )
    if start.n_categories != n_categories or not (start.alphas > 0).all():
        raise ParameterError(
            f"expected a start of {n_categories} categories with positive alphas, got "
            f"{start.n_categories} and a smallest alpha of {start.alphas.min():g}"
        )
    if n_components not in ("auto", start.n_components) or held_out is not None:
        raise ParameterError(
            f"expected no n_components and no held_out with a start, which has {start.n_components} "
            "components, and all clients are fitted"
        )
    if settings.shape in ("tree", "laws") or settings.tree is not None:
        raise ParameterError(
            f"expected no tree and no shape={settings.shape!r} with a start, which has no splits"
        )


def populated(state: State, *, as_given: bool = False, found: Floats | None = None) -> MDM:
    """The best MDM without components of less than half a client.

    `as_given` all components stay, so that they keep their numbers; `found` is the covariance of all.
    """
    best = state.best
    if best is None:
        raise ParameterError(
            "no cohort has judged any parameters, because too many were empty; ask larger cohorts, "
            "or allow more rounds"
        )
    kept = as_given | (best.weights * state.n_supporting >= 0.5)
    weights, alphas = best.weights[kept] / best.weights[kept].sum(), best.alphas[kept]
    lower = None
    if found is not None:
        entries = np.flatnonzero(np.repeat(kept, alphas.shape[1] + 1))
        lower = found[np.ix_(entries, entries)][np.tri(len(entries), dtype=bool)]
    sizes = Sizes.unchecked(best.sizes.bins, best.sizes.masses[kept])
    return MDM(weights, alphas, sizes, as_given=as_given, covariance=lower)


def _reason(climb: _Climb, settings: Settings, n_surveyed: float) -> str:
    """What ended the rounds, with advice if it was not convergence."""
    state, n_clients = climb.state, settings.cohort_size or n_surveyed
    few = few_clients(n_clients, [climb.search.problem.n_components])
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


def _reason_of_several(unfinished: Sequence[int], saturated_at: int) -> str:
    """What ended the rounds of several numbers of components."""
    gain = (
        f"from {saturated_at // 2} to {saturated_at} components the held-out likelihood gains less than "
        "a standard error"
    )
    if unfinished:
        before = f"{gain}; " if saturated_at else ""
        return (
            f"{before}stopped at max_rounds before K = {ranges(unfinished)} converged; "
            "allow more rounds: held-out clients may then find them likelier"
        )
    if saturated_at:
        return f"converged: {gain}"
    return "converged: every K, or a smaller one was already better than it could become"


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


def _candidates(rounds: _Rounds) -> tuple[Candidate, ...]:
    """What the held-out clients say of every number of components so far."""
    assert rounds.scores is not None
    scores, n = rounds.scores, rounds.scores.n_clients
    means = scores.log_likelihoods / n
    short, errors = behind(scores, int(np.argmax(means)))
    spread = np.maximum(np.diag(scores.products) / n - means**2, 0.0)
    return tuple(
        Candidate(
            n_components=k,
            mdm=rounds.scored(climb),
            log_likelihood=float(means[i]),
            standard_error=float(np.sqrt(spread[i] / max(n - 1, 1))),
            behind=float(short[i]),
            behind_error=float(errors[i]),
            n_rounds=climb.n_rounds,
            converged=climb.state.converged,
            overtaken=climb.overtaken,
        )
        for i, (k, climb) in enumerate(sorted(rounds.climbs.items()))
    )


def _smallest_good(
    candidates: Sequence[Candidate], scores: ScoreStatistics, n_first: int
) -> Candidate:
    """The smallest number of components that is about as good as the best of the first candidates."""
    best = int(np.argmax(scores.log_likelihoods[:n_first]))
    short, errors = behind(scores, best)
    return candidates[int(np.argmax(short <= _TIE * errors))]
