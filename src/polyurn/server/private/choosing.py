"""The number of components under differential privacy: every K climbs in the same rounds, one is left.

The starts of all K are made of one sketch and raced as in `fitting.py`. Then clients say how much
likelier they find each K, and the smallest that is not clearly behind goes on alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from polyurn.errors import ParameterError
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.server.private.fitting import (
    PrivateSizes,
    begin,
    finish,
    private_bins,
    sketched,
    to_fit,
    to_mdm,
)
from polyurn.server.private.plan import CHOOSING, Plan
from polyurn.server.private.race import Climber, Course, Gains
from polyurn.server.private.releases import Budget, Releases
from polyurn.server.private.starts import starts
from polyurn.server.results import Fit, Round
from polyurn.server.settings import check_model
from polyurn.typed.arguments import checked
from polyurn.wire import Aggregator

# A K is behind another if the noise of both would say so by chance once in forty times.
_SURE = 2.0


@dataclass(frozen=True)
class PrivateCandidate:
    """One number of components, after the race.

    Attributes
    ----------
    n_components : int
    behind : float
        How far it is behind the best, in nats per client, noised; what so many parameters gain by
        chance is taken off.
    noise : float
        Standard deviation of the noise in that.
    """

    n_components: int
    behind: float
    noise: float


@checked
@dataclass(frozen=True)
class PrivateSelection:
    """The chosen number of components, its fit, and what it was chosen by.

    Attributes
    ----------
    n_components : int
    fit : Fit
        Of the chosen K; its guarantee is of all rounds, those of the other K too.
    candidates : tuple of PrivateCandidate
        By number of components.
    """

    n_components: int
    fit: Fit
    candidates: tuple[PrivateCandidate, ...]


@checked
def select_private(
    aggregator: Aggregator,
    candidates: Iterable[int],
    *,
    epsilon: float,
    delta: float,
    n_categories: int,
    max_size: int,
    sizes: PrivateSizes = "binned",
    trust: Trust = "central",
    ledger: PrivacyLedger | None = None,
    noise: Noise = discrete_gaussian,
    plan: Plan = CHOOSING,
    rng: int | np.random.Generator | None = None,
    on_round: Callable[[Round], None] | None = None,
) -> PrivateSelection:
    """Choose the number of components, and fit it, with (ε, δ)-differential privacy for every client.

    Twelve rounds for all K together. The smallest K is taken that is not behind the best by more than
    two standard deviations of the noise: with few clients or a small ε that is a smaller K.

    Parameters
    ----------
    candidates : iterable of int
        Numbers of components; 1 is always among them.
    aggregator, epsilon, delta, n_categories, max_size, sizes, trust, ledger, noise, plan, rng, on_round
        As in `fit_private`.

    Returns
    -------
    PrivateSelection
    """
    numbers = sorted({1, *candidates})
    if len(numbers) < 2:
        raise ParameterError(
            "expected a number of components above 1 among the candidates, got none"
        )
    for k in (numbers[0], numbers[-1]):
        check_model(n_components=k, n_categories=n_categories, size_prior=0.0, category_prior=0.0)
    budget = Budget(epsilon=epsilon, delta=delta, trust=trust, ledger=ledger, noise=noise)
    releases = Releases(aggregator, budget, total=plan.total, on_round=on_round)
    course = begin(releases, n_categories, private_bins(sizes, max_size), plan, rng)
    climbers = _race(course, numbers)
    gains = course.compare([climber.mixture for climber in climbers], plan.choice)
    releases.done(to_mdm(climbers[0].mixture, course.population), course.population.n_clients)
    table = _candidates(climbers, gains, course.population.n_clients)
    chosen = next(c.n_components for c in table if c.behind <= _SURE * c.noise)
    by_number = {climber.mixture.n_components: climber for climber in climbers}
    single = by_number[1].mixture
    mixture, masses = finish(
        course, by_number[chosen], single if chosen > 1 else None, own_sizes=sizes != "shared"
    )
    mdm = to_mdm(mixture, course.population, masses)
    return PrivateSelection(chosen, to_fit(mdm, releases), table)


def _race(course: Course, numbers: list[int]) -> list[Climber]:
    """One climber for each number of components, the likeliest first."""
    plan, population, floors = course.plan, course.population, course.plan.early_floors
    seen = sketched(course, numbers[-1])
    _, alone = seen.matched(population.single, population, course.rng)
    first = [alone]
    for k in numbers[1:]:
        first += starts(k, plan.racing_each[0], seen, population, course.rng)
    climbers = [Climber(population.floored(start, floors)) for start in first]
    for share, left in zip(plan.race, (*plan.racing_each[1:], 1), strict=True):
        compared = len(climbers) if left < plan.racing_each[0] else 0
        climbers, gains, _ = course.climb(climbers, share, floors=floors, compared=compared)
        if compared:
            climbers = _best_of_each(climbers, gains, left)
        course.releases.done(to_mdm(climbers[0].mixture, population), population.n_clients)
    return climbers


def _best_of_each(climbers: list[Climber], gains: Gains, left: int) -> list[Climber]:
    """The best few of each number of components, in the order of their gains."""
    kept: list[Climber] = []
    for i in np.argsort(-gains.values, kind="stable"):
        k = climbers[i].mixture.n_components
        if sum(climber.mixture.n_components == k for climber in kept) < left:
            kept.append(climbers[i])
    return kept


def _candidates(
    climbers: list[Climber], gains: Gains, n_clients: float
) -> tuple[PrivateCandidate, ...]:
    """How far each number of components is behind the best, after Akaike's (1974) correction."""
    by_chance = np.array([c.mixture.n_coordinates - 1 for c in climbers]) / (2 * n_clients)
    values = gains.values - by_chance
    best = int(values.argmax())
    noise = np.hypot(gains.noise, gains.noise[best])
    noise[best] = 0.0
    found = [
        PrivateCandidate(c.mixture.n_components, float(values[best] - v), float(s))
        for c, v, s in zip(climbers, values, noise, strict=True)
    ]
    return tuple(sorted(found, key=lambda candidate: candidate.n_components))
