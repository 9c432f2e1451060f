"""Draws of points that suit a client's style, compiled: rejection from cells, exact for any pool.

Point j of a label has the log weight Σ_d (s_d y_jd - c_d y_jd²) for a client, plus log r for each time
that it was given before. Drawing one point after the other in proportion to the weights, without
replacement, is the same as taking the largest log weights after Gumbel noise is added; but that looks at
every point for every client. Here the points of a label lie in the cells of a grid. A cell is drawn in
proportion to an upper bound of its points' weights, a point of it at random, and the point is kept with
probability weight / bound. A client that the bounds do not suit is served by Gumbel noise after all: the
distribution is the same, and no client takes forever.

Within a cell the points that were given least often stand first. The first directions of the grid make
columns of cells, the others rows, and a bound is the product of a row's and a column's. What the weights
mean is `styled.py`, how points come into cells `pool_kernels.py`.
"""

import math

import numpy as np
from numba import njit

# A client may try so often, for each point that Gumbel noise would look at: a look costs about as much.
_TRIES_PER_POINT = 0.25
_FEWEST_TRIES = 64
# Tries that are made at once, so that the processor waits for the memory of all of them together.
_MOST_AT_ONCE = 64
# Powers of the reuse factor that are kept in a table; 0.3^64 is below 1e-33.
_N_POWERS = 64
# What is known of a point, in one place of the memory: how often it was given, and to whom last, where
# it stands in the order of its cell, and its cell.
_USES, _LAST, _PLACE, _CELL = 0, 1, 2, 3
# And of a cell: where it begins and ends, how many of its points were given least often, and how often.
_START, _END, _FRESH, _FLOOR = 0, 1, 2, 3


@njit(cache=True, nogil=True, error_model="numpy")
def draw_styled(
    places, needs, targets, spread, within, points, starts, bins, n_outer, lows, highs, urn, factor,
    indices, rng,
):  # fmt: skip
    """Give clients their points of one label.

    Parameters
    ----------
    places, needs : int arrays of shape (n_asking,)
        Where the points of each client that asks for some are written to, and how many they are.
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
    n_outer : int
        The first so many directions make the columns of the grid, the others its rows.
    lows, highs : float arrays of shape (n_directions, max(bins))
        Between which the coordinates in each bin lie.
    urn : int array of shape (n_points,)
        What each point of the pool is called.
    factor : float
        How much less likely a point becomes each time it is given. With 0, no point is given again
        before all others were.
    indices : int array of shape (n_given,)
    rng : numpy.random.Generator
    """
    n_points = len(points)
    curves, slopes = 0.5 * (1.0 / within - 1.0), np.empty(len(within))
    noise = np.empty(spread.shape[1])
    order, facts, cells = _full_cells(n_points, starts)
    # What the points of each cell weigh at most, and powers of the factor.
    mass, powers = cells[:, _FRESH].astype(np.float64), factor ** np.arange(_N_POWERS)
    base = np.zeros(1, np.int64)  # how often every point was given
    # Bounds of columns and rows; sums over rows, and over the columns of each row that was visited.
    columns, rows = np.empty(np.prod(bins[:n_outer])), np.empty(np.prod(bins[n_outer:]))
    of_rows, of_columns = _sums(len(rows), 1), _sums(len(columns), len(rows))
    known, factors = np.empty(len(rows), np.bool_), np.empty(lows.shape[1])
    found, limits = np.empty(_MOST_AT_ONCE, np.int64), np.empty(_MOST_AT_ONCE)
    drawn = np.empty(n_points, np.int64)
    for pair in range(len(needs)):
        at, need = places[pair], needs[pair]
        while need >= n_points:  # every point, as often as possible
            indices[at : at + n_points] = urn
            at += n_points
            need -= n_points
        for e in range(len(noise)):
            noise[e] = rng.standard_normal()
        for d in range(len(slopes)):
            target = targets[pair, d]
            for e in range(len(noise)):
                target += spread[d, e] * noise[e]
            slopes[d] = target / within[d]
        shift = _bound(slopes, curves, bins, 0, n_outer, lows, highs, factors, columns)
        shift += _bound(slopes, curves, bins, n_outer, len(bins), lows, highs, factors, rows)
        total = _sum(mass, columns, rows, of_rows, known)
        tries, ahead = max(_FEWEST_TRIES, int(_TRIES_PER_POINT * n_points)) + need, 1 + 2 * need
        n_tries, got, settled = 0, 0, 0
        while got < need:
            if total > 0 and n_tries < tries:
                n_ahead = min(ahead, _MOST_AT_ONCE)
                _propose(
                    n_ahead, slopes, curves, shift, points, order, facts, cells, mass, powers, columns,
                    rows, total, of_rows, of_columns, known, found, limits, rng,
                )  # fmt: skip
                for t in range(n_ahead):
                    if found[t] >= 0 and facts[found[t], _LAST] != pair and got < need:
                        facts[found[t], _LAST] = pair
                        drawn[got] = found[t]
                        got += 1
                n_tries += n_ahead
                ahead = 1 + (need - got) * n_tries // max(got, 1)
            else:
                got = _by_noise(
                    slopes, curves, points, facts, powers[1], base[0], pair, drawn, got, need, rng,
                )  # fmt: skip
                _settle(drawn, settled, got, order, facts, cells, mass, powers, base)
                settled = got
                total = _sum(mass, columns, rows, of_rows, known)
        _settle(drawn, settled, need, order, facts, cells, mass, powers, base)
        for t in range(need):
            indices[at + t] = urn[drawn[t]]


