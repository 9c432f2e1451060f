"""The default method: many starts climb in the same rounds, the poorer ones leave, the best is kept.

A `Search` says what to ask next and takes in the answers; it asks nobody itself, so that a fit runs one
and a selection runs one for every K side by side. With the full cohort, likelihoods of different rounds
can be compared and tracks climb by bold trials. When cohorts are samples they cannot: then tracks take
EM steps, and the one that is left averages over the cohorts, so that earlier ones keep counting.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.server.explore import Landscape, random_groups, start
from polyurn.server.poles import Poles, blend, maximise, poles
from polyurn.server.track import N_NEWTON, Point, Track, from_x, gradient, hessian, to_x
from polyurn.sizes import SizeBins, Sizes
from polyurn.wire import ExpectStatistics, GroupStatistics, Parameters, Query, Statistics

# Tracks that are left after so many rounds of trials. Likelihood says little about a start at first.
_STARTS = 48
_STAGES = ((4, 24), (6, 12), (8, 6))
# Tracks whose likelihoods agree to so many nats per client have met: starts can be alike.
_SAME = 1e-9
# What is left to gain is an estimate: it is taken tenfold, and believed when it stays small.
_SAFETY, _CALM_ROUNDS = 10.0, 3
# Trials of all tracks together in a round; tracks that take Newton steps, and from which round on.
_TRIALS, _NEWTON_TRACKS, _NEWTON_FROM = 32, 8, 4
# Samples: rounds of plain EM with all starts, half of them, ..., and then the step of the average.
_SAMPLED_STAGES = ((3, 12), (5, 6), (7, 3), (10, 1))
_SAMPLED_STARTS, _AVERAGE_FROM, _AVERAGE_POWER = 24, 7, 0.6
# The answer is a mean over the average's rounds; round n counts in proportion to n^_LATE or so.
_LATE = 3
# Rounds of the average that are compared with each other to see whether it still gains.
_LAG = 5
# An empty component keeps this many clients, so that its logarithm exists; it is dropped at the end.
_WEIGHT_PRIOR = 1e-6


@dataclass(frozen=True)
class Problem:
    """What is to be fitted, and with which priors.

    Attributes
    ----------
    n_components, n_categories : int
    size_bins : SizeBins
    shared_sizes : bool
        All components have the same sizes, so that sizes do not tell them apart.
    size_prior : float
        Pseudo-clients per component, with the sizes of all clients together.
    category_prior : float
        Pseudo-tables per category and component.
    """

    n_components: int
    n_categories: int
    size_bins: SizeBins
    shared_sizes: bool
    size_prior: float
    category_prior: float

    @property
    def trial_cost(self) -> int:
        """How many numbers a client sends for one trial."""
        k, c = self.n_components, self.n_categories
        return 2 + k * (self.size_bins.n_bins + 3 * c + 2)

    @property
    def newton_cost(self) -> int:
        """How many more it sends for the curvature."""
        n = self.n_components * (self.n_categories + 1)
        return n * (n + 1) // 2

    def size_masses(self, size_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """π_k from Σ ω by bin, drawn towards the sizes of all clients."""
        k, b = size_counts.shape
        together = size_counts.sum(axis=0) + self.size_prior / b
        together = together / together.sum()
        if self.shared_sizes:
            return np.tile(together, (k, 1))
        masses = size_counts + self.size_prior * together
        total = masses.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, masses / np.where(total > 0, total, 1.0), together))


class Search:
    """The search for one number of components.

    Parameters
    ----------
    problem : Problem
    land : Landscape
    sampled : bool
        Whether a round reaches a sample of the clients, another one each time.
    max_upload : int
        Numbers that a client may send in a round.
    tol : float
        Nats per client that may be left to gain.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        problem: Problem,
        land: Landscape,
        *,
        sampled: bool,
        max_upload: int,
        tol: float,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.sampled, self.tol = problem, sampled, tol
        self.n_rounds = 0
        self.n_clients = 0.0
        self.converged = False
        self.tracks: list[Track] = []
        self._average: _Average | None = None
        self._past: list[NDArray[np.float64]] = []  # parameters of earlier rounds of the average
        self._lately: list[float] = []  # what the last rounds of the average gained
        self._n_calm = 0  # rounds in a row in which there seemed to be nothing left to gain
        self._n_newton = 0  # tracks that are asked for their curvature in the next round
        self._budget = max_upload
        k = problem.n_components
        if problem.trial_cost > max_upload:
            raise ParameterError(
                f"{k} components take {problem.trial_cost:,} numbers from a client, and "
                f"{max_upload:,} are allowed; raise max_upload or take fewer components"
            )
        most = _SAMPLED_STARTS if sampled else _STARTS
        n_starts = 1 if k == 1 else min(most, max_upload // problem.trial_cost)
        self._groups = [random_groups(land, k, problem.size_bins, rng=rng) for _ in range(n_starts)]

    @property
    def n_starts(self) -> int:
        return len(self._groups)

    @property
    def has_values(self) -> bool:
        """Whether clients have judged any parameters yet."""
        return any(t.best is not None for t in self.tracks)

    @property
    def best(self) -> Parameters:
        """The best parameters so far."""
        if self._average is not None:
            return from_x(self._average.smooth, *self._average.frame)
        return max(self.tracks, key=lambda t: t.value).best_parameters()

    @property
    def value(self) -> float:
        """Mean log-likelihood of the best parameters, on the cohort that judged them."""
        return max(t.value for t in self.tracks)

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round."""
        if not self.tracks:
            return list(self._groups)
        asked: list[Query[Any]] = []
        for rank, track in enumerate(self.tracks):
            asked += track.queries(curvature=rank < self._n_newton)
        return asked

    def learn(self, answers: list[Statistics]) -> None:
        """Take in the answers to `queries`, and decide what comes next."""
        self.n_rounds += 1
        self.n_clients = answers[0].n_clients  # type: ignore[attr-defined]
        if not self.tracks:
            self.tracks = [Track.begin(self._start(a)) for a in answers]  # type: ignore[arg-type]
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

    # ------------------------------------------------------------------ the full cohort

    def _learn_all(self, sums: list[ExpectStatistics]) -> None:
        points = self._points(sums)
        for track in self.tracks:
            mine = slice(0, len(track.trials))
            track.learn(points[mine], hessian(sums[mine][track.lead]))
            del points[mine], sums[mine]
        self._leave(_STAGES)
        leader = self.tracks[0]
        rivals = [t for t in self.tracks[1:] if t.value + t.remaining() > leader.value + self.tol]
        calm = _SAFETY * leader.remaining() < self.tol and not rivals
        self._n_calm = self._n_calm + 1 if calm else 0
        self.converged = self._n_calm >= _CALM_ROUNDS
        self._plan()

    def _points(self, sums: list[ExpectStatistics]) -> list[Point]:
        """Every trial with its value, slope and EM image; all M-steps are solved at once."""
        trials = [(t.parameters(x), x) for t in self.tracks for x in t.trials]
        images = self._images([p for p, _ in trials], sums)
        return [
            Point(
                x,
                float(s.log_likelihood / s.n_clients),
                gradient(parameters, s),
                parameters.sizes,
                to_x(image),
                image.sizes,
            )
            for (parameters, x), s, image in zip(trials, sums, images, strict=True)
        ]

    def _images(self, before: list[Parameters], sums: list[ExpectStatistics]) -> list[Parameters]:
        """Where an EM step leads from each of the parameters."""
        pairs = list(zip(before, sums, strict=True))
        functions = _stack([poles(p.alphas, s) for p, s in pairs])
        alphas = maximise(
            functions,
            np.concatenate([p.alphas for p in before]),
            category_prior=self.problem.category_prior,
        )
        after = np.split(alphas, len(before))
        return [self.image(s.size_counts, a) for (_, s), a in zip(pairs, after, strict=True)]

    def image(self, size_counts: NDArray[np.float64], alphas: NDArray[np.float64]) -> Parameters:
        weights = size_counts.sum(axis=1) + _WEIGHT_PRIOR
        masses = self.problem.size_masses(size_counts)
        return Parameters(weights / weights.sum(), alphas, Sizes(self.problem.size_bins, masses))

    def _plan(self) -> None:
        """What each track tries next, within what a client may send."""
        n = len(self.tracks)
        trial = self.problem.trial_cost
        left = self._budget - n * trial
        if self.n_rounds >= _NEWTON_FROM:
            cost = self.problem.newton_cost + N_NEWTON * trial
            self._n_newton = max(0, min(n, _NEWTON_TRACKS, left // cost))
            left -= self._n_newton * cost
        bold = max(0, min(_TRIALS // n - 1, left // (trial * n)))
        for rank, track in enumerate(self.tracks):
            track.propose(1 + bold, newton=rank < self._n_newton)

    def _leave(self, stages: tuple[tuple[int, int], ...]) -> None:
        """Order the tracks by likelihood, and let the last ones and those that have met another go."""
        self.tracks.sort(key=lambda t: -t.value)
        pairs = zip(self.tracks, self.tracks[1:], strict=False)
        met = {id(later) for better, later in pairs if better.value - later.value < _SAME}
        self.tracks = [t for t in self.tracks if id(t) not in met]
        for after, left in stages:
            if self.n_rounds > after:
                self.tracks = self.tracks[:left]

    # ------------------------------------------------------------------ samples

    def _learn_sample(self, sums: list[ExpectStatistics]) -> None:
        before = [t.parameters(t.trials[0]) for t in self.tracks]
        if self._average is not None:
            self._learn_average(before[0], sums)
            return
        for track, p, s, image in zip(
            self.tracks, before, sums, self._images(before, sums), strict=True
        ):
            track.best = None  # values of different cohorts are not to be compared
            track.learn([self._point(p, s, image)], None)
            track.trials, track.sizes = [to_x(image)], image.sizes
        answered = dict(zip(map(id, self.tracks), zip(before, sums, strict=True), strict=True))
        self._leave(_SAMPLED_STAGES)
        if len(self.tracks) == 1 and self.n_rounds >= _AVERAGE_FROM:
            p, s = answered[id(self.tracks[0])]
            self._average = _Average.begin(p, s, self)

    def _learn_average(self, before: Parameters, sums: list[ExpectStatistics]) -> None:
        """Blend in one more cohort; ask it about now and about a while ago, to see what that gave."""
        assert self._average is not None
        (track,) = self.tracks
        self._average = self._average.blend(before, sums[0], self)
        after = self._average.parameters
        track.best = self._point(before, sums[0], after)
        if len(sums) > 1:
            gain = (sums[0].log_likelihood - sums[1].log_likelihood) / sums[0].n_clients
            self._lately.append(float(gain))
        recent = np.array(self._lately[-_LAG:])
        if len(recent) == _LAG:
            # What the last few rounds gave, with the noise of the cohorts, bounds what the next will.
            error = recent.std(ddof=1) / np.sqrt(_LAG)
            self.converged = bool(abs(recent.mean()) + 2 * error < self.tol)
        self._past.append(to_x(before))
        track.trials, track.sizes = [to_x(after)], after.sizes
        if len(self._past) >= _LAG:
            track.trials.append(self._past[-_LAG])

    def _point(self, p: Parameters, s: ExpectStatistics, image: Parameters) -> Point:
        value = float(s.log_likelihood / s.n_clients)
        return Point(to_x(p), value, gradient(p, s), p.sizes, to_x(image), image.sizes)

    def _start(self, sums: GroupStatistics) -> Parameters:
        if sums.n_clients < self.problem.n_components:
            raise ParameterError(
                f"{self.problem.n_components} components need at least as many clients, "
                f"got a cohort of {sums.n_clients:.0f}"
            )
        masses = self.problem.size_masses(sums.size_counts)
        return start(sums, size_bins=self.problem.size_bins, size_masses=masses)


@dataclass(frozen=True)
class _Average:
    """A running average over cohorts of what an M-step needs, per client.

    Attributes
    ----------
    functions, size_counts
        What is averaged.
    parameters : Parameters
        Where its M-step leads: what the next cohort is asked about.
    smooth : float array
        A mean over the rounds of those parameters, late ones counting most: the least noisy answer.
    n_cohorts : int
    """

    functions: Poles
    size_counts: NDArray[np.float64]
    parameters: Parameters
    smooth: NDArray[np.float64]
    n_cohorts: int

    @property
    def frame(self) -> tuple[tuple[int, int], Sizes]:
        return self.parameters.alphas.shape, self.parameters.sizes

    @classmethod
    def begin(cls, p: Parameters, s: ExpectStatistics, search: Search) -> "_Average":
        functions = _scaled(poles(p.alphas, s), 1.0 / s.n_clients)
        return cls._at(functions, s.size_counts / s.n_clients, p.alphas, None, search)

    def blend(self, p: Parameters, s: ExpectStatistics, search: Search) -> "_Average":
        n = self.n_cohorts + 1
        step = n**-_AVERAGE_POWER
        new = _scaled(poles(p.alphas, s), 1.0 / s.n_clients)
        functions = blend(self.functions, new, p.alphas, step)
        sizes = (1 - step) * self.size_counts + step * s.size_counts / s.n_clients
        return self._at(functions, sizes, p.alphas, self, search)

    @classmethod
    def _at(
        cls,
        functions: Poles,
        size_counts: NDArray[np.float64],
        alphas: NDArray[np.float64],
        before: "_Average | None",
        search: Search,
    ) -> "_Average":
        # The average is per client; priors are counted against as many clients as a cohort has.
        prior = search.problem.category_prior / search.n_clients
        after = maximise(functions, alphas, category_prior=prior)
        image = search.image(size_counts * search.n_clients, after)
        x = to_x(image)
        if before is None:
            return cls(functions, size_counts, image, x, 1)
        n = before.n_cohorts + 1
        share = (_LATE + 1) / (n + _LATE)
        smooth = (1 - share) * before.smooth + share * x
        return cls(functions, size_counts, image, smooth, n)


def _stack(functions: list[Poles]) -> Poles:
    names = Poles.__dataclass_fields__
    return Poles(*(np.concatenate([getattr(f, name) for f in functions]) for name in names))


def _scaled(functions: Poles, by: float) -> Poles:
    f = functions
    return Poles(
        f.present * by,
        f.weight * by,
        f.place,
        f.total_present * by,
        f.total_weight * by,
        f.total_place,
    )
