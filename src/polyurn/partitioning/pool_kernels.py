"""Passes over the proxy points that a style needs, compiled: moments, cells of a grid, effective sizes.

What the coordinates mean is `styled.py`; who is given which point is `styled_kernels.py`.
"""

import math

import numpy as np
from numba import njit

# Of a float32 of size 1, with room to spare.
_ROUNDING = 1e-6


@njit(cache=True, nogil=True, error_model="numpy")
def add_moments(located, codes, sums, products):
    """Add each point's coordinates, and their products, to those of its label.

    Parameters
    ----------
    located : float array of shape (n_points, n_directions)
    codes : int array of shape (n_points,)
    sums : float array of shape (n_labels, n_directions)
    products : float array of shape (n_labels, n_directions, n_directions)
    """
    n_directions = located.shape[1]
    for i in range(len(codes)):
        label = codes[i]
        for d in range(n_directions):
            sums[label, d] += located[i, d]
            for e in range(d + 1):
                products[label, d, e] += located[i, d] * located[i, e]
    for label in range(len(sums)):
        for d in range(n_directions):
            for e in range(d):
                products[label, e, d] = products[label, d, e]


@njit(cache=True, nogil=True, error_model="numpy")
def into_cells(located, urn, centre, turn, bins, reach, lows, highs, starts, points, named):
    """Write the points of one label in the order of the cells of a grid.

    Parameters
    ----------
    located : float array of shape (n_points, n_located)
        Coordinates z of all points.
    urn : int array of shape (n,)
        The label's points.
    centre, turn : float arrays of shape (n_located,) and (n_directions, n_located)
        y = turn (z - centre).
    bins : int array of shape (n_directions,)
        How many bins the grid has in each direction; the last direction changes first.
    reach : float
        Bins are equally wide from -reach to reach; the first and the last go on to the end.
    lows, highs : float arrays of shape (n_directions, max(bins))
        On return, between which the coordinates in each bin lie.
    starts : int array of shape (n_cells + 1,)
        Of zeros; on return, where each cell begins.
    points : float32 array of shape (n, n_directions)
        On return, y.
    named : int array of shape (n,)
        On return, which of all points these are.
    """
    n, n_directions = points.shape
    turned, cells = np.empty((n, n_directions), np.float32), np.zeros(n, np.int32)
    for d in range(n_directions):
        shift, least, most = 0.0, np.inf, -np.inf
        for e in range(len(centre)):
            shift += turn[d, e] * centre[e]
        per_bin = 0.5 * bins[d] / reach
        for i in range(n):
            total = -shift
            for e in range(len(centre)):
                total += turn[d, e] * located[urn[i], e]
            y = np.float32(total)
            turned[i, d] = y
            least, most = min(least, y), max(most, y)
            k = int(min(max((y + reach) * per_bin, 0.0), bins[d] - 1.0))
            cells[i] = cells[i] * bins[d] + k
        for k in range(bins[d]):
            lows[d, k], highs[d, k] = k / per_bin - reach, (k + 1) / per_bin - reach
            # A point that is rounded into the bin beside it is no farther than this from its edge.
            lows[d, k] -= _ROUNDING * reach
            highs[d, k] += _ROUNDING * reach
        lows[d, 0] = min(lows[d, 0], least)
        highs[d, bins[d] - 1] = max(highs[d, bins[d] - 1], most)
    for i in range(n):
        starts[cells[i] + 1] += 1
    for cell in range(1, len(starts)):
        starts[cell] += starts[cell - 1]
    cursors = starts[:-1].copy()
    for i in range(n):
        at = cursors[cells[i]]
        cursors[cells[i]] += 1
        named[at] = urn[i]
        for d in range(n_directions):
            points[at, d] = turned[i, d]


@njit(cache=True, nogil=True, error_model="numpy")
def effective_sizes(targets, within, points, out):
    """Write (Σ w)² / Σ w² over the points, for clients of these styles.

    Parameters
    ----------
    targets : float array of shape (n_clients, n_directions)
    within : float array of shape (n_directions,)
        The variance of a client's points in each direction; the pool's is 1.
    points : float array of shape (n_points, n_directions)
    out : float array of shape (n_clients,)
    """
    curves, values = 0.5 * (1.0 / within - 1.0), np.empty(len(points))
    for client in range(len(targets)):
        slopes = targets[client] / within
        top = -np.inf
        for j in range(len(points)):
            value = 0.0
            for d in range(len(within)):
                y = points[j, d]
                value += (slopes[d] - curves[d] * y) * y
            values[j] = value
            top = max(top, value)
        total, square = 0.0, 0.0
        for j in range(len(points)):
            weight = math.exp(values[j] - top)
            total += weight
            square += weight * weight
        out[client] = total * total / square
