"""Passes over the proxy points that a style needs, compiled: moments, boxes, effective sizes.

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
def turned(located, centre, turn):
    """The coordinates y = turn (z - centre) of some points.

    Parameters
    ----------
    located : float array of shape (n, n_located)
        Their coordinates z.
    centre, turn : float arrays of shape (n_located,) and (n_directions, n_located)

    Returns
    -------
    float32 array of shape (n, n_directions)
    """
    points = np.empty((len(located), len(turn)), np.float32)
    for i in range(len(located)):
        for d in range(len(turn)):
            total = 0.0
            for e in range(len(centre)):
                total += turn[d, e] * (located[i, e] - centre[e])
            points[i, d] = total
    return points


@njit(cache=True, nogil=True, error_model="numpy")
def into_boxes(points, urn, change, most):
    """Sort the points of one label into the boxes of a k-d tree (Bentley, 1975).

    A region of too many points is cut in the middle of its widest side: in the tails of the pool boxes
    are as small as others, and have fewer points.

    Parameters
    ----------
    points : float32 array of shape (n, n_directions)
        On return, in the order of the boxes.
    urn : int array of shape (n,)
        What the points are called; on return, in the same order.
    change : float array of shape (n_directions,)
        How much a unit of each direction counts when sides are compared.
    most : int
        How many points a box has at most.

    Returns
    -------
    starts : int array of shape (n_boxes + 1,)
        Where each box begins.
    lows, highs : float32 arrays of shape (n_directions, n_boxes)
        The least and the largest coordinates in each box.
    """
    n, m = points.shape
    starts, n_boxes, begin = np.zeros(n + 1, np.int32), 0, 0
    # Regions that are still to be cut or kept, the next one last: where their points end, their sides.
    ends, sides = [n], [_sides(points, 0, n)]
    while len(ends) > 0:
        end, region = ends.pop(), sides.pop()
        side = np.argmax((region[1] - region[0]) * change)
        middle = np.float32(0.5) * (region[0, side] + region[1, side])
        if end - begin <= most:
            n_boxes += 1
            starts[n_boxes] = begin = end
            continue
        cut = (begin + end) // 2  # of points that are all the same
        if region[0, side] < middle < region[1, side]:
            cut = _cut(points, urn, begin, end, side, middle)
        above = region.copy()
        above[0, side] = region[1, side] = middle
        if cut < end:
            ends.append(end)
            sides.append(above)
        if cut > begin:
            ends.append(cut)
            sides.append(region)
    lows, highs = np.empty((2, m, n_boxes), np.float32)
    for box in range(n_boxes):
        lows[:, box], highs[:, box] = _sides(points, starts[box], starts[box + 1])
    return starts[: n_boxes + 1].copy(), lows, highs


@njit(nogil=True, error_model="numpy")
def _sides(points, begin, end):
    """The least and the largest coordinates of some points: of shape (2, n_directions)."""
    sides = np.empty((2, points.shape[1]), np.float32)
    sides[:] = points[begin]
    for i in range(begin + 1, end):
        for d in range(points.shape[1]):
            y = points[i, d]
            sides[0, d], sides[1, d] = min(sides[0, d], y), max(sides[1, d], y)
    return sides


@njit(nogil=True, error_model="numpy")
def _cut(points, urn, begin, end, side, middle):
    """Put the points below the middle first; return where the others begin."""
    cut = begin
    for i in range(begin, end):  # always swapped: a branch would be guessed wrong every other time
        below = points[i, side] < middle
        for d in range(points.shape[1]):
            points[i, d], points[cut, d] = points[cut, d], points[i, d]
        urn[i], urn[cut] = urn[cut], urn[i]
        cut += below
    return cut


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
