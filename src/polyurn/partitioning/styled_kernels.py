"""Draws of points that suit a client's style, compiled: rejection from cells, exact for any pool.

Point j of a label has the log weight Σ_d (s_d y_jd - c_d y_jd²) for a client, plus log r for each time
that it was given before. Drawing one point after the other in proportion to the weights, without
replacement, is the same as taking the largest log weights after Gumbel noise is added; but that looks at
every point for every client. Here the points of a label lie in the cells of a grid. A cell is drawn in
proportion to an upper bound of its points' weights, a point of it at random, and the point is kept with
probability weight / bound. A client that the bounds do not suit is served by Gumbel noise after all: the
distribution is the same, and no client takes forever.

Within a cell the points that were given least often stand first. What the weights mean is `styled.py`,
how points come into cells `pool_kernels.py`.
"""

import math

import numpy as np
from numba import njit

# A client may try so often, for each point that Gumbel noise would look at: a look costs about as much.
_TRIES_PER_POINT = 0.25
_FEWEST_TRIES = 64
# Powers of the reuse factor that are kept in a table; 0.3^64 is below 1e-33.
_N_POWERS = 64


@njit(cache=True, nogil=True, error_model="numpy")
def draw_styled(  # noqa: PLR0912, PLR0915
    clients, needs, targets, spread, within, points, starts, bins, lows, highs, urn, factor,
    cursors, indices, rng,
):  # fmt: skip
    """Give clients their points of one label.

    Parameters
    ----------
    clients, needs : int arrays of shape (n_asking,)
        Who asks for points of the label, and for how many.
    targets : float array of shape (n_asking, n_directions)
        The styles of these clients, before what belongs to the label is added.
    spread : float array of shape (n_directions, any number)
        What belongs to client and label is `spread` times standard normal numbers.
    within : float array of shape (n_directions,)
        The variance of a client's points in each direction; the pool's is 1.
    points : float array of shape (n_points, n_directions)
        The pool, in the order of its cells.
    starts : int array of shape (n_cells + 1,)
        Where each cell of the grid begins.
    bins : int array of shape (n_directions,)
        How many bins the grid has in each direction; the last direction changes first.
    lows, highs : float arrays of shape (n_directions, max(bins))
        Between which the coordinates in each bin lie.
    urn : int array of shape (n_points,)
        What each point of the pool is called.
    factor : float
        How much less likely a point becomes each time it is given. With 0, no point is given again
        before all others were.
    cursors : int array of shape (n_clients,)
        Where each client's points begin in `indices`; on return, where they end.
    indices : int array of shape (n_given,)
    rng : numpy.random.Generator
    """
    n_points, n_directions = points.shape
    n_cells = len(starts) - 1
    curves = 0.5 * (1.0 / within - 1.0)
    slopes, noise = np.empty(n_directions), np.empty(spread.shape[1])
    powers = factor ** np.arange(_N_POWERS)
    # Which point stands where, and where each stands; how often it was given, and to whom last.
    order, place = np.arange(n_points).astype(np.int32), np.arange(n_points).astype(np.int32)
    uses, stamps = np.zeros(n_points, np.int32), np.full(n_points, -1, np.int32)
    # How many points of a cell were given least often, and how often; what all of them weigh.
    fresh, floors = np.diff(starts), np.zeros(n_cells, np.int64)
    mass = fresh.astype(np.float64)
    base = np.zeros(1, np.int64)
    tables = np.empty((n_directions, lows.shape[1]))
    bounds = np.empty(n_cells)
    sums = np.full(1 << math.ceil(math.log2(n_cells)), np.inf)
    drawn, keys = np.empty(n_points, np.int64), np.empty(n_points)
    cell_of = np.empty(n_points, np.int32)
    for cell in range(n_cells):
        cell_of[starts[cell] : starts[cell + 1]] = cell
    patience = max(_FEWEST_TRIES, int(_TRIES_PER_POINT * n_points))
    for pair in range(len(clients)):
        at, need = cursors[clients[pair]], needs[pair]
        cursors[clients[pair]] = at + need
        while need >= n_points:  # every point, as often as possible
            indices[at : at + n_points] = urn
            at += n_points
            need -= n_points
        if need == 0:
            continue
        for e in range(len(noise)):
            noise[e] = rng.standard_normal()
        for d in range(n_directions):
            target = targets[pair, d]
            for e in range(len(noise)):
                target += spread[d, e] * noise[e]
            slopes[d] = target / within[d]
        shift = _bound(slopes, curves, bins, lows, highs, tables, bounds)
        total = _sum(bounds, mass, sums)
        got, settled, tries = 0, 0, 0
        while got < need:
            point = -1
            while total > 0 and tries < patience + need:
                tries += 1
                point = _propose(
                    slopes, curves, shift, points, starts, bounds, sums, total, fresh, floors, uses,
                    order, powers, rng.random(),
                )  # fmt: skip
                if point >= 0 and stamps[point] != pair:
                    break
                point = -1
            if point >= 0:
                stamps[point] = pair
                drawn[got] = point
                got += 1
            else:
                got = _by_noise(
                    slopes, curves, points, uses, stamps, pair, factor, base[0], keys, drawn, got,
                    need, rng,
                )  # fmt: skip
                _settle(
                    drawn[settled:got], starts, cell_of, order, place, uses, fresh, floors, mass,
                    powers, base,
                )  # fmt: skip
                settled = got
                total = _sum(bounds, mass, sums)
        _settle(
            drawn[settled:need], starts, cell_of, order, place, uses, fresh, floors, mass, powers,
            base,
        )  # fmt: skip
        for t in range(need):
            indices[at + t] = urn[drawn[t]]


