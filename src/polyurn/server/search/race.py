"""The search, when every client is asked in every round: race, climb, recombine, stop.

Its first round groups the clients in random ways, which makes the starts. Then every round is:

    judge      every climber moves to its best trial; the aggregated likelihood is the only judge
               (where clients have left or come, of this round alone)
    halve      who has met a better climber leaves, and every other round the worse half does
               (successive halving: Jamieson and Talwalkar, 2016)
    stop       the leader's quadratic model promises less than tol / 10, no other start will pass it,
               and there was no gain for `patience` rounds
    recombine  copies of the leader with a component of another start begin to climb (crossover:
               Pernkopf and Bouchaffra, 2005)
    propose    all: an EM step; the best few: the Hessian and Newton steps of three dampings

A race says what to ask and takes in the answers; it asks no client itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import numpy as np

from polyurn.server.em.evaluation import check_possible, evaluate, fingerprint
from polyurn.server.em.parameters import hessian
from polyurn.server.em.problem import Problem
from polyurn.server.few_clients import CLIENTS_EACH, check_components
from polyurn.server.search.climber import Climber
from polyurn.server.search.policy import Policy
from polyurn.server.search.starts import child, starts
from polyurn.wire import ExpectStatistics, Group, GroupStatistics, Parameters, Query, Statistics


@dataclass(frozen=True)
class State:
    """What a search has come to after a round.

    Likelihoods and what there may be left to gain (`promise`, taken twofold) are in nats per client.
    """

    n_clients: float  # who judged
    n_supporting: float  # the clients of all cohorts, if they are samples
    best: Parameters | None = None  # None while clients have judged nothing
    value: float = float("nan")  # mean log-likelihood of the best parameters
    starts: Mapping[int, float] = field(default_factory=dict)  # of every climber, by its number
    converged: bool = False
    nearly_done: bool = False  # the next round may be the last
    promise: float = float("inf")
    changed: bool = False  # other clients have judged than in the round before
    n_agreeing: int | None = None  # starts that came to the leader's place, if that was counted


class Search(Protocol):
    """Whoever says what to ask in a round and learns from the answers; it asks no client itself."""

    problem: Problem
    max_upload: int  # may be changed between rounds

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round."""

    def learn(self, answers: list[Statistics]) -> State:
        """Take in the answers to `queries`, and decide what comes next."""


