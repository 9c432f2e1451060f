"""How uncertain a mixture's parameters are: their standard errors, and mixtures that are as plausible.

The covariance is that of x, which has log α_k1, ..., log α_kC and log τ_k of each component in turn, τ a
softmax: the inverse of the observed information (Efron and Hinkley, 1978), as a lower triangle. A
parameter that clients say next to nothing about has variance 0 and no standard error. `server/em.py`
makes the covariance, to which learned sizes add; the sizes themselves have no errors here.
"""

from dataclasses import dataclass

import numpy as np

from polyurn.typed.arrays import EqualArrays, symmetric
from polyurn.typed.declared import Floats

# Of variances that are 0 but for rounding, relative to those that are not.
_ROUNDING = 1e-12
# No logarithm moves further in a draw, whatever its variance: as far as a fit's own may be from 0.
_LARGEST_STEP = 25.0


@dataclass(frozen=True, eq=False)
class StandardErrors(EqualArrays):
    """Standard errors of τ, of the means α / α_0 and of α_0; NaN where there is none."""

    weights: Floats  # (n_components,)
    shares: Floats  # (n_components, n_categories)
    concentrations: Floats  # (n_components,)


def standard_errors(weights: Floats, alphas: Floats, covariance: Floats) -> StandardErrors:
    """The standard errors of τ, α / α_0 and α_0 by the delta method."""
    k, c = alphas.shape
    square, each = symmetric(covariance).reshape(k, c + 1, k, c + 1), np.arange(k)
    softmax = np.diag(weights) - np.outer(weights, weights)
    of_weights = np.einsum("ij,jl,il -> i", softmax, square[:, c, :, c], softmax)
    known = (np.einsum("kk -> k", square[:, c, :, c]) > 0) | (k == 1)
    alpha_0 = alphas.sum(axis=1)
    p, of_logs = alphas / alpha_0[:, None], square[each, :c, each, :c]
    variances = np.einsum("kjj -> kj", of_logs)
    with_total = np.einsum("kij,kj -> ki", of_logs, p)  # covariance of log α_i and log α_0
    of_total = (with_total * p).sum(axis=1)
    of_shares = variances - 2 * with_total + of_total[:, None]
    moves = of_total > _ROUNDING * variances.max(axis=1)  # not at its cap
    return StandardErrors(
        np.where(known, np.sqrt(np.maximum(of_weights, 0)), np.nan),  # below 0 is rounding
        np.where(variances > 0, p * np.sqrt(np.maximum(of_shares, 0)), np.nan),
        np.where(moves, alpha_0 * np.sqrt(np.maximum(of_total, 0)), np.nan),
    )


def plausible(
    weights: Floats, alphas: Floats, covariance: Floats, n: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Weights (n, K) and alphas (n, K, C) drawn from the normal approximation of x."""
    k, c = alphas.shape
    square = symmetric(covariance)
    steps = rng.multivariate_normal(np.zeros(len(square)), square, size=n, method="eigh")
    steps = steps.reshape(n, k, c + 1)
    logs = np.log(weights) + steps[..., c]
    drawn = np.exp(np.maximum(logs - logs.max(axis=1, keepdims=True), -_LARGEST_STEP))
    steps = np.clip(steps[..., :c], -_LARGEST_STEP, _LARGEST_STEP)
    return drawn / drawn.sum(axis=1, keepdims=True), alphas * np.exp(steps)
