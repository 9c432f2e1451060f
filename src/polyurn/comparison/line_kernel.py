"""Wasserstein-1 distances on a line, of many splits of the same places at once, compiled.

Places are walked in order, and every split at each of them, so that the inner loop is over splits. What
the distances are for is `distances.py`.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray


def split_distances(
    places: NDArray[np.float64], splits: NDArray[np.bool_], *, n_first: int
) -> NDArray[np.float64]:
    """∫|F - G| between the two parts of each split, shape (n_splits,).

    Parameters
    ----------
    places : float array of shape (n,)
    splits : bool array of shape (n, n_splits), each row contiguous
        Who is in the first part: `n_first` of the n in each column.
    n_first : int

    Examples
    --------
    >>> split_distances(np.array([3.0, 0.0, 1.0]), np.array([[False], [True], [True]]), n_first=2)
    array([2.5])
    """
    n, n_splits = splits.shape
    order = np.argsort(places)
    distances = np.zeros(n_splits)
    _walk(order, np.diff(places[order]), splits, 1 / n_first, 1 / (n - n_first), distances)
    return distances


@njit(cache=True, nogil=True)
def _walk(order, gaps, splits, first, second, distances):
    ahead = np.zeros(len(distances))  # F - G so far
    for i in range(len(gaps)):
        side, gap = splits[order[i]], gaps[i]
        for s in range(len(ahead)):
            ahead[s] += first if side[s] else -second
            distances[s] += abs(ahead[s]) * gap
