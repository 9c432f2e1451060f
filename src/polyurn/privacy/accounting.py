"""What Gaussian noise costs: between a noise multiplier sigma and (ε, δ), for one release or many.

A release is a sum of vectors of norm at most 1, one for each client, plus Gaussian noise of standard
deviation sigma in each element; the unit is one client, added or removed. Every client takes part in
every release. Then adaptive releases compose exactly to one with 1 / sigma² = Σ 1 / sigma_t² (Dong,
Roth and Su 2022), and the closed form of Balle and Wang (2018) is all there is to compute. A test
compares it with Google's dp-accounting, which has privacy loss distributions. Draws no noise.
"""

import functools
import math
from collections.abc import Callable, Iterable

import numpy as np

from polyurn.errors import ParameterError
from polyurn.typed.arguments import checked

# Roots are moved to the safe side by so much of themselves: δ is a difference of two nearly equal
# numbers at small ε, and its roundings move a root by 1e-10 of it at ε = 0.001.
_SAFE = 1e-9
MOST_EPSILON = 1e6


@checked
def sigma_for(epsilon: float, delta: float) -> float:
    """The noise multiplier of all releases together that makes them (ε, δ)-private, to a relative 1e-9
    above it.

    A plan that gives release t the share w_t of the budget, Σ w_t = 1, takes sigma_t = sigma / √w_t.

    >>> round(sigma_for(1.0, 1e-6), 4)
    4.2247
    """
    check_budget(epsilon, delta)
    return _sigma_for(epsilon, delta)


@functools.lru_cache(maxsize=64)  # a ledger asks again with every charge
def _sigma_for(epsilon: float, delta: float) -> float:
    log_sigma = _root(lambda log_sigma: delta_of(math.exp(log_sigma), epsilon) - delta)
    return math.exp(log_sigma) * (1 + _SAFE)


@checked
def delta_of(sigma: float, epsilon: float) -> float:
    """The δ of one release with this noise multiplier at ε (Balle and Wang 2018, theorem 8).

    δ = Φ(1/(2 sigma) - ε sigma) - e^ε Φ(-1/(2 sigma) - ε sigma).

    >>> round(delta_of(1.0, 1.0), 4)
    0.1269
    """
    from scipy.special import log_ndtr

    half, shift = 0.5 / sigma, epsilon * sigma
    first = float(log_ndtr(half - shift))
    # e^ε Φ(.) / Φ(.) as one exponential: each of them alone may overflow or vanish.
    return math.exp(first) * -math.expm1(min(0.0, epsilon + float(log_ndtr(-half - shift)) - first))


@checked
def epsilon_of(sigmas: Iterable[float], delta: float) -> float:
    """The ε of several releases together, at δ, in closed form; each of them over all clients.

    `sigmas` are their noise multipliers. No release costs nothing: ε is 0.

    >>> round(epsilon_of([4.2247], 1e-6), 3), round(epsilon_of([4.2247, 4.2247], 1e-6), 3)
    (1.0, 1.455)
    """
    _check_delta(delta)
    square = spent(sigmas)
    if square == 0.0:
        return 0.0
    sigma = 1 / math.sqrt(square)
    if delta_of(sigma, 0.0) <= delta:
        return 0.0
    if delta_of(sigma, MOST_EPSILON) > delta:
        raise ParameterError(f"expected noise worth an epsilon below {MOST_EPSILON:g}, got less")
    log_epsilon = _root(lambda log_eps: delta_of(sigma, math.exp(log_eps)) - delta)
    return math.exp(log_epsilon) * (1 + _SAFE)


def spent(sigmas: Iterable[float]) -> float:
    """Σ 1 / sigma² of some releases: what adds up; the square of μ in μ-GDP.

    >>> spent([2.0, 2.0])
    0.5
    """
    values = np.fromiter(sigmas, dtype=np.float64)
    if not ((values > 0) & (values < np.inf)).all():
        raise ParameterError("expected noise multipliers above 0, got others")
    return float((1 / values**2).sum())


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse an ε or a δ out of range."""
    if not 0 < epsilon < MOST_EPSILON:  # NaN is not
        raise ParameterError(f"expected epsilon above 0 and below {MOST_EPSILON:g}, got {epsilon}")
    _check_delta(delta)


def _check_delta(delta: float) -> None:
    if not 1e-300 <= delta < 1:
        raise ParameterError(f"expected delta from 1e-300 to less than 1, got {delta}")


def _root(falling: Callable[[float], float]) -> float:
    """Where a falling function of a logarithm crosses 0."""
    from scipy.optimize import brentq

    low, high = -1.0, 1.0
    while falling(low) < 0:
        low *= 2
    while falling(high) > 0:
        high *= 2
    return float(brentq(falling, low, high, xtol=1e-13, rtol=4 * np.finfo(float).eps))
