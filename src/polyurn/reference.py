"""The paper in plain NumPy and in its own order: the likelihood, Algorithm 1, Algorithm 2; and splits.

A twin of the fast code, to read beside the paper and to test against. `counts` is one client of shape
(C,) or a table of shape (n_clients, C), as each function says. The parameters are the same three arrays
everywhere, those that `polyurn.MDM` takes: `weights` (τ) of shape (K,), `alphas` (A) of shape (K, C) and
`sizes` (Π) of shape (K, N + 1), whose column n is the probability of n points.

It is not fast, adds no privacy, and checks and repairs nothing: as in the paper, every α is positive,
every client has points, and every component has clients.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, logsumexp

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.integer[Any]]
Parameters: TypeAlias = tuple[Floats, Floats, Floats]


def dirichlet_multinomial_logpmf(counts: Counts, alpha: Floats) -> float:
    """Log p(c | n, α) of one client under one component (equation 1)."""
    n, alpha_0 = counts.sum(), alpha.sum()
    outside = gammaln(alpha_0) + gammaln(n + 1) - gammaln(n + alpha_0)
    inside = gammaln(counts + alpha) - gammaln(alpha) - gammaln(counts + 1)
    return float(outside + inside.sum())


def joint_logpmf(counts: Counts, weights: Floats, alphas: Floats, sizes: Floats) -> Floats:
    """Log τ_k p(c, n | α_k, π_k) of one client under each component, shape (K,) (equation 2)."""
    log_p = np.array([dirichlet_multinomial_logpmf(counts, alpha) for alpha in alphas])
    with np.errstate(divide="ignore"):  # log 0 = -inf: no client of that component has n points
        log_sizes = np.log(sizes[:, counts.sum()])
    return np.asarray(np.log(weights) + log_p + log_sizes)


def splits_logpmf(counts: Counts, children: Counts, concentrations: Floats, bends: Floats) -> float:
    """Log p(c | n) of one client whose points go down a tree of splits (Dennis 1991).

    Parameters
    ----------
    counts : int array of shape (C,)
    children : int array of shape (C - 1, 2)
        The nodes on both sides of each inner node, as `polyurn.Tree` has them.
    concentrations : float array of shape (C - 1, 2)
    bends : float array of shape (C - 1, 2, at least n + 1)
        What the law of each side adds to log f at each count: zeros for beta-binomials.
    """
    totals = np.concatenate([np.zeros(len(children), int), counts])
    for node in reversed(range(len(children))):
        totals[node] = totals[children[node]].sum()
    log_p = 0.0
    for node, (left, right) in enumerate(children):
        c, a = np.arange(totals[node] + 1), concentrations[node][:, None]
        log_f = gammaln(a + c) - gammaln(a) - gammaln(c + 1) + bends[node][:, : len(c)]
        log_z = logsumexp(log_f[0] + log_f[1, ::-1])
        log_p += log_f[0, totals[left]] + log_f[1, totals[right]] - log_z
    return float(log_p)


def log_likelihood(counts: Counts, weights: Floats, alphas: Floats, sizes: Floats) -> float:
    """L: the sum over a table (equation 4) of log q(c, n), the mixture (equation 3)."""
    return float(sum(logsumexp(joint_logpmf(c, weights, alphas, sizes)) for c in counts))


def responsibilities(counts: Counts, weights: Floats, alphas: Floats, sizes: Floats) -> Floats:
    """ω of one client, shape (K,) (equations 10 to 12; line 7 of Algorithm 2)."""
    joint = joint_logpmf(counts, weights, alphas, sizes)
    return np.asarray(np.exp(joint - logsumexp(joint)))


def moments(
    counts: Counts, *, n_components: int, max_size: int, rng: int | np.random.Generator | None
) -> tuple[Floats, Floats, Floats]:
    """E, P, Q: sums over a cohort's table (Algorithm 1, lines 3 to 9; equation 7)."""
    rng = np.random.default_rng(rng)
    E = np.zeros((n_components, max_size + 1))
    P, Q = np.zeros((2, n_components, counts.shape[1]))
    for c in counts:
        k, n = rng.integers(n_components), c.sum()  # line 4
        E[k, n] += 1  # line 5
        P[k] += c / n  # line 6
        Q[k] += (c / n) * (c / n)  # line 7
    return E, P, Q


