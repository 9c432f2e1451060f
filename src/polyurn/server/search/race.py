"""The default method: many starts climb in the same rounds, the poorer ones leave, the best is kept.

A `Search` says what to ask next and takes in the answers; it asks nobody itself, so that a fit runs one
and a selection runs one for every K side by side. With the full cohort, likelihoods of different rounds
can be compared and tracks climb by bold trials. When cohorts are samples they cannot: then tracks take
EM steps, and the one that is left averages over the cohorts, so that earlier ones keep counting.
"""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.server.search.children import Children
from polyurn.server.search.climber import N_NEWTON, Track
from polyurn.server.search.evaluation import expects, points
from polyurn.server.search.parameters import from_x, hessian
from polyurn.server.search.problem import Problem
from polyurn.server.search.sampled import Settle
from polyurn.server.search.starts import Landscape, random_groups, starts
from polyurn.wire import ExpectStatistics, Group, GroupStatistics, Parameters, Query, Statistics

# Tracks that are left after so many rounds of trials. Likelihood says little about a start at first.
_STARTS = 48
_STAGES = ((4, 24), (6, 12), (8, 6))
# At last no more tracks than can have so many trials each.
_BOLDNESS = 4
# Tracks whose likelihoods agree to so many nats per client have met: starts can be alike. So has one
# within a tolerance of the leader if no parameter's logarithm is further from the leader's than this.
_SAME, _NEAR = 1e-9, 0.1
# What is left to gain is an estimate: it is taken tenfold, and believed when it stays small for so many
# rounds, in a race and in a climb without one.
_SAFETY, _CALM_ROUNDS, _CALM_CLIMB = 10.0, 3, 2
# A track with less than so many tolerances left to gain is at rest, and only asked whether it still is.
_REST = 1e-2
# Children of the leader come from this round on; a fit waits until so many generations of them in a row
# have brought nothing.
_CHILDREN_FROM, _GENERATIONS = 5, 2
# Where a start is between so many tolerances below the leader, there may be others above it: twice as
# many generations are waited for, and two more rounds.
_CLOSE = 2.0, 0.01
# Where such a start is on a top of its own, and the leader within so many tolerances of its own, niches
# are looked into.
_NICHES_WITHIN = 10.0
# Newton steps are for so many tracks, for more of them where they are within so many tolerances of the
# leader, and from this round on.
_NEWTON_TRACKS, _NEWTON_WITHIN, _NEWTON_FROM = 4, 10.0, 4
# One component's curvature says nothing of how it shares clients with another.
_FEWEST_CURVED = 2
# Samples: rounds of plain EM with all starts, half of them, ..., and then the step of the average.
_SAMPLED_STAGES = ((3, 12), (5, 6), (7, 3), (10, 1))
_SAMPLED_STARTS, _AVERAGE_FROM, _AVERAGE_FROM_ALONE = 24, 7, 3


@dataclass(frozen=True)
class Effort:
    """How much a search tries in a round, at most.

    Attributes
    ----------
    trials : int
        EM steps and bold ones of all tracks together; each track has one in any case.
    newton_tracks : int
        Tracks that take Newton steps.
    niches : int
        Niches that are looked into at once.
    """

    trials: int = 32
    newton_tracks: int = 8
    niches: int = 24


_FULL = Effort()


