"""How many components: Appendix A of the paper, with every K in the same rounds.

Each client belongs, by its own bucket, to the part that is fitted or to the part that is held out, so
the two never share a client. One search per K climbs on the first part; the second part scores them all,
and the smallest K that is not clearly worse than the best one is chosen.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.em.first_round import survey
from polyurn.server.em.problem import Problem
from polyurn.server.few_clients import check_parts
from polyurn.server.fit import asks_everyone, populated
from polyurn.server.results import Candidate, Progress, Selection
from polyurn.server.search.policy import DEFAULT, Policy
from polyurn.server.search.race import Search, State
from polyurn.server.search.screening import begin_search
from polyurn.server.search.starts import Landscape, landscape
from polyurn.server.settings import SizeModel, check_settings, size_bins
from polyurn.typed.arguments import checked
from polyurn.wire import (
    Aggregator,
    Batch,
    BatchStatistics,
    Part,
    Query,
    Score,
    ScoreStatistics,
    Statistics,
)
from polyurn.wording.numbers import counted

# The numbers of components that "auto" tries, in turn, while the held-out likelihood rises.
GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# So many numbers of components are fitted side by side, if an upload allows it.
_AT_ONCE = 4
# "auto" ends when so many larger numbers than the best have been tried, and leaves each component so
# many clients on average.
_WORSE, _CLIENTS_EACH = 2, 2
# To look where to start, twice, to fit, and to score.
_FEWEST_ROUNDS = 4
# Once fewer components have converged, held-out clients are asked every so many rounds whether more can
# still do better; not before the race of the starts is over.
_ASK_EVERY, _ASK_FROM = 4, 8


@checked
def select(
    aggregator: Aggregator,
    n_components: Iterable[int] | Literal["auto"],
    *,
    n_categories: int,
    max_size: int,
    held_out: float = 0.2,
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
    on_round: Callable[[Progress], None] | None = None,
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
        The share of the clients that scores and is never fitted.
    max_rounds, cohort_size, tol, patience, max_upload, sizes, size_prior, category_prior, policy, rng
        As in `fit`; `max_upload` holds for all candidates of a round together. Candidates that do not
        fit into it side by side are fitted in groups, those of "auto" four at a time at most, and
        `max_rounds` holds for each group.
    on_round : callable, optional
        Called with a `Progress` after each round.

    Returns
    -------
    Selection
        With the smallest number of components whose held-out likelihood is within one standard error
        of the best one's, judged on the difference between the two, client by client.

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
    for k in asked:
        check_settings(
            n_components=k, n_categories=n_categories, max_rounds=max_rounds, tol=tol,
            patience=patience, max_upload=max_upload, size_prior=size_prior,
            category_prior=category_prior, policy=policy,
        )  # fmt: skip
    if max_rounds < _FEWEST_ROUNDS:
        raise ParameterError(
            f"expected max_rounds of at least {_FEWEST_ROUNDS} for a selection, got {max_rounds}"
        )
    if not 0 < held_out < 1:
        raise ParameterError(f"expected held_out between 0 and 1, got {held_out}")
    bins, shared = size_bins(sizes, max_size), sizes == "shared"
    work = _Work(
        aggregator=aggregator,
        first=Problem(1, n_categories, bins, shared, size_prior, category_prior),
        held_out=held_out,
        max_rounds=max_rounds,
        cohort_size=None if asks_everyone(aggregator, cohort_size) else cohort_size,
        tol=tol,
        patience=patience,
        max_upload=max_upload,
        policy=policy,
        rng=np.random.default_rng(rng),
        on_round=on_round,
    )
    work.problem(1 if n_components == "auto" else max(asked)).check_upload(max_upload)
    work.survey()
    if n_components == "auto":
        _grow(work)
    else:
        _fit_all(work, asked)
    return work.choose()


def _fit_all(work: "_Work", asked: tuple[int, ...]) -> None:
    """Fit all that there are clients for, side by side as far as an upload allows."""
    # A cohort that is a sample may be smaller next time.
    most = work.n_fitted if work.cohort_size is None else work.n_fitted / _CLIENTS_EACH
    work.skipped = tuple(k for k in asked if k > max(most, 1.0))
    todo = [k for k in asked if k not in work.skipped]
    if not todo:
        needs = counted(min(asked), "component needs", "components need")
        raise ParameterError(f"{needs} at least as many clients, got {work.n_fitted:.0f} to fit")
    while todo:
        work.climb(work.next_group(todo, len(todo)))


def _grow(work: "_Work") -> None:
    """Fit the grid a few at a time, until more components have not been better for a while."""
    todo = [
        k
        for k in GRID
        if work.problem(k).trial_cost <= work.max_upload
        and (k == 1 or _CLIENTS_EACH * k <= work.n_fitted)
    ]
    while todo:
        work.climb(work.next_group(todo, _AT_ONCE))
        candidates = work.choose().candidates
        best = max(candidates, key=lambda c: c.log_likelihood).n_components
        if sum(c.n_components > best for c in candidates) >= _WORSE:
            return


@dataclass
class _Work:
    """A selection under way."""

    aggregator: Aggregator
    first: Problem  # of one component
    held_out: float
    max_rounds: int
    cohort_size: int | None
    tol: float
    patience: int
    max_upload: int
    policy: Policy
    rng: np.random.Generator
    on_round: Callable[[Progress], None] | None
    land: Landscape | None = None
    n_fitted: float = 0.0
    states: dict[int, State] = field(default_factory=dict)
    n_searched: dict[int, int] = field(default_factory=dict)  # rounds of each K
    outdone: set[int] = field(default_factory=set)
    n_rounds: int = 0
    scores: ScoreStatistics | None = None
    scored: tuple[MDM, ...] = ()
    rounds: list[Progress] = field(default_factory=list)
    skipped: tuple[int, ...] = ()
    _sent: int = 0

    def problem(self, n_components: int) -> Problem:
        """What is to be fitted with so many components."""
        return replace(self.first, n_components=n_components)

    def survey(self) -> None:
        """The first round: how the fitted part of the clients varies, and how many the rest are."""
        n_categories, bins = self.first.n_categories, self.first.size_bins
        question = survey(n_categories, bins, max_upload=self.max_upload)
        any_size = Sizes(SizeBins([1, bins.max_size + 1]), [[1.0]])
        anyone = Score((MDM([1.0], np.ones((1, n_categories)), any_size),))
        both = Batch((self._fitted(question), self._judged(anyone)))
        said, judged = cast(Any, self.aggregator.aggregate(both, self.cohort_size)).answers
        check_parts(said.n_clients, judged.n_clients, held_out=self.held_out)
        self.n_rounds += 1
        self.n_fitted = said.n_clients
        self.first = self.first.surveyed(question, said)
        self.land = landscape(question, said, sizes=not self.first.shared_sizes)
        self._report(int(said.n_clients), question.n_numbers)

    def next_group(self, todo: list[int], at_most: int) -> tuple[int, ...]:
        """Take the first of these numbers out that an upload allows side by side, one at least."""
        budget = self.max_upload - self.problem(todo[0]).trial_cost
        group = [todo.pop(0)]
        while todo and len(group) < at_most and self.problem(todo[0]).trial_cost <= budget:
            budget -= self.problem(todo[0]).trial_cost
            group.append(todo.pop(0))
        return tuple(group)

    def climb(self, numbers: tuple[int, ...]) -> None:
        """Fit these numbers of components side by side, then let the held-out clients score all."""
        searches = self._begin(numbers)
        self.scores = None
        for left in range(self.max_rounds - 2, 0, -1):
            climbing = tuple(k for k in numbers if self._climbs(k))
            if not climbing:
                break
            # The held-out clients are asked in the round that may be the last, and so cost none.
            ends = all(self.states[k].nearly_done for k in climbing)
            scoring = left > 1 and (ends or self._doubts(climbing))
            before = {k: self.states[k] for k in climbing if scoring}
            self._learn({k: searches[k] for k in climbing}, scoring=scoring)
            if scoring:
                self.outdone |= self._outdone(before)
            n_clients = min(self.states[k].n_clients for k in climbing)
            self._report(int(n_clients), self._sent, climbing)
        if self.scores is None:
            self._keep(self.aggregator.aggregate(self._score(), self.cohort_size))
            self.n_rounds += 1

    def _begin(self, numbers: tuple[int, ...]) -> dict[int, Search]:
        """A search for each number of components; each may send the same number of trials."""
        assert self.land is not None
        costs = {k: self.problem(k).trial_cost for k in numbers}
        trials = self.max_upload / sum(costs.values())
        self.states.update({k: State(self.n_fitted, self.n_fitted) for k in numbers})
        self.n_searched.update(dict.fromkeys(numbers, 0))
        return {
            k: begin_search(
                self.problem(k), self.land, n_clients=self.n_fitted, buckets=1.0 - self.held_out,
                sampled=self.cohort_size is not None, policy=self.policy, patience=self.patience,
                max_upload=int(trials * costs[k]), tol=self.tol, rng=stream,
            )
            for k, stream in zip(numbers, self.rng.spawn(len(numbers)), strict=True)
        }  # fmt: skip

    def _learn(self, searches: dict[int, Search], *, scoring: bool) -> None:
        """One round: what all searches ask, put to the clients at once."""
        asked = {k: search.queries() for k, search in searches.items()}
        trials = self.max_upload / sum(s.problem.trial_cost for s in searches.values())
        for search in searches.values():  # what others no longer need
            search.max_upload = int(trials * search.problem.trial_cost)
        answers = self._ask([q for queries in asked.values() for q in queries], scoring=scoring)
        for k, search in searches.items():
            self.states[k] = search.learn(answers[: len(asked[k])])
            self.n_searched[k] += 1
            del answers[: len(asked[k])]

    def _climbs(self, k: int) -> bool:
        return not self.states[k].converged and k not in self.outdone

    def _doubts(self, climbing: tuple[int, ...]) -> bool:
        """Whether it is time to ask if the larger ones that still climb can do better than others."""
        if self.cohort_size is not None:  # what is left to gain is not known
            return False
        done = [k for k, s in self.states.items() if s.converged]
        old = [k for k in climbing if self.n_searched[k] >= _ASK_FROM]
        return bool(done and old) and max(old) > min(done) and self.n_rounds % _ASK_EVERY == 0

    def _outdone(self, before: dict[int, State]) -> set[int]:
        """Those that fewer components are ahead of by more than they may still gain, and an error.

        `before` was scored: the round has brought some of the gain, as far as the same clients judged.
        """
        assert self.scores is not None
        numbers = sorted(self.states)
        done = [i for i, k in enumerate(numbers) if self.states[k].converged]
        if not done:
            return set()
        best = max(done, key=lambda i: self.scores.log_likelihoods[i])  # type: ignore[union-attr]
        short, errors = behind(self.scores, best)

        def is_outdone(i: int, k: int) -> bool:
            after = self.states[k]
            to_gain = after.value - before[k].value + after.promise
            same = after.n_clients == before[k].n_clients and not after.changed
            return same and bool(short[i] - errors[i] > to_gain)

        return {
            k
            for i, k in enumerate(numbers)
            if k > numbers[best]
            and k in before
            and self._climbs(k)
            and self.n_searched[k] >= _ASK_FROM
            and is_outdone(i, k)
        }

    def choose(self) -> Selection:
        """The smallest number of components that is not clearly worse than the best one."""
        assert self.scores is not None
        numbers = sorted(self.states)
        n = self.scores.n_clients
        means = self.scores.log_likelihoods / n
        best = int(np.argmax(means))
        short, errors = behind(self.scores, best)
        candidates = []
        for i, k in enumerate(numbers):
            state = self.states[k]
            spread = max(float(self.scores.products[i, i] / n - means[i] ** 2), 0.0)
            candidates.append(
                Candidate(
                    n_components=k,
                    mdm=self.scored[i],
                    log_likelihood=float(means[i]),
                    standard_error=float(np.sqrt(spread / max(n - 1, 1))),
                    behind=float(short[i]),
                    behind_error=float(errors[i]),
                    n_rounds=self.n_searched[k] + 1,  # and the survey
                    converged=state.converged,
                    outdone=k in self.outdone,
                    n_agreeing=state.n_agreeing,
                )
            )
        chosen = next(c for c in candidates if c.behind <= c.behind_error)
        return Selection(
            chosen.n_components,
            chosen.mdm,
            tuple(candidates),
            self.n_rounds,
            int(n),
            tuple(self.rounds),
            self.skipped,
        )

    def _score(self) -> Part[Any]:
        """The held-out clients' question: how likely they are under what there is now."""
        self.scored = tuple(populated(self.states[k])[0] for k in sorted(self.states))
        return self._judged(Score(self.scored))

    def _keep(self, scores: ScoreStatistics) -> None:
        self.scores = scores
        check_parts(self.n_fitted, scores.n_clients, held_out=self.held_out)
        if not np.isfinite(scores.log_likelihoods).any():
            raise ZeroLikelihoodError(
                "some held-out client has probability zero for every number of components: one larger "
                "than max_size, or of a size that no fitted client has and size_prior=0 rules out"
            )

    def _ask(self, queries: list[Query[Any]], *, scoring: bool) -> list[Statistics]:
        batch = self._fitted(Batch(tuple(queries)))
        self._sent = batch.n_numbers  # a client is either fitted or scores
        self.n_rounds += 1
        if not scoring:
            self.scores = None
            return list(self.aggregator.aggregate(batch, self.cohort_size).answers)
        both = Batch((batch, self._score()))
        fitted, scores = self.aggregator.aggregate(both, self.cohort_size).answers
        self._keep(cast(ScoreStatistics, scores))
        return list(cast(BatchStatistics, fitted).answers)

    def _fitted(self, query: Query[Any]) -> Part[Any]:
        return Part(query, 0.0, 1.0 - self.held_out)

    def _judged(self, query: Query[Any]) -> Part[Any]:
        return Part(query, 1.0 - self.held_out, 1.0)

    def _report(self, n_clients: int, n_numbers: int, climbing: tuple[int, ...] = ()) -> None:
        values = {k: s.value for k, s in sorted(self.states.items()) if s.best is not None}
        running = tuple(k for k in sorted(self.states) if self._climbs(k))
        starts = {k: dict(self.states[k].starts) for k in climbing if k in values}
        done = Progress(self.n_rounds, values, running, n_clients, n_numbers, starts)
        self.rounds.append(done)
        if self.on_round is not None:
            self.on_round(done)


def _numbers(n_components: Iterable[int]) -> tuple[int, ...]:
    numbers = tuple(sorted(set(n_components)))
    if not numbers:
        raise ParameterError("expected at least one number of components to choose from, got none")
    return numbers


def behind(scores: ScoreStatistics, best: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean difference from the best candidate over the same clients, and its standard error."""
    n = scores.n_clients
    sums, products = scores.log_likelihoods, scores.products
    mean = (sums[best] - sums) / n
    square = (products[best, best] - 2 * products[best] + np.diag(products)) / n
    variance = np.maximum(square - mean**2, 0.0)
    return mean, np.sqrt(variance / max(n - 1, 1))
