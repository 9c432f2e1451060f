"""Histograms out of Pólya urns, a point at a time: the hot loop of `MDM.sample`.

An urn starts with α_j balls of colour j; each draw puts the ball back with one more of its colour. The
colours of n draws have exactly the Dirichlet-multinomial distribution, without a gamma or a binomial
variate: the next point is a copy of one of the t before it with probability t/(α_0 + t), and else new,
with the proportions of α. For clients of few points a category this is several times as fast, and it
needs nothing but uniform numbers and products, which are the same on every platform.

Which component a client belongs to, and how many points it holds, is `mdm.py`.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray


def draw_counts(
    alphas: NDArray[np.float64],
    components: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    rng: np.random.Generator,
) -> None:
    """Add each client's points to its row of `counts`.

    Parameters
    ----------
    alphas : float array of shape (n_components, n_categories)
        The sum of each row is finite.
    components, sizes : int arrays of shape (n_clients,)
    counts : int array of shape (n_clients, n_categories)
    rng : numpy.random.Generator

    Examples
    --------
    >>> counts = np.zeros((2, 3), np.int64)
    >>> one, sizes = np.zeros(2, np.int64), np.array([4, 6])
    >>> draw_counts(np.array([[1.0, 2.0, 0.0]]), one, sizes, counts, np.random.default_rng(0))
    >>> counts.sum(axis=1).tolist(), counts[:, 2].tolist()
    ([4, 6], [0, 0])
    """
    shares, others = _alias_tables(alphas / alphas.sum(axis=1, keepdims=True))
    points = np.empty(int(sizes.max(initial=0)), np.int64)
    _draw(alphas.sum(axis=1), shares, others, components, sizes, points, counts, rng)


@njit(cache=True, nogil=True)
def _draw(alpha_0, shares, others, components, sizes, points, counts, rng):
    n_categories = shares.shape[1]
    for client in range(len(sizes)):
        k = components[client]
        total = alpha_0[k]
        for t in range(sizes[client]):
            at = rng.random() * (total + t)
            # Rounding may put `at` at the very end: there is no point t yet.
            if at < total or at >= total + t:
                place = rng.random() * n_categories
                j = np.int64(place)
                if place - j >= shares[k, j]:
                    j = others[k, j]
            else:
                j = points[min(np.int64(at - total), t - 1)]
            points[t] = j
            counts[client, j] += 1


@njit(cache=True, nogil=True)
def _alias_tables(proportions):
    """Walker's tables: category j is drawn as itself with `shares[j]`, and as `others[j]` if not.

    Parameters
    ----------
    proportions : float array of shape (n_components, n_categories)

    Returns
    -------
    shares, others : float and int arrays of that shape
    """
    n_components, n_categories = proportions.shape
    shares, others = proportions * n_categories, np.zeros(proportions.shape, np.int64)
    low, high = np.empty(n_categories, np.int64), np.empty(n_categories, np.int64)
    for k in range(n_components):
        n_low, n_high = 0, 0
        largest = 0
        for j in range(n_categories):
            if shares[k, j] > shares[k, largest]:
                largest = j
            if shares[k, j] < 1.0:
                low[n_low], n_low = j, n_low + 1
            else:
                high[n_high], n_high = j, n_high + 1
        while n_low > 0 and n_high > 0:
            n_low -= 1
            poor, rich = low[n_low], high[n_high - 1]
            others[k, poor] = rich
            shares[k, rich] -= 1.0 - shares[k, poor]
            if shares[k, rich] < 1.0:
                n_high -= 1
                low[n_low], n_low = rich, n_low + 1
        for i in range(n_high):
            shares[k, high[i]] = 1.0
        for i in range(n_low):  # what rounding left: all but whole, or nothing and never drawn
            others[k, low[i]] = largest
            if shares[k, low[i]] > 0.5:
                shares[k, low[i]] = 1.0
    return shares, others