class Race:
    """The search for one number of components.

    Parameters
    ----------
    groups : list of Group
        The groupings of the first round; or else `begin`, a Climber, climbs without a race.
    patience, tol : int, float
        It stops after so many rounds without a gain of `tol` nats per client.
    max_upload : int
        Numbers that a client may send in a round.
    rng : numpy.random.Generator
        For recombination.
    problem, policy : Problem, Policy
    """

    def __init__(
        self, problem: Problem, groups: list[Group], *, policy: Policy, patience: int,
        max_upload: int, tol: float, rng: np.random.Generator,
        begin: Climber | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.max_upload = problem, max_upload
        self._policy, self._patience, self._tol, self._rng = policy, patience, tol, rng
        self._groups, self._numbers = groups, count(1)
        # The leader first, once clients have judged.
        self._climbers = [] if begin is None else [begin]
        self._retired: list[Climber] = []  # a component of theirs may be of use
        self._values: list[float] = []  # of the leader, round by round
        self._judges: tuple[int, ...] | None = None  # the fingerprint of those who judged last

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
        young = [c for c in self._climbers if self._is_young(c)]
        grown = self._halve([c for c in self._climbers if not self._is_young(c)])
        # Nobody waits for children: most of them climb back to where the leader is.
        rivals = [c for c in grown if c is not leader and not c.is_child]
        n_flat = int((np.array(self._values) > leader.value - self._tol).sum()) - 1
        state = State(
            n_clients, n_clients, leader.point.parameters(), leader.value,
            {c.number: c.value for c in self._climbers},
            converged=n_flat >= self._patience and self._is_at_rest(rivals, n_clients),
            nearly_done=n_flat >= self._patience - 1,
            promise=max(c.value + 2 * c.remaining() for c in (leader, *rivals)) - leader.value,
            changed=changed,
            n_agreeing=max(leader.n_met, 1),  # a child that no start has met came there itself
        )  # fmt: skip
        children = self._recombine(grown, len(young))
        self._propose(grown + young, len(children))
        self._climbers = sorted(grown + young, key=lambda c: -c.value) + children
        return state

    def _begin(self, sums: Sequence[GroupStatistics]) -> State:
        """The starts, from the moments of the groups."""
        n_clients = float(sums[0].n_clients)
        check_components(n_clients, self.problem.n_components)
        begin = starts(sums, self.problem)
        self._climbers = [Climber.begin(p, next(self._numbers), self._policy) for p in begin]
        return State(n_clients, n_clients)

    def _judge(self, sums: list[ExpectStatistics]) -> None:
        """Every climber learns what the clients said about its trials."""
        trials = [(x, c.sizes) for c in self._climbers for x in c.trials]
        points = evaluate(self.problem, trials, sums)
        for c in self._climbers:
            n = len(c.trials)
            c.learn(points[:n], hessian(sums[c.asks]), self._policy)
            points, sums = points[n:], sums[n:]
        self._climbers = [c for c in self._climbers if c.best is not None]

    def _judge_anew(self, sums: list[ExpectStatistics]) -> None:
        """The same where clients have left or come: only likelihoods of this round are compared."""
        leader, expected = self.leader, self.leader.value + self.leader.remaining()
        for c in self._climbers:
            c.forget()
        self._judge(sums)
        # What the leader gained is not known, and taken for what it could gain: once at rest, it does
        # not wait anew for every client that is absent for a round.
        self._values = [v + leader.value - expected for v in self._values]

    def _is_young(self, c: Climber) -> bool:
        return c.is_child and len(c.gains) < self._policy.childhood

    def _halve(self, climbers: list[Climber]) -> list[Climber]:
        """Those that stay, best first: none that has met a better one, nor the worse half."""
        kept: list[Climber] = []
        for c in climbers:
            met = (other for other in kept if c.is_near(other, self._policy, self._tol))
            if (better := next(met, None)) is None:
                kept.append(c)
            else:
                better.n_met += c.n_met
        n = len(self._groups) >> (len(self._values) // self._policy.halve_every)
        n = max(n, self._policy.finalists)
        self._retired += [c for c in kept[n:] if not c.is_child]
        return kept[:n]

    def _is_at_rest(self, rivals: list[Climber], n_clients: float) -> bool:
        """Whether the leader has nothing left to gain, and no other start is to pass it."""
        if self._patience and n_clients < CLIENTS_EACH * self.problem.n_components:
            return True  # what seems to be left may never come
        aim = self.leader.value + self._tol
        climbs = self._policy.safety * self.leader.remaining() >= self._tol
        return not climbs and all(c.value + c.remaining() < aim for c in rivals)

    def _recombine(self, grown: list[Climber], n_young: int) -> list[Climber]:
        """Copies of the leader with one component of another start, present or retired."""
        mates = [c for c in grown + self._retired if c is not self.leader]
        if len(self._values) < self._policy.children_from or not mates:
            return []
        budget = self.max_upload - self.problem.trial_cost * (len(grown) + n_young)
        # A child lives for `childhood` rounds, and Newton steps need their share too.
        n = budget // ((1 + self._policy.childhood) * self.problem.trial_cost)
        chosen = self._rng.integers(len(mates), size=max(0, min(self._policy.children, n)))
        leader = self.leader.point.parameters()
        born = (child(leader, mates[i].point.parameters(), rng=self._rng) for i in chosen)
        return [Climber.begin(p, next(self._numbers), self._policy, is_child=True) for p in born]

    def _propose(self, climbers: list[Climber], n_children: int) -> None:
        """An EM step for all; best first, as far as the upload allows, the Hessian and Newton steps.

        Where it does not allow the whole Hessian, the leader asks for that of some components.
        """
        trial, k = self.problem.trial_cost, self.problem.n_components
        budget = self.max_upload - trial * (len(climbers) + n_children)
        steps = len(self._policy.dampings) * trial
        cost = [0, *(self.problem.hessian_cost(n) + steps for n in range(1, k + 1))]
        n_newton = self._policy.finalists
        for c in sorted(climbers, key=lambda c: -c.value):
            n_curved = k if n_newton > 0 and not self._is_young(c) else 0
            while n_curved and cost[n_curved] > budget:
                # One component's Hessian says nothing of how it shares clients with another.
                n_curved = n_curved - 1 if c is self.leader and n_curved > 2 else 0
            n_newton, budget = n_newton - (n_curved > 0), budget - cost[n_curved]
            c.propose(self._policy, n_curved=n_curved)
