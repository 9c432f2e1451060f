"""How different clients are from one another: in the numbers that people quote, as one Dirichlet, and
whether less than a model's components allow.

The marginal that clients are measured against is their own, and so nearer to them than the one that
they were drawn from; each bootstrap sample has its own marginal, which is nearer still. Intervals are
reflected at the estimate, which takes that out (tests/comparison/test_summaries.py has their coverage).
Distances are those of the histograms as they are: a client with few points is far from the marginal by
chance alone.

*As one Dirichlet*: "your federation is about Dirichlet(0.37)". The field cuts a data set with
proportions from Dir(α, ..., α), one α per category, on balanced categories. Real marginals q are not
balanced, so α here is that of Dir(αC q), which is the same when q is uniform. Written as Dir(α_0 q), as
others do, α_0 = αC. The likelihood is the Dirichlet-multinomial's, so a client with few points does not
pass for a concentrated one. It has one maximum, at infinity when clients vary no more than a
multinomial does (Levin and Reeds, Annals of Statistics 5, 1977). Only α is estimated; q is the clients'
own marginal.

*Dispersion*: given its component, a client of n points varies around n p_k at least as much as a
multinomial does, and more the smaller α_0 is. The index is Σ_j (c_j - n p_j)² / (n (1 - Σ_j p_j²)): 1
in the mean for a multinomial, 1 + (n - 1)/(1 + α_0) for a Dirichlet-multinomial, below 1 for clients
that are more even than chance. (Pearson's X² weights each category by 1/p_j and is ruled by the rarest
one; this does not.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import entr

from polyurn.comparison.estimates import (
    Estimate,
    interval,
    mean_estimate,
    reflected_interval,
    resample_weights,
)
from polyurn.counts import Counts, check_counts, client_sizes, distinct
from polyurn.model.mdm import MDM
from polyurn.model.names import columns_of
from polyurn.model.populations import IID, Dirichlet
from polyurn.model.rising_factorials import digamma_rise
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Floats, Seed

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


def fitted_dirichlet(counts: object) -> Dirichlet | IID:
    """Return the single Dirichlet Dir(αC q) that suits clients best, with their sizes.

    One kind of client: what a mixture has to beat. `IID` where clients vary no more than chance.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories), or Histograms

    Examples
    --------
    >>> fitted_dirichlet([[9, 1], [2, 8], [10, 0], [1, 9]]).alpha.round(2).tolist()
    [0.54, 0.44]
    """
    table, names = columns_of(counts)
    alpha, pooled = concentration(table), np.asarray(table.sum(axis=0)).reshape(-1)
    if not np.isfinite(alpha):
        return IID.like(counts)
    alphas = alpha * len(pooled) * pooled / pooled.sum()
    return Dirichlet(alphas, client_sizes(table), categories=names)


def hellinger_estimate(counts: object, weights: Floats) -> Estimate:
    """The mean Hellinger distance of clients to their marginal, with its bootstrap interval."""
    table = csr_array(check_counts(counts), copy=True)
    return _to_the_marginal(_Shares.of(table).hellinger, table, weights)


def correlation_estimate(counts: object, weights: Floats) -> Estimate:
    """The intraclass correlation of points in clients of at least two, with its bootstrap interval.

    By how much likelier two points of one client agree than those of two clients, over what is possible:
    1/(1 + α_0) for one Dirichlet, 0 for chance, below 0 for clients more even than chance, whatever
    the sizes and the number of categories. In genetics F_ST, here as Hudson, Slatkin and Maddison
    (Genetics 132, 1992) estimate it: without bias, each client counting once, from sums over clients.
    """
    table = csr_array(check_counts(counts), copy=True)
    sizes = client_sizes(table)
    rows, n = table[np.flatnonzero(sizes > 1)], sizes[sizes > 1].astype(np.float64)
    if len(n) < 2:
        return Estimate(np.nan, np.nan, np.nan)
    shares = csr_array(rows.multiply(1 / n[:, None]))
    pairs = (n * shares.multiply(shares).sum(axis=1) - 1) / (n - 1)
    squares = shares.multiply(shares).sum(axis=1)

    def of(weights: Floats) -> Floats:
        m, ours = weights.sum(axis=1), weights**2
        of_two = ((weights @ shares) ** 2).sum(axis=1) - ours @ squares
        with np.errstate(invalid="ignore", divide="ignore"):  # one client, or one category
            by_chance = of_two / (m**2 - ours.sum(axis=1))
            return np.asarray((weights @ pairs / m - by_chance) / (1 - by_chance))

    value = float(of(np.ones((1, len(n))))[0])
    return Estimate(value, *interval(of(weights[:, sizes > 1])))


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

    def __call__(self, alpha_0: Floats, weights: Floats) -> Floats:
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

    def gradient(log_alpha: float) -> float:
        return float(score(np.exp([log_alpha]), everyone)[0, 0])

    step = _NODES[1] - _NODES[0]
    return float(np.exp(brentq(gradient, np.log(near) - step, np.log(near) + step)))


def _maxima(score: _Score, weights: Floats) -> Floats:
    """The α_0 at which each draw's score falls through zero, shape (n_draws,): once, or never."""
    scores = score(np.exp(_NODES), weights)
    found = np.array([_fall(values) for values in scores])
    scale = weights @ score.multinomial
    found[weights @ score.excess <= _ROUNDING * scale] = np.inf
    found[scale == 0] = np.nan  # no client with two points
    return found


