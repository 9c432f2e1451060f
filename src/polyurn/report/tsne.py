"""t-SNE: points in a plane, where near ones stay near (van der Maaten and Hinton, 2008).

Each point attracts its nearest neighbours only (van der Maaten, 2014), and the plane begins as the first
two principal components (Kobak and Berens, 2019). The repulsion is that of every pair, exactly: for the
thousand points of a page this is quicker than a tree, and needs no threads. It knows nothing of clients.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from polyurn.typed.declared import Floats, Ints, Seed

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


def tsne(points: Floats, *, perplexity: float, rng: Seed = None) -> Floats:
    """Places in a plane, shape (n, 2), of points of shape (n, n_dimensions).

    The perplexity, 1 to (n - 1)/3, is how many neighbours a point feels; `rng` puts equal points apart.

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


def affinities(points: Floats, perplexity: float) -> csr_array:
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


def _without_themselves(found: Ints) -> Ints:
    """Positions of each row's neighbours other than itself, which equal points may hide."""
    itself = found == np.arange(len(found))[:, None]
    itself[:, -1] |= ~itself.any(axis=1)  # the farthest one goes instead
    return np.nonzero(~itself)[1].reshape(len(found), -1)


def _shares_of_perplexity(squares: Floats, perplexity: float) -> Floats:
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


def _principal_plane(points: Floats, rng: np.random.Generator) -> Floats:
    """The first two principal components, small, and equal points a little apart."""
    centred = points - points.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    plane = np.zeros((len(points), 2))
    plane[:, : axes.shape[1]] = centred @ axes
    deviation = plane[:, 0].std()
    if deviation > 0:
        plane *= _FIRST_DEVIATION / deviation
    return np.asarray(plane + _APART * rng.standard_normal(plane.shape))


def kl_gradient(
    indptr: NDArray[np.int32], indices: NDArray[np.int32], near: Floats, places: Floats
) -> Floats:
    """The gradient of KL(p, q) by the places, 4 Σ_j (p_ij - q_ij)(y_i - y_j)/(1 + |y_i - y_j|²).

    The parts of a CSR matrix p_ij of shape (n, n), and places of shape (n, 2); the gradient has theirs.
    """
    x, y = np.ascontiguousarray(places.T)
    gradient = np.empty_like(places)
    _gradient(indptr, indices, near, x, y, gradient)
    return gradient


# Sums in any order, so that eight pairs are computed at once; places need not be the same to the bit.
@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _gradient(indptr, indices, near, x, y, gradient):  # type: ignore[no-untyped-def]
    n = len(x)
    x32, y32 = x.astype(np.float32), y.astype(np.float32)
    one = np.float32(1.0)
    push = np.empty((n, 2))
    total = 0.0
    for i in range(n):
        xi, yi = x32[i], y32[i]
        mass = push_x = push_y = np.float32(0.0)
        for j in range(n):
            dx, dy = xi - x32[j], yi - y32[j]
            weight = one / (one + dx * dx + dy * dy)
            mass += weight
            square = weight * weight
            push_x += square * dx
            push_y += square * dy
        total += mass - 1.0  # type: ignore[assignment]  # not itself
        push[i, 0], push[i, 1] = push_x, push_y
    for i in range(n):
        pull_x = pull_y = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            dx, dy = x[i] - x[indices[at]], y[i] - y[indices[at]]
            weight = near[at] / (1.0 + dx * dx + dy * dy)
            pull_x += weight * dx
            pull_y += weight * dy
        gradient[i, 0] = 4.0 * (pull_x - push[i, 0] / total)
        gradient[i, 1] = 4.0 * (pull_y - push[i, 1] / total)