class Search:
    """The search for one number of components.

    Parameters
    ----------
    problem : Problem
    land : Landscape or None
        Where the starts of the race come from; without it there is none, and tracks are added.
    sampled : bool
        Whether a round reaches a sample of the clients, another one each time.
    max_upload : int
        Numbers that a client may send in a round.
    tol : float
        Nats per client that may be left to gain.
    rng : numpy.random.Generator
        For the starts and the children.
    effort : Effort
    """

    def __init__(
        self,
        problem: Problem,
        land: Landscape | None,
        *,
        sampled: bool,
        max_upload: int,
        tol: float,
        rng: np.random.Generator,
        effort: Effort = _FULL,
    ) -> None:
        self.problem, self.sampled, self.tol = problem, sampled, tol
        self.n_rounds = 0
        self.n_clients = 0.0
        self.n_supporting = (
            0.0  # clients that the parameters rest on: of all cohorts, if they are samples
        )
        self.converged = False
        self.tracks: list[Track] = []
        self._numbers = count(1)  # of the tracks, as they begin
        self._left: list[Track] = []  # starts that have left: a component of theirs may be of use
        self._settle: Settle | None = None
        self._n_calm = 0  # rounds in a row in which there seemed to be nothing left to gain
        self.max_upload = max_upload  # may be changed between rounds
        k = problem.n_components
        problem.check_room(max_upload)
        most = _SAMPLED_STARTS if sampled else _STARTS
        n_starts = 1 if k == 1 else min(most, max_upload // problem.trial_cost)
        self._effort = effort
        self._children = Children(
            problem, tol=tol, new_number=self.new_number, most_niches=effort.niches, rng=rng
        )
        self._groups: list[Group] = []
        if land is None:
            self.n_rounds = _STAGES[-1][0] + 1  # as if the race were over
        else:
            bins = problem.size_bins
            self._groups = random_groups(land, k, bins, n_ways=n_starts, rng=rng)

    @property
    def has_values(self) -> bool:
        """Whether clients have judged any parameters yet."""
        return any(t.best is not None for t in self.tracks)

    @property
    def nearly_done(self) -> bool:
        """Whether the next round may be the last."""
        ends = self._children.may_end(_GENERATIONS)
        return self._n_calm >= self._fewest_calm - 1 and ends

    @property
    def promise(self) -> float:
        """Nats per client that there may be left to gain, taken twofold; of samples nobody knows."""
        if self.sampled or any(t.best is None for t in self.tracks):
            return np.inf
        return float(max(t.value + 2 * t.remaining() for t in self.tracks) - self.value)

    @property
    def values(self) -> dict[int, float]:
        """Mean log-likelihood of every start in the race, by its number; children count as starts."""
        return {t.number: t.value for t in self.tracks if t.best is not None}

    @property
    def best(self) -> Parameters:
        """The best parameters so far."""
        if self._settle is not None:
            return self._settle.best
        return max(self.tracks, key=lambda t: t.value).best_parameters()

    @property
    def value(self) -> float:
        """Mean log-likelihood of the best parameters, on the cohort that judged them."""
        if self._settle is not None:
            return self._settle.value
        return max(t.value for t in self.tracks)

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round."""
        if not self.tracks:
            return list(self._groups)
        if self._settle is not None:
            return list(self._settle.queries(self.max_upload))
        return list(expects((*self.tracks, *self._children.young)))

    @property
    def n_numbers(self) -> int:
        """How many numbers a client sends in answer to what the tracks ask next."""
        asked = (*self.tracks, *self._children.young)
        n_trials = sum(len(track.trials) for track in asked)
        curvature = sum(self.problem.newton_cost(len(track.curved)) for track in asked)
        return n_trials * self.problem.trial_cost + curvature

    def new_number(self) -> int:
        """A number that no track has had."""
        return next(self._numbers)

    def add(self, track: Track, number: int, *, room: int) -> bool:
        """Let a track of another search climb, if there is room for it in the next upload.

        Its curvature is asked for at once if it is not known and there is room for that too.
        """
        trial, newton = self.problem.trial_cost, self.problem.newton_cost(self.problem.n_components)
        if trial > room:
            return False
        asks = track.bends is None and trial + newton <= room
        curved = tuple(range(self.problem.n_components)) if asks else ()
        begin = Track.begin(track.best_parameters(), number, curved=curved, bends=track.bends)
        self.tracks.append(begin)
        self.converged = False
        return True

    def learn(self, answers: list[Statistics]) -> None:
        """Take in the answers to `queries`, and decide what comes next."""
        self.n_rounds += 1
        self.n_clients = answers[0].n_clients  # type: ignore[attr-defined]
        self.n_supporting = self.n_clients + (self.n_supporting if self.sampled else 0.0)
        if self.tracks and self.n_clients == 0:
            return  # a cohort can be empty by chance, and says nothing
        if not self.tracks:
            self._begin([a for a in answers if isinstance(a, GroupStatistics)])
            return
        sums = [a for a in answers if isinstance(a, ExpectStatistics)]
        if not np.isfinite([s.log_likelihood for s in sums]).any():
            raise ZeroLikelihoodError(
                "every start calls some client impossible: a client larger than max_size, or of "
                "other categories, is among them"
            )
        if self.sampled:
            self._learn_sample(sums)
        else:
            self._learn_all(sums)

    def _begin(self, sums: list[GroupStatistics]) -> None:
        """The starts, from the moments of the groups."""
        if self.n_clients < self.problem.n_components:
            raise ParameterError(
                f"{self.problem.n_components} components need at least as many clients, "
                f"got a cohort of {self.n_clients:.0f}"
            )
        begin = starts(sums, self.problem)
        self.tracks = [Track.begin(parameters, self.new_number()) for parameters in begin]

    # ------------------------------------------------------------------ the full cohort

    def _learn_all(self, sums: list[ExpectStatistics]) -> None:
        asked = (*self.tracks, *self._children.young)
        judged = points(self.problem, asked, sums)
        for track in asked:
            mine = slice(0, len(track.trials))
            track.learn(judged[mine], hessian(sums[mine][track.lead]))
            del judged[mine], sums[mine]
        self.tracks = [t for t in self.tracks if t.best is not None]
        self.tracks += self._children.leave(max(t.value for t in self.tracks))
        self._leave(_STAGES)
        self._n_calm = self._n_calm + 1 if self._is_calm else 0
        if self._is_calm:
            self.tracks = [self.tracks[0], *self._rivals]
        self._plan()
        self.converged = self._n_calm >= self._calm_rounds and not self._owed

    @property
    def _rivals(self) -> list[Track]:
        """The starts besides the leader.

        Children mostly climb back to where their leader is: they count when they have passed it.
        """
        return [t for t in self.tracks[1:] if not t.is_child]

    @property
    def _is_calm(self) -> bool:
        """Whether the leader has nothing left to gain, and nobody is going to pass it."""
        leader = self.tracks[0]
        aim = leader.value + self.tol
        passed = any(t.value + t.remaining() > aim for t in self._rivals)
        return _SAFETY * leader.remaining() < self.tol and not passed

    @property
    def _owed(self) -> bool:
        """Whether a generation of children has still to be waited for."""
        possible = bool(self._children.young) or self._n_children > 0
        awaited = 2 * _GENERATIONS if self._close else _GENERATIONS
        return possible and self._children.n_vain < awaited

    @property
    def _n_children(self) -> int:
        """How many children may begin at once."""
        if not self._groups or len(self.tracks) + len(self._left) < 2:
            return 0
        room = self.max_upload - len(self.tracks) * self.problem.trial_cost
        return self._children.n_crossed(room)

    @property
    def _calm_rounds(self) -> int:
        """Rounds to wait for after there seemed to be nothing left to gain; after a race, more."""
        return self._fewest_calm + (2 if self._close and self._groups else 0)

    @property
    def _fewest_calm(self) -> int:
        return _CALM_ROUNDS if self._groups else _CALM_CLIMB

    @property
    def _close(self) -> list[Track]:
        """The starts that are close below the leader."""
        low, high = (self.tracks[0].value - by * self.tol for by in _CLOSE)
        return [t for t in self.tracks if low < t.value < high and not t.is_child]

    @property
    def _is_rugged(self) -> bool:
        """Whether there are tops close below the leader's, so that there may be some above it."""
        leader = self.tracks[0]
        near = leader.remaining() < _NICHES_WITHIN * self.tol
        return near and any(t.value + t.remaining() < leader.value for t in self._close)

    def _plan(self) -> None:
        """What each track tries next, within what a client may send."""
        n = len(self.tracks)
        trial = self.problem.trial_cost
        left = self.max_upload - n * trial
        # As long as the leader climbs, children that are not waited for cost no round.
        wanted = self.n_rounds >= _CHILDREN_FROM and (self._owed or self._n_calm == 0)
        left -= self._children.plan(
            self.tracks + self._left,
            left,
            n_crossed=self._n_children if wanted else 0,
            niches=wanted and self._is_rugged,
        )
        n_newton, n_curved, cost = (
            self._newton(left) if self.n_rounds >= _NEWTON_FROM else (0, 0, 0)
        )
        left -= n_newton * cost
        bold = max(0, min(self._effort.trials // n - 1, left // (trial * n)))
        for track in self.tracks:
            rests = track.remaining() < _REST * self.tol
            newton = not rests and n_newton > 0
            track.propose(1 if rests else 1 + bold, n_curved=n_curved if newton else 0)
            n_newton -= newton

    def _newton(self, room: int) -> tuple[int, int, int]:
        """How many tracks take Newton steps, in how many components, and what that costs each.

        All components of as many tracks as there is room for, else some components of the leader.
        """
        k = self.problem.n_components
        for n_curved in range(k, min(k, _FEWEST_CURVED) - 1, -1):
            cost = self.problem.newton_cost(n_curved) + N_NEWTON * self.problem.trial_cost
            if cost <= room:
                close = self.tracks[0].value - _NEWTON_WITHIN * self.tol
                n_close = sum(track.value > close for track in self.tracks)
                wanted = max(min(_NEWTON_TRACKS, len(self.tracks)), n_close)
                n_tracks = min(wanted, self._effort.newton_tracks, room // cost)
                return (n_tracks if n_curved == k else 1), n_curved, cost
        return 0, 0, 0

    def _leave(self, stages: tuple[tuple[int, int], ...]) -> None:
        """Order the tracks by likelihood, and let the last ones and those that have met another go."""
        self.tracks.sort(key=lambda t: -t.value)
        pairs = zip(self.tracks, self.tracks[1:], strict=False)
        met = {id(later) for better, later in pairs if better.value - later.value < _SAME}
        self.tracks = [t for t in self.tracks if id(t) not in met]
        leader, *others = self.tracks
        self.tracks = [leader, *(t for t in others if not self._has_met(t, leader))]
        n = min((n for after, n in stages if self.n_rounds > after), default=len(self.tracks))
        if self.n_rounds > stages[-1][0]:
            # Where a client may send little, few tracks that can be bold are worth more than many.
            trials = self.max_upload // self.problem.trial_cost
            n = min(n, max(1, trials // _BOLDNESS))
        if not self.sampled:
            self._left += [t for t in self.tracks[n:] if not t.is_child]
        self.tracks = self.tracks[:n]

    def _has_met(self, track: Track, leader: Track) -> bool:
        """Whether a track climbs to where the leader is."""
        return leader.value - track.value < self.tol and track.distance(leader) < _NEAR

    # ------------------------------------------------------------------ samples

    def _learn_sample(self, sums: list[ExpectStatistics]) -> None:
        if self._settle is not None:
            self._settle.learn(sums)
            self.converged = self._settle.converged
            return
        before = [from_x(t.trials[0], t.shape, t.sizes) for t in self.tracks]
        judged = points(self.problem, self.tracks, sums)
        for track, point in zip(self.tracks, judged, strict=True):
            track.best = None  # values of different cohorts are not to be compared
            track.learn([point], None)
            track.propose(1)
        answered = dict(zip(map(id, self.tracks), zip(before, sums, strict=True), strict=True))
        self._leave(_SAMPLED_STAGES)
        alone = self.problem.n_components == 1
        if len(self.tracks) == 1 and self.n_rounds >= (
            _AVERAGE_FROM_ALONE if alone else _AVERAGE_FROM
        ):
            p, s = answered[id(self.tracks[0])]
            self._settle = Settle(self.problem, p, s, max_upload=self.max_upload, tol=self.tol)
