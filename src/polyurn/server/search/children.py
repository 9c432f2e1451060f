"""The children of a race's leader while they are young: not yet compared with the other tracks.

There are two kinds: crossed ones, with a component of another start, and niches, with one that no start
has found. Niches are small, and take longer to grow and Newton steps. When children are wanted is for
`search.py` to say, and what is in them is in `cross.py`.
"""

from collections.abc import Callable

import numpy as np

from polyurn.server.search.climber import N_NEWTON, Track
from polyurn.server.search.problem import Problem
from polyurn.server.search.recombination import child, niche
from polyurn.wire import Parameters

# Crossed children: how many at once, and the rounds until they have to stand among the others.
_CROSSED, _YOUTH = 8, 3
# Niches: in at most this share of what is left of the upload, and for so many rounds.
_NICHE_SHARE, _NICHE_YOUTH = 0.75, 6


class Children:
    """The young children of a search.

    Parameters
    ----------
    problem : Problem
    tol : float
        Nats per client by which a child has to be better than all to count.
    new_number : callable
        A number that no track has had.
    most_niches : int
    rng : numpy.random.Generator

    Attributes
    ----------
    young : list of Track
    n_vain : int
        Generations of crossed children since a child last took the lead.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        tol: float,
        new_number: Callable[[], int],
        most_niches: int,
        rng: np.random.Generator,
    ) -> None:
        self.young: list[Track] = []
        self.n_vain = 0
        self._problem, self._tol, self._rng = problem, tol, rng
        self._new_number, self._most_niches = new_number, most_niches

    def may_end(self, n_generations: int) -> bool:
        """Whether nobody may have to wait for them after the next round: niches are not waited for."""
        crossed = self._brood(_YOUTH)
        grown = bool(crossed) and len(crossed[0].gains) == _YOUTH - 1
        return not crossed or self.n_vain + grown >= n_generations

    def leave(self, lead: float) -> list[Track]:
        """Those that stand among the tracks from now on: they are grown, or better than `lead`."""
        # A child can be impossible for some client.
        self.young = [t for t in self.young if t.best is not None]
        grown = [t for t in self.young if len(t.gains) >= t.youth]
        leaving = grown + [t for t in self.young if t not in grown and t.value > lead]
        if any(t.value > lead + self._tol for t in leaving):
            self.n_vain = 0
        elif any(t.youth == _YOUTH for t in grown):
            self.n_vain += 1
        self.young = [t for t in self.young if t not in leaving]
        return leaving

    def n_crossed(self, room: int) -> int:
        """How many crossed children begin at once: they get at most half of the room."""
        return max(0, min(_CROSSED, room // (4 * self._problem.trial_cost)))

    def plan(self, parents: list[Track], room: int, *, n_crossed: int, niches: bool) -> int:
        """What the children try next, and what that costs; new ones begin when there are none.

        Parameters
        ----------
        parents : list of Track
            The leader first.
        room : int
            How many numbers a client may still send.
        n_crossed : int
            How many crossed children may begin.
        niches : bool
            Whether niches may.
        """
        every = tuple(range(self._problem.n_components))
        trial = self._problem.trial_cost
        crossed = self._brood(_YOUTH)[: max(0, room) // (2 * trial)]  # there may be less room now
        for track in crossed:
            track.propose(2)
        leader = parents[0].best_parameters()
        if not crossed:
            mates = parents[1:]
            crossed = [self._begin(self._cross(leader, mates), _YOUTH) for _ in range(n_crossed)]
        left = room - 2 * trial * len(crossed)
        cost = (2 + N_NEWTON) * trial + self._problem.newton_cost(len(every))
        small = self._brood(_NICHE_YOUTH)[: max(0, left) // cost]
        for track in small:
            track.propose(2, n_curved=len(every))
        if niches and not small:
            n = max(0, min(self._most_niches, int(_NICHE_SHARE * left) // cost))
            begin = [niche(leader, rng=self._rng) for _ in range(n)]
            small = [self._begin(parameters, _NICHE_YOUTH, every) for parameters in begin]
        self.young = [*crossed, *small]
        return room - left + cost * len(small)

    def _brood(self, youth: int) -> list[Track]:
        """The young ones of a kind, the best first."""
        return sorted((t for t in self.young if t.youth == youth), key=lambda t: -t.value)

    def _cross(self, leader: Parameters, mates: list[Track]) -> Parameters:
        mate = mates[self._rng.integers(len(mates))]
        return child(leader, mate.best_parameters(), rng=self._rng)

    def _begin(self, parameters: Parameters, youth: int, curved: tuple[int, ...] = ()) -> Track:
        return Track.begin(parameters, self._new_number(), youth=youth, curved=curved)
