"""What clients are like before anything is modelled, from one round of sums, exact or with noise.

Shares are means of clients' own shares, so that each client counts once. How different clients are is
the intraclass correlation of `feature_choice.py`: by how much likelier two points of one client agree
than those of two. Sampling errors are at most those given: a number between 0 and 1 of mean m has a
variance of at most m (1 - m) (Bhatia and Davis, American Mathematical Monthly 107, 2000).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from polyurn.comparison.estimates import COVERAGE, Estimate
from polyurn.errors import FitError, ParameterError
from polyurn.model.sizes import SizeBins
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.privacy.private_aggregator import PrivateAggregator, as_private
from polyurn.privacy.statement import Guarantee
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Floats
from polyurn.typed.json_form import Finite
from polyurn.wire import Aggregator, BoundedStyle, Describe, InBlocks, Noised

# Of the sizes; the bins double, so that their edges do not come from the clients.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
# The half-width of an interval, in standard errors.
REACH = float(ndtri((1 + COVERAGE) / 2))
# Clients count as some from so many standard deviations of their noise on.
_SURE = 2.0


@checked
@dataclass(frozen=True, kw_only=True)
class Description:
    """What clients are like; intervals cover at least 95 %, sampling and noise together.

    `sizes` are the quantiles of QUANTILES, within a bin as if logarithms of sizes were even. `between`
    is the share of variance between clients: 0 as by chance, 1 where each holds one category, below 0
    where they are more even than chance, NaN where none has two points. Dirichlet(`alpha`) on balanced
    categories varies as much; it is infinite if `between` is not above 0.
    """

    n_clients: Estimate
    sizes: tuple[Estimate, ...]
    shares: tuple[Estimate, ...]  # mean share of each category
    holders: tuple[Estimate, ...]  # how many clients hold each category
    between: Estimate
    effective_categories: Estimate  # one over the probability that two points of one client agree
    alpha: Estimate
    points_in_pairs: Finite  # the share of clients that hold two points or more
    guarantee: Guarantee | None = None

    @property
    def sentence(self) -> str:
        """Whether clients differ more than by chance, in words."""
        if np.isnan(self.between.value):
            return "no client holds two points: how different clients are cannot be told"
        if self.between.low > 0:
            return "clients differ by more than chance: there is something to model"
        if self.between.high < 0:
            return "clients are more even than chance: a mixture of urns does not describe them"
        return "clients differ by no more than chance, as far as so many can tell"


@dataclass(frozen=True)
class Sums:
    """Means over clients of the numbers of a question, and the standard deviation of their noise."""

    n_clients: Estimate
    means: Floats
    noise: Floats


def ask(
    aggregator: Aggregator, query: InBlocks, *, epsilon: float | None, delta: float | None,
    trust: Trust = "central", ledger: PrivacyLedger | None = None, noise: Noise = discrete_gaussian,
) -> tuple[Sums, Guarantee | None]:  # fmt: skip
    """Put one question of blocks to all clients, exactly or with noise."""
    layer = None
    if epsilon is None:
        if delta is not None or ledger is not None:
            raise ParameterError("expected epsilon with delta and ledger: they are for noise")
        values = aggregator.aggregate(query, None).values / query.scales
        sigmas = np.zeros(query.n_values)
    else:
        released, sigmas, layer = noised(
            aggregator, query, epsilon, delta, trust=trust, ledger=ledger, noise=noise
        )
        values = released / query.scales
    n = float(values[0])
    if not n >= max(1 - 1e-6, _SURE * sigmas[0]):
        raise FitError(
            "there is more noise than clients: ask more of them" if layer else "no client answered"
        )
    means = values / n
    noises = np.hypot(sigmas, means * sigmas[0]) / n
    n = n if layer else float(round(n))
    count = Estimate(n, n - REACH * sigmas[0], n + REACH * sigmas[0])
    return Sums(count, means, noises), None if layer is None else layer.guarantee()


def noised(
    aggregator: Aggregator, query: InBlocks | BoundedStyle, epsilon: float, delta: float | None, *,
    trust: Trust, ledger: PrivacyLedger | None, noise: Noise,
) -> tuple[Floats, Floats, PrivateAggregator]:  # fmt: skip
    """The released sum of a question, its noise's standard deviation unscaled, and who released it."""
    if delta is None:
        raise ParameterError(
            "expected delta with epsilon, well below one over the number of clients: 1e-6, say"
        )
    sigma = sigma_for(epsilon, delta)
    layer = as_private(aggregator, epsilon, delta, trust=trust, ledger=ledger, noise=noise)
    values = layer.aggregate(Noised(query, sigma), None).values
    if getattr(layer, "trust", trust) == "local":  # every client adds all of the noise
        sigma *= np.sqrt(max(float(values[0] / query.scales[0]), 1.0))
    return values, sigma / query.scales, layer


def shares_of(sums: Sums, means: Floats, noise: Floats) -> tuple[Estimate, ...]:
    """Means of numbers between 0 and 1 with their intervals."""
    inside = np.clip(means, 0.0, 1.0)
    half = REACH * np.sqrt(inside * (1 - inside) / sums.n_clients.value + noise**2)
    return tuple(
        Estimate(float(m), float(max(m - h, 0.0)), float(min(m + h, 1.0)))
        for m, h in zip(inside, half, strict=True)
    )


