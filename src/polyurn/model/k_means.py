"""K-means: centres of points, from a k-means++ start (Arthur and Vassilvitskii, 2007).

What the points stand for, and what becomes of the centres, is the caller's business.
"""

import numpy as np
import scipy

from polyurn.typed.declared import Floats, Ints

_LLOYD_ITERATIONS = 15


def k_means(
    points: Floats, n_groups: int, rng: np.random.Generator, weights: Floats | None = None
) -> tuple[Floats, Ints]:
    """Lloyd's centres from a k-means++ start, of shape (n_groups, n_features), and who joined which,
    (n_points,).

    `weights`, of shape (n_points,), say how much each point counts; all the same by default.

    >>> points = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> centres, joined = k_means(points, 2, np.random.default_rng(0))
    >>> sorted(centres[:, 0].tolist()), bool(joined[0] == joined[1])
    ([0.5, 10.5], True)
    """
    w = np.ones(len(points)) if weights is None else weights
    centres = points[rng.choice(len(points), 1, p=w / w.sum())]
    squared = ((points - centres[0]) ** 2).sum(axis=1)
    for _ in range(n_groups - 1):
        chance = squared * w
        total = chance.sum()
        one = points[rng.choice(len(points), p=chance / total if total > 0 else None)]
        centres = np.vstack([centres, one])
        squared = np.minimum(squared, ((points - one) ** 2).sum(axis=1))
    for _ in range(_LLOYD_ITERATIONS):
        joined = (points @ centres.T - 0.5 * (centres * centres).sum(axis=1)).argmax(axis=1)
        masses = np.bincount(joined, w, minlength=n_groups)
        groups = scipy.sparse.csr_array((w, joined, np.arange(len(w) + 1)), (len(w), n_groups))
        sums = groups.T @ points
        filled = masses > 0
        centres[filled] = sums[filled] / masses[filled, None]
    return centres, joined
