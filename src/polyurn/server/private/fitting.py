"""Fitting under differential privacy: the rounds, from the survey to the last comparison.

Everything that is learned from clients is a noised release (`releases.py`); everything else is
simulated. The algorithm in words, and what it costs, is docs/privacy.md.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.server.private.coordinates import mean_mixture
from polyurn.server.private.plan import DEFAULT, SINGLE, Plan
from polyurn.server.private.population import Population, surveyed
from polyurn.server.private.race import Climber, Course
from polyurn.server.private.releases import Budget, Releases
from polyurn.server.private.sketch import make_sketch
from polyurn.server.private.starts import Sketched, starts
from polyurn.server.results import Fit, Round
from polyurn.server.settings import check_model
from polyurn.typed.arguments import checked
from polyurn.wire import Aggregator
from polyurn.wire.private import BoundedSurvey, SizeMembership

# Bins of sizes for each doubling: half of what `fit` takes, for each has noise of its own.
_PER_DOUBLING = 2
# A component this close to the cap is released as what it is, a multinomial.
_AT_THE_CAP, _MULTINOMIAL = 0.9, 1e6
# The result gives way to the mixture that it came from only if that is surely better: so many
# standard deviations of the noise.
_SURE = 2.0

PrivateSizes: TypeAlias = Literal["binned", "shared"] | SizeBins


@checked
def fit_private(
    aggregator: Aggregator,
    *,
    epsilon: float,
    delta: float,
    n_components: int,
    n_categories: int,
    max_size: int,
    sizes: PrivateSizes = "binned",
    trust: Trust = "central",
    ledger: PrivacyLedger | None = None,
    noise: Noise = discrete_gaussian,
    plan: Plan | None = None,
    rng: int | np.random.Generator | None = None,
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Learn a mixture of Dirichlet-multinomials with (ε, δ)-differential privacy for every client.

    At most twelve rounds. A client's answer is a vector of norm at most 1, sums get Gaussian noise, and
    each release is charged to the ledger before it is asked for. All clients are asked every time.

    Parameters
    ----------
    aggregator : Aggregator
        A plain one, e.g. a `LocalAggregator`; or a `PrivateAggregator`, whose ledger, trust model and
        noise then count.
    epsilon, delta : float
        What this fit spends, for one client added or removed. Choose δ well below one over the number
        of clients.
    n_components, n_categories, max_size : int
        K, C and N. Declared, never measured from clients. A client of more than N points answers for N
        of them, drawn at random.
    sizes : {"binned", "shared"} or SizeBins
        Probabilities of logarithmic size bins for each component, which cost a tenth of the last round,
        or the same for all components.
    trust : {"central", "distributed", "local"}
        Who adds the noise; as in `PrivateAggregator`.
    ledger : PrivacyLedger, optional
        The ledger of these clients. By default one of this fit alone, which forgets what earlier ones
        spent.
    noise : function of (n_numbers, scale), optional
        For tests and simulations; OpenDP's discrete Gaussian by default.
    plan : Plan, optional
        Shares of the budget and every tuned number.
    rng : int or numpy.random.Generator
        For what the server simulates. The noise never comes from it.
    on_round : callable, optional
        Called with each `Round` as it ends.

    Returns
    -------
    Fit
        Its `guarantee` says what was spent. The numbers of clients in its rounds are noised ones.

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> clients = pu.LocalAggregator(truth("medium/1").sample(20_000, rng=0))
    >>> fit = pu.fit_private(
    ...     clients, epsilon=1.0, delta=1e-6, n_components=1, n_categories=10, max_size=20, rng=1
    ... )
    >>> fit.n_rounds, round(fit.guarantee.epsilon, 6), fit.guarantee.delta
    (4, 1.0, 1e-06)
    """
    check_model(
        n_components=n_components, n_categories=n_categories, size_prior=0.0, category_prior=0.0
    )
    plan = plan or (SINGLE if n_components == 1 else DEFAULT)
    budget = Budget(epsilon=epsilon, delta=delta, trust=trust, ledger=ledger, noise=noise)
    releases = Releases(aggregator, budget, total=plan.total, on_round=on_round)
    course = begin(releases, n_categories, private_bins(sizes, max_size), plan, rng)
    if n_components == 1:
        climber, single = Climber(course.population.single), None
    else:
        climber, single = _race(course, n_components)
    mixture, masses = finish(course, climber, single, own_sizes=sizes != "shared")
    return to_fit(to_mdm(mixture, course.population, masses), releases)


def begin(
    releases: Releases,
    n_categories: int,
    bins: SizeBins,
    plan: Plan,
    rng: int | np.random.Generator | None,
) -> Course:
    """The survey, and what all later rounds know from it."""
    question = BoundedSurvey(n_categories, bins)
    values = releases.ask(question, plan.survey)
    population = surveyed(question, values, releases.sigma(plan.survey))
    releases.done(to_mdm(population.single, population), population.n_clients)
    return Course(releases, population, plan, np.random.default_rng(rng))


def sketched(course: Course, n_components: int) -> Sketched:
    """The sketch of a fit of so many components."""
    population, share = course.population, course.plan.sketch
    sketch = make_sketch(population, course.plan.groups * n_components, course.rng)
    values = course.releases.ask(sketch, share) / population.n_clients
    course.releases.done(to_mdm(population.single, population), population.n_clients)
    return Sketched(sketch, values, course.releases.sigma(share) / population.n_clients)


