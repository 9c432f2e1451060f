"""How large one client's sums can be: the mathematics behind the bounds of questions about parameters.

ω is a client's responsibilities, c its counts, n ≤ N its size: a client larger than N refuses to answer.
For component k, with α_0 = Σ_j α_j and p_j = α_j / α_0,

    t_j = Σ_{m<c_j} x_m,  σ_j = Σ_{m<c_j} x_m²  with  x_m = α_j / (α_j + m);  T, S: those of n and α_0.

Each term is positive, so each sum is largest at c_j = N or n = N. These largest ones are written t̄, σ̄,
T̄ and S̄; they are differences of digamma and trigamma functions.
"""

import numpy as np

from polyurn.model.mdm import MDM, Parameters
from polyurn.model.rising_factorials import digamma_rise, log_rising, trigamma_fall
from polyurn.model.sizes import SizeBins
from polyurn.model.splits import Splits
from polyurn.typed.declared import Floats
from polyurn.wire.query import ROUNDING


def log_bound(model: MDM | Parameters) -> float:
    """The largest |log q(c, n)| of a client to whom a model gives a positive probability.

    q is a probability, so log q ≤ 0. From below, q is at least what any one component k adds,

        log q ≥ log τ_k + log mass_k(bin of n) + log P(n | bin of n) + log p(c | n, α_k).

    The least of each term over clients is taken, which gives L_k. The least log p over c falls with n,
    so it is that at n = N: a point more in category j multiplies p by (α_j + c_j) / (α_0 + n) over
    (c_j + 1) / (n + 1), and for some j that is at most 1, because the former add up to 1 over j and the
    latter to at least 1. For the least value at N see `_least_log_shares`. A component to which every
    client is possible bounds log q of all of them by its L_k, and the best of these counts. If there is
    none, a client is possible to some component, and the least L_k counts.

    With splits, log p is the sum of those of all splits, each of which is a mixture of two categories.
    """
    bins, masses = model.sizes.bins, model.sizes.masses
    with np.errstate(divide="ignore"):  # weights and masses of 0 are passed over
        of_sizes = np.where(masses > 0, np.log(masses) + _least_log_inside(bins), np.inf)
        least = np.log(model.weights) + of_sizes.min(axis=1)
    splits = getattr(model, "splits", None)
    if splits is None:
        least += _least_log_shares(model.alphas, bins.max_size)
    else:
        least += _least_log_splits(splits, bins.max_size)
    possible = model.weights > 0
    everywhere = possible & (masses > 0).all(axis=1) & (model.alphas > 0).all(axis=1)
    lowest = least[everywhere].max() if everywhere.any() else least[possible].min()
    # Probabilities near 1 have logs near 0, whose rounding errors are those of 1.
    return float(ROUNDING - lowest)


def _least_log_inside(bins: SizeBins) -> Floats:
    """The least log P(n | bin) of sizes that are possible, by bin, shape (n_bins,)."""
    with np.errstate(divide="ignore"):
        logs = np.log(bins.shares) - np.log(np.diff(bins.fine))
    starts = np.searchsorted(bins.fine, bins.edges[:-1])
    return np.asarray(np.minimum.reduceat(np.where(bins.shares > 0, logs, np.inf), starts))


def _least_log_shares(alphas: Floats, n: int) -> Floats:
    """A lower bound of log p(c | n, α_k) over all c of possible categories, shape (n_components,).

    log p = log n! - log (α_0)_n + Σ_j f_j(c_j) with f_j(c) = Σ_{m<c} log((α_j + m) / (m + 1)), in which
    (a)_n is a rising factorial. Terms of f_j fall towards 0 if α_j > 1 and rise towards 0 if α_j < 1.

    - If all α_j > 1, Σ f_j is concave and least at a vertex, all points in one category; f_j grows with
      α_j, so in that of the least α_j. This is exact.
    - Otherwise no point is in a category of α_j > 1: it would add less elsewhere. For α_j ≤ 1 and c ≥ 1,
      (α_j + m) / (m + 1) ≥ m / (m + 1) gives f_j(c) ≥ log α_j - log c. With s categories that have
      points, these add up to at least the s least log α_j, less s log(n / s) (the logarithm is concave),
      and the least over s is taken.
    """
    alpha_0, positive = alphas.sum(axis=1), alphas > 0
    least, one = np.where(positive, alphas, np.inf).min(axis=1), np.ones(len(alphas))
    at_vertex, all_points, denominator, factorial = log_rising(
        np.array([least, alpha_0, alpha_0, one]), n, scale=np.array([alpha_0, alpha_0, one, one])
    )
    low = np.sort(np.where(positive & (alphas <= 1), alphas, np.inf), axis=1)[:, :n]
    s = np.arange(1, low.shape[1] + 1)
    shares = (np.cumsum(np.log(low), axis=1) - s * np.log(n / s)).min(axis=1)
    logs = np.where(least > 1, at_vertex - all_points, factorial - denominator + shares)
    return np.asarray(logs)


def _least_log_splits(splits: Splits, n: int) -> Floats:
    """A lower bound of log p(c | n, k) over all c that are possible, shape (n_components,).

    The least log p(x | N) of a split without laws is that of `_least_log_shares`, lowest at N = n. Laws
    multiply f_l(x) f_r(N - x) by between e^low and e^high, and the sum Z(N) of these likewise, so that
    the log of the quotient falls by at most high - low. A split that gets no points adds nothing.
    """
    k, j = splits.of_inner.shape
    pairs = splits.concentrations.reshape(k * j, 2)
    met = pairs.any(axis=1)
    least = np.zeros(k * j)
    least[met] = _least_log_shares(pairs[met], n)
    out = least.reshape(k, j).sum(axis=1)
    if splits.laws is not None:
        out -= np.ptp(splits.laws.values, axis=3).sum(axis=(1, 2))
    return np.asarray(out)