@njit(nogil=True, error_model="numpy")
def _full_cells(n_points, starts):
    """The order of the points, and what is known of points and cells, when nothing was given yet."""
    order, facts = np.arange(n_points).astype(np.int32), np.zeros((n_points, 4), np.int32)
    cells = np.empty((len(starts) - 1, 4), np.int32)
    for cell in range(len(cells)):
        cells[cell, _START], cells[cell, _END] = starts[cell], starts[cell + 1]
        cells[cell, _FRESH], cells[cell, _FLOOR] = starts[cell + 1] - starts[cell], 0
        for point in range(starts[cell], starts[cell + 1]):
            facts[point, _LAST], facts[point, _PLACE], facts[point, _CELL] = -1, point, cell
    return order, facts, cells


@njit(nogil=True, error_model="numpy")
def _sums(n, n_times):
    """Room for n running sums, so many times, each filled up with infinity to a power of two."""
    return np.full(n_times << math.ceil(math.log2(n)), np.inf)


@njit(nogil=True, error_model="numpy")
def _bound(slopes, curves, bins, first, last, lows, highs, factors, bounds):
    """Upper bounds of the weights along some directions, at most 1; return the logarithm of their scale.

    A bound is a product over directions of the largest factor in a bin.
    """
    shift, n = 0.0, 1
    bounds[0] = 1.0
    for d in range(first, last):
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
            factors[k] = (slopes[d] - curves[d] * y) * y
            top = max(top, factors[k])
        shift += top
        for k in range(bins[d]):
            factors[k] = math.exp(factors[k] - top)
        for cell in range(n - 1, -1, -1):  # from the back: nothing is overwritten before it is read
            before = bounds[cell]
            for k in range(bins[d]):
                bounds[cell * bins[d] + k] = before * factors[k]
        n *= bins[d]
    return shift


@njit(nogil=True, error_model="numpy")
def _sum(mass, columns, rows, of_rows, known):
    """Sum what the cells of rows weigh at most; return the sum of all."""
    n_rows = len(rows)
    of_rows[:n_rows] = 0.0
    for column in range(len(columns)):  # a row at a time would have to wait for each sum
        for row in range(n_rows):
            of_rows[row] += columns[column] * mass[column * n_rows + row]
    total = 0.0
    for row in range(n_rows):
        total += rows[row] * of_rows[row]
        of_rows[row] = total
        known[row] = False
    return total


@njit(nogil=True, error_model="numpy")
def _propose(
    n, slopes, curves, shift, points, order, facts, cells, mass, powers, columns, rows, total, of_rows,
    of_columns, known, found, limits, rng,
):  # fmt: skip
    """Find n points, each with probability weight / bound, and else -1.

    No try depends on the one before: the processor works on several, whatever they wait for. One random
    number has bits for a row, a column, a point of the cell, and whether it is kept.
    """
    n_columns, n_rows = len(columns), len(rows)
    width = len(of_columns) // n_rows
    for t in range(n):
        x = rng.random() * total
        row = _first_above(of_rows, 0, len(of_rows), x, n_rows)
        before = of_rows[row - 1] if row > 0 else 0.0
        found[t], limits[t] = row, (x - before) / (of_rows[row] - before)
        if not known[row]:
            known[row] = True
            weight = 0.0
            for column in range(n_columns):
                weight += columns[column] * mass[column * n_rows + row]
                of_columns[row * width + column] = weight
    for t in range(n):
        row = found[t]
        first = row * width
        x = limits[t] * of_columns[first + n_columns - 1]
        column = _first_above(of_columns, first, width, x, n_columns)
        before = of_columns[first + column - 1] if column > 0 else 0.0
        cell = column * n_rows + row
        start, n_fresh = cells[cell, _START], cells[cell, _FRESH]
        n_rest = cells[cell, _END] - start - n_fresh
        x = (x - before) / (of_columns[first + column] - before) * (n_fresh + powers[1] * n_rest)
        again = x >= n_fresh and powers[1] > 0.0 and n_rest > 0
        x = (x - n_fresh) / powers[1] if again else x
        position = min(int(x), n_rest - 1 if again else n_fresh - 1)
        point = order[start + position + (n_fresh if again else 0)]
        n_more = facts[point, _USES] - cells[cell, _FLOOR] - 1 if again else 0
        found[t] = point
        limits[t] = (x - position) * rows[row] * columns[column]
        limits[t] /= powers[min(n_more, _N_POWERS - 1)]
    for t in range(n):
        value = -shift
        for d in range(len(slopes)):
            y = points[found[t], d]
            value += (slopes[d] - curves[d] * y) * y
        found[t] = found[t] if limits[t] < math.exp(value) else -1


