"""Fitting under differential privacy, and choosing the number of components: the rounds of both.

A survey, a sketch from which starts are made, a race of the starts, the last climb of the winner, and a
comparison with the mixture before that climb. In a choice the starts of every K race in the same rounds;
then clients compare the likelihoods of all K, and the smallest K that is not clearly behind goes on.
Everything that is learned from clients is a noised release (`steps.py`); everything else is simulated.
docs/privacy.md explains the algorithm and its cost.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.names import names_of
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.privacy.private_aggregator import as_private
from polyurn.server.fit_results import Fit, PrivateCandidate, Round
from polyurn.server.fit_settings import NCategories, NComponents, size_bins
from polyurn.server.private.plan import CHOOSING, DEFAULT, SINGLE, Plan
from polyurn.server.private.private_starts import Sketched, starts
from polyurn.server.private.steps import (
    ClientTotals,
    Gains,
    PrivateRounds,
    PrivateStart,
    mean_mixture,
    size_masses,
)  # fmt: skip
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Seed
from polyurn.wire import Aggregator
from polyurn.wire.private_queries import SizeMembership

# Bins of sizes for each doubling: half as many as in `fit`, as each bin has its own noise.
_PER_DOUBLING = 2
# A component this close to the cap is released as a multinomial.
_AT_THE_CAP, _MULTINOMIAL = 0.9, 1e6
# A mixture is replaced by the one before the climb, and a K by a larger one, only if that is better by
# this many standard deviations of the noise.
_SURE = 2.0


@checked
def fit_private(
    aggregator: Aggregator,
    *,
    epsilon: float,
    delta: float,
    n_components: NComponents | Iterable[NComponents],
    n_categories: NCategories,
    max_size: int,
    sizes: Literal["binned", "shared"] | SizeBins = "binned",
    trust: Trust = "central",
    ledger: PrivacyLedger | None = None,
    noise: Noise = discrete_gaussian,
    plan: Plan | None = None,
    rng: Seed = None,
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
    n_components : int or iterable of int
        K. Of several, of which 1 is always one, all race in the same rounds: the choice goes from the
        best K downwards, until one is behind it by more than two standard deviations of the noise; with
        little data that is a smaller K.
    n_categories, max_size : int
        C and N. Declared, never measured from clients. A client of more than N points answers for N of
        them, drawn at random.
    sizes : {"binned", "shared"} or SizeBins
        Probabilities of logarithmic size bins for each component, which take a tenth of the last round;
        or probabilities that all components share.
    trust : {"central", "distributed", "local"}
        Who adds the noise; as in `PrivateAggregator`.
    ledger : PrivacyLedger, optional
        The ledger of these clients. By default a new ledger for this fit alone, without what earlier
        fits spent.
    noise : function of (n_numbers, scale), optional
        For tests and simulations; OpenDP's discrete Gaussian by default.
    plan : Plan, optional
        Shares of the budget and every tuned number.
    rng : int or numpy.random.Generator
        For the server's simulations. The noise never comes from it.
    on_round : callable, optional
        Called with each `Round` as it ends.

    Returns
    -------
    Fit
        Its `guarantee` says what was spent, on all K. The numbers of clients in its rounds are noised
        ones, and `raced` has the K that it was chosen from.

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
    several = isinstance(n_components, Iterable)
    numbers = sorted({1, *n_components}) if isinstance(n_components, Iterable) else [n_components]
    if several and len(numbers) < 2:
        raise ParameterError("expected a number of components above 1, got none")
    plan = plan or (CHOOSING if several else SINGLE if n_components == 1 else DEFAULT)
    by_default = SizeBins.logarithmic(max_size, per_doubling=_PER_DOUBLING)
    bins = size_bins(sizes, max_size) if isinstance(sizes, SizeBins) else by_default
    layer = as_private(aggregator, epsilon, delta, trust=trust, ledger=ledger, noise=noise)
    random, sigma = np.random.default_rng(rng), sigma_for(epsilon, delta)
    rounds = PrivateRounds(layer, sigma, plan, random, on_round=on_round)
    rounds.survey(n_categories, bins)
    return _fitted(rounds, numbers, own_sizes=sizes != "shared")


def _fitted(rounds: PrivateRounds, numbers: Sequence[int], *, own_sizes: bool) -> Fit:
    """The fit of one number of components, or of the best of several that race in the same rounds."""
    population, plan = rounds.population, rounds.plan
    if numbers[-1] == 1:
        return _finish(rounds, PrivateStart(population.single), None, own_sizes=own_sizes)
    seen = Sketched.ask(rounds, numbers[-1])
    alone = seen.matched(population.single, population, rounds.rng)[1]
    racers, first, beside = plan.racing_each, [alone], []
    if len(numbers) == 1:
        n_coordinates = numbers[0] * (len(population.proportions) + 1)
        racers = plan.racers(n_coordinates, rounds.sigma(plan.race[0]), population.n_clients)
        first, beside = [], [alone]
    for k in numbers:
        first += starts(k, racers[0], seen, population, rounds.rng) if k > 1 else []
    left = (*racers[1:], 1)
    climbers, others = _race(rounds, _begun(rounds, first), left, _begun(rounds, beside))
    if len(numbers) == 1:
        return _finish(rounds, climbers[0], others[0].mixture, own_sizes=own_sizes)
    gains = rounds.compare([climber.mixture for climber in climbers], plan.choice)
    rounds.end(climbers[0].mixture)
    table = candidates_of([c.mixture for c in climbers], gains, population.n_clients)
    chosen = chosen_of(table)
    by_number = {climber.mixture.n_components: climber for climber in climbers}
    single = by_number[1].mixture if chosen > 1 else None
    return replace(_finish(rounds, by_number[chosen], single, own_sizes=own_sizes), raced=table)


def _begun(rounds: PrivateRounds, mixtures: Iterable[Mixture]) -> list[PrivateStart]:
    """Climbers that begin at these mixtures."""
    return [PrivateStart(rounds.population.floored(m, rounds.plan.early_floors)) for m in mixtures]


def _race(
    rounds: PrivateRounds, climbers: list[PrivateStart], left: tuple[int, ...],
    beside: list[PrivateStart],
) -> tuple[list[PrivateStart], list[PrivateStart]]:  # fmt: skip
    """The rounds of the race; return the climbers of each K that are left, the likeliest first.

    Only after a few steps does it show which of many starts ends at the best optimum
    (`docs/privacy.md`), so that all take some steps. Climbers beside them are not compared.
    """
    for share, most in zip(rounds.plan.race, left, strict=True):
        n = len(climbers)
        of_each = [climber.mixture.n_components for climber in climbers]
        compared = n if max(map(of_each.count, of_each)) > most else 0
        after, gains, _ = rounds.climb(
            [*climbers, *beside], share, floors=rounds.plan.early_floors, compared=compared
        )
        climbers, beside = after[:n], after[n:]
        if compared:
            climbers = _best_of_each(climbers, gains, most)
        rounds.end(climbers[0].mixture)
    return climbers, beside


def _finish(
    rounds: PrivateRounds, climber: PrivateStart, single: Mixture | None, *, own_sizes: bool
) -> Fit:
    """The last rounds of one mixture, and the guard, which may prefer an earlier or a single one."""
    plan, population, before = rounds.plan, rounds.population, climber
    bins, pooled, masses = population.sizes.bins, population.sizes.masses[0], None
    for i, share in enumerate(plan.score):
        left, earlier = len(plan.score) - i, climber
        asks_sizes = own_sizes and left == 1 and climber.mixture.n_components > 1
        beside = (SizeMembership(climber.mixture, bins), plan.of_sizes) if asks_sizes else None
        floors = plan.late_floors if left <= plan.n_free else plan.early_floors
        (climber,), _, values = rounds.climb(
            [climber], share, floors=floors, shrunk=left <= plan.n_shrunk, beside=beside
        )
        if asks_sizes:
            noise = rounds.sigma(share) / np.sqrt(plan.of_sizes)
            expected = np.outer(population.n_clients * earlier.mixture.weights, pooled)
            of_each = zip(values.reshape(expected.shape), expected, strict=True)
            masses = np.array([size_masses(seen, noise, before) for seen, before in of_each])
        rounds.end(climber.mixture)
    # The average of two models with like noise is better, as far as the step between them was noise.
    part = climber.noise * plan.score[-2] / (plan.score[-2] + plan.score[-1])
    result = mean_mixture(climber.mixture, earlier.mixture, part)
    if plan.guard:
        rivals = [before.mixture] if single is None else [before.mixture, single]
        gains = rounds.compare([result, *rivals], plan.guard)
        # Noise affects the few parameters of a single component little: any gain is enough.
        margins = np.array([0.0, _SURE, 0.0])[: len(rivals) + 1]
        best = int((gains.values - margins * gains.noise).argmax())
        if best:
            result = rivals[best - 1]
            masses = masses if result.n_components == climber.mixture.n_components else None
        rounds.end(result, masses)
    mdm = population.mdm(_multinomial(result, population), masses)
    n, guarantee = len(rounds.done), rounds.layer.guarantee()
    sizes = _mostly_noise(population, guarantee.epsilon)
    stopped = f"after {n} rounds, all that the plan has: whether it converged is not asked{sizes}"
    done = Fit(
        mdm, tuple(rounds.done), False, stopped, guarantee=guarantee,
        no_errors="noise hides the information",
    )  # fmt: skip
    return done.named(names_of(rounds.layer))


def _mostly_noise(population: ClientTotals, epsilon: float) -> str:
    """What to do where noise is more than the mean number of clients of a size bin; nothing if not."""
    n_bins, noise, n = population.sizes.bins.n_bins, population.size_noise, population.n_clients
    least = noise * n_bins
    return "" if n >= least else (
        f"; what it says of sizes is mostly noise (±{noise:,.0f} in each of {n_bins} bins, for about "
        f"{n:,.0f} clients): at least {least:,.0f} clients are needed, or epsilon of "
        f"{epsilon * least / n:.2g}, or fewer bins"
    )  # fmt: skip


def _multinomial(mixture: Mixture, population: ClientTotals) -> Mixture:
    """The mixture with components at the cap of their concentration turned into multinomials."""
    at_cap = mixture.concentrations > _AT_THE_CAP * population.cap
    scale = np.where(at_cap, _MULTINOMIAL / mixture.concentrations, 1.0)
    return Mixture(mixture.weights, mixture.alphas * scale[:, None])


def _best_of_each(climbers: list[PrivateStart], gains: Gains, left: int) -> list[PrivateStart]:
    """The best climbers of each number of components, in the order of their gains."""
    order = [climbers[i] for i in np.argsort(-gains.values, kind="stable")]
    numbers = [climber.mixture.n_components for climber in order]
    return [one for i, one in enumerate(order) if numbers[:i].count(numbers[i]) < left]


def candidates_of(
    mixtures: Sequence[Mixture], gains: Gains, n_clients: float
) -> tuple[PrivateCandidate, ...]:
    """How far each number of components is behind the best, after Akaike's (1974) correction."""
    values = gains.values - np.array([m.n_coordinates - 1 for m in mixtures]) / (2 * n_clients)
    best = int(values.argmax())
    noise = np.hypot(gains.noise, gains.noise[best])
    noise[best] = 0.0
    found = [
        PrivateCandidate(m.n_components, float(values[best] - v), float(s))
        for m, v, s in zip(mixtures, values, noise, strict=True)
    ]
    return tuple(sorted(found, key=lambda candidate: candidate.n_components))


def chosen_of(candidates: Sequence[PrivateCandidate]) -> int:
    """The smallest K, from the best downwards, before the first that is surely behind the best.

    Fewer components are nested in more: such a K rules out those below it, however noisy they are. If
    one of them is less far behind, it was only the climb of that K that failed.
    """
    chosen = best = int(np.argmin([one.behind for one in candidates]))
    for i in reversed(range(best)):
        if candidates[i].behind <= _SURE * candidates[i].noise:
            chosen = i
        elif all(candidates[i].behind < smaller.behind for smaller in candidates[:i]):
            break
    return candidates[chosen].n_components
