"""Where there are many clients, a part of them goes ahead.

Which start is best can be seen from some thousand clients; only where exactly its top is takes all of
them. So the race of the starts is run with a part, always the same clients, and from when its leader
is as good as that part can tell, all clients are asked about the leader, in the same rounds. Most
clients then send a small fraction of what the race takes.
"""

from typing import Any, TypeAlias, cast

import numpy as np

from polyurn.server.search.problem import Problem
from polyurn.server.search.race import Effort, Search
from polyurn.server.search.starts import Landscape
from polyurn.wire import Batch, BatchStatistics, Parameters, Part, Query, Statistics

# Clients of the part for each parameter, at least so many; and how many times as many there have to be
# before it is worth it.
_PER_PARAMETER, _FEWEST, _WORTH = 30, 1_000, 8
# All clients are asked about so many of the race's tracks at first, and in any case from this round on.
_FOLLOWED, _LATEST = 2, 8
# A part cannot tell close tops apart, and its leader is near the top of all: both searches do with less.
# What a niche is worth is shared by all clients: where there are many, it is worth nothing each.
_RACE = Effort(trials=16, newton_tracks=2, niches=0)
_CLIMB = Effort(trials=2, newton_tracks=1, niches=0)
# The race may leave to gain, for all to find, this fraction of what its part cannot tell.
_COARSE = 0.25
# From this round on the race has to do with a share of the upload, which has room for so many trials.
_SHARING_FROM, _SHARE, _FEWEST_TRIALS = 4, 0.5, 16


def begin_search(
    problem: Problem,
    land: Landscape,
    *,
    n_clients: float,
    lots: float = 1.0,
    sampled: bool,
    max_upload: int,
    tol: float,
    rng: np.random.Generator,
) -> "AnySearch":
    """The search for one number of components, with a vanguard if there are clients enough for one.

    Parameters
    ----------
    n_clients : float
        Who answers.
    lots : float
        Their lots are between 0 and this.
    problem, land, sampled, max_upload, tol, rng
        As in `Search`.
    """
    n_parameters = problem.n_components * (problem.n_categories + 1) - 1
    n_ahead = max(_FEWEST, _PER_PARAMETER * n_parameters)
    many = n_clients >= _WORTH * n_ahead and max_upload >= _FEWEST_TRIALS * problem.trial_cost
    # Without a prior, sizes that the part does not have would be impossible for all.
    possible = not sampled and problem.n_components > 1 and problem.size_prior > 0
    if not (many and possible):
        return Search(problem, land, sampled=sampled, max_upload=max_upload, tol=tol, rng=rng)
    ahead, precision = n_ahead / n_clients, n_parameters / (2 * n_ahead)
    race = Search(
        problem, land, sampled=False, max_upload=max_upload, rng=rng,
        tol=max(tol, _COARSE * precision), effort=_RACE,
    )  # fmt: skip
    climb = Search(
        problem, None, sampled=False, max_upload=max_upload, rng=rng,
        tol=tol, effort=_CLIMB,
    )  # fmt: skip
    return Vanguard(race, climb, lots=lots * ahead, precision=precision)


class Vanguard:
    """A race that a part of the clients runs, and the climb of its leaders that all of them judge.

    It says what to ask and takes in the answers as a `Search` does.

    Parameters
    ----------
    race, climb : Search
        The second one without starts of its own.
    lots : float
        Clients whose lot is below this are in the part.
    precision : float
        Nats per client by which the part's top is expected to miss that of all clients.
    """

    def __init__(self, race: Search, climb: Search, *, lots: float, precision: float) -> None:
        self.problem, self.max_upload = race.problem, race.max_upload
        self.n_rounds = 0
        self._race, self._climb = race, climb
        self._lots, self._precision = lots, precision
        self._followed: set[int] = set()  # numbers of the race's tracks
        self._lead = -np.inf  # in the race, of the last one that was followed

    @property
    def n_clients(self) -> float:
        return self._judge.n_clients

    @property
    def n_supporting(self) -> float:
        return self._judge.n_supporting

    @property
    def converged(self) -> bool:
        return self._race.converged and self._climb.converged

    @property
    def nearly_done(self) -> bool:
        """Whether the next round may be the last."""
        return all(s.converged or s.nearly_done for s in (self._race, self._climb))

    @property
    def has_values(self) -> bool:
        """Whether clients have judged any parameters yet."""
        return self._race.has_values

    @property
    def values(self) -> dict[int, float]:
        """Mean log-likelihood of every start in the race, later of those that all clients judge."""
        return self._judge.values

    @property
    def best(self) -> Parameters:
        """The best parameters so far."""
        return self._judge.best

    @property
    def value(self) -> float:
        """Mean log-likelihood of the best parameters, on the clients that judged them."""
        return self._judge.value

    @property
    def promise(self) -> float:
        """Nats per client that there may be left to gain."""
        return self._judge.promise + (self._precision if self._judge is self._race else 0.0)

    @property
    def _judge(self) -> Search:
        """Whose values count: those of all clients as soon as there are any."""
        return self._climb if self._climb.has_values else self._race

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round: the part about the race, and all about its leaders."""
        asked: list[Query[Any]] = []
        if not self._race.converged:
            asked.append(Part(Batch(tuple(self._race.queries())), 0.0, self._lots))
        if not self._climb.converged:
            asked += self._climb.queries()
        return asked

    def learn(self, answers: list[Statistics]) -> None:
        """Take in the answers to `queries`, and decide what comes next."""
        self.n_rounds += 1
        room = self.max_upload
        if not self._race.converged:
            first, *answers = answers
            later = self.n_rounds >= _SHARING_FROM
            self._race.max_upload = int(_SHARE * room) if later else room
            self._race.learn(list(cast(BatchStatistics, first).answers))
        if not self._race.converged:
            room -= self._race.n_numbers
        if answers:
            self._climb.max_upload = room
            self._climb.learn(answers)
        if self._race.has_values:
            self._follow(room)

    def _follow(self, room: int) -> None:
        """Let all clients judge the race's leader, once the part can tell no more, and later ones."""
        leader, *others = self._race.tracks
        if not self._followed:
            settled = leader.remaining() < self._precision or self._race.converged
            if not settled and self.n_rounds < _LATEST:
                return
            close = [t for t in others if t.value > leader.value - self._precision]
            fresh = [leader, *close[: _FOLLOWED - 1]]
        elif leader.number in self._followed:
            self._lead, fresh = leader.value, []
        else:
            fresh = [leader] if leader.value > self._lead + self._climb.tol else []
        for track in fresh:
            left = room - self._climb.n_numbers
            if track is not leader:  # it may turn out to climb to where the leader is
                left = min(left, self.problem.trial_cost)
            # On other clients it is another path, and so it has another number.
            number = self._race.new_number()
            if self._climb.add(track, number, room=left):
                self._followed.add(track.number)
                self._lead = leader.value


AnySearch: TypeAlias = Search | Vanguard