@njit(nogil=True, error_model="numpy")
def _bound(slopes, curves, bins, lows, highs, tables, bounds):
    """Upper bounds of the weights in each cell, at most 1; return the logarithm they are scaled by.

    A bound is a product over directions of the largest factor in a bin.
    """
    shift, n = 0.0, 1
    bounds[0] = 1.0
    for d in range(len(bins)):
        top = -np.inf
        for k in range(bins[d]):
            low, high = lows[d, k], highs[d, k]
            # The factor is largest at slope / (2 curve): there, or at the end of the bin next to it.
            if 2.0 * curves[d] * high <= slopes[d]:
                y = high
            elif 2.0 * curves[d] * low >= slopes[d]:
                y = low
            else:
                y = slopes[d] / (2.0 * curves[d])
            tables[d, k] = (slopes[d] - curves[d] * y) * y
            top = max(top, tables[d, k])
        shift += top
        for k in range(bins[d]):
            tables[d, k] = math.exp(tables[d, k] - top)
        for cell in range(n - 1, -1, -1):  # from the back: nothing is overwritten before it is read
            before = bounds[cell]
            for k in range(bins[d]):
                bounds[cell * bins[d] + k] = before * tables[d, k]
        n *= bins[d]
    return shift


@njit(nogil=True, error_model="numpy")
def _sum(bounds, mass, sums):
    """Running sums of what cells weigh at most; return the last. What stands beyond stays infinite."""
    total = 0.0
    for cell in range(len(bounds)):
        total += bounds[cell] * mass[cell]
        sums[cell] = total
    return total