def largest_sums(alphas: Floats, n: int) -> dict[str, Floats]:
    """t̄, σ̄, T̄ and S̄ of the module's docstring, of shapes (K, C) twice and (K,) twice; 0 where α is.

    Their names are those of the blocks of answers.
    """
    every = np.column_stack([alphas, alphas.sum(axis=1)])
    safe = np.where(every > 0, every, 1.0)
    tables = np.where(every > 0, safe * digamma_rise(safe, n), 0.0)
    spread = np.where(every > 0, safe * (safe * trigamma_fall(safe, n)), 0.0)
    found = {"tables": tables[:, :-1], "spread": spread[:, :-1]}
    return {**found, "total_tables": tables[:, -1], "total_spread": spread[:, -1]}


def largest_curvature(parameters: Parameters, some: list[int]) -> Floats:
    """Bounds of the lower triangle of the Hessian H of log q in (log α, log τ) of some components.

    H = Σ_k ω_k (D_k + g_k g_k') - s s' - (diag τ - ττ'), with s = Σ_k ω_k g_k, and the gradient g_k of
    component k's log-probability, which is 0 outside of its own coordinates: g_kj = t_j - p_j T in
    log α_kj, and 1 in log τ_k.

    *The gradient* is in [-l_j, u_j] with l_j = p_j T̄ and u_j = t̄_j - p_j T̄, both attained. It is least
    at c_j = 0, n = N. At a given n it is largest at c_j = n, where each further point adds
    α_j / (α_j + m) - α_j / (α_0 + m) ≥ 0.

    *D_k* has α_i α_j S / α_0² off its diagonal: from 0 to p_i p_j S̄. On its diagonal it has
    t_j - σ_j - p_j T + p_j² S = Σ_{m<c_j} v(x_m) - Σ_{m<n} v(z_m), with v(x) = x (1 - x) and
    z_m = α_j / (α_0 + m) ≤ x_m. All terms are positive: it is least at c_j = 0, n = N, where it is
    -Z = -(p_j T̄ - p_j² S̄), and largest at n = c_j. There a further point adds
    (x_m - z_m)(1 - x_m - z_m), which changes its sign once, from - to +, as x_m + z_m falls: so it is
    at most max(0, V - Z) with V = t̄_j - σ̄_j.

    *Products.* Within one component they come with ω - ω² in [0, 1/4], across two with -ω_k ω_l, of size
    at most 1/4; with K = 1 there are none. |g_i g_j| is at most the largest of u_i u_j, u_i l_j,
    l_i u_j and l_i l_j. Where i and j are different categories, u_i u_j may be replaced by N² / 4: if
    both gradients are positive, g_i ≤ t_i ≤ c_i, g_j ≤ c_j, and c_i + c_j ≤ N.

    So H on its diagonal is within [-Z, max(0, V - Z) + |g_j|² / 4], and elsewhere at most
    p_i p_j S̄ + |g_i g_j| / 4. For log τ, ω (1 - ω) - τ (1 - τ) is at most the larger of τ (1 - τ) and
    1/4 - τ (1 - τ), and across components τ_k τ_l - ω_k ω_l that of τ_k τ_l and 1/4 - τ_k τ_l.
    """
    n, mixed = parameters.sizes.max_size, 0.25 if len(parameters.weights) > 1 else 0.0
    alphas, tau = parameters.alphas[some], parameters.weights[some]
    k, c = alphas.shape
    tables, spread, total_tables, total_spread = largest_sums(alphas, n).values()
    p = alphas / alphas.sum(axis=1, keepdims=True)
    low = p * total_tables[:, None]
    up = np.maximum(tables - low, 0.0)
    bounds = mixed * _products(up, low, n)

    each = np.arange(k)
    bounds[each, :c, each, :c] += p[:, :, None] * p[:, None, :] * total_spread[:, None, None]
    z = low - p**2 * total_spread[:, None]
    rise = np.maximum(tables - spread - z, 0.0) + mixed * np.maximum(up, low) ** 2
    for i in range(k):
        np.einsum("jj -> j", bounds[i, :c, i, :c])[:] = np.maximum(z[i], rise[i])
    covariance = np.abs(np.diag(tau) - np.outer(tau, tau))
    bounds[:, c, :, c] = np.maximum(covariance, mixed - covariance)
    square = bounds.reshape(k * (c + 1), -1)
    # What cancels in a client's sums is of the size of N, and its rounding error with it.
    return np.asarray(square[np.tri(len(square), dtype=bool)] + ROUNDING * n)


def _products(up: Floats, low: Floats, n: int) -> Floats:
    """The largest |g g'| of any two coordinates, shape (k, C + 1, k, C + 1)."""
    k, c = up.shape
    ones, zeros = np.ones((k, 1)), np.zeros((k, 1))
    ups, lows = np.hstack([up, ones]).reshape(-1), np.hstack([low, zeros]).reshape(-1)
    both = np.outer(ups, ups)
    category = np.tile(np.arange(c + 1), k)
    apart = (category[:, None] != category) & (category[:, None] < c) & (category < c)
    both[apart] = np.minimum(both[apart], n**2 / 4)
    mixed = np.outer(ups, lows)
    largest = np.maximum.reduce([both, mixed, mixed.T, np.outer(lows, lows)])
    return np.asarray(largest.reshape(k, c + 1, k, c + 1))
