"""t-SNE: points in a plane, where near ones stay near (van der Maaten and Hinton, 2008).

Each point attracts its nearest neighbours only (van der Maaten, 2014), and the plane begins as the first
two principal components (Kobak and Berens, 2019). The repulsion is that of every pair, exactly: for the
thousand points of a page this is quicker than a tree, and needs no threads. It knows nothing of clients.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from polyurn.report.tsne_kernel import kl_gradient

# The descent of van der Maaten's program: so many steps, the first of them with the attraction
# exaggerated and with less momentum.
_N_STEPS, _N_FIRST, _EXAGGERATION = 1_000, 250, 12.0
_MOMENTUM_FIRST, _MOMENTUM, _RATE = 0.5, 0.8, 50.0
# Each coordinate has a factor of its own, which grows while it goes on in one direction.
_GROWTH, _SHRINKAGE, _SMALLEST_FACTOR = 0.2, 0.8, 0.01
# The plane begins small, so that points can pass each other; equal points are put a little apart.
_FIRST_DEVIATION, _APART = 1e-4, 1e-6
# Neighbours that a point attracts, for each one that it should feel (the perplexity).
_NEIGHBOURS_EACH = 3
_N_BISECTIONS = 60


def tsne(
    points: NDArray[np.float64], *, perplexity: float, rng: int | np.random.Generator | None = None
) -> NDArray[np.float64]:
    """Places of points in a plane, shape (n, 2).

    Parameters
    ----------
    points : float array of shape (n, n_dimensions)
    perplexity : float
        How many neighbours a point feels, 1 to (n - 1)/3.
    rng : int or numpy.random.Generator
        Puts equal points a little apart.

    Examples
    --------
    >>> points = np.random.default_rng(0).random((60, 3))
    >>> points[:30] += 5
    >>> places = tsne(points, perplexity=10.0, rng=0)
    >>> places.shape, bool(np.ptp(places[:30], axis=0).max() < np.ptp(places, axis=0).max() / 2)
    ((60, 2), True)
    """
    near = affinities(points, perplexity)
    places = _principal_plane(points, np.random.default_rng(rng))
    for n_steps, exaggeration, momentum in (
        (_N_FIRST, _EXAGGERATION, _MOMENTUM_FIRST),
        (_N_STEPS - _N_FIRST, 1.0, _MOMENTUM),
    ):
        pull = exaggeration * near.data
        step, factors = np.zeros_like(places), np.ones_like(places)
        for _ in range(n_steps):
            gradient = kl_gradient(near.indptr, near.indices, pull, places)
            goes_on = step * gradient < 0
            factors = np.where(goes_on, factors + _GROWTH, factors * _SHRINKAGE)
            factors = np.maximum(factors, _SMALLEST_FACTOR)
            step = momentum * step - _RATE * factors * gradient
            places = places + step
    return places


def affinities(points: NDArray[np.float64], perplexity: float) -> csr_array:
    """How near each pair is, p_ij, shape (n, n): sums to one, and symmetric.

    Each point's share falls with the squared distance as a normal density does, whose width gives its
    nearest neighbours the perplexity asked for, exp(entropy).
    """
    n = len(points)
    k = min(n - 1, int(_NEIGHBOURS_EACH * perplexity) + 1)
    distances, found = map(np.asarray, cKDTree(points).query(points, k=k + 1))
    others = _without_themselves(found)
    squares = np.take_along_axis(distances, others, axis=1) ** 2
    squares -= squares.min(axis=1, keepdims=True)
    shares = _shares_of_perplexity(squares, perplexity)
    columns = np.take_along_axis(found, others, axis=1)
    near = csr_array((shares.ravel(), columns.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return csr_array((near + near.T) / (2 * n))


def _without_themselves(found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of each row's neighbours other than itself, which equal points may hide."""
    itself = found == np.arange(len(found))[:, None]
    itself[:, -1] |= ~itself.any(axis=1)  # the farthest one goes instead
    return np.nonzero(~itself)[1].reshape(len(found), -1)


def _shares_of_perplexity(squares: NDArray[np.float64], perplexity: float) -> NDArray[np.float64]:
    """exp(-b d²), normalised, with each row's b by bisection, shape (n, k)."""
    scale = squares.mean(axis=1, keepdims=True)
    scaled = squares / np.where(scale > 0, scale, 1.0)
    low, high = np.full((2, len(squares), 1), [[[-20.0]], [[20.0]]])  # of log b
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2
        weights = np.exp(-np.exp(middle) * scaled)
        total = weights.sum(axis=1, keepdims=True)
        entropy = (
            np.log(total) + np.exp(middle) * (weights * scaled).sum(axis=1, keepdims=True) / total
        )
        narrow = entropy < np.log(perplexity)
        low, high = np.where(narrow, low, middle), np.where(narrow, middle, high)
    return np.asarray(weights / total)


def _principal_plane(points: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """The first two principal components, small, and equal points a little apart."""
    centred = points - points.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    plane = np.zeros((len(points), 2))
    plane[:, : axes.shape[1]] = centred @ axes
    deviation = plane[:, 0].std()
    if deviation > 0:
        plane *= _FIRST_DEVIATION / deviation
    return np.asarray(plane + _APART * rng.standard_normal(plane.shape))
