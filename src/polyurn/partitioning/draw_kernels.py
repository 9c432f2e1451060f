"""One urn of points per category, and clients that draw from them: the hot loop of a partition.

An urn is a stretch of one array, and a draw swaps the drawn point to the front of it. Drawing m of n
points so costs m steps whatever n is, and leaves an urn that need not be put in order for the next
client: a uniform draw from any order is uniform. Which histograms can be served, and what to do about
the others, is `assign.py`.
"""

import numpy as np
from numba import njit

# What is called for every cell is inlined by numba: as calls, a draw takes three times as long.


@njit(cache=True, nogil=True)
def fill_urns(labels, ends, urns):
    """Write the points of each category, in increasing order, into its stretch of `urns`.

    `ends` (n_categories,) says where each stretch begins, and on return where it ends.
    """
    for point in range(len(labels)):
        label = labels[point]
        urns[ends[label]] = point
        ends[label] += 1


@njit(cache=True, nogil=True)
def draw_dense(counts, starts, urns, cursors, indices, independent, rng):
    """Give every client its points, category by category, so that one urn at a time is in the cache.

    No category that `counts` (n_clients, n_categories) ask for is empty. `starts` are the stretches of
    `urns`, which are put in another order, and `cursors` say where the points of each client begin in
    `indices`, on return where they end. If `independent`, each client finds the urns full.
    """
    n_clients, n_categories = counts.shape
    for category in range(n_categories):
        urn, n = starts[category], starts[category + 1] - starts[category]
        drawn = 0
        for client in range(n_clients):
            m = np.int64(counts[client, category])
            if m > 0:
                at = cursors[client]
                cursors[client] = at + m
                drawn = 0 if independent else drawn
                drawn = _draw(urns, urn, n, drawn, indices, at, m, rng)


@njit(cache=True, nogil=True)
def draw_sparse(columns, clients, data, starts, urns, cursors, indices, independent, rng):
    """`draw_dense` for histograms in compressed columns (`indptr`, `indices` and `data`)."""
    for category in range(len(columns) - 1):
        urn, n = starts[category], starts[category + 1] - starts[category]
        drawn = 0
        for cell in range(columns[category], columns[category + 1]):
            m = np.int64(data[cell])
            at = cursors[clients[cell]]
            cursors[clients[cell]] = at + m
            drawn = 0 if independent else drawn
            drawn = _draw(urns, urn, n, drawn, indices, at, m, rng)


@njit(cache=True, nogil=True)
def shuffle_clients(offsets, indices, rng):
    """Put each client's points into random order: whoever reads them in turn meets every category."""
    for client in range(len(offsets) - 1):
        points = indices[offsets[client] : offsets[client + 1]]
        for last in range(len(points) - 1, 0, -1):
            other = _below(last + 1, rng)
            points[last], points[other] = points[other], points[last]


@njit(cache=True, nogil=True)
def count_held(offsets, indices, holders):
    """How many points some client holds, and how many several do; `holders` (n_points,) begins as -1."""
    n_used, n_shared = 0, 0
    for client in range(len(offsets) - 1):
        for at in range(offsets[client], offsets[client + 1]):
            holder = holders[indices[at]]
            if holder == -1:
                holders[indices[at]] = client
                n_used += 1
            elif holder not in (client, -2):
                holders[indices[at]] = -2  # several
                n_shared += 1
    return n_used, n_shared


@njit(nogil=True, inline="always")
def _draw(urns, urn, n, drawn, indices, at, m, rng):
    """Write m points to `indices` from `at` on; return how many points of the urn are gone then.

    The urn is the n points of `urns` from `urn` on, the first `drawn` of them gone. One that runs out
    is filled again. What this client drew just before then stands at its end and stays out of reach
    until the client is served, so that nobody draws a point twice unless the client asks for more
    than there are.
    """
    whole = m // n * n if m >= n else 0
    for t in range(whole):
        indices[at + t] = urns[urn + t % n]
    end = n
    for t in range(whole, m):
        if drawn == n:
            drawn, end = 0, n - (t - whole)
        here = urn + drawn
        other = here + _below(end - drawn, rng)
        point = urns[other]
        urns[other] = urns[here]
        urns[here] = point
        indices[at + t] = point
        drawn += 1
    return drawn


@njit(nogil=True, inline="always")
def _below(n, rng):
    """A whole number from 0 to n - 1. A double has 53 bits, so none is favoured by more than n/2^53,
    and the product is below n, and the same on every platform.
    """
    return np.int64(rng.random() * n)
