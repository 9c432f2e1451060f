"""Passes over the proxy points that a style needs, compiled: moments, cells of a grid, effective sizes.

What the coordinates mean is `styled.py`; who is given which point is `styled_kernels.py`.
"""

import math

import numpy as np
from numba import njit


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
def into_cells(located, urn, centre, turn, bins, edges, lows, highs, starts, points, named):
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
    edges : float32 array of shape (n_directions, max(bins) - 1)
        A point that lies on an edge belongs to the bin above it.
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
    turned, cells = np.empty((n, n_directions), np.float32), np.empty(n, np.int32)
    shift = np.zeros(n_directions)
    for d in range(n_directions):
        for e in range(len(centre)):
            shift[d] += turn[d, e] * centre[e]
    least, most = np.full(n_directions, np.inf), np.full(n_directions, -np.inf)
    for i in range(n):
        cell = 0
        for d in range(n_directions):
            total = -shift[d]
            for e in range(len(centre)):
                total += turn[d, e] * located[urn[i], e]
            y = np.float32(total)
            turned[i, d] = y
            least[d], most[d] = min(least[d], y), max(most[d], y)
            k = 0
            for b in range(bins[d] - 1):
                k += y >= edges[d, b]
            cell = cell * bins[d] + k
        cells[i] = cell
        starts[cell + 1] += 1
    for cell in range(1, len(starts)):
        starts[cell] += starts[cell - 1]
    cursors = starts[:-1].copy()
    for i in range(n):
        at = cursors[cells[i]]
        cursors[cells[i]] += 1
        named[at] = urn[i]
        for d in range(n_directions):
            points[at, d] = turned[i, d]
    for d in range(n_directions):
        for k in range(bins[d]):  # the outermost points may lie on either side of an edge
            lows[d, k] = edges[d, k - 1] if k > 0 else min(least[d], edges[d, 0])
            highs[d, k] = edges[d, k] if k < bins[d] - 1 else max(most[d], edges[d, k - 1])


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
