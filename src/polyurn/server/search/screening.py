"""Which search suits the clients; where there are many, the race is run on a part of them first.

Which start is best can be seen from some thousand clients; only where exactly its optimum is takes all
of them (refining on a subsample: Bradley and Fayyad, 1998). So the same search runs twice: from many
starts on a part, always the same clients, and from its leader on all, which begins with the part's
Hessian. Most clients then send a small fraction of what a race takes.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from polyurn.server.em.problem import Problem
from polyurn.server.search.climber import Climber
from polyurn.server.search.policy import Policy
from polyurn.server.search.race import Race, Search, State
from polyurn.server.search.sampled import Sampled
from polyurn.server.search.starts import Landscape, random_groups
from polyurn.wire import Batch, BatchStatistics, Part, Query, Statistics


def begin_search(
    problem: Problem, land: Landscape, *, n_clients: float, buckets: float = 1.0, sampled: bool,
    policy: Policy, patience: int, max_upload: int, tol: float, rng: np.random.Generator,
) -> Search:  # fmt: skip
    """The search for one number of components.

    Parameters
    ----------
    n_clients, buckets : float
        How many clients answer, and that their buckets are between 0 and this.
    sampled : bool
        Whether a round reaches a sample of the clients, another one each time.
    problem, land, policy, patience, max_upload, tol, rng
        As in `Race`; the groupings are random ones of the landscape.
    """
    problem.check_upload(max_upload)
    k = problem.n_components
    n_ways = 1 if k == 1 else min(policy.starts, max_upload // problem.trial_cost)
    groups = random_groups(land, k, problem.size_bins, n_ways=n_ways, rng=rng)
    if sampled:
        return Sampled(problem, groups, policy=policy, max_upload=max_upload, tol=tol)
    n_part = max(policy.fewest_clients, policy.clients_per_parameter * problem.n_parameters)
    # Without a prior, sizes that the part does not have would be impossible for all.
    screened = n_clients >= policy.screened_from * n_part and k > 1 and problem.size_prior > 0
    precision = problem.n_parameters / (2 * n_part) if screened else 0.0
    race = Race(
        problem, groups, policy=policy, patience=patience, max_upload=max_upload, rng=rng,
        tol=max(tol, precision / policy.safety),
    )  # fmt: skip
    if not screened:
        return race

    def climb(begin: Climber) -> Race:
        return Race(
            problem, [], policy=policy, patience=0, max_upload=max_upload, tol=tol, rng=rng,
            begin=begin,
        )  # fmt: skip

    return Screened(race, climb, policy, buckets=buckets * n_part / n_clients, precision=precision)


class Screened:
    """A race that a part of the clients judges, then the climb of its leader that all of them judge.

    `climb` makes the second race. Clients whose bucket is below `buckets` are in the part, whose optimum
    is expected to miss that of all clients by `precision` nats per client.
    """

    def __init__(
        self,
        race: Race,
        climb: Callable[[Climber], Race],
        policy: Policy,
        *,
        buckets: float,
        precision: float,
    ) -> None:
        self.problem, self.max_upload = race.problem, race.max_upload
        self._race, self._climb, self._policy = race, climb, policy
        self._buckets, self._precision = buckets, precision
        self._screened: State | None = None  # what the part came to

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
            number = max(state.starts) + 1  # for other clients it is another path
            at, known = leader.point.parameters(), leader.curvature
            self._race = self._climb(Climber.begin(at, number, self._policy, curvature=known))
        promise = state.promise + self._precision
        return replace(state, converged=False, nearly_done=False, promise=promise)
