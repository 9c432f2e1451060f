"""How different clients are from one another, in the numbers that people quote.

Each is a mean over clients with a bootstrap interval over clients; the marginal, which all clients are
measured against, is held fixed. The distances are those of the histograms as they are: a client with
few points is far from the marginal by chance alone, so compare populations of like sizes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, rel_entr

from polyurn.comparison.estimates import Estimate, mean_estimate, resample_weights
from polyurn.comparison.single_dirichlet import concentration_estimate
from polyurn.counts import check_counts


@dataclass(frozen=True)
class Heterogeneity:
    """How different clients are, each with a 95 % bootstrap interval over clients.

    Attributes
    ----------
    total_variation : Estimate
        Mean total-variation distance of a client's histogram to the marginal, 0 to 1.
    jensen_shannon : Estimate
        Mean Jensen-Shannon distance to the marginal (the root of the divergence, base 2), 0 to 1.
    effective_categories : Estimate
        Mean over clients of exp(entropy): 1 for a client of one category, C for a uniform one.
    alpha : Estimate
        The clients are about Dirichlet(alpha): see `concentration`, also for infinity and NaN.
    """

    total_variation: Estimate
    jensen_shannon: Estimate
    effective_categories: Estimate
    alpha: Estimate


def heterogeneity(
    counts: object, *, n_bootstrap: int = 200, rng: int | np.random.Generator | None = None
) -> Heterogeneity:
    """How different clients are from one another.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories)
    n_bootstrap : int
        Bootstrap samples of clients.
    rng : int or numpy.random.Generator

    Examples
    --------
    >>> alike = heterogeneity([[5, 5], [6, 4], [4, 6]], rng=0)
    >>> f"{alike.total_variation:.3f}"
    '0.067 (0.000 to 0.100)'
    """
    table = check_counts(counts)
    dense = table if isinstance(table, np.ndarray) else table.toarray()
    shares = dense / dense.sum(axis=1, keepdims=True)
    marginal = dense.sum(axis=0) / dense.sum()
    weights = resample_weights(len(shares), n_bootstrap, rng=rng)
    return Heterogeneity(
        total_variation=mean_estimate(np.abs(shares - marginal).sum(axis=1) / 2, weights),
        jensen_shannon=mean_estimate(_jensen_shannon(shares, marginal), weights),
        effective_categories=mean_estimate(np.exp(entr(shares).sum(axis=1)), weights),
        alpha=concentration_estimate(table, weights),
    )


def _jensen_shannon(
    shares: NDArray[np.float64], marginal: NDArray[np.float64]
) -> NDArray[np.float64]:
    middle = (shares + marginal) / 2
    divergence = (rel_entr(shares, middle) + rel_entr(marginal, middle)).sum(axis=1) / 2
    # Rounding leaves a client that is the marginal at -1e-17.
    return np.asarray(np.sqrt(np.maximum(divergence, 0) / np.log(2)))
