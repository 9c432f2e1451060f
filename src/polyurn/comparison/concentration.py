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
from polyurn.rising import digamma_rise

# α_0 is looked for between these; beyond the last, clients are called multinomial.
_SMALLEST, _LARGEST = 1e-3, 1e8
# Nodes of log α_0 between which a bootstrap sample's score is taken as a line: steps of a quarter.
_N_NODES = 102


def concentration(counts: object) -> float:
    """The α of the single Dirichlet Dir(αC q) that suits clients best, q being their marginal.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories)

    Returns
    -------
    float
        Infinity when clients vary no more than a multinomial does.

    Examples
    --------
    >>> round(concentration([[9, 1], [2, 8], [10, 0], [1, 9]]), 3)
    0.489
    """
    table = check_counts(counts)
    everyone = np.ones((1, table.shape[0]))
    return float(_maxima(_Score(table), everyone, refine=True)[0])


def concentration_estimate(counts: Counts, weights: NDArray[np.float64]) -> Estimate:
    """`concentration` with its bootstrap interval, q held fixed.

    Parameters
    ----------
    counts : int array or csr_array of shape (n_clients, n_categories)
    weights : float array of shape (n_draws, n_clients)
        How often each client occurs in each bootstrap sample.
    """
    score = _Score(counts)
    best = _maxima(score, np.ones((1, counts.shape[0])), refine=True)[0]
    return Estimate(float(best), *interval(_maxima(score, weights)))


class _Score:
    """The derivative of the log-likelihood by log α_0, from how often each (category, count) occurs."""

    def __init__(self, counts: Counts) -> None:
        rows = sparse.csr_array(counts)
        n_clients, self.n_categories = rows.shape
        marginal = np.asarray(rows.sum(axis=0)).reshape(-1) / rows.sum()
        stride = int(rows.data.max()) + 1
        pairs, which = distinct(rows.indices.astype(np.int64) * stride + rows.data)
        category, self.count = np.divmod(pairs, stride)
        self.share = marginal[category]
        self.size, which_size = distinct(client_sizes(counts))
        self.has_pair = sparse.csr_array(
            (np.ones(len(which)), which, rows.indptr), shape=(n_clients, len(pairs))
        )
        self.has_size = sparse.csr_array(
            (np.ones(n_clients), which_size, np.arange(n_clients + 1)),
            shape=(n_clients, len(self.size)),
        )

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


def _maxima(
    score: _Score, weights: NDArray[np.float64], *, refine: bool = False
) -> NDArray[np.float64]:
    """α where the score falls through zero, shape (n_draws,): it does so once, or never."""
    nodes = np.linspace(np.log(_SMALLEST), np.log(_LARGEST), _N_NODES)
    scores = score(np.exp(nodes), weights)
    n_rising = (scores > 0).sum(axis=1)
    found = np.empty(len(weights))
    for draw, (values, i) in enumerate(zip(scores, n_rising, strict=True)):
        if i == 0:
            found[draw] = 0.0  # every client holds one category
        elif i == len(nodes):
            found[draw] = np.inf
        elif refine:
            found[draw] = np.exp(
                brentq(
                    lambda x, w=weights[draw, None]: score(np.exp([x]), w)[0, 0],
                    nodes[i - 1],
                    nodes[i],
                )
            )
        else:
            before, after = values[i - 1], values[i]
            found[draw] = np.exp(
                nodes[i - 1] + (nodes[i] - nodes[i - 1]) * before / (before - after)
            )
    return np.asarray(found / score.n_categories)
