"""Gaussian noise that lies on the grid of private sums, from OpenDP: exact, and never from a seed.

Noise in floating point can be told from its low bits (Mironov 2012), and a seed that a user chose can be
chosen again. OpenDP draws the discrete Gaussian of Canonne, Kamath and Steinke (2020) in whole numbers
from the operating system's cryptographic randomness. Nothing is clipped or accounted for here.
"""

import functools
import importlib.util
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.typed.declared import Floats, Ints
from polyurn.wire.private_grid import STEP, steps

# (n_numbers, scale) -> whole numbers: a discrete Gaussian of standard deviation `scale` in each element.
Noise: TypeAlias = Callable[[int, float], Ints]

# Of a scale in steps of the grid. Below the least the discrete Gaussian is no longer as good as a
# Gaussian (see `noised`); above the most, noise and sum need not fit into 53 bits together.
LEAST_SCALE, MOST_SCALE = 2.0**10, 2.0**47


def discrete_gaussian(n_numbers: int, scale: float) -> Ints:
    """Independent draws of the discrete Gaussian, P(x) ∝ exp(-x² / (2 scale²)), shape (n_numbers,), from
    OpenDP.

    `scale` is the standard deviation, to a relative exp(-scale²).

    >>> draws = discrete_gaussian(2000, 2.0**20)
    >>> draws.dtype, bool(0.9 < draws.std() / 2**20 < 1.1)  # 2000 draws: 9 standard errors
    (dtype('int64'), True)
    """
    return np.array(_measurement(scale)([0] * n_numbers), dtype=np.int64)


def noised(
    vector: Floats, sigma: float, *, n_adders: int = 1, noise: Noise = discrete_gaussian
) -> Floats:
    """A sum of private answers plus discrete Gaussian noise of standard deviation sigma √n_adders.

    **What it is worth.** The sum is in whole steps of the grid, exactly (`wire/private_grid.py`), and so
    is the noise; two sums that differ in one client differ by a vector of norm at most 1. If the noise
    were a Gaussian rounded to whole steps, the release would be a function of the sum plus that
    Gaussian, because round(a + G) = a + round(G) for whole a: exactly the Gaussian mechanism's (ε, δ).
    The discrete Gaussian p differs from the rounded one r by almost nothing. With s = sigma / 2**-28,

        r(x) / φ_s(x) = ∫ exp(-(2xu + u²) / 2s²) du over |u| ≤ 1/2,

    which is at least exp(-1 / 24s²) by Jensen's inequality, and at most sinh(a) / a ≤ exp(a² / 6) with
    a = x / 2s²; the sum that p is divided by is s √(2π) up to a factor 1 + 3 exp(-2π² s²). So for d
    numbers |log r/p| ≤ η = (d + |x|² / s²) / 24s² + 3d exp(-2π² s²), and |x| ≤ s (√d + 40) but for a
    probability below 1e-300. (ε, δ) becomes (ε + 2η, δ e^η): at d = 50,000 and sigma = 0.25, η is below
    1e-12, which no printed digit shows.

    **Several adders.** If each of m nodes adds a discrete Gaussian of scale s / √m inside a secure sum,
    the total is not a discrete Gaussian but closer to one than 10 Σ_k exp(-2π² (s² / m) k / (k + 1)) in
    every log-probability (Kairouz, Liu and Steinke 2021): nothing, for scales of 2**10 or more, which is
    the least that is accepted.

    Vector and sum have the shape (d,) and are on the grid. `sigma` is the noise multiplier of one adder;
    the shares of `n_adders`, of all clients of a node say, are one draw. `noise` is for tests.

    >>> noised(np.array([0.5, 2.0]), 1.0, noise=lambda n, scale: np.full(n, int(scale))).tolist()
    [1.5, 3.0]
    """
    scale = check_scale(sigma) * math.sqrt(n_adders)
    if scale > MOST_SCALE:
        raise ParameterError(f"expected noise of at most {MOST_SCALE * STEP:,.0f}, got more")
    return np.asarray((steps(vector) + noise(len(vector), scale)) * STEP)


def check_installed(purpose: str) -> None:
    """Nothing, if noise can be drawn here; else `MissingDependencyError` with what it is wanted for."""
    if importlib.util.find_spec("opendp") is None:
        raise MissingDependencyError("opendp", "privacy", purpose)


def check_scale(sigma: float) -> float:
    """A noise multiplier in steps of the grid; refused if it is out of range."""
    scale = sigma / STEP
    if not LEAST_SCALE <= scale <= MOST_SCALE:  # NaN is not
        raise ParameterError(
            f"expected a noise multiplier from {LEAST_SCALE * STEP:.2g} to "
            f"{MOST_SCALE * STEP:,.0f}, got {sigma}"
        )
    return scale


@functools.lru_cache(maxsize=64)  # a run has about twelve
def _measurement(scale: float) -> Any:
    """OpenDP's mechanism; it takes longer to make than to call."""
    try:
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance
        from opendp.mod import enable_features
    except ImportError as error:
        raise MissingDependencyError("opendp", "privacy", "noise") from error
    enable_features("contrib")  # what OpenDP has not yet vetted, make_gaussian among it
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)
