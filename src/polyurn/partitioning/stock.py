"""What the proxy data can serve: clients without the categories of which there are no points at all.

Which points a client then holds is `assign.py`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from polyurn.counts import Counts, check_counts
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import numbers


@checked
def in_stock(counts: object, labels: ArrayLike) -> Counts:
    """The same clients, without points of categories that the proxy data have none of.

    Clients who hold nothing else are left out. Small categories may be missing from a server's data by
    chance; if much is, the data cannot stand for these clients.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories)
    labels : int array of shape (n_points,)
        The category of each proxy point.

    Returns
    -------
    int array or scipy.sparse of shape (n_left, n_categories)

    Examples
    --------
    >>> in_stock([[1, 2, 0], [0, 3, 0], [2, 0, 4]], [0, 0, 2]).tolist()
    [[1, 0, 0], [2, 0, 4]]
    """
    table = check_counts(counts)
    there = stocked(labels, table.shape[1])
    if isinstance(table, np.ndarray):
        kept = np.where(there, table, 0)
        return np.asarray(kept[kept.sum(axis=1) > 0])
    held = sparse.csr_array(table.multiply(there[None]))
    held.eliminate_zeros()
    return held[np.flatnonzero(np.asarray(held.sum(axis=1)).reshape(-1) > 0)]


def stocked(labels: ArrayLike, n_categories: int) -> NDArray[np.bool_]:
    """Which of so many categories the proxy data have, shape (n_categories,)."""
    codes = numbers(labels, "labels")
    return np.isin(np.arange(n_categories), codes)
