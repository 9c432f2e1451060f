"""An audit: how well a canary client is detected in many releases, and a lower bound of ε from that.

The attacker knows every client but the canary, and so the exact sums without it. It sees the releases
and tests by their likelihood ratio whether the canary is in them. A test that is too good refutes a
claim; no test proves one. The package's own aggregator makes the releases, not a copy of it. The
trade-off curve is assumed to be a Gaussian's; without that assumption the same runs show far less.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyurn.errors import ParameterError
from polyurn.privacy.accounting import epsilon_of
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import Aggregator, Noised, Query

# Numbers of noise that are drawn at once; one call per release would take three times as long.
_BLOCK = 2**14


@dataclass(frozen=True)
class Audit:
    """The result of an attack.

    `claimed` is the ε of the releases' noise multipliers at `delta`, and `found` the least that it can
    be, at `confidence`. There were `n_runs` with the canary and as many without it; in `n_missed` of the
    first it was not detected, in `n_false_alarms` of the others it was.
    """

    claimed: float
    found: float
    delta: float
    n_runs: int
    n_false_alarms: int
    n_missed: int
    confidence: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong; a right one is refuted with probability 1 - `confidence`."""
        return self.found > self.claimed


@checked
def audit(
    private: Callable[[Aggregator], Aggregator],
    rounds: Sequence[Noised[Any]],
    *,
    without: Aggregator,
    with_canary: Aggregator,
    delta: float,
    n_runs: int = 20_000,
    confidence: float = 0.95,
) -> Audit:
    """Put the same questions to the same clients with and without a canary, many times over.

    The statistic is Σ_t <release_t - sum_t, v_t> / sigma_t² over the rounds, v_t being the canary's
    vector; the threshold is half of what the canary adds to it, fixed beforehand. The two error rates
    get Clopper-Pearson upper bounds a and b, μ ≥ Φ⁻¹(1 - a) - Φ⁻¹(b) bounds the releases' μ-GDP from
    below, and ε follows at δ.

    Parameters
    ----------
    private : function of an aggregator
        Wraps one that sums exactly into one that releases sums with noise, anew for each run: a
        `PrivateAggregator` with a fresh ledger.
    rounds : sequence of Noised
        The questions, with the noise multipliers that are claimed.
    without, with_canary : Aggregator
        Sum exactly over the same clients, but for the canary. Each is asked each question once.
    delta : float
    n_runs : int
    confidence : float

    Examples
    --------
    docs/private-sums.md has an audit of a fit's rounds.
    """
    if n_runs < 1 or not rounds or not 0 < confidence < 1:
        raise ParameterError("expected n_runs and rounds of at least 1, and confidence from 0 to 1")
    known, more = _Remembered(without), _Remembered(with_canary)
    sums = [known.exact(asked.query) for asked in rounds]
    canary = [more.exact(q.query) - exact for q, exact in zip(rounds, sums, strict=True)]
    weights = [v / asked.sigma**2 for v, asked in zip(canary, rounds, strict=True)]
    threshold = sum(float(v @ w) for v, w in zip(canary, weights, strict=True)) / 2

    def statistic(clients: Aggregator) -> float:
        released = private(clients)
        answers = (released.aggregate(asked, None).to_vector() for asked in rounds)
        return sum(
            float((answer - exact) @ weight)
            for answer, exact, weight in zip(answers, sums, weights, strict=True)
        )

    n_false_alarms = sum(statistic(known) > threshold for _ in range(n_runs))
    n_missed = sum(statistic(more) <= threshold for _ in range(n_runs))
    return Audit(
        claimed=epsilon_of([asked.sigma for asked in rounds], delta),
        found=_found(n_false_alarms, n_missed, n_runs, delta, confidence), delta=delta, n_runs=n_runs,
        n_false_alarms=n_false_alarms, n_missed=n_missed, confidence=confidence,
    )  # fmt: skip


def in_blocks(noise: Noise = discrete_gaussian) -> Noise:
    """Noise that is drawn in blocks, each number used once: the same draws in less time.

    >>> draw = in_blocks()
    >>> len(draw(3, 2.0**20)), len(draw(20_000, 2.0**20))
    (3, 20000)
    """
    left: dict[float, Ints] = {}

    def draw(n_numbers: int, scale: float) -> Ints:
        drawn = left.get(scale, np.empty(0, dtype=np.int64))
        if len(drawn) < n_numbers:
            drawn = np.append(drawn, noise(max(_BLOCK, n_numbers), scale))
        left[scale] = drawn[n_numbers:]
        return drawn[:n_numbers]

    return draw


class _Remembered:
    """Asks each question once: the exact answer does not change from run to run."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._answers: dict[int, tuple[Query[Any], Any]] = {}

    def aggregate(self, query: Query[Any], cohort_size: int | None) -> Any:
        if id(query) not in self._answers:  # the query is kept too, so that no other gets its id
            self._answers[id(query)] = query, self._aggregator.aggregate(query, cohort_size)
        return self._answers[id(query)][1]

    def exact(self, query: Query[Any]) -> Floats:
        return np.asarray(self.aggregate(query, None).to_vector())


def _found(
    n_false_alarms: int, n_missed: int, n_runs: int, delta: float, confidence: float
) -> float:
    from scipy.special import ndtri
    from scipy.stats import beta

    def most(n: int) -> float:
        """The Clopper-Pearson upper bound of a rate; each of two gets half of the error."""
        level = 1 - (1 - confidence) / 2
        return 1.0 if n == n_runs else float(beta.ppf(level, n + 1, n_runs - n))

    mu = float(ndtri(1 - most(n_false_alarms)) - ndtri(most(n_missed)))
    return epsilon_of([1 / mu], delta) if mu > 0 else 0.0
