"""The rounds of a private fit: the queries, their noise, and the step from a noised sum.

A survey says how many clients there are, their sizes, and one Dirichlet-multinomial. From it the server
draws simulated clients, which cost no privacy: everything that a later round needs beforehand
(information, clips, biases) is computed from them.

A score round: let s be a client's score and I = E[s s'] its information under the current mixture, θ
(log α_k1, ..., log α_kC and the logit of τ_k, component after component). Clients send z = W's clipped
at S, with W'IW = 1: every direction of θ is measured in its own standard deviations, so that noise
costs the same in each, d (σ S / n)² / 2 nats in all. Clipping biases the mean by E[clip(z) - z] and
flattens its response to θ to D = E[clip(z) z']; both are computed under the current mixture, and the
step W D⁻¹ (mean - bias) is Fisher scoring. Several mixtures climb in the same rounds; scores and
comparisons are shares of one release. `private_fit.py` has the sequence of the rounds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from polyurn.model.mdm import MDM
from polyurn.model.scores import Mixture, log_likelihoods, scores
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.fit_results import Round
from polyurn.server.private.plan import Plan
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import BoundedStatistics, Noised
from polyurn.wire.private_queries import (
    Bounded,
    BoundedSurvey,
    Differences,
    Shares,
    WhitenedScore,
)  # fmt: skip

# The least number of clients: a survey of fewer is noise, and would lead to a division by zero.
_FEWEST_CLIENTS = 10.0
# A mean above 0 is the small difference of two numbers from here on: a series is more exact.
_FAR = -100.0
# Agreement of pairs beyond these means a concentration of 10^4 or of 1/20, which the rounds find.
_RHO = (1e-4, 0.95)
# A component this concentrated is a multinomial to clients of the median size: n² / α_0 is 1 % of n.
_CAP_IN_SIZES = 100.0
# No round goes beyond this: a client of one point cannot distinguish larger alphas.
_ALPHAS = (1e-4, 1e5)
_LEAST_WEIGHT = 1e-4
# The clip is at most this many √d: no client is clipped beyond it.
_LARGEST_CLIP = 10.0
# The fewest simulated clients per coordinate: an information matrix of fewer is too rough.
_DRAWN_PER_COORDINATE = 40
# Directions of like noise that are shrunk together.
_BLOCK = 8
# Two steps with at least this cosine agree; a step is lengthened at most by this factor.
_AGREE, _LONGEST = 0.5, 5.0
# A step is more than noise if its square is this many times that of noise alone.
_SIGNAL = 2.0
# Differences of log-likelihood beyond those of 98 % of simulated clients are clipped,
_UNCLIPPED, _N_DRAWN = 0.98, 2_000
# or fewer, while noise costs less than this, in nats per client; clips grow at most this many times.
_NOISE, _LARGEST_BOUND = 0.003, 10.0


@dataclass(frozen=True)
class ClientTotals:
    """The clients as a whole, as a noised survey describes them.

    `n_clients` includes its noise, `proportions` (C,) are positive, `sizes` are those of all
    clients, `size_noise` is the standard deviation of the noise in a bin's number of clients, `single`
    is the Dirichlet-multinomial with the survey's moments, and `cap` the largest α_0 of a round.
    """

    n_clients: float
    proportions: Floats
    sizes: Sizes
    size_noise: float
    single: Mixture
    cap: float

    def simulate(self, mixture: Mixture, n: int, rng: np.random.Generator) -> Ints:
        """Histograms of n clients of a mixture with these sizes, shape (n, n_categories)."""
        return self.mdm(mixture).drawn(n, rng)[1]

    def mdm(self, mixture: Mixture, masses: Floats | None = None) -> MDM:
        """The MDM of a mixture, with its own sizes or those of all clients."""
        own = np.repeat(self.sizes.masses, mixture.n_components, axis=0)
        sizes = Sizes(self.sizes.bins, own if masses is None else masses)
        return MDM(mixture.weights, mixture.alphas, sizes)

    def capped(self, mixture: Mixture) -> Mixture:
        """The mixture with no α_0 beyond the cap."""
        scale = np.minimum(1.0, self.cap / mixture.concentrations)
        return Mixture(mixture.weights, mixture.alphas * scale[:, None])

    def floored(self, mixture: Mixture, floors: tuple[float, float]) -> Mixture:
        """The mixture with alphas and weights large enough to have a gradient that can raise them."""
        of_alphas, of_weights = floors
        least = of_alphas * mixture.concentrations[:, None] * self.proportions
        weights = np.maximum(mixture.weights, of_weights / mixture.n_components)
        return Mixture(weights / weights.sum(), np.maximum(mixture.alphas, least))


def surveyed(query: BoundedSurvey, values: Floats, sigma: float) -> ClientTotals:
    """The population that a survey with noise of deviation `sigma` describes.

    α_0 follows from κ, the share of pairs of a client's points that agree: under a
    Dirichlet-multinomial E κ = Σ p² + ρ (1 - Σ p²) with ρ = 1 / (1 + α_0).
    """
    of_clients, of_pairs, of_size, of_p = np.sqrt([*query.PARTS.values()])
    n_bins, edges = query.size_bins.n_bins, query.size_bins.edges
    n = max(values[0] / of_clients, _FEWEST_CLIENTS)
    in_bins, p_sums = values[2 : 2 + n_bins] / of_size, values[2 + n_bins :] / of_p
    expected = n * np.diff(np.log(edges)) / np.log(edges[-1])
    masses = size_masses(in_bins, sigma / of_size, expected)
    p = np.maximum(p_sums / n, max(sigma / of_p / n, 1e-4 / query.n_categories))
    p /= p.sum()
    # Clients of one point have no pair, and are not in the mean.
    alone = masses[0] if query.size_bins.edges[1] == 2 else 0.0
    kappa = values[1] / of_pairs / (n * max(1 - alone, 0.01))
    squares = float((p * p).sum())
    rho = float(np.clip((kappa - squares) / (1 - squares), *_RHO))
    sizes = Sizes(query.size_bins, masses[None])
    middle = query.size_bins.means()[np.searchsorted(np.cumsum(masses), 0.5)]
    cap = _CAP_IN_SIZES * float(middle)
    single = Mixture(np.ones(1), p[None] * min(1 / rho - 1, cap))
    return ClientTotals(float(n), p, sizes, sigma / of_size, single, cap)


def size_masses(counts: Floats, noise: float, expected: Floats) -> Floats:
    """Probabilities of size bins from noised numbers of clients: each of them above 0.

    Posterior means under exponential priors with means `expected`, the priors of largest entropy.
    Blocks of √B of the B bins, of which more is known, first correct what is expected of their bins.

    >>> size_masses(np.array([90.0, -5.0, 15.0]), 10.0, np.full(3, 100 / 3)).round(2).tolist()
    [0.83, 0.06, 0.11]
    """
    at = np.arange(0, len(counts), int(np.ceil(np.sqrt(len(counts)))))
    width, before = np.diff(np.append(at, len(counts))), np.add.reduceat(expected, at)
    blocks = _means_above_zero(np.add.reduceat(counts, at), noise * np.sqrt(width), before)
    after = _means_above_zero(counts, noise, expected * np.repeat(blocks / before, width))
    return np.asarray(after / after.sum())


def _means_above_zero(values: Floats, noise: float | Floats, expected: Floats) -> Floats:
    """Posterior means of numbers with exponential priors: of normals cut off at 0."""
    z = values / noise - noise / expected
    far = np.minimum(z, _FAR)
    above = z + np.exp(-0.5 * z**2 - log_ndtr(z)) / np.sqrt(2 * np.pi)
    return np.asarray(noise * np.where(z < _FAR, 2 / far**3 - 1 / far, above))


def moved(mixture: Mixture, step: Floats, *, largest: float) -> Mixture:
    """The mixture after a step in θ, none of whose entries is larger than `largest`.

    >>> start = Mixture(np.array([0.5, 0.5]), np.ones((2, 2)))
    >>> after = moved(start, np.array([np.log(2), 0, 0, 9, 0, 0]), largest=1.0)
    >>> after.alphas.round(3).tolist()
    [[2.0, 1.0], [2.718, 1.0]]
    """
    k, c = mixture.alphas.shape
    table = np.clip(step.reshape(k, c + 1), -largest, largest)
    alphas = np.clip(mixture.alphas * np.exp(table[:, :c]), *_ALPHAS)
    logits = np.log(mixture.weights) + table[:, c]
    weights = np.exp(logits - logits.max())
    weights = np.maximum(weights / weights.sum(), _LEAST_WEIGHT)
    return Mixture(weights / weights.sum(), alphas)


def mean_mixture(one: Mixture, other: Mixture, share: float) -> Mixture:
    """The mixture between two in θ, with `share` of the other."""
    weights = one.weights ** (1 - share) * other.weights**share
    return Mixture(weights / weights.sum(), one.alphas ** (1 - share) * other.alphas**share)


@dataclass(frozen=True)
class ScoreRound:
    """A score round before it is asked, for d directions.

    `bias` (d,) is E[clip(z) - z] under the mixture, `response` (d, d) is E[clip(z) z'], `information` is
    that of θ, and `tau` the standard deviation of the noise in the mean of z.
    """

    query: WhitenedScore
    bias: Floats
    response: Floats
    information: Floats
    tau: float
    n_clients: float

    def step(self, values: Floats, *, shrunk: bool, largest_gain: float) -> Floats:
        """The step in θ from a noised sum of the clients' vectors, shape (d,).

        If `shrunk`, each block of directions is shrunk as far as noise explains it (James and Stein).
        The step is scaled down so that its expected gain is at most `largest_gain` nats per client.
        """
        rest = values * (self.query.clip / self.n_clients) - self.bias
        left, scale, right = np.linalg.svd(self.response)
        scale = np.maximum(scale, 1e-6)
        along = (left.T @ rest) / scale
        if shrunk:
            along *= _shrinkage(along, (self.tau / scale) ** 2)
        delta = right.T @ along
        gain = 0.5 * float(delta @ delta)
        if gain > largest_gain:
            delta *= np.sqrt(largest_gain / gain)
        return np.asarray(self.query.whitener @ delta)


def prepare(
    mixture: Mixture,
    population: ClientTotals,
    sigma: float,
    plan: Plan,
    n_simulated: int,
    rng: np.random.Generator,
) -> ScoreRound:
    """A score round, from simulated clients, whose noise has standard deviation `sigma`."""
    n = population.n_clients
    n_drawn = max(n_simulated, _DRAWN_PER_COORDINATE * mixture.n_coordinates)
    simulated = scores(mixture, population.simulate(mixture, n_drawn, rng))
    information = simulated.T @ simulated / len(simulated)
    values, vectors = np.linalg.eigh(information)
    kept = values > max(plan.least_information, mixture.n_coordinates * (sigma / n) ** 2)
    if not kept.any():
        kept = values == values.max()
    whitener = vectors[:, kept] / np.sqrt(values[kept])
    z = simulated @ whitener
    d, norms = z.shape[1], np.linalg.norm(z, axis=1)
    affordable = np.sqrt(2 * plan.noise_cost / d) * n / sigma
    clip = max(
        float(np.quantile(norms, plan.unclipped)), min(affordable, _LARGEST_CLIP * np.sqrt(d))
    )
    clipped = z * np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None]
    return ScoreRound(
        query=WhitenedScore(mixture, whitener, clip, population.sizes.max_size),
        bias=(clipped - z).mean(axis=0),  # E z = 0 exactly, and its estimate varies with E clip(z)
        response=clipped.T @ z / len(z),
        information=information,
        tau=sigma * clip / n,
        n_clients=n,
    )


def _shrinkage(along: Floats, variance: Floats) -> Floats:
    """For each direction the positive-part James-Stein factor of its block."""
    factors = np.empty(len(along))
    for block in np.array_split(np.arange(len(along)), max(1, round(len(along) / _BLOCK))):
        square = max(float((along[block] ** 2).sum()), 1e-300)
        factors[block] = max(0.0, 1 - float(variance[block].sum()) / square)
    return factors


@dataclass(frozen=True)
class PrivateStart:
    """A mixture, its last plain step in θ, whether it was lengthened, and how much of it was noise.

    `noise` is the share of the step's square that noise alone would give, at most 1.
    """

    mixture: Mixture
    last: Floats | None = None
    lengthened: bool = False
    noise: float = 0.0


@dataclass(frozen=True)
class Gains:
    """The gain of each mixture over the first, in nats per client, with noise.

    Both have the shape (n_mixtures,); those of the first are 0. `noise` is the standard deviation.
    """

    values: Floats
    noise: Floats


class PrivateRounds:
    """Everything that a private fit asks: each round has its share of the budget.

    `layer` is a private aggregator, and `sigma` the noise of a single release that spends everything.
    """

    def __init__(
        self, layer: Any, sigma: float, plan: Plan, rng: np.random.Generator, *,
        on_round: Callable[[Round], None] | None,
    ) -> None:  # fmt: skip
        self.layer, self.plan, self.rng, self._on_round = layer, plan, rng, on_round
        self.done: list[Round] = []
        self._sigma = sigma * np.sqrt(plan.total)

    def sigma(self, share: float) -> float:
        """The noise's standard deviation of a release with this share of the budget."""
        return float(self._sigma / np.sqrt(share))

    def ask(self, query: Bounded, share: float) -> Floats:
        """The noised sum of the clients' vectors."""
        self._asked = query.n_numbers
        answer: BoundedStatistics = self.layer.aggregate(Noised(query, self.sigma(share)), None)
        return answer.values

    def end(self, mixture: Mixture, masses: Floats | None = None) -> None:
        """Report a finished round."""
        mdm, n = self.population.mdm(mixture, masses), max(round(self.population.n_clients), 1)
        self.done.append(Round(len(self.done) + 1, mdm, float("nan"), n, self._asked))
        if self._on_round is not None:
            self._on_round(self.done[-1])

    def survey(self, n_categories: int, bins: SizeBins) -> None:
        """The first round, which gives the `population`."""
        question, share = BoundedSurvey(n_categories, bins), self.plan.survey
        self.population = surveyed(question, self.ask(question, share), self.sigma(share))
        self.end(self.population.single)

    def climb(
        self,
        climbers: list[PrivateStart],
        share: float,
        *,
        floors: tuple[float, float],
        shrunk: bool = False,
        compared: int = 0,
        beside: tuple[Bounded, float] | None = None,
    ) -> tuple[list[PrivateStart], Gains, Floats]:
        """All climbers take a step; each has a share of the round by its number of coordinates.

        `floors` are the smallest parameters, and `shrunk` says whether steps are shrunk as far as
        noise explains them. If `compared` is at least two, clients also compare the likelihoods of the
        first `compared` climbers, before the step, with that of the first. They answer the query
        `beside`, too, which has its share of the round; its answer is returned last.
        """
        plan, sigma = self.plan, self.sigma(share)
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
        answers = query.split(self.ask(query, share))
        gains = Gains(np.zeros(1), np.zeros(1))
        if compared > 1:
            gains = self._gains(asked, answers[-1], sigma / np.sqrt(plan.of_gains))
        steps = zip(climbers, rounds, answers[: len(climbers)], strict=True)
        after = [self._taken(c, r, values, shrunk, floors) for c, r, values in steps]
        return after, gains, answers[len(climbers)] if more else np.empty(0)

    def compare(self, mixtures: list[Mixture], share: float) -> Gains:
        """A round in which clients only compare the likelihood of each mixture with the first."""
        sigma = self.sigma(share)
        query = self._differences(mixtures, sigma)
        return self._gains(query, self.ask(query, share), sigma)

    def _taken(
        self,
        climber: PrivateStart,
        asked: ScoreRound,
        values: Floats,
        shrunk: bool,
        floors: tuple[float, float],
    ) -> PrivateStart:
        """The climber after the step from a noised sum."""
        plan, population = self.plan, self.population
        plain = asked.step(values, shrunk=shrunk, largest_gain=plan.largest_gain)
        square = float(plain @ asked.information @ plain)
        noise = len(asked.bias) * asked.tau**2 / max(square, 1e-300)
        # Not in the last, shrunk rounds: no round is left to correct an extrapolation that misses.
        lengthened = noise < 1 / _SIGNAL and not shrunk
        factor = _lengthening(climber, plain, asked) if lengthened else 1.0
        step = plain * min(factor, np.sqrt(2 * plan.largest_gain / max(square, 1e-300)))
        after = population.capped(moved(climber.mixture, step, largest=plan.largest_step))
        return PrivateStart(population.floored(after, floors), plain, factor > 1, min(noise, 1.0))

    def _differences(self, mixtures: list[Mixture], sigma: float) -> Differences:
        """The query that compares the likelihood of each mixture with that of the first."""
        first, *others = mixtures
        drawn = [self.population.simulate(m, _N_DRAWN, self.rng) for m in mixtures]
        affordable = _NOISE * self.population.n_clients / (sigma * np.sqrt(len(others)))
        bounds = []
        for i, other in enumerate(others, start=1):  # clients drawn from both: either may be right
            counts = np.concatenate([drawn[0], drawn[i]])
            apart = np.abs(log_likelihoods(other, counts) - log_likelihoods(first, counts))
            least = max(float(np.quantile(apart, _UNCLIPPED)), 1e-3)
            bounds.append(max(least, min(affordable, _LARGEST_BOUND * least)))
        return Differences(tuple(mixtures), tuple(bounds), self.population.sizes.max_size)

    def _gains(self, query: Differences, values: Floats, sigma: float) -> Gains:
        """The gains from a noised sum of differences."""
        scale = np.array(query.clips) * np.sqrt(len(query.clips)) / self.population.n_clients
        return Gains(np.append(0.0, values * scale), np.append(0.0, sigma * scale))


def _lengthening(climber: PrivateStart, step: Floats, asked: ScoreRound) -> float:
    """The factor by which to lengthen a step: two steps that agree are a slow geometric series.

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
