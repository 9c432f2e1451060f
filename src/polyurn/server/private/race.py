"""Mixtures that climb: several in the same rounds, fewer in each, and the comparison that decides.

Which of many starts ends at the best optimum shows after a few steps, not before (`docs/privacy.md`), so
all of them take some. A round's scores and comparisons are shares of one release.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.model.scores import Mixture, log_likelihoods
from polyurn.server.private.coordinates import moved
from polyurn.server.private.plan import Plan
from polyurn.server.private.population import Population
from polyurn.server.private.releases import Releases
from polyurn.server.private.scores import Round, prepare
from polyurn.wire.private import Bounded, Differences, Shares

# Two steps agree from this cosine on, and a step is made at most this many times as long.
_AGREE, _LONGEST = 0.5, 5.0
# A step is more than noise if its square is so many times what noise alone would give.
_SIGNAL = 2.0
# Differences of log-likelihood beyond those of 98 % of simulated clients are clipped,
_UNCLIPPED, _N_DRAWN = 0.98, 2_000
# or fewer, as long as noise costs less than this, in nats per client; up to so many times those.
_NOISE, _LARGEST_BOUND = 0.003, 10.0


@dataclass(frozen=True)
class Climber:
    """A mixture, and where it came from.

    Attributes
    ----------
    mixture : Mixture
    last : float array of shape (n_coordinates,) or None
        The last plain step.
    lengthened : bool
        Whether more than that was taken.
    noise : float
        The share of the last plain step's square that noise alone would give, at most 1.
    """

    mixture: Mixture
    last: NDArray[np.float64] | None = None
    lengthened: bool = False
    noise: float = 0.0


@dataclass(frozen=True)
class Gains:
    """How much likelier clients find each mixture than the first, in nats per client.

    Attributes
    ----------
    values : float array of shape (n_mixtures,)
        Noised means; that of the first is 0.
    noise : float array of shape (n_mixtures,)
        Standard deviation of the noise; that of the first is 0.
    """

    values: NDArray[np.float64]
    noise: NDArray[np.float64]


@dataclass(frozen=True)
class Course:
    """What every round of a fit needs: whom to ask, what is known of the clients, and the plan."""

    releases: Releases
    population: Population
    plan: Plan
    rng: np.random.Generator

    def climb(
        self,
        climbers: list[Climber],
        share: float,
        *,
        floors: tuple[float, float],
        shrunk: bool = False,
        compared: int = 0,
        beside: tuple[Bounded, float] | None = None,
    ) -> tuple[list[Climber], Gains, NDArray[np.float64]]:
        """One round in which all climbers take a step; each has a share by its number of coordinates.

        Parameters
        ----------
        climbers : list of Climber
        share : float
            Of the budget.
        floors : pair of float
            How small parameters may get.
        shrunk : bool
            Whether steps are shrunk by what noise explains of them.
        compared : int
            Clients also say how much likelier they find each of the first so many climbers, as they
            are before the step, than the first one; nobody is compared below 2.
        beside : pair of Bounded and float, optional
            Another question, and its share of the round.

        Returns
        -------
        list of Climber, Gains, float array
            The last is the answer to the question beside.
        """
        plan, sigma = self.plan, self.releases.sigma(share)
        more: list[tuple[Bounded, float]] = [] if beside is None else [beside]
        if compared > 1:
            mixtures = [climber.mixture for climber in climbers[:compared]]
            asked = self._differences(mixtures, sigma / np.sqrt(plan.of_gains))
            more.append((asked, plan.of_gains))
        rest = 1 - sum(part for _, part in more)
        total = sum(climber.mixture.n_coordinates for climber in climbers)
        parts = [rest * climber.mixture.n_coordinates / total for climber in climbers]
        n = plan.n_simulated[len(climbers) == 1]
        rounds = [
            prepare(climber.mixture, self.population, sigma / np.sqrt(part), plan, n, self.rng)
            for climber, part in zip(climbers, parts, strict=True)
        ]
        queries = (*(r.query for r in rounds), *(query for query, _ in more))
        query = Shares(queries, (*parts, *(part for _, part in more)))
        answers = query.split(self.releases.ask(query, share))
        gains = Gains(np.zeros(1), np.zeros(1))
        if compared > 1:
            gains = self._gains(asked, answers[-1], sigma / np.sqrt(plan.of_gains))
        steps = zip(climbers, rounds, answers[: len(climbers)], strict=True)
        after = [self._taken(c, r, said, shrunk, floors) for c, r, said in steps]
        return after, gains, answers[len(climbers)] if more else np.empty(0)

    def compare(self, mixtures: list[Mixture], share: float) -> Gains:
        """A round in which clients only say how much likelier they find each than the first."""
        sigma = self.releases.sigma(share)
        query = self._differences(mixtures, sigma)
        return self._gains(query, self.releases.ask(query, share), sigma)

    def _taken(
        self,
        climber: Climber,
        asked: Round,
        values: NDArray[np.float64],
        shrunk: bool,
        floors: tuple[float, float],
    ) -> Climber:
        """The climber after the step that a noised sum stands for."""
        plan, population = self.plan, self.population
        plain = asked.step(values, shrunk=shrunk, largest_gain=plan.largest_gain)
        square = float(plain @ asked.information @ plain)
        noise = len(asked.bias) * asked.tau**2 / max(square, 1e-300)
        # Not in the last, shrunk rounds: an extrapolation that misses has no round left to be put right.
        lengthened = noise < 1 / _SIGNAL and not shrunk
        factor = _lengthening(climber, plain, asked) if lengthened else 1.0
        step = plain * min(factor, np.sqrt(2 * plan.largest_gain / max(square, 1e-300)))
        after = population.capped(moved(climber.mixture, step, largest=plan.largest_step))
        return Climber(population.floored(after, floors), plain, factor > 1, min(noise, 1.0))

    def _differences(self, mixtures: list[Mixture], sigma: float) -> Differences:
        """The question how much likelier clients find each mixture than the first."""
        first, *others = mixtures
        drawn = [self.population.simulate(m, _N_DRAWN, self.rng) for m in mixtures]
        affordable = _NOISE * self.population.n_clients / (sigma * np.sqrt(len(others)))
        bounds = []
        for i, other in enumerate(others, start=1):  # clients of both: either may be the right one
            counts = np.concatenate([drawn[0], drawn[i]])
            apart = np.abs(log_likelihoods(other, counts) - log_likelihoods(first, counts))
            least = max(float(np.quantile(apart, _UNCLIPPED)), 1e-3)
            bounds.append(max(least, min(affordable, _LARGEST_BOUND * least)))
        return Differences(tuple(mixtures), tuple(bounds), self.population.max_size)

    def _gains(self, query: Differences, values: NDArray[np.float64], sigma: float) -> Gains:
        """What a noised sum of differences says."""
        scale = np.array(query.clips) * np.sqrt(len(query.clips)) / self.population.n_clients
        return Gains(np.append(0.0, values * scale), np.append(0.0, sigma * scale))


def _lengthening(climber: Climber, step: NDArray[np.float64], asked: Round) -> float:
    """How many times as long a step should be: two in a row that agree are a slow geometric series.

    Aitken (1926): with the ratio r of the two, its limit is 1 / (1 - r) steps away.
    """
    if climber.last is None or climber.lengthened:
        return 1.0
    metric = asked.information
    inner = float(climber.last @ metric @ step)
    before, now = float(climber.last @ metric @ climber.last), float(step @ metric @ step)
    if inner <= _AGREE * np.sqrt(before * now):
        return 1.0
    return float(1 / (1 - min(inner / before, 1 - 1 / _LONGEST)))
