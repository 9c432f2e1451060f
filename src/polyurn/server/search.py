"""The search, when every client is asked in every round: race, climb, recombine, stop.

Its first round groups the clients in random ways, which makes the starts. Then every round is:

    judge      every climber moves to its best trial; only the aggregated likelihood decides
               (of this round alone, if clients have left or come)
    halve      a climber that has met a better one leaves, and every other round the worse half
               (successive halving: Jamieson and Talwalkar, 2016)
    stop       the leader's quadratic model promises less than tol / 10, no other start will pass it,
               and there was no gain for `patience` rounds
    recombine  copies of the leader with a component of another start begin to climb (crossover:
               Pernkopf and Bouchaffra, 2005)
    propose    all: an EM step; the best few: the Hessian and Newton steps of three dampings

If there are many clients, a part of them runs the race first: some thousand clients show which start is
best, and only the exact optimum takes all of them (refining on a subsample: Bradley and Fayyad, 1998). A
search says what to ask and takes in the answers; it asks no client itself. `sampled.py` has the search
for rounds that reach samples of the clients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, cast

import numpy as np

from polyurn.model.sizes import Sizes
from polyurn.server.em import (
    Point,
    Problem,
    along_cap,
    check_possible,
    evaluate,
    fingerprint,
    from_x,
    hessian,
    to_x,
)  # fmt: skip
from polyurn.server.fit_settings import CLIENTS_EACH, Policy, Settings, check_components
from polyurn.server.starts import recombine, starts
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import (
    Batch,
    BatchStatistics,
    Expect,
    ExpectStatistics,
    Group,
    GroupStatistics,
    Parameters,
    Part,
    Query,
    Statistics,
)  # fmt: skip

# The Hessian's eigenvalues and eigenvectors, and the entries of x that it covers.
Curvature = tuple[Floats, Floats, Ints]


@dataclass(frozen=True)
class State:
    """The state of a search after a round.

    Likelihoods are in nats per client, and so is `promise`: twice the gain that may remain.
    """

    n_clients: float  # who judged
    n_supporting: float  # the clients of all cohorts, if they are samples
    best: Parameters | None = None  # None while clients have judged nothing
    value: float = float("nan")  # mean log-likelihood of the best parameters
    starts: Mapping[int, float] = field(default_factory=dict)  # of every climber, by its number
    converged: bool = False
    nearly_done: bool = False  # the next round may be the last
    promise: float = float("inf")
    changed: bool = False  # the clients that judged differ from those of the round before
    n_agreeing: int | None = None  # starts that ended at the leader's optimum, if that was counted
    point: Point | None = None  # that of `best`, if all clients have judged it
    hessian: Floats | None = None  # of the mean log-likelihood at about `best`, if it was asked for


@dataclass(eq=False)
class Climber:
    """A climber's point, what it knows there, and its next trials.

    `curved` are the components whose Hessian is asked for, at the trial `asks`; `n_vain` counts the
    rounds without a gain; `n_met` counts the starts that came to the same point, including this one.
    """

    number: int
    sizes: Sizes
    trials: list[Floats]
    damping: float
    is_recombined: bool = False
    curvature: Curvature | None = None
    hessian: Floats | None = None  # the last of all components, in x
    curved: tuple[int, ...] = ()
    asks: int = 0
    best: Point | None = None
    gains: list[float] = field(default_factory=list)
    tried: list[float] = field(default_factory=list)  # the dampings of the last trials
    n_vain: int = 0
    n_met: int = 1

    @classmethod
    def begin(
        cls, at: Parameters, number: int, policy: Policy, *, is_recombined: bool = False,
        curvature: Curvature | None = None, curved: tuple[int, ...] = (),
    ) -> "Climber":  # fmt: skip
        """A climber whose next trial is where it begins; the Hessian of `curved` is asked for there."""
        x, n_met = to_x(at.weights, at.alphas), 0 if is_recombined else 1
        return cls(
            number,
            at.sizes,
            [x],
            policy.damping,
            is_recombined,
            curvature,
            curved=curved,
            n_met=n_met,
        )

    @property
    def value(self) -> float:
        return -np.inf if self.best is None else self.best.value

    @property
    def point(self) -> Point:
        """The best point, which exists as soon as clients have judged a trial."""
        assert self.best is not None
        return self.best

    def queries(self, shape: tuple[int, int]) -> list[Expect]:
        """One query for each trial; the Hessian is asked for at one of them."""
        return [
            Expect(Parameters(*from_x(x, shape), self.sizes), self.curved if i == self.asks else ())
            for i, x in enumerate(self.trials)
        ]

    def learn(self, points: list[Point], hessian: Floats | None, policy: Policy) -> None:
        """Move to the best trial if it is better, and remember its damping."""
        before, first = self.value, self.best is None
        found = max(points, key=lambda p: p.value)
        self.n_vain += 1
        if found.value > before:
            self.best, self.n_vain = found, 0
        self.gains.append(self.value - before)
        if self.tried:
            values = [p.value for p in points[-len(self.tried) :]]
            i = int(np.argmax(values))
            vain = not values[i] > before
            self.damping = self.tried[-1] * max(policy.dampings) if vain else self.tried[i]
            self.damping = float(np.clip(self.damping, 1e-9, 1e2))
        if not first:  # its first steps use what it knew when it began
            self.curvature = None
        if hessian is not None and self.best is not None:
            where = self._entries(self.curved)
            if len(where) == len(self.best.x):
                self.hessian = hessian
            shape = len(self.curved), len(where) // len(self.curved) - 1
            x, gradient = self.best.x[where], self.best.gradient[where]
            self.curvature = *np.linalg.eigh(along_cap(hessian, x, gradient, shape)), where

    def forget(self) -> None:
        """Discard values that other clients judged: move to the best trial, at least by an EM step."""
        self.best = self.curvature = self.hessian = None

    def propose(self, policy: Policy, *, n_curved: int) -> None:
        """Try the EM step and Newton steps; ask for the Hessian of components with the largest gains."""
        best = self.point
        self.trials = [best.x + policy.caution**self.n_vain * best.step]
        self.sizes = Sizes.unchecked(best.sizes.bins, best.masses)
        self.tried, self.asks = [], 0
        order = np.argsort(-best.promise, kind="stable")
        self.curved = tuple(sorted(order[:n_curved].tolist()))
        if n_curved and self.curvature is not None:
            values, axes, where = self.curvature
            along = axes.T @ best.gradient[where]
            self.tried = [factor * self.damping for factor in policy.dampings]
            self.asks = 1 + len(self.tried) // 2
            for damping in self.tried:
                step = best.step  # of components whose Hessian is not known
                # Divided by the size of the eigenvalues: saddles repel (Dauphin et al., 2014).
                step[where] = axes @ (along / (np.abs(values) + damping))
                step *= min(1.0, policy.longest / max(float(np.abs(step).max()), 1e-300))
                self.trials.append(best.x + step)

    def remaining(self) -> float:
        """The gain that may remain, in nats per client: by the quadratic model, else by recent gains."""
        if self.best is None:
            return np.inf
        promised = float(self.best.promise.sum()) / 2
        pace = max(promised, *(3 * gain for gain in self.gains[-2:]))
        if self.curvature is None:
            return pace
        values, axes, where = self.curvature
        along = axes.T @ self.best.gradient[where]
        saddle = float(values[values > 0].sum()) / 8  # half a logarithm to the side
        quadratic = float((along**2 / (np.abs(values) + 1e-5)).sum()) / 2 + saddle
        return max(quadratic, promised if len(where) == len(self.best.x) else pace)

    def is_near(self, other: "Climber", policy: Policy, tol: float) -> bool:
        """Whether both are at the same point, whatever the order of the components."""
        if abs(self.value - other.value) >= tol:
            return False
        here, there = (c.point.x.reshape(len(c.point.masses), -1) for c in (self, other))
        apart = np.abs(here[:, None] - there[None]).max(axis=2)
        return bool(max(apart.min(axis=0).max(), apart.min(axis=1).max()) < policy.met)

    def _entries(self, components: tuple[int, ...]) -> Ints:
        """The entries of x of some components."""
        entries = np.arange(len(self.point.x)).reshape(len(self.point.masses), -1)
        return np.asarray(entries[list(components)].ravel())


class Race:
    """The search for one number of components: a race of groupings, or the climb of `begin` alone."""

    def __init__(
        self, problem: Problem, groups: list[Group], settings: Settings, rng: np.random.Generator,
        *, begin: Climber | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.max_upload = problem, settings.max_upload
        self._policy, self._patience, self._tol = settings.policy, settings.patience, settings.tol
        self._rng = rng
        self._groups, self._numbers = groups, count(1)
        # The leader first, once clients have judged.
        self._climbers = [] if begin is None else [begin]
        self._retired: list[Climber] = []  # one of their components may be of use
        self._values: list[float] = []  # of the leader, round by round
        self._judges: tuple[int, ...] | None = None  # fingerprint of the clients that judged last

    @property
    def leader(self) -> Climber:
        return self._climbers[0]

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round."""
        trials = [q for c in self._climbers for q in c.queries(self.problem.shape)]
        return [*(trials or self._groups)]

    def learn(self, answers: list[Statistics]) -> State:
        """Take in the answers to `queries`, and decide what comes next."""
        if not self._climbers:
            return self._begin([a for a in answers if isinstance(a, GroupStatistics)])
        sums = [a for a in answers if isinstance(a, ExpectStatistics)]
        check_possible(sums)
        n_clients = float(sums[0].n_clients)
        before, self._judges = self._judges, fingerprint(sums)
        changed = before not in (None, self._judges)
        (self._judge_anew if changed else self._judge)(sums)
        self._climbers.sort(key=lambda c: -c.value)
        leader = self.leader
        self._values.append(leader.value)
        unranked = [c for c in self._climbers if self._is_unranked(c)]
        ranked = self._halve([c for c in self._climbers if not self._is_unranked(c)])
        # The search does not wait for recombined climbers: most climb back to the leader's optimum.
        rivals = [c for c in ranked if c is not leader and not c.is_recombined]
        n_flat = int((np.array(self._values) > leader.value - self._tol).sum()) - 1
        state = State(
            n_clients, n_clients, leader.point.parameters(), leader.value,
            {c.number: c.value for c in self._climbers},
            converged=n_flat >= self._patience and self._is_at_rest(rivals, n_clients),
            nearly_done=n_flat >= self._patience - 1,
            promise=max(c.value + 2 * c.remaining() for c in (leader, *rivals)) - leader.value,
            changed=changed,
            n_agreeing=max(leader.n_met, 1),  # a recombined leader counts itself if no start has met it
            point=leader.point,
            hessian=leader.hessian,
        )  # fmt: skip
        new = self._recombine(ranked, len(unranked))
        self._propose(ranked + unranked, len(new))
        self._climbers = sorted(ranked + unranked, key=lambda c: -c.value) + new
        return state

    def _begin(self, sums: Sequence[GroupStatistics]) -> State:
        """The starts, from the moments of the groups."""
        n_clients = float(sums[0].n_clients)
        check_components(n_clients, self.problem.n_components)
        begin = starts(sums, self.problem)
        self._climbers = [Climber.begin(p, next(self._numbers), self._policy) for p in begin]
        return State(n_clients, n_clients)

    def _judge(self, sums: list[ExpectStatistics]) -> None:
        """Every climber learns how likely the clients find its trials."""
        trials = [(x, c.sizes) for c in self._climbers for x in c.trials]
        points = evaluate(self.problem, trials, sums)
        for c in self._climbers:
            n = len(c.trials)
            c.learn(points[:n], hessian(sums[c.asks]), self._policy)
            points, sums = points[n:], sums[n:]
        self._climbers = [c for c in self._climbers if c.best is not None]

    def _judge_anew(self, sums: list[ExpectStatistics]) -> None:
        """The same after clients have left or come: only likelihoods of this round are compared."""
        leader, expected = self.leader, self.leader.value + self.leader.remaining()
        for c in self._climbers:
            c.forget()
        self._judge(sums)
        # The leader's gain is not known and is taken to be what it could gain: a leader at rest does not
        # wait again for every client that is absent for a round.
        self._values = [v + leader.value - expected for v in self._values]

    def _is_unranked(self, c: Climber) -> bool:
        return c.is_recombined and len(c.gains) < self._policy.unranked

    def _halve(self, climbers: list[Climber]) -> list[Climber]:
        """The climbers that stay, best first, without the worse half and those that met a better one."""
        kept: list[Climber] = []
        for c in climbers:
            met = (other for other in kept if c.is_near(other, self._policy, self._tol))
            if (better := next(met, None)) is None:
                kept.append(c)
            else:
                better.n_met += c.n_met
        n = len(self._groups) >> (len(self._values) // self._policy.halve_every)
        n = max(n, self._policy.finalists)
        self._retired += [c for c in kept[n:] if not c.is_recombined]
        return kept[:n]

    def _is_at_rest(self, rivals: list[Climber], n_clients: float) -> bool:
        """Whether the leader has nothing left to gain, and no other start will overtake it."""
        if self._patience and n_clients < CLIENTS_EACH * self.problem.n_components:
            return True  # the gain that seems to remain may never come
        aim = self.leader.value + self._tol
        climbs = self._policy.safety * self.leader.remaining() >= self._tol
        return not climbs and all(c.value + c.remaining() < aim for c in rivals)

    def _recombine(self, ranked: list[Climber], n_unranked: int) -> list[Climber]:
        """Copies of the leader with one component of another start, present or retired."""
        others = [c for c in ranked + self._retired if c is not self.leader]
        if len(self._values) < self._policy.recombined_from or not others:
            return []
        budget = self.max_upload - self.problem.trial_cost * (len(ranked) + n_unranked)
        # Each takes at least `unranked` rounds of queries, and Newton steps need their share, too.
        n = budget // ((1 + self._policy.unranked) * self.problem.trial_cost)
        chosen = self._rng.integers(len(others), size=max(0, min(self._policy.recombined, n)))
        leader = self.leader.point.parameters()
        begun = (recombine(leader, others[i].point.parameters(), rng=self._rng) for i in chosen)
        return [
            Climber.begin(p, next(self._numbers), self._policy, is_recombined=True) for p in begun
        ]

    def _propose(self, climbers: list[Climber], n_new: int) -> None:
        """An EM step for all; best first, as far as the upload allows, the Hessian and Newton steps.

        If it does not allow the whole Hessian, the leader asks for that of some components.
        """
        trial, k = self.problem.trial_cost, self.problem.n_components
        budget = self.max_upload - trial * (len(climbers) + n_new)
        steps = len(self._policy.dampings) * trial
        cost = [0, *(self.problem.hessian_cost(n) + steps for n in range(1, k + 1))]
        n_newton = self._policy.finalists
        for c in sorted(climbers, key=lambda c: -c.value):
            n_curved = k if n_newton > 0 and not self._is_unranked(c) else 0
            while n_curved and cost[n_curved] > budget:
                # The Hessian of one component does not show how it shares clients with another.
                n_curved = n_curved - 1 if c is self.leader and n_curved > 2 else 0
            n_newton, budget = n_newton - (n_curved > 0), budget - cost[n_curved]
            c.propose(self._policy, n_curved=n_curved)


class Screened:
    """A race that a part of the clients judges, then the climb of its leader that all clients judge.

    The climb begins with the part's Hessian, so that most clients send a small fraction of the numbers
    of a race. The part has the clients whose bucket is below `buckets`; its optimum is expected to miss
    that of all clients by `precision` nats per client.
    """

    def __init__(
        self, problem: Problem, groups: list[Group], settings: Settings, rng: np.random.Generator,
        *, buckets: float, precision: float,
    ) -> None:  # fmt: skip
        self.problem, self.max_upload = problem, settings.max_upload
        self._settings, self._rng = settings, rng
        self._buckets, self._precision = buckets, precision
        rough = replace(settings, tol=max(settings.tol, precision / settings.policy.safety))
        self._race = Race(problem, groups, rough, rng)
        self._screened: State | None = None  # the part's last state

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round."""
        asked = self._race.queries()
        if self._screened is not None:
            return asked
        return [Part(Batch(tuple(asked)), 0.0, self._buckets)]

    def learn(self, answers: list[Statistics]) -> State:
        """Take in the answers to `queries`, and decide what comes next."""
        self._race.max_upload = self.max_upload
        if self._screened is not None:
            return replace(self._race.learn(answers), n_agreeing=self._screened.n_agreeing)
        state = self._race.learn(list(cast(BatchStatistics, answers[0]).answers))
        if state.converged:
            leader, self._screened = self._race.leader, state
            number = max(state.starts) + 1  # judged by other clients, it is another path
            at, known = leader.point.parameters(), leader.curvature
            begin = Climber.begin(at, number, self._settings.policy, curvature=known)
            at_once = replace(self._settings, patience=0)
            self._race = Race(self.problem, [], at_once, self._rng, begin=begin)
        promise = state.promise + self._precision
        return replace(state, converged=False, nearly_done=False, promise=promise)
