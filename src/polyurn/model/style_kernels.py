"""Style coordinates of points, compiled: one plain sum after another, so that the bits are the same.

Server and clients have to agree on a point's coordinates bit for bit, whatever their number of cores,
their linear algebra and how the points are cut in blocks. So every sum runs in the order of its index,
point by point; products and sums are not fused. What the coordinates mean is `style.py`.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def whitened(features, labels, centres, basis, whitening, radius, out, far):
    """Write z = W_l^(-1/2) (P'f - c_l) of each point, clipped to the radius.

    Parameters
    ----------
    features : array of shape (n_points, n_features)
        Of any type of number.
    labels : int array of shape (n_points,)
        0 to n_labels - 1.
    centres : float array of shape (n_labels, n_directions)
    basis : float array of shape (n_features, n_directions)
    whitening : float array of shape (n_labels, n_directions, n_directions)
    radius : float
    out : float array of shape (n_points, n_directions)
    far : float array of shape (n_points,)
        Becomes 1 where the point lies beyond the radius.

    Returns
    -------
    int
        The first point whose coordinates are not finite, and 0 in `out`; -1 if there is none.
    """
    n_points, n_features = features.shape
    n_directions = basis.shape[1]
    projected = np.empty(n_directions)
    bad = -1
    for i in range(n_points):
        label = labels[i]
        projected[:] = 0.0
        for j in range(n_features):
            for k in range(n_directions):
                projected[k] += np.float64(features[i, j]) * basis[j, k]
        for k in range(n_directions):
            projected[k] -= centres[label, k]
        square = 0.0
        for k in range(n_directions):
            total = 0.0
            for j in range(n_directions):
                total += whitening[label, k, j] * projected[j]
            out[i, k] = total
            square += total * total
        if not math.isfinite(square):
            bad = i if bad < 0 else bad
            out[i, :] = 0.0
            far[i] = 1.0
        elif square > radius * radius:
            far[i] = 1.0
            shrink = radius / math.sqrt(square)
            for k in range(n_directions):
                out[i, k] *= shrink
    return bad
