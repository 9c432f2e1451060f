"""How different clients are from one another, in the numbers that people quote.

Each is a mean over clients, with a bootstrap interval. The marginal that clients are measured against is
their own, and so nearer to them than the one that they were drawn from; each bootstrap sample
has its own marginal, which is nearer still. The interval is reflected at the estimate, which takes that
out (tests/test_summaries.py has its coverage). The distances are those of the histograms as they are: a
client with few points is far from the marginal by chance alone, so compare populations of like sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from polyurn.comparison.estimates import (
    Estimate,
    mean_estimate,
    reflected_interval,
    resample_weights,
)
from polyurn.comparison.single_dirichlet import concentration_estimate
from polyurn.counts import check_counts
from polyurn.typed.arguments import checked


@checked
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


@checked
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
    '0.067 (0.044 to 0.133)'
    """
    table = check_counts(counts)
    dense = table if isinstance(table, np.ndarray) else table.toarray()
    shares = dense / dense.sum(axis=1, keepdims=True)
    weights = resample_weights(len(shares), n_bootstrap, rng=rng)
    return Heterogeneity(
        total_variation=_to_the_marginal(_total_variation, dense, weights),
        jensen_shannon=_to_the_marginal(_jensen_shannon, dense, weights),
        effective_categories=mean_estimate(np.exp(entr(shares).sum(axis=1)), weights),
        alpha=concentration_estimate(table, weights),
    )


def _to_the_marginal(
    distances: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    counts: NDArray[np.integer[Any]],
    weights: NDArray[np.float64],
) -> Estimate:
    """The mean distance of clients to their marginal, each bootstrap sample's to its own."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    pooled = np.concatenate([counts.sum(axis=0, keepdims=True), weights @ counts])
    marginal, *marginals = pooled / pooled.sum(axis=1, keepdims=True)
    value = float(distances(shares, marginal).mean())
    means = [w @ distances(shares, own) for w, own in zip(weights, marginals, strict=True)]
    return Estimate(value, *reflected_interval(value, np.array(means) / len(shares), 0.0, 1.0))


def _total_variation(
    shares: NDArray[np.float64], marginal: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray(np.abs(shares - marginal).sum(axis=1) / 2)


def _jensen_shannon(
    shares: NDArray[np.float64], marginal: NDArray[np.float64]
) -> NDArray[np.float64]:
    of_the_two = (entr(shares).sum(axis=1) + entr(marginal).sum()) / 2
    divergence = entr((shares + marginal) / 2).sum(axis=1) - of_the_two
    # Rounding leaves a client that is the marginal at -1e-17.
    return np.asarray(np.sqrt(np.maximum(divergence, 0) / np.log(2)))
