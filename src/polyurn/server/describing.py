"""What clients are like before anything is modelled, from one round of sums, exact or with noise.

Shares are means of clients' own shares, so that each client counts once. How different clients are is
the intraclass correlation of `feature_choice.py`: by how much likelier two points of one client agree
than those of two. Sampling errors are at most those given: a number between 0 and 1 of mean m has a
variance of at most m (1 - m) (Bhatia and Davis, American Mathematical Monthly 107, 2000).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from scipy.special import ndtri

from polyurn.comparison.estimates import COVERAGE, Estimate
from polyurn.errors import FitError, ParameterError
from polyurn.model.sizes import SizeBins
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.privacy.private_aggregator import as_private
from polyurn.privacy.statement import Guarantee, in_words
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Between, Floats
from polyurn.typed.json_form import Count, Finite
from polyurn.wire import (
    Aggregator,
    BoundedStyle,
    Describe,
    InBlocks,
    Noised,
    RecordColumn,
    Scaled,
    Spread,
)
from polyurn.wording import counted

# Of the sizes; the bins double, so that their edges do not come from the clients.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
# The half-width of an interval, in standard errors.
REACH = float(ndtri((1 + COVERAGE) / 2))
# The first edges of any column of numbers, and the rounds and parts in which bins are cut.
_POWERS = np.concatenate([-(4.0 ** np.arange(24, -17, -1)), [0.0], 4.0 ** np.arange(-16, 25)])
_ROUNDS, _PARTS = 4, 16
# Clients count as some from so many standard deviations of their noise on.
_SURE = 2.0


@dataclass(frozen=True, kw_only=True)
class LookResult:
    """What questions to clients have found, from exact sums or with a guarantee."""

    guarantee: Guarantee | None = None

    @property
    def privacy_in_words(self) -> str:
        """What is guaranteed to a client."""
        return in_words(self.guarantee)


@checked
@dataclass(frozen=True, kw_only=True)
class Description(LookResult):
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
    categories: tuple[str, ...] | None = None

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


@checked
@dataclass(frozen=True, kw_only=True)
class ColumnDescription(LookResult):
    """The quantiles of a column of clients' records at `ranks`, each client counting once.

    Intervals cover at least 95 % each, sampling and noise together, and are whole bins. `edges` are
    those of bins with about equal shares, open at both ends; fewer where many points are one number.
    """

    column: str
    n_clients: Estimate
    ranks: tuple[Finite, ...]
    quantiles: tuple[Estimate, ...]
    edges: tuple[float, ...]
    n_rounds: Count

    @property
    def sentence(self) -> str:
        """What came of it, in words."""
        return (
            f"{self.column} falls into {counted(len(self.edges) - 1, 'bin')} of about equal shares"
        )

    @property
    def bins(self) -> str:
        """The edges as `--bins` takes them."""
        return ",".join(f"{edge:.12g}" for edge in self.edges)


@dataclass(frozen=True)
class Sums:
    """Means over clients of the numbers of a question, and the standard deviation of their noise."""

    n_clients: Estimate
    means: Floats
    noise: Floats


class Asked:
    """Puts bounded questions to all clients, exactly or with noise, which share a budget evenly.

    A ledger that could not pay for all of them is a BudgetError before the first is asked.
    """

    def __init__(
        self, aggregator: Aggregator, epsilon: float | None, delta: float | None, n_questions: int = 1,
        *, trust: Trust = "central", ledger: PrivacyLedger | None = None,
        noise: Noise = discrete_gaussian,
    ) -> None:  # fmt: skip
        self._aggregator: Any = aggregator
        self._sigma, self._trust = 0.0, trust
        if epsilon is None:
            if delta is not None:
                raise ParameterError("expected epsilon with delta: it is for noise")
            return
        if delta is None:
            raise ParameterError(
                "expected delta with epsilon, well below one over the number of clients: 1e-6, say"
            )
        self._sigma = sigma_for(epsilon, delta) * float(np.sqrt(n_questions))
        layer = as_private(aggregator, epsilon, delta, trust=trust, ledger=ledger, noise=noise)
        if n_questions > 1 and (kept := getattr(layer, "ledger", None)) is not None:
            kept.check([self._sigma] * n_questions, f"{n_questions} questions")
        self._aggregator = layer

    def released(self, query: InBlocks | BoundedStyle | Scaled) -> tuple[Floats, Floats]:
        """The sum of the answers to a question, and the standard deviation of its noise unscaled."""
        if not self._sigma:
            return self._aggregator.aggregate(query, None).to_vector(), np.zeros(query.n_numbers)
        asked: Noised[Any] = Noised(query, self._sigma)
        values = self._aggregator.aggregate(asked, None).to_vector()
        local = getattr(self._aggregator, "trust", self._trust) == "local"
        n_clients = float(values[0] / query.scales[0]) if local else 1.0  # each adds all of it
        return values, self._sigma * np.sqrt(max(n_clients, 1.0)) / query.scales

    def sums(self, query: InBlocks | Scaled) -> "Sums":
        """The means of one question; its first number counts the clients."""
        released, sigmas = self.released(query)
        values = released / query.scales
        n = float(values[0])
        if not n >= max(1 - 1e-6, _SURE * sigmas[0]):
            raise FitError(
                "there is more noise than clients: ask more of them"
                if self._sigma
                else "no client answered"
            )
        means, n = values / n, n if self._sigma else float(round(n))
        noise = np.hypot(sigmas, means * sigmas[0]) / n
        return Sums(Estimate.around(n, REACH * sigmas[0]), means, noise)

    @property
    def guarantee(self) -> Guarantee | None:
        """That of all questions; None if sums are exact."""
        found: Guarantee | None = self._aggregator.guarantee() if self._sigma else None
        return found


def shares_of(sums: Sums, means: Floats, noise: Floats) -> tuple[Estimate, ...]:
    """Means of numbers between 0 and 1 with their intervals."""
    inside = np.clip(means, 0.0, 1.0)
    half = REACH * np.sqrt(inside * (1 - inside) / sums.n_clients.value + noise**2)
    return tuple(Estimate.around(m, h, 0.0, 1.0) for m, h in zip(inside, half, strict=True))


@checked
def describe(
    aggregator: Aggregator,
    *,
    n_categories: int,
    max_size: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Description:
    """Describe clients, in one round; one larger than `max_size` answers for so many of its points.

    With `epsilon` the aggregator may be a `PrivateAggregator`, whose ledger and trust model then count.
    More noise than clients is a FitError.

    >>> import polyurn as pu
    >>> clients = pu.LocalAggregator([[9, 1], [2, 8], [10, 0], [1, 9]])
    >>> found = describe(clients, n_categories=2, max_size=16)
    >>> found.n_clients.value, round(found.between.value, 2), round(found.shares[0].value, 2)
    (4.0, 0.69, 0.55)
    """
    query = Describe(n_categories, SizeBins.logarithmic(max_size, per_doubling=1))
    asked = Asked(aggregator, epsilon, delta)
    sums = asked.sums(query)
    means, noises = query.blocks(sums.means), query.blocks(sums.noise)
    root, n = np.sqrt(n_categories), sums.n_clients.value
    held = shares_of(sums, means["holders"] * root, noises["holders"] * root)
    return Description(
        n_clients=sums.n_clients,
        sizes=tuple(
            _size(query.size_bins, place)
            for place in _places(means["sizes"], noises["sizes"], n, QUANTILES)
        ),
        shares=shares_of(sums, means["p"], noises["p"]),
        holders=tuple(share.scaled(n) for share in held),
        **_differences(query, means, noises, n),
        guarantee=asked.guarantee,
    )


@checked
def describe_column(
    aggregator: Aggregator,
    column: str,
    *,
    features: Sequence[str],
    n_categories: int = 2,
    n_bins: Annotated[int, Between(2, 1_000)] = 10,
    epsilon: float | None = None,
    delta: float | None = None,
) -> ColumnDescription:
    """Find the quantiles of a column of clients' records, in at most four rounds, each exact or with
    noise as in `describe`.

    The first round counts numbers by sign and power of 4, a grid that does not come from the data. Each
    further one cuts the intervals that a quantile may lie in, until clients are too few to tell more.
    Elsewhere nothing is cut: of a minimum or a maximum exact sums show an interval between such cuts,
    and sums with noise not that. `features` are the columns of the records, in their order.

    >>> import polyurn as pu
    >>> ages = np.random.default_rng(0).normal(40, 10, size=(5000, 1))
    >>> records = pu.Records(ages, np.zeros(5000, int), np.arange(5000) // 5)
    >>> found = describe_column(pu.LocalAggregator(records), "age", features=["age"], n_bins=4)
    >>> [round(one.value, 1) for one in found.quantiles]
    [33.2, 39.7, 46.8]
    """
    if column not in features:
        raise ParameterError(f"expected a column of {', '.join(features)}, got {column!r}")
    ranks, edges = np.arange(1, n_bins) / n_bins, _POWERS
    index = list(features).index(column)
    asked = Asked(aggregator, epsilon, delta, _ROUNDS)
    for n_rounds in range(1, _ROUNDS + 1):
        query = Spread(n_categories, RecordColumn(index, len(features), edges))
        sums = asked.sums(query)
        shares, noises = (query.blocks(of)["shares"] for of in (sums.means, sums.noise))
        places = _places(shares, noises, sums.n_clients.value, ranks)
        ends = np.concatenate([[-np.inf], edges, [np.inf]])
        finer = _finer(ends, places)
        if n_rounds == _ROUNDS or np.isin(finer, edges).all():
            break
        edges = finer
    nearest = {float(ends[one.at + (one.part > 0.5)]) for one in places}
    return ColumnDescription(
        column=column,
        n_clients=sums.n_clients,
        ranks=tuple(ranks.tolist()),
        quantiles=tuple(_between(ends, one) for one in places),
        edges=(-np.inf, *sorted(nearest - {-np.inf, np.inf}), np.inf),
        n_rounds=n_rounds,
        guarantee=asked.guarantee,
    )


def _finer(ends: Floats, places: Sequence["_Place"]) -> Floats:
    """The edges of the next round: bins that a quantile may lie in are cut, others are joined."""
    kept = set[float]()
    for one in places:
        n_parts = 2 ** int(np.log2(max(_PARTS / (one.last - one.first + 1), 1)))
        for low, high in pairwise(ends[one.first : one.last + 2].tolist()):
            inside = np.isfinite([low, high]).all()
            kept.update(np.linspace(low, high, n_parts + 1).tolist() if inside else (low, high))
    return np.array(sorted(kept - {-np.inf, np.inf}))


def _between(ends: Floats, place: "_Place") -> Estimate:
    """A quantile, as if numbers were even within a bin; at the end of a bin that has no other."""
    low, high = ends[place.at : place.at + 2]
    value = low + place.part * (high - low) if np.isfinite(high - low) else np.clip(0.0, low, high)
    return Estimate(float(value), float(ends[place.first]), float(ends[place.last + 1]))


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
    noise = np.hypot(noises["alike"][0], within * noises["sizes"][0]) / paired
    error_w = np.sqrt(spread / (n * paired) + noise**2)
    rho = correlation(within, error_w, between, p, of_p, n)
    near = [within + sign * REACH * error_w for sign in (0, 1, -1)]
    effective = Estimate(*(1 / float(np.clip(one, 1 / c, 1.0)) for one in near))
    alphas = [(1 / one - 1) / c if one > 0 else np.inf for one in (rho.value, rho.high, rho.low)]
    return {
        "between": rho,
        "effective_categories": effective,
        "alpha": Estimate(*alphas),
        "points_in_pairs": paired,
    }


def correlation(
    within: float, error: float, between: float, p: Floats, of_p: Floats, n: float
) -> Estimate:
    """(W - B) / (1 - B) of W with its standard error and of B = Σ p², with p and its noise.

    NaN if all points are alike, so that nothing can differ.
    """
    left = max(1 - between, 1e-9)
    value = (within - between) / left if 1 - between > 1e-9 else np.nan
    room = max((p.max() - between) * (between - min(p.min(), between)), 0.0)
    of_noise = float((4 * p**2 * of_p**2 + 2 * of_p**4).sum())
    # Their errors may go together, so that they are added.
    half = REACH * (error + np.sqrt(4 * room / n + of_noise) * (1 - within) / left) / left
    return Estimate.around(value, half, -1.0, 1.0)


@dataclass(frozen=True)
class _Place:
    """Where a quantile is: its bin, how far into that, and the bins that it may lie in."""

    at: int
    part: float
    first: int
    last: int


def _places(shares: Floats, noise: Floats, n: float, ranks: Iterable[float]) -> list[_Place]:
    """Where quantiles are among bins, of the shares of the clients in them."""
    below = np.cumsum(shares)
    errors = REACH * np.sqrt(np.clip(below * (1 - below), 0.0, 0.25) / n + np.cumsum(noise**2))
    steady = np.maximum.accumulate(below)
    found = []
    for q in ranks:
        at = _first(steady, q)
        before = float(steady[at - 1]) if at else 0.0
        part = np.clip((q - before) / max(float(steady[at]) - before, 1e-12), 0.0, 1.0)
        found.append(_Place(at, float(part), _first(below + errors, q), _first(below - errors, q)))
    return found


def _size(bins: SizeBins, place: _Place) -> Estimate:
    """A quantile of sizes, as if their logarithms were even within a bin."""
    low, high = bins.edges[place.at], max(int(bins.edges[place.at + 1]) - 1, 1)
    value = float(np.exp(np.log(low) + place.part * np.log(high / low)))
    ends = bins.edges[place.first], bins.edges[place.last + 1] - 1
    return Estimate(value, float(ends[0]), float(ends[1]))


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