def initialise(
    counts: Counts, *, n_components: int, max_size: int, rng: int | np.random.Generator | None
) -> Parameters:
    """The first parameters, from a cohort's table (Algorithm 1, lines 3 to 15; equations 5 to 9)."""
    E, P, Q = moments(counts, n_components=n_components, max_size=max_size, rng=rng)
    m = E.sum(axis=1, keepdims=True)  # line 10
    P, Q = P / m, Q / m  # line 11, equation 8
    weights = np.full(n_components, 1 / n_components)  # line 12, equation 5
    sizes = E / m  # line 13, equation 6
    P_1, Q_1 = P[:, :1], Q[:, :1]
    alphas = (P_1 - Q_1) / (Q_1 - P_1**2) * P  # line 14, equation 9
    return weights, alphas, sizes


def statistics(
    counts: Counts, weights: Floats, alphas: Floats, sizes: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """ω, E, u, v: sums over a cohort's table (Algorithm 2, lines 6 to 13; equations 10 to 16)."""
    omega, E, u, v = (np.zeros_like(a) for a in (weights, sizes, alphas, weights))
    for c in counts:  # lines 6, 12 and 13, equations 15 and 16
        n, omega_i = c.sum(), responsibilities(c, weights, alphas, sizes)  # line 7
        omega += omega_i
        E[:, n] += omega_i  # line 8
        for k, alpha in enumerate(alphas):
            alpha_0 = alpha.sum()
            u[k] += omega_i[k] * (digamma(c + alpha) - digamma(alpha))  # line 9, equation 13
            v[k] += omega_i[k] * (digamma(n + alpha_0) - digamma(alpha_0))  # line 10, equation 14
    return omega, E, u, v


def update(counts: Counts, weights: Floats, alphas: Floats, sizes: Floats) -> Parameters:
    """The next parameters, from a cohort's table (Algorithm 2, lines 6 to 16; Theorem 3.1)."""
    omega, E, u, v = statistics(counts, weights, alphas, sizes)
    weights = omega / len(counts)  # line 14, equation 17
    sizes = E / omega[:, None]  # line 15, equation 18
    alphas = alphas * u / v[:, None]  # line 16, equation 19
    return weights, alphas, sizes


def fit(
    counts: Counts,
    *,
    n_components: int,
    max_size: int,
    n_rounds: int,
    cohort_size: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Parameters:
    """The parameters after Algorithm 1 and T = `n_rounds` - 1 rounds of Algorithm 2, for a table.

    Examples
    --------
    >>> from polyurn.model.paper_truths import truth
    >>> clients = truth("medium/2").sample(100, rng=0)
    >>> start = fit(clients, n_components=2, max_size=20, n_rounds=1, rng=1)
    >>> later = fit(clients, n_components=2, max_size=20, n_rounds=21, rng=1)
    >>> round(log_likelihood(clients, *start)), round(log_likelihood(clients, *later))
    (-1534, -1460)
    """
    rng = np.random.default_rng(rng)
    cohort = draw_cohort(counts, cohort_size, rng=rng)
    parameters = initialise(cohort, n_components=n_components, max_size=max_size, rng=rng)
    for _ in range(n_rounds - 1):
        parameters = update(draw_cohort(counts, cohort_size, rng=rng), *parameters)
    return parameters


def draw_cohort(counts: Counts, cohort_size: int | None, *, rng: np.random.Generator) -> Counts:
    """S_t: every client of a table, or so many (line 2 of Algorithm 1, line 4 of Algorithm 2)."""
    if cohort_size is None:
        return counts
    return counts[rng.choice(len(counts), size=cohort_size, replace=False)]
