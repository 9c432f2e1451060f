"""Rising factorials and their derivatives: the special functions of a Pólya urn.

A Dirichlet-multinomial only ever needs Γ(x + c)/Γ(x) at a whole number c, and its first two
logarithmic derivatives. Subtracting two `gammaln` or `digamma` values loses every digit when x is
large (the multinomial limit), so the differences are computed here as differences. This module knows
nothing of clients, categories or mixtures.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from polyurn.typed.declared import Floats

# Below this, x is shifted up by adding the first terms of the sum one by one; at 16 the asymptotic
# series to 1/x^13 is exact to the last bit of a double.
SERIES_FROM = 16

# B_2i / (2i (2i - 1)): the series of log Γ(x) is (x - 1/2) log x - x + log(2π)/2 + Σ s_i / x^(2i - 1).
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def log_rising(x: ArrayLike, c: ArrayLike, *, scale: ArrayLike = 1.0) -> Floats:
    """Log of the rising factorial, log Γ(x + c) - log Γ(x) - c log(scale) = Σ_{m<c} log((x + m)/scale).

    The ratio of two of them that share a `scale` keeps its digits however large x is: with scale = α_0
    the numerator of a Dirichlet-multinomial tends to Σ c_j log p_j and its denominator to 0. All three
    are not negative and broadcast; the result is 0 where c is 0, and -inf where x is 0 and c is not.

    >>> float(np.exp(log_rising(2.0, 3)).round(12))  # 2 * 3 * 4
    24.0
    """
    x0, c0, scale0 = _broadcast(x, c, scale)
    total = _near(x0, c0, lambda m: np.log((x0 + m) / scale0))
    x, c = _rest(x0, c0)
    big = x + c
    # (x + c - 1/2) log(x + c) - (x - 1/2) log x - c, arranged so that nothing of size x cancels.
    far = (
        (big - 0.5) * np.log1p(c / x)
        + c * (np.log(x / scale0) - 1.0)
        + _stirling(big)
        - _stirling(x)
    )
    return total + np.where(c > 0, far, 0.0)


def digamma_rise(x: ArrayLike, c: ArrayLike) -> Floats:
    """Rise of the digamma function, ψ(x + c) - ψ(x) = Σ_{m<c} 1/(x + m).

    Parameters and broadcasting as in `log_rising`; `x` must be positive where c is.

    >>> float(digamma_rise(1.0, 3).round(6))  # 1 + 1/2 + 1/3
    1.833333
    """
    x0, c0 = _broadcast(x, c)
    total = _near(x0, c0, lambda m: 1.0 / (x0 + m))
    x, c = _rest(x0, c0)
    big, inv = x + c, 1.0 / x
    total += np.log1p(c * inv) + 0.5 * c * inv / big
    for i, s in enumerate(STIRLING, start=1):
        total += (2 * i - 1) * s * (inv ** (2 * i) - big ** (-2.0 * i))
    return total


def trigamma_fall(x: ArrayLike, c: ArrayLike) -> Floats:
    """Fall of the trigamma function, ψ′(x) - ψ′(x + c) = Σ_{m<c} 1/(x + m)².

    Parameters and broadcasting as in `log_rising`; `x` must be positive where c is.

    >>> float(trigamma_fall(1.0, 2).round(12))  # 1 + 1/4
    1.25
    """
    x0, c0 = _broadcast(x, c)
    total = _near(x0, c0, lambda m: (x0 + m) ** -2.0)
    x, c = _rest(x0, c0)
    big, inv = x + c, 1.0 / x
    total += c * inv / big + 0.5 * (inv + 1 / big) * (c * inv / big)
    for i, s in enumerate(STIRLING, start=1):
        total += 2 * i * (2 * i - 1) * s * (inv ** (2 * i + 1) - big ** (-2.0 * i - 1))
    return total


def _broadcast(*arrays: ArrayLike) -> list[Floats]:
    return list(np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays)))


def _near(x: Floats, c: Floats, term: Callable[[int], Floats]) -> Floats:
    """The first terms of the sum, one by one, where x is too small for the series."""
    total = np.zeros(x.shape)
    with np.errstate(divide="ignore"):  # log 0 is -inf, as it should be
        for m in range(SERIES_FROM):
            todo = (c > m) & (x < SERIES_FROM)
            if not todo.any():
                break
            total += np.where(todo, term(m), 0.0)
    return total


def _rest(x: Floats, c: Floats) -> tuple[Floats, Floats]:
    """The (x, c) whose terms `_near` left out; x is harmless where nothing is left."""
    done = np.where(x < SERIES_FROM, np.minimum(c, SERIES_FROM), 0.0)
    return np.where(c > done, x + done, float(SERIES_FROM)), c - done


def _stirling(x: Floats) -> Floats:
    inverse = 1.0 / x
    square = inverse * inverse
    total = np.zeros_like(x)
    for s in reversed(STIRLING):
        total = total * square + s
    return total * inverse
