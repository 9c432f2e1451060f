"""The gradient of t-SNE's objective, compiled: sparse attraction, exact repulsion.

How the gradient is used is `tsne.py`.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray


def kl_gradient(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    near: NDArray[np.float64],
    places: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The gradient of KL(p, q) by the places, 4 Σ_j (p_ij - q_ij)(y_i - y_j)/(1 + |y_i - y_j|²).

    Parameters
    ----------
    indptr, indices, near
        p_ij as the parts of a CSR matrix of shape (n, n).
    places : float array of shape (n, 2)

    Returns
    -------
    float array of shape (n, 2)
    """
    x, y = np.ascontiguousarray(places.T)
    gradient = np.empty_like(places)
    _gradient(indptr, indices, near, x, y, gradient)
    return gradient


# Sums in any order, so that eight pairs are computed at once; places need not be the same to the bit.
@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _gradient(indptr, indices, near, x, y, gradient):
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
        total += mass - 1.0  # not itself
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