@njit(nogil=True, inline="always", error_model="numpy")
def _propose(
    slopes, curves, shift, points, starts, bounds, sums, total, fresh, floors, uses, order, powers,
    random,
):  # fmt: skip
    """A point with probability weight / bound; else -1. One random number has bits for all of it."""
    x = random * total
    cell, half = 0, len(sums) >> 1
    while half > 0:  # the first cell whose sum is above x, without a branch
        cell += half if sums[cell + half - 1] <= x else 0
        half >>= 1
    before = sums[cell - 1] if cell > 0 else 0.0
    start, n_fresh = starts[cell], fresh[cell]
    n_rest = starts[cell + 1] - start - n_fresh
    x = (x - before) / (sums[cell] - before) * (n_fresh + powers[1] * n_rest)
    known = 1.0
    if x < n_fresh or powers[1] == 0.0:
        position = min(int(x), n_fresh - 1)
        chance = x - position
        point = order[start + position]
    else:
        x = (x - n_fresh) / powers[1]
        position = min(int(x), n_rest - 1)
        chance = x - position
        point = order[start + n_fresh + position]
        known = powers[min(uses[point] - floors[cell] - 1, len(powers) - 1)]
        if chance >= known:
            return -1
    value = -shift
    for d in range(len(slopes)):
        y = points[point, d]
        value += (slopes[d] - curves[d] * y) * y
    return point if chance * bounds[cell] < known * math.exp(value) else -1


@njit(nogil=True, error_model="numpy")
def _by_noise(
    slopes, curves, points, uses, stamps, pair, factor, base, keys, drawn, got, need, rng
):
    """Add points to `drawn` by Gumbel noise, as many as are needed and weigh something."""
    n = 0
    penalty = math.log(factor) if factor > 0 else 0.0
    for j in range(len(points)):
        keys[j] = -np.inf
        if stamps[j] != pair and (factor > 0 or uses[j] == base):
            value = penalty * (uses[j] - base)
            for d in range(len(slopes)):
                y = points[j, d]
                value += (slopes[d] - curves[d] * y) * y
            keys[j] = value - math.log(rng.standard_exponential())
            n += 1
    n = min(n, need - got)
    least = np.partition(keys, len(keys) - n)[len(keys) - n]
    for j in range(len(points)):
        if keys[j] >= least and n > 0:
            stamps[j] = pair
            drawn[got] = j
            got += 1
            n -= 1
    return got


@njit(nogil=True, error_model="numpy")
def _settle(drawn, starts, cell_of, order, place, uses, fresh, floors, mass, powers, base):
    """Count that these points were given."""
    for point in drawn:
        cell = cell_of[point]
        uses[point] += 1
        if uses[point] > floors[cell] + 1:
            continue
        start, end = starts[cell], starts[cell + 1]
        fresh[cell] -= 1
        _swap(order, place, place[point], start + fresh[cell])
        if fresh[cell] == 0:
            floors[cell] += 1
            for position in range(start, end):
                if uses[order[position]] == floors[cell]:
                    _swap(order, place, position, start + fresh[cell])
                    fresh[cell] += 1
            if floors[cell] == base[0] + 1:
                _rebase(starts, fresh, floors, mass, powers, base)
        mass[cell] = _mass(end - start, fresh[cell], floors[cell] - base[0], powers)


@njit(nogil=True, error_model="numpy")
def _rebase(starts, fresh, floors, mass, powers, base):
    """Count uses from the least used cell on: powers of the factor would become zero after a while."""
    lowest = -1
    for cell in range(len(fresh)):
        if starts[cell + 1] > starts[cell] and (lowest < 0 or floors[cell] < lowest):
            lowest = floors[cell]
    if lowest > base[0]:
        base[0] = lowest
        for cell in range(len(fresh)):
            n = starts[cell + 1] - starts[cell]
            mass[cell] = _mass(n, fresh[cell], max(floors[cell] - lowest, 0), powers)


@njit(nogil=True, inline="always", error_model="numpy")
def _mass(n, n_fresh, n_uses, powers):
    """What n points weigh, those that are not fresh as if they had been given once more."""
    return (n_fresh + powers[1] * (n - n_fresh)) * powers[min(n_uses, len(powers) - 1)]


@njit(nogil=True, inline="always", error_model="numpy")
def _swap(order, place, a, b):
    order[a], order[b] = order[b], order[a]
    place[order[a]] = a
    place[order[b]] = b