@njit(nogil=True, inline="always", error_model="numpy")
def _first_above(sums, start, width, x, n):
    """Which of n sums is the first above x, without a branch; the last if rounding left none."""
    first, half = start, width >> 1
    while half > 0:
        first += half if sums[first + half - 1] <= x else 0
        half >>= 1
    return min(first - start, n - 1)


@njit(nogil=True, error_model="numpy")
def _by_noise(slopes, curves, points, facts, factor, base, pair, drawn, got, need, rng):
    """Add points to `drawn` by Gumbel noise, as many as are needed and weigh something."""
    keys, n = np.empty(len(points)), 0
    penalty = math.log(factor) if factor > 0 else 0.0
    for j in range(len(points)):
        keys[j] = -np.inf
        if facts[j, _LAST] != pair and (factor > 0 or facts[j, _USES] == base):
            value = penalty * (facts[j, _USES] - base)
            for d in range(len(slopes)):
                y = points[j, d]
                value += (slopes[d] - curves[d] * y) * y
            keys[j] = value - math.log(rng.standard_exponential())
            n += 1
    n = min(n, need - got)
    if n == 0:  # this client has all that were given least often; once they count, others weigh
        return got
    least = np.partition(keys, len(keys) - n)[len(keys) - n]
    for j in range(len(points)):
        if keys[j] >= least and n > 0:
            facts[j, _LAST] = pair
            drawn[got] = j
            got += 1
            n -= 1
    return got


@njit(nogil=True, error_model="numpy")
def _settle(drawn, first, last, order, facts, cells, mass, powers, base):
    """Count that some of the drawn points were given."""
    for t in range(first, last):
        point = drawn[t]
        cell = facts[point, _CELL]
        facts[point, _USES] += 1
        if facts[point, _USES] > cells[cell, _FLOOR] + 1:
            continue
        cells[cell, _FRESH] -= 1
        _swap(order, facts, facts[point, _PLACE], cells[cell, _START] + cells[cell, _FRESH])
        if cells[cell, _FRESH] == 0:
            cells[cell, _FLOOR] += 1
            for position in range(cells[cell, _START], cells[cell, _END]):
                if facts[order[position], _USES] == cells[cell, _FLOOR]:
                    _swap(order, facts, position, cells[cell, _START] + cells[cell, _FRESH])
                    cells[cell, _FRESH] += 1
            if cells[cell, _FLOOR] == base[0] + 1:
                _rebase(cells, mass, powers, base)
        mass[cell] = _mass(cells, cell, base[0], powers)


@njit(nogil=True, error_model="numpy")
def _rebase(cells, mass, powers, base):
    """Count uses from the least used cell on: powers of the factor would become zero after a while."""
    lowest = -1
    for cell in range(len(cells)):
        is_empty = cells[cell, _START] == cells[cell, _END]
        if not is_empty and (lowest < 0 or cells[cell, _FLOOR] < lowest):
            lowest = cells[cell, _FLOOR]
    if lowest > base[0]:
        base[0] = lowest
        for cell in range(len(cells)):
            mass[cell] = _mass(cells, cell, lowest, powers)


@njit(nogil=True, inline="always", error_model="numpy")
def _mass(cells, cell, base, powers):
    """What the points of a cell weigh, those that are not fresh as if they had been given once more."""
    n_fresh = cells[cell, _FRESH]
    n_rest = cells[cell, _END] - cells[cell, _START] - n_fresh
    n_uses = min(max(cells[cell, _FLOOR] - base, 0), _N_POWERS - 1)
    return (n_fresh + powers[1] * n_rest) * powers[n_uses]


@njit(nogil=True, inline="always", error_model="numpy")
def _swap(order, facts, a, b):
    order[a], order[b] = order[b], order[a]
    facts[order[a], _PLACE] = a
    facts[order[b], _PLACE] = b