@checked
def describe(
    aggregator: Aggregator,
    *,
    n_categories: int,
    max_size: int,
    epsilon: float | None = None,
    delta: float | None = None,
    trust: Trust = "central",
    ledger: PrivacyLedger | None = None,
    noise: Noise = discrete_gaussian,
) -> Description:
    """Describe clients, in one round.

    Parameters
    ----------
    aggregator : Aggregator
        With `epsilon` it may be a `PrivateAggregator`, whose ledger, trust model and noise then count.
    n_categories, max_size : int
        A larger client answers for `max_size` of its points.
    epsilon, delta, trust, ledger, noise
        As in `fit_style`.

    Examples
    --------
    >>> import polyurn as pu
    >>> clients = pu.LocalAggregator([[9, 1], [2, 8], [10, 0], [1, 9]])
    >>> found = describe(clients, n_categories=2, max_size=16)
    >>> found.n_clients.value, round(found.between.value, 2), round(found.shares[0].value, 2)
    (4.0, 0.69, 0.55)
    """
    query = Describe(n_categories, SizeBins.logarithmic(max_size, per_doubling=1))
    sums, guarantee = ask(
        aggregator, query, epsilon=epsilon, delta=delta, trust=trust, ledger=ledger, noise=noise
    )
    means, noises = query.blocks(sums.means), query.blocks(sums.noise)
    root, n = np.sqrt(n_categories), sums.n_clients.value
    held = shares_of(sums, means["holders"] * root, noises["holders"] * root)
    return Description(
        n_clients=sums.n_clients,
        sizes=_quantiles(query.size_bins, means["sizes"], noises["sizes"], n),
        shares=shares_of(sums, means["p"], noises["p"]),
        holders=tuple(share.scaled(n) for share in held),
        **_differences(query, means, noises, n),
        guarantee=guarantee,
    )


def _differences(
    query: Describe, means: dict[str, Floats], noises: dict[str, Floats], n: float
) -> dict[str, Any]:
    """How different clients are, of those with two points or more."""
    bins, c = query.size_bins, query.n_categories
    singles = float(means["sizes"][0]) if bins.edges[1] == 2 else 0.0
    paired = min(max(1 - singles, 0.0), 1.0)
    if paired * n < 1 - 1e-6:
        nothing = Estimate(np.nan, np.nan, np.nan)
        return dict.fromkeys(("between", "effective_categories", "alpha"), nothing) | {
            "points_in_pairs": 0.0
        }
    within = float(means["alike"][0]) / paired
    spread = max(float(means["squares"][0]) / paired - within**2, 0.0)
    p, of_p = means["p"], noises["p"]
    # Σ p² over clients is that of their pairs, and one over the size for the rest.
    own = within + (1 - within) * float((means["sizes"] / bins.means()).sum())
    raw = float((p**2 - of_p**2).sum())
    between = (n * raw - own) / (n - 1) if n > 1 else raw
    room = 1 - between  # 0 if all points are alike, so that nothing can differ
    correlation = (within - between) / room if room > 1e-9 else np.nan
    noise = np.hypot(noises["alike"][0], within * noises["sizes"][0]) / paired
    error_w = np.sqrt(spread / (n * paired) + noise**2)
    most = max((p.max() - between) * (between - min(p.min(), between)), 0.0)  # of its variance
    error_b = 2 * np.sqrt(most / n + float((p**2 * of_p**2).sum()))
    # Their errors may go together, so that they are added.
    room = max(room, 1e-9)
    half = REACH * (error_w + error_b * (1 - within) / room) / room
    rho = Estimate(correlation, max(correlation - half, -1.0), min(correlation + half, 1.0))
    near = [within + sign * REACH * error_w for sign in (0, 1, -1)]
    effective = Estimate(*(1 / float(np.clip(one, 1 / c, 1.0)) for one in near))
    alphas = [(1 / one - 1) / c if one > 0 else np.inf for one in (rho.value, rho.high, rho.low)]
    return {
        "between": rho,
        "effective_categories": effective,
        "alpha": Estimate(*alphas),
        "points_in_pairs": paired,
    }


def _quantiles(bins: SizeBins, shares: Floats, noise: Floats, n: float) -> tuple[Estimate, ...]:
    """Sizes below which given shares of the clients are, with the bins that they may lie in."""
    below = np.cumsum(shares)
    errors = REACH * np.sqrt(np.clip(below * (1 - below), 0.0, 0.25) / n + np.cumsum(noise**2))
    steady = np.maximum.accumulate(below)
    found = []
    for q in QUANTILES:
        at = _first(steady, q)
        before = float(steady[at - 1]) if at else 0.0
        part = np.clip((q - before) / max(float(steady[at]) - before, 1e-12), 0.0, 1.0)
        low, high = _first(below + errors, q), _first(below - errors, q)
        edges = bins.edges[at], max(int(bins.edges[at + 1]) - 1, 1)
        value = float(np.exp(np.log(edges[0]) + part * np.log(edges[1] / edges[0])))
        found.append(Estimate(value, float(bins.edges[low]), float(bins.edges[high + 1] - 1)))
    return tuple(found)


def _first(values: Floats, least: float) -> int:
    """Where values first reach a number; the last if none does."""
    reached = np.flatnonzero(values >= least)
    return int(reached[0]) if len(reached) else len(values) - 1


def percent(share: float) -> str:
    """A share in words, as precise as it is small."""
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


def listed(parts: Sequence[str], most: int) -> str:
    """The first of some sentences, and how many more there are."""
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more
