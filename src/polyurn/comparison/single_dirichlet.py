"""The concentration of the best single Dirichlet: "your federation is about Dirichlet(0.37)".

The field cuts a data set with proportions from Dir(α, ..., α), one α per category, on balanced
categories. Real marginals q are not balanced, so α here is that of Dir(αC q), which is the same when q
is uniform. Written as Dir(α_0 q), as others do, α_0 = αC. The likelihood is the
Dirichlet-multinomial's, so a client with few points does not pass for a concentrated one. It has one
maximum, at infinity when clients vary no more than a multinomial does (Levin and Reeds, Annals of
Statistics 5, 1977).

Only α is estimated; q is the clients' own marginal. A full vector or a mixture is `server/`.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq

from polyurn.comparison.estimates import Estimate, interval
from polyurn.counts import Counts, check_counts, client_sizes, distinct
from polyurn.model.rising_factorials import digamma_rise

# Nodes of log α_0, a quarter apart, between which a bootstrap sample's score is taken as a line. Beyond
# the last one clients are called multinomial, before the first, of one category each.
_NODES = np.linspace(np.log(1e-3), np.log(1e6), 84)
# An excess over the multinomial below this share of what was added up is rounding.
_ROUNDING = 1e-12


def concentration(counts: object) -> float:
    """The α of the single Dirichlet Dir(αC q) that suits clients best, q being their marginal.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories)

    Returns
    -------
    float
        Infinity when clients vary no more than a multinomial does; NaN when no client holds two
        points, because one point says nothing about how alike a client's points are.

    Examples
    --------
    >>> round(concentration([[9, 1], [2, 8], [10, 0], [1, 9]]), 3)
    0.489
    """
    score = _Score(check_counts(counts))
    return _best(score) / score.n_categories


def concentration_estimate(counts: Counts, weights: NDArray[np.float64]) -> Estimate:
    """`concentration` with its bootstrap interval, q held fixed.

    Parameters
    ----------
    counts : int array or csr_array of shape (n_clients, n_categories)
    weights : float array of shape (n_draws, n_clients)
        How often each client occurs in each bootstrap sample.
    """
    score = _Score(counts)
    draws = _maxima(score, weights) / score.n_categories
    return Estimate(_best(score) / score.n_categories, *interval(draws))


class _Score:
    """The derivative of the log-likelihood by log α_0, from how often each (category, count) occurs."""

    def __init__(self, counts: Counts) -> None:
        rows = sparse.csr_array(counts)
        n_clients, n_categories = rows.shape
        self.n_categories = int(n_categories)
        marginal = np.asarray(rows.sum(axis=0)).reshape(-1) / rows.sum()
        stride = int(rows.data.max()) + 1
        pairs, which = distinct(rows.indices.astype(np.int64) * stride + rows.data)
        category, self.count = np.divmod(pairs, stride)
        self.share = marginal[category]
        sizes = client_sizes(counts)
        self.size, which_size = distinct(sizes)
        self.has_pair = sparse.csr_array(
            (np.ones(len(which)), which, rows.indptr), shape=(n_clients, len(pairs))
        )
        self.has_size = sparse.csr_array(
            (np.ones(n_clients), which_size, np.arange(n_clients + 1)),
            shape=(n_clients, len(self.size)),
        )
        # As α_0 → ∞ the log-likelihood is that of a multinomial plus Σ_i excess_i / 2α_0: it has its
        # maximum at infinity just when that is not positive (Levin and Reeds).
        self.multinomial = (sizes * (sizes - 1)).astype(np.float64)
        self.excess = self.has_pair @ (self.count * (self.count - 1) / self.share)
        self.excess -= self.multinomial

    def __call__(
        self, alpha_0: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Shape (n_draws, n_alphas), for weights of shape (n_draws, n_clients)."""
        grid = alpha_0[:, None]
        gains = grid * self.share * digamma_rise(grid * self.share, self.count)
        losses = grid * digamma_rise(grid, self.size)
        pairs = (self.has_pair.T @ weights.T).T
        sizes = (self.has_size.T @ weights.T).T
        return np.asarray(pairs @ gains.T - sizes @ losses.T)


def _best(score: _Score) -> float:
    """The α_0 of all the clients, to the last digits."""
    everyone = np.ones((1, len(score.excess)))
    near = float(_maxima(score, everyone)[0])
    if near == 0 or not np.isfinite(near):
        return near

    def slope(log_alpha: float) -> float:
        return float(score(np.exp([log_alpha]), everyone)[0, 0])

    step = _NODES[1] - _NODES[0]
    return float(np.exp(brentq(slope, np.log(near) - step, np.log(near) + step)))


def _maxima(score: _Score, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The α_0 at which each draw's score falls through zero, shape (n_draws,): once, or never."""
    scores = score(np.exp(_NODES), weights)
    found = np.array([_fall(values) for values in scores])
    scale = weights @ score.multinomial
    found[weights @ score.excess <= _ROUNDING * scale] = np.inf
    found[scale == 0] = np.nan  # no client with two points
    return found


def _fall(scores: NDArray[np.float64]) -> float:
    """Where the scores at the nodes, joined by lines, fall through zero."""
    fallen = np.flatnonzero(scores <= 0)
    if len(fallen) == 0:
        return np.inf
    i = int(fallen[0])
    if i == 0:
        return 0.0  # each client holds one category only
    share = scores[i - 1] / (scores[i - 1] - scores[i])
    return float(np.exp(_NODES[i - 1] + share * (_NODES[i] - _NODES[i - 1])))