def _fall(scores: Floats) -> float:
    """Where the scores at the nodes, joined by lines, fall through zero."""
    fallen = np.flatnonzero(scores <= 0)
    if len(fallen) == 0:
        return np.inf
    i = int(fallen[0])
    if i == 0:
        return 0.0  # each client holds one category only
    share = scores[i - 1] / (scores[i - 1] - scores[i])
    return float(np.exp(_NODES[i - 1] + share * (_NODES[i] - _NODES[i - 1])))


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
def heterogeneity(counts: object, *, n_bootstrap: int = 200, rng: Seed = None) -> Heterogeneity:
    """Measure how different clients are from one another.

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
    held, score = _Shares.of(table), _Score(table)
    alphas = _maxima(score, weights) / score.n_categories  # the marginal is held fixed
    return Heterogeneity(
        total_variation=_to_the_marginal(held.total_variation, table, weights),
        jensen_shannon=_to_the_marginal(held.jensen_shannon, table, weights),
        effective_categories=mean_estimate(np.exp(held.entropies), weights),
        alpha=Estimate(_best(score) / score.n_categories, *interval(alphas)),
    )


def _to_the_marginal(
    distances: Callable[[Floats], Floats], counts: csr_array, weights: Floats
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

    values: Floats  # (n_held,), client after client
    category: NDArray[np.int32]  # (n_held,)
    begins: NDArray[np.int32]  # (n_clients,)
    entropies: Floats  # (n_clients,)

    @classmethod
    def of(cls, counts: csr_array) -> "_Shares":
        counts.eliminate_zeros()
        values = counts.data / np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
        begins = counts.indptr[:-1]  # no client is empty
        entropies = -np.add.reduceat(values * np.log(values), begins)
        return cls(values, counts.indices, begins, entropies)

    def total_variation(self, marginal: Floats) -> Floats:
        """Distances to a marginal of shape (n_categories,), shape (n_clients,)."""
        own = marginal[self.category]
        return np.asarray((1 + self._sums(np.abs(self.values - own) - own)) / 2)

    def jensen_shannon(self, marginal: Floats) -> Floats:
        """Distances to a marginal of shape (n_categories,), shape (n_clients,)."""
        middle = (self.values + marginal[self.category]) / 2
        alone = entr(marginal / 2)
        mixed = alone.sum() - self._sums(middle * np.log(middle) + alone[self.category])
        divergence = mixed - (self.entropies + entr(marginal).sum()) / 2
        # Rounding leaves a client that is the marginal at -1e-17.
        return np.asarray(np.sqrt(np.maximum(divergence, 0) / np.log(2)))

    def hellinger(self, marginal: Floats) -> Floats:
        """Distances to a marginal of shape (n_categories,), shape (n_clients,)."""
        return np.sqrt(
            np.maximum(1 - self._sums(np.sqrt(self.values * marginal[self.category])), 0)
        )

    def _sums(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.begins))


@dataclass(frozen=True)
class Dispersion:
    """The index of true clients, and of as many simulated ones.

    Below 1, true clients vary less than a multinomial with their component's mean; simulated ones never
    do but by chance.
    """

    true: Estimate
    simulated: Estimate


def dispersion(
    mdm: MDM, *, true: object, simulated: object, n_bootstrap: int = 200, rng: Seed = None
) -> Dispersion:
    """Measure how much true and simulated clients vary around the mean of their component.

    Both are counts of shape (n_clients, n_categories). A `CountsError` if a client is impossible under
    every component.
    """
    rng = np.random.default_rng(rng)
    indices = [dispersion_index(counts, mdm) for counts in (true, simulated)]
    means = [
        mean_estimate(index, resample_weights(len(index), n_bootstrap, rng=rng))
        for index in indices
    ]
    return Dispersion(*means)


def dispersion_index(counts: object, mdm: MDM) -> Floats:
    """Each client's index, over the components that it may belong to, shape (n_clients,).

    >>> from polyurn.model.sizes import Sizes
    >>> even = MDM([1.0], [[50.0, 50.0]], Sizes.constant(10))
    >>> dispersion_index([[5, 5], [10, 0]], even).tolist()
    [0.0, 10.0]
    """
    table = check_counts(counts, n_categories=mdm.n_categories)
    dense = table if isinstance(table, np.ndarray) else table.toarray()
    size = dense.sum(axis=1)
    means = mdm.shares
    spread = 1 - (means**2).sum(axis=1)
    # Σ (c - n p)² without an array of (n_clients, n_components, n_categories).
    squares = (dense.astype(np.float64) ** 2).sum(axis=1)[:, None]
    cross = dense @ means.T
    deviation = squares - 2 * size[:, None] * cross + size[:, None] ** 2 * (1 - spread)
    # A component of one category does not let its clients vary: just as a multinomial.
    varies = spread > 0
    index = np.where(varies, deviation / (size[:, None] * np.where(varies, spread, 1.0)), 1.0)
    return np.asarray((mdm.responsibilities(table) * index).sum(axis=1))
