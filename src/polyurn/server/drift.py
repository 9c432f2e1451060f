"""Whether clients still are what a mixture says, from one round of sums, exact or with noise.

The mixture is asked about itself: clients that are drawn from it answer the same question, which gives
the mean and the variance of every number. Real clients never follow a mixture to the last digit; with
enough of them, any mixture is refuted. A look is therefore also compared with an earlier one, with
variances that no law of the clients exceeds (Bhatia and Davis, as in `describing.py`).

A number has moved if it is farther off than chance would bring any of them, at the level that is
asked for: normal quantiles by Bonferroni, moved outwards by the skewness of rare events (Cornish and
Fisher, 1937), whose third cumulant is at most their variance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import ndtri

from polyurn.comparison.estimates import Estimate
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins
from polyurn.model.standing import CUT, Yardstick, log_likelihoods, standings
from polyurn.server.describing import REACH, Asked, LookResult, Sums, listed, percent, shares_of
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Between, Floats, Seed
from polyurn.typed.json_form import Finite
from polyurn.wire import Aggregator, Standing

# Clients that are drawn for the yardstick, and then for what the mixture expects; how many at once.
_FOR_YARDSTICK, _SIMULATED, _TOGETHER = 20_000, 100_000, 8_192
# The share of the mixture's own clients that count as explained by no component.
_UNEXPLAINED = 0.01
# A bin of fewer simulated clients takes its mean, or its quantile, from others.
_FEWEST, _FEWEST_OF_A_TAIL = 20, 1_000
# Beyond this condition number, components cannot be by_component apart by their responsibilities.
_CONDITION = 1e6
# Sentences about each kind of change.
_NAMED = 3

Block = Literal["component", "size", "category", "fit", "unexplained"]
_ORDER: tuple[Block, ...] = ("component", "size", "category", "fit", "unexplained")


@dataclass(frozen=True)
class Change:
    """One number of a component, of sizes or of a category: what was expected, and what clients say now.

    It is a share of the clients, or of a client's points. Of "fit" it is by how many nats per client the
    log-likelihood given the size is above what the mixture expects. It `moved` if it is farther off than
    chance would bring any of the numbers.
    """

    block: Block
    name: str
    was: Finite
    now: Estimate
    moved: bool


@checked
@dataclass(frozen=True, kw_only=True)
class Drift(LookResult):
    """One look at clients, compared with the mixture or with an earlier look at a false-alarm rate.

    `level` is the false-alarm rate. Later looks are compared with `means`, the numbers that came, whose
    noise has the standard deviation `noise`.
    """

    n_clients: Estimate
    against: Literal["mixture", "look"]
    level: Finite
    changes: tuple[Change, ...]
    yardstick: Yardstick
    means: Floats
    noise: Floats

    @property
    def moved(self) -> bool:
        """Whether anything has moved."""
        return any(change.moved for change in self.changes)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        rate = f"(false-alarm rate {self.level:.2g})"
        if not self.moved:
            return f"as it was: nothing moved beyond chance {rate}"
        parts = []
        for block in _ORDER:
            some = [one for one in self.changes if one.moved and one.block == block]
            some.sort(key=lambda one: -abs(one.now.value - one.was))
            if some:
                parts.append(listed([_in_words(one) for one in some], _NAMED))
        return f"it has moved: {'; '.join(parts)} {rate}"


def _in_words(change: Change) -> str:
    was, now = change.was, change.now.value
    if change.block == "fit":
        return (
            f"clients fit by {abs(now):.3g} nats {'worse' if now < 0 else 'better'} than expected"
        )
    span = f"{percent(was)} to {percent(now)}"
    if change.block == "unexplained":
        return f"clients that no component explains went from {span}"
    verb = "grew" if now > was else "fell"
    subject = {
        "component": f"component {change.name}", "size": f"clients of {change.name} points",
        "category": f"the share of {change.name}",
    }[change.block]  # fmt: skip
    return f"{subject} {verb} from {span}"


@checked
def drift(
    aggregator: Aggregator,
    mdm: MDM,
    *,
    since: Drift | None = None,
    level: Annotated[float, Between(1e-6, 0.5)] = 0.05,
    epsilon: float | None = None,
    delta: float | None = None,
    rng: Seed = 0,
) -> Drift:
    """Compare clients with a mixture, or with the earlier look `since`, in one round.

    `level` is the false-alarm rate: how often anything is said to have moved where nothing has. A
    client larger than the mixture's largest size answers for so many of its points. `epsilon` and
    `delta` are as in `describe`; `rng` is of the clients that are drawn from the mixture.

    >>> import polyurn as pu
    >>> sizes = pu.Sizes.constant(20, n_components=2)
    >>> was = pu.MDM([0.6, 0.4], [[9.0, 1.0], [1.0, 3.0]], sizes)
    >>> now = pu.MDM([0.8, 0.2], [[9.0, 1.0], [1.0, 3.0]], sizes)
    >>> drift(pu.LocalAggregator(was.sample(2000, rng=1)), was).sentence
    'as it was: nothing moved beyond chance (false-alarm rate 0.05)'
    >>> drift(pu.LocalAggregator(now.sample(2000, rng=1)), was).moved
    True
    """
    streams = np.random.default_rng(rng).spawn(2)
    bins = SizeBins.logarithmic(mdm.max_size, per_doubling=1)
    yardstick = _yardstick(mdm, bins, streams[0]) if since is None else since.yardstick
    query = Standing(mdm, bins, yardstick)
    own = _Own.of(query, streams[1])
    asked = Asked(aggregator, epsilon, delta)
    sums = asked.sums(query)
    if since is None:
        before = Sums(Estimate(_SIMULATED, np.nan, np.nan), own.means, np.zeros(len(own.means)))
        variances = own.variances
    else:
        before = Sums(since.n_clients, since.means, since.noise)
        variances = _largest_variances(query, (before.means + sums.means) / 2)
    moved = _moved(query, before, sums, variances, level)
    return Drift(
        n_clients=sums.n_clients,
        against="mixture" if since is None else "look",
        level=level,
        changes=_changes(query, own, sums, before.means, query.blocks(moved)),
        yardstick=yardstick,
        means=sums.means,
        noise=sums.noise,
        guarantee=asked.guarantee,
    )


def _moved(query: Standing, before: Sums, now: Sums, variances: Floats, level: float) -> Any:
    """Which numbers are farther off than chance brings any of them at this level."""
    n, n_before = now.n_clients.value, before.n_clients.value
    judged = _judged(query)
    z = float(-ndtri(level / 2 / max(judged.sum(), 1)))
    errors = np.sqrt(variances * (1 / n + 1 / n_before) + now.noise**2 + before.noise**2)
    reach = z * errors + (z**2 - 1) / 6 / min(n, n_before)
    return (np.abs(now.means - before.means) > reach) & judged


@dataclass(frozen=True)
class _Own:
    """What the mixture's own clients answer: of each number the mean and the variance.

    `by_component` has the mean responsibilities of each component's clients, `covariance` is that of all
    clients' responsibilities; both (K, K).
    """

    means: Floats
    variances: Floats
    by_component: Floats
    covariance: Floats

    @classmethod
    def of(cls, query: Standing, rng: np.random.Generator) -> "_Own":
        mdm, k = query.mdm, query.mdm.n_components
        total, squares = np.zeros(query.n_numbers), np.zeros(query.n_numbers)
        by_component, of_each, products = np.zeros((k, k)), np.zeros(k), np.zeros((k, k))
        for start in range(0, _SIMULATED, _TOGETHER):
            components, counts = mdm.drawn(min(_TOGETHER, _SIMULATED - start), rng)
            rows = standings(mdm, query.size_bins, query.yardstick, counts)
            omega = rows[:, 1 : k + 1]
            total += rows.sum(axis=0)
            squares += (rows**2).sum(axis=0)
            np.add.at(by_component, components, omega)
            of_each += np.bincount(components, minlength=k)
            products += omega.T @ omega
        means = total / _SIMULATED
        mean = query.blocks(means)["components"]
        return cls(
            means,
            np.maximum(squares / _SIMULATED - means**2, 0.0),
            by_component / np.maximum(of_each, 1.0)[:, None],
            products / _SIMULATED - np.outer(mean, mean),
        )

    def weights(self, omega: Floats) -> Floats:
        """The weights under which the mean responsibilities are these."""
        return np.asarray(self._inverse() @ omega)

    def weight_errors(self, n: float, noise: Floats) -> Floats:
        """Their standard errors; NaN if components cannot be by_component apart."""
        inverse = self._inverse()
        covariance = self.covariance / n + np.diag(noise**2)
        errors = np.sqrt(np.maximum(np.diag(inverse @ covariance @ inverse.T), 0.0))
        return (
            np.full(len(noise), np.nan)
            if np.linalg.cond(self.by_component) > _CONDITION
            else errors
        )

    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.pinv(self.by_component.T))


def _yardstick(mdm: MDM, bins: SizeBins, rng: np.random.Generator) -> Yardstick:
    logs, where = np.empty(0), np.empty(0, np.int64)
    for start in range(0, _FOR_YARDSTICK, _TOGETHER):
        _, counts = mdm.drawn(min(_TOGETHER, _FOR_YARDSTICK - start), rng)
        logs = np.append(logs, log_likelihoods(mdm, counts)[0])
        where = np.append(where, bins.locate(counts.sum(axis=1)))
    n = np.bincount(where, minlength=bins.n_bins)
    means = np.bincount(where, logs, minlength=bins.n_bins) / np.maximum(n, 1)
    # The bin with the most clients may have few; log-likelihoods are about linear in log n.
    known = np.flatnonzero(n >= min(_FEWEST, n.max()))
    centres = np.interp(np.arange(bins.n_bins), known, means[known])
    off = logs - centres[where]
    spread = float(off.std())
    floors = centres + np.quantile(off, _UNEXPLAINED)
    for one in np.flatnonzero(n >= _FEWEST_OF_A_TAIL):
        floors[one] = np.quantile(logs[where == one], _UNEXPLAINED)
    # Rounding must not put clients below a floor where all of them are as likely.
    return Yardstick(centres, floors - 1e-9 * np.abs(floors), max(spread, 1e-6))


def _judged(query: Standing) -> Any:
    """Which numbers are judged: not the number of clients, a single component, or the squares."""
    judged = query.blocks(np.ones(query.n_numbers, bool))
    judged["clients"][:] = judged["squares"][:] = False
    judged["components"][:] = query.mdm.n_components > 1
    judged["sizes"][:] = query.size_bins.n_bins > 1
    return np.concatenate(list(judged.values()))


def _largest_variances(query: Standing, means: Floats) -> Floats:
    """The largest variances of numbers between 0 and 1 with these means; of the fit, as measured."""
    inside = np.clip(means, 0.0, 1.0)
    variances = inside * (1 - inside)
    blocks = query.blocks(np.array(variances))
    at = query.blocks(means)
    blocks["fit"][:] = np.maximum(at["squares"] - at["fit"] ** 2, 0.0)
    return np.concatenate(list(blocks.values()))


def _changes(
    query: Standing, own: _Own, sums: Sums, before: Floats, moved: dict[str, Any]
) -> tuple[Change, ...]:
    now, noise, was = query.blocks(sums.means), query.blocks(sums.noise), query.blocks(before)
    n, bins, mdm = sums.n_clients.value, query.size_bins, query.mdm
    expected, nats = query.blocks(own.means)["fit"], CUT * query.yardstick.spread
    spread = max(float(now["squares"][0] - now["fit"][0] ** 2), 0.0)
    fit_error = np.sqrt(spread / n + noise["fit"] ** 2) * nats
    weight_errors = own.weight_errors(n, noise["components"])
    spans = [_span(a, b - 1) for a, b in zip(bins.edges[:-1], bins.edges[1:], strict=True)]

    def shares(key: str, names: Sequence[str]) -> tuple[Any, ...]:
        return key, names, was[key], shares_of(sums, now[key], noise[key])

    rows: dict[Block, tuple[Any, ...]] = {
        "component": (
            "components", [str(k + 1) for k in range(mdm.n_components)],
            own.weights(was["components"]), _around(own.weights(now["components"]), weight_errors),
        ),
        "size": shares("sizes", spans),
        "category": shares("p", mdm.categories or [str(j) for j in range(mdm.n_categories)]),
        "fit": (
            "fit", ["log-likelihood"], (was["fit"] - expected) * nats,
            _around((now["fit"] - expected) * nats, fit_error),
        ),
        "unexplained": shares("unexplained", ["no component"]),
    }  # fmt: skip
    return tuple(
        Change(block, name, float(one), estimate, bool(beyond))
        for block in _ORDER
        for key, names, ones, estimates in [rows[block]]
        for name, one, estimate, beyond in zip(names, ones, estimates, moved[key], strict=True)
    )


def _around(values: Floats, errors: Floats) -> list[Estimate]:
    """Numbers with their standard errors."""
    return [Estimate.around(*pair) for pair in zip(values, REACH * errors, strict=True)]


def _span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"
