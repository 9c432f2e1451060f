"""A number with its interval, and the bootstrap over clients that gives it one.

It does not know what the number measures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from polyurn.errors import ParameterError
from polyurn.memory import check_memory
from polyurn.typed.declared import Floats, Seed

# Every interval of a comparison covers so much.
COVERAGE = 0.95
_TAILS = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)


@dataclass(frozen=True)
class Estimate:
    """A number and its interval, which covers 95 % unless it says otherwise.

    NaN where there is nothing to say: no value, or a value without an interval.

    >>> f"{Estimate(0.5, 0.25, 0.75):.0%}, {Estimate(0.5, np.nan, np.nan):.0%}"
    '50% (25% to 75%), 50%'
    """

    value: float
    low: float
    high: float

    @classmethod
    def around(
        cls, value: float, half: float, least: float = -math.inf, most: float = math.inf
    ) -> "Estimate":
        """A number and what is within `half` of it, between the least and the most that it can be."""
        return cls(float(value), float(max(value - half, least)), float(min(value + half, most)))

    def scaled(self, factor: float) -> "Estimate":
        """The same in another unit."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high)

    def __format__(self, spec: str) -> str:
        if np.isnan(self.value):
            return "–"
        if np.isnan(self.low):
            return f"{self.value:{spec}}"
        return f"{self.value:{spec}} ({self.low:{spec}} to {self.high:{spec}})"


def interval(draws: Floats) -> tuple[float, float]:
    """The range that holds the middle 95 % of draws, shape (n_draws,), some perhaps infinite.

    Draws that are NaN, from which nothing could be estimated, are left out.
    """
    defined = draws[~np.isnan(draws)]
    if len(defined) == 0:
        return np.nan, np.nan
    low, high = np.quantile(defined, _TAILS, method="inverted_cdf")
    return float(low), float(high)


def reflected_interval(
    value: float, draws: Floats, least: float, most: float
) -> tuple[float, float]:
    """The interval of bootstrap draws reflected at the estimate, within what is possible.

    As far as a bootstrap sample's value lies above the estimate, so far the estimate may lie above
    what is estimated: where both are biased alike, the bias goes out.

    >>> reflected_interval(0.5, np.array([0.4, 0.45, 0.5]), 0.0, 1.0)
    (0.5, 0.6)
    """
    low, high = (2 * value - end for end in interval(draws))
    return float(np.clip(high, least, most)), float(np.clip(low, least, most))


def resample_weights(n_clients: int, n_draws: int, *, rng: Seed = None) -> Floats:
    """How often each client occurs in each bootstrap sample, shape (n_draws, n_clients).

    >>> resample_weights(5, 3, rng=0).sum(axis=1).tolist()
    [5.0, 5.0, 5.0]
    """
    if n_draws < 1:
        raise ParameterError(f"expected n_bootstrap of at least 1, got {n_draws}")
    what = f"{n_draws} bootstrap samples of {n_clients} clients"
    check_memory(24 * n_draws * n_clients, what, "take a smaller n_bootstrap")
    rng = np.random.default_rng(rng)
    weights = rng.multinomial(n_clients, np.full(n_clients, 1 / n_clients), size=n_draws)
    return weights.astype(np.float64)


def mean_estimate(values: Floats, weights: Floats) -> Estimate:
    """The mean of values of shape (n_clients,) and its bootstrap interval by `resample_weights`."""
    return Estimate(float(values.mean()), *interval(weights @ values / len(values)))


def normal_estimate(values: Floats) -> Estimate:
    """The mean over clients and its interval by the standard error; all -inf if one value is."""
    mean = float(values.mean())
    if not np.isfinite(mean):
        return Estimate(mean, mean, mean)
    error = 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values))
    return Estimate.around(mean, error)


def student_estimate(values: Sequence[float], *, confidence: float = COVERAGE) -> Estimate:
    """The mean of a few independent values and its interval by Student's t; one value has no interval.

    >>> f"{student_estimate([1.0, 2.0, 3.0]):.2f}, {student_estimate([1.0]):.2f}"
    '2.00 (-0.48 to 4.48), 1.00'
    """
    mean, error = mean_and_error(values)
    if math.isnan(error):
        return Estimate(mean, math.nan, math.nan)
    reach = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * error
    return Estimate.around(mean, reach)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error; NaN for what so few values do not have."""
    mean = float(np.mean(values)) if len(values) else math.nan
    if len(values) < 2:
        return mean, math.nan
    return mean, float(np.std(values, ddof=1)) / math.sqrt(len(values))
