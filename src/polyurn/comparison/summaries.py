"""How different clients are from one another, in the numbers that people quote.

Each is a mean over clients, with a bootstrap interval. The marginal that clients are measured against is
their own, and so nearer to them than the one that they were drawn from; each bootstrap sample
has its own marginal, which is nearer still. The interval is reflected at the estimate, which takes that
out (tests/test_summaries.py has its coverage). The distances are those of the histograms as they are: a
client with few points is far from the marginal by chance alone, so compare populations of like sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
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
    table = csr_array(check_counts(counts), copy=True)
    weights = resample_weights(table.shape[0], n_bootstrap, rng=rng)
    held = _Shares.of(table)
    return Heterogeneity(
        total_variation=_to_the_marginal(held.total_variation, table, weights),
        jensen_shannon=_to_the_marginal(held.jensen_shannon, table, weights),
        effective_categories=mean_estimate(np.exp(held.entropies), weights),
        alpha=concentration_estimate(table, weights),
    )


def _to_the_marginal(
    distances: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    counts: csr_array,
    weights: NDArray[np.float64],
) -> Estimate:
    """The mean distance of clients to their marginal, each bootstrap sample's to its own."""
    pooled = np.concatenate([counts.sum(axis=0)[None], weights @ counts])
    marginal, *marginals = pooled / pooled.sum(axis=1, keepdims=True)
    value = float(distances(marginal).mean())
    means = [w @ distances(own) for w, own in zip(weights, marginals, strict=True)]
    return Estimate(value, *reflected_interval(value, np.array(means) / len(weights[0]), 0.0, 1.0))


@dataclass(frozen=True)
class _Shares:
    """Clients' normalised histograms without the zeros, and how far they are from a marginal.

    A category that a client does not hold adds to a distance what it adds to everyone's: it is counted
    for all of them at once, and only what clients hold is looked at one by one.
    """

    values: NDArray[np.float64]  # (n_held,), client after client
    category: NDArray[np.int32]  # (n_held,)
    begins: NDArray[np.int32]  # (n_clients,)
    entropies: NDArray[np.float64]  # (n_clients,)

    @classmethod
    def of(cls, counts: csr_array) -> "_Shares":
        counts.eliminate_zeros()
        values = counts.data / np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
        begins = counts.indptr[:-1]  # no client is empty
        entropies = -np.add.reduceat(values * np.log(values), begins)
        return cls(values, counts.indices, begins, entropies)

    def total_variation(self, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances to a marginal of shape (n_categories,), shape (n_clients,)."""
        own = marginal[self.category]
        return np.asarray((1 + self._sums(np.abs(self.values - own) - own)) / 2)

    def jensen_shannon(self, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances to a marginal of shape (n_categories,), shape (n_clients,)."""
        middle = (self.values + marginal[self.category]) / 2
        alone = entr(marginal / 2)
        mixed = alone.sum() - self._sums(middle * np.log(middle) + alone[self.category])
        divergence = mixed - (self.entropies + entr(marginal).sum()) / 2
        # Rounding leaves a client that is the marginal at -1e-17.
        return np.asarray(np.sqrt(np.maximum(divergence, 0) / np.log(2)))

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.add.reduceat(values, self.begins))