def _race(course: Course, n_components: int) -> tuple[Climber, Mixture]:
    """The start that climbs best, after some rounds; and a single component that climbed beside it."""
    plan, population = course.plan, course.population
    seen = sketched(course, n_components)
    floors = plan.early_floors
    _, alone = seen.matched(population.single, population, course.rng)
    single = Climber(population.floored(alone, floors))
    n_coordinates = n_components * (len(population.proportions) + 1)
    sigma = course.releases.sigma(plan.race[0])
    racers = plan.racers(n_coordinates, sigma, population.n_clients)
    first = starts(n_components, racers[0], seen, population, course.rng)
    climbers = [Climber(population.floored(start, floors)) for start in first]
    for share, left in zip(plan.race, (*racers[1:], 1), strict=True):
        compared = len(climbers) if left < len(climbers) else 0
        (*climbers, single), gains, _ = course.climb(
            [*climbers, single], share, floors=floors, compared=compared
        )
        if compared:
            best = np.argsort(-gains.values, kind="stable")[:left]
            climbers = [climbers[i] for i in best]
        course.releases.done(to_mdm(climbers[0].mixture, population), population.n_clients)
    return climbers[0], single.mixture


def finish(
    course: Course, climber: Climber, single: Mixture | None, *, own_sizes: bool
) -> tuple[Mixture, NDArray[np.float64] | None]:
    """The last rounds of one mixture, and whether it is any better than what it came from.

    Returns
    -------
    Mixture, float array of shape (n_components, n_bins) or None
        With the second, how many clients of each component are of which size, noised.
    """
    plan, population = course.plan, course.population
    bins, before, masses = population.sizes.bins, climber, None
    for i, share in enumerate(plan.score):
        left, earlier = len(plan.score) - i, climber
        asks_sizes = own_sizes and left == 1 and climber.mixture.n_components > 1
        beside = (SizeMembership(climber.mixture, bins), plan.of_sizes) if asks_sizes else None
        floors = plan.late_floors if left <= plan.n_free else plan.early_floors
        (climber,), _, said = course.climb(
            [climber], share, floors=floors, shrunk=left <= plan.n_shrunk, beside=beside
        )
        if asks_sizes:
            masses = said.reshape(-1, bins.n_bins)
            noise = course.releases.sigma(share) / np.sqrt(plan.of_sizes)
            masses = shrunk_sizes(masses, population, noise)
        course.releases.done(to_mdm(climber.mixture, population), population.n_clients)
    # Two models of like noise are better averaged, as far as the step between them was noise.
    part = climber.noise * plan.score[-2] / (plan.score[-2] + plan.score[-1])
    result = mean_mixture(climber.mixture, earlier.mixture, part)
    if plan.guard:
        rivals = [before.mixture] if single is None else [before.mixture, single]
        gains = course.compare([result, *rivals], plan.guard)
        # A single component has few parameters for noise to spoil: it need not be surely better.
        margins = np.array([0.0, _SURE, 0.0])[: len(rivals) + 1]
        best = int((gains.values - margins * gains.noise).argmax())
        if best:
            result = rivals[best - 1]
            masses = masses if result.n_components == climber.mixture.n_components else None
        course.releases.done(to_mdm(result, population, masses), population.n_clients)
    return _multinomial(result, population), masses


def shrunk_sizes(
    counts: NDArray[np.float64], population: Population, noise: float
) -> NDArray[np.float64]:
    """Size probabilities of each component, shrunk to those of all clients by what noise explains.

    Parameters
    ----------
    counts : float array of shape (n_components, n_bins)
        Noised numbers of clients.
    population : Population
    noise : float
        Standard deviation of the noise in each of them.
    """
    pooled = population.sizes.masses[0]
    totals = np.maximum(counts.sum(axis=1, keepdims=True), noise * np.sqrt(counts.shape[1]))
    apart = counts / totals - pooled
    explained = counts.shape[1] * (noise / totals) ** 2
    squares = np.maximum((apart**2).sum(axis=1, keepdims=True), 1e-300)
    masses = np.maximum(pooled + np.maximum(0.0, 1 - explained / squares) * apart, 0.0)
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))


def to_fit(mdm: MDM, releases: Releases) -> Fit:
    """The result, with what its releases guarantee."""
    n = len(releases.rounds)
    stopped = f"after {n} rounds, all that the plan has: whether it converged is not asked"
    return Fit(mdm, releases.rounds, False, stopped, guarantee=releases.guarantee())


def to_mdm(
    mixture: Mixture, population: Population, masses: NDArray[np.float64] | None = None
) -> MDM:
    """The MDM of a mixture, with sizes of its own or those of all clients."""
    own = np.repeat(population.sizes.masses, mixture.n_components, axis=0)
    sizes = Sizes(population.sizes.bins, own if masses is None else masses)
    return MDM(mixture.weights, mixture.alphas, sizes)


def private_bins(sizes: PrivateSizes, max_size: int) -> SizeBins:
    """The bins that a name of a size model stands for."""
    if not isinstance(sizes, SizeBins):
        return SizeBins.logarithmic(max_size, per_doubling=_PER_DOUBLING)
    if sizes.max_size != max_size:
        raise ParameterError(
            f"expected size bins that end at max_size {max_size}, got {sizes.max_size}"
        )
    return sizes


def _multinomial(mixture: Mixture, population: Population) -> Mixture:
    """The same, with components at the cap of their concentration as the multinomials that they are."""
    at_cap = mixture.concentrations > _AT_THE_CAP * population.cap
    scale = np.where(at_cap, _MULTINOMIAL / mixture.concentrations, 1.0)
    return Mixture(mixture.weights, mixture.alphas * scale[:, None])
