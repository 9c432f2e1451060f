"""One urn of points per category, and clients that draw from them: the hot loop of a partition.

An urn is a stretch of one array, and a draw swaps the drawn point to the front of it. Drawing m of n
points so costs m steps whatever n is, and leaves an urn that need not be put in order for the next
client: a uniform draw from any order is uniform. Which histograms can be served, and what to do about
the others, is `partitioning.py`.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_urns(labels, ends, urns):
    """Write the points of each category, in increasing order, into its stretch of `urns`.

    Parameters
    ----------
    labels : int array of shape (n_points,)
    ends : int array of shape (n_categories,)
        Where each category's stretch begins; on return, where it ends.
    urns : int array of shape (n_points,)
    """
    for point in range(len(labels)):
        label = labels[point]
        urns[ends[label]] = point
        ends[label] += 1


@njit(cache=True, nogil=True)
def draw_dense(counts, starts, urns, cursors, indices, independent, rng):
    """Give every client its points, category by category, so that one urn at a time is in the cache.

    Parameters
    ----------
    counts : int array of shape (n_clients, n_categories)
        No category that is asked for is empty.
    starts : int array of shape (n_categories + 1,)
        The stretch of each category in `urns`.
    urns : int array of shape (n_points,)
        Is put in another order.
    cursors : int array of shape (n_clients,)
        Where each client's points begin in `indices`; on return, where they end.
    indices : int array of shape (n_given,)
    independent : bool
        Whether each client finds the urns full.
    rng : numpy.random.Generator
    """
    n_clients, n_categories = counts.shape
    for category in range(n_categories):
        urn = urns[starts[category] : starts[category + 1]]
        drawn = 0
        for client in range(n_clients):
            m = np.int64(counts[client, category])
            if m > 0:
                first = cursors[client]
                cursors[client] += m
                given = indices[first : first + m]
                drawn = _draw(urn, 0 if independent else drawn, given, rng)


@njit(cache=True, nogil=True)
def draw_sparse(columns, clients, data, starts, urns, cursors, indices, independent, rng):
    """`draw_dense` for histograms in compressed columns (`indptr`, `indices` and `data`)."""
    for category in range(len(columns) - 1):
        urn = urns[starts[category] : starts[category + 1]]
        drawn = 0
        for cell in range(columns[category], columns[category + 1]):
            m = np.int64(data[cell])
            first = cursors[clients[cell]]
            cursors[clients[cell]] += m
            given = indices[first : first + m]
            drawn = _draw(urn, 0 if independent else drawn, given, rng)


@njit(cache=True, nogil=True)
def shuffle_clients(offsets, indices, rng):
    """Put each client's points into random order: whoever reads them in turn meets every category."""
    for client in range(len(offsets) - 1):
        points = indices[offsets[client] : offsets[client + 1]]
        for last in range(len(points) - 1, 0, -1):
            other = _below(last + 1, rng)
            points[last], points[other] = points[other], points[last]


@njit(nogil=True)
def _draw(urn, drawn, given, rng):
    """Fill `given` from an urn whose first `drawn` points are gone; return how many are gone now.

    An urn that runs out is filled again. What this client took out just before stands at its end and
    stays out of reach until the client is served, so that nobody draws a point twice unless
    the client asks for more than there is.
    """
    n, m = len(urn), len(given)
    whole = m // n * n
    for t in range(whole):
        given[t] = urn[t % n]
    end = n
    for t in range(whole, m):
        if drawn == n:
            drawn, end = 0, n - (t - whole)
        other = drawn + _below(end - drawn, rng)
        urn[drawn], urn[other] = urn[other], urn[drawn]
        given[t] = urn[drawn]
        drawn += 1
    return drawn


@njit(nogil=True)
def _below(n, rng):
    """A whole number from 0 to n - 1. A double has 53 bits, so none is favoured by more than n/2^53,
    and the product is below n, and the same on every platform.
    """
    return np.int64(rng.random() * n)
