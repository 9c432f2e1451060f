"""Draws of points that suit a client's style, compiled: rejection from boxes, exact for any proxy data.

Point j of a label has the log weight Σ_d (s_d y_jd - c_d y_jd²) for a client, plus log r for each time
that it was given before. Drawing one point after the other in proportion to the weights, without
replacement, is the same as taking the largest log weights after Gumbel noise is added; but that looks at
every point for every client. Here the points of a label lie in the boxes of a k-d tree (Bentley, 1975).
A box is drawn in proportion to an upper bound of its points' weights, a point of it at random, and the
point is kept with probability weight / bound. A client that the bounds do not suit is served by Gumbel
noise after all: the distribution is the same, and no client takes forever.

Within a box the points that were given least often stand first. What the weights mean is `styled.py`.
"""

import math

import numpy as np
from numba import njit

# A client may try so often, for each point that Gumbel noise would look at: a look costs about as much.
_TRIES_PER_POINT = 0.25
_FEWEST_TRIES = 64
# Tries that run at once, step by step: none waits for the branches and the memory of another.
_MOST_AT_ONCE = 64
# Boxes whose bounds are summed first: a group is searched for, and then all of its boxes looked at.
_GROUP = 4
# Powers of the reuse factor that are kept in a table; 0.3^64 is below 1e-33.
_N_POWERS = 64
# What is known of a point: how often it was given, to whom last, and its box.
_USES, _LAST, _BOX = 0, 1, 2
# And of a box: where it begins and ends, how many of its points were given least often, and how often.
_START, _END, _FRESH, _FLOOR = 0, 1, 2, 3
# A float32 has 23 bits for its fraction, and the exponent of 1 is 127.
_OCTAVE, _ONE = 1 << 23, 127 << 23
_ROUNDING = 2.0**-23
# The least logarithm that an int32 has room for, in 2^-23 octaves; a coordinate beyond all others.
_LEAST, _FAR = -2.0e9, 1e30
# Sums may run in any order and nothing is NaN: that lets the compiler use vectors.
_VECTORS = {"nnan", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy")
def draw_styled(
    begins, needs, targets, spread, within, points, starts, lows, highs, urn, factor, indices, rng
):
    """Give clients their points of one label; `points` and their names `urn` are put in another order.

    Client i of those that ask has `needs[i]` points written to `indices` from `begins[i]` on. Its style
    is `targets[i]` plus `spread` times standard normal numbers, and its points vary by `within` in each
    direction, those of the proxy data by 1. Boxes are as `into_boxes` returns them. A point becomes
    `factor` times as likely each time it is given; with 0, no point is given again before all others
    were.
    """
    n_points, n_boxes = len(points), len(starts) - 1
    curves, linears = 0.5 * (1.0 / within - 1.0), np.empty(len(within))
    noise = np.empty(spread.shape[1])
    facts, boxes = _unused(n_points, starts)
    # What the points of each box weigh at most: apart from their styles, and for one client. Groups of
    # boxes are filled up with boxes of nothing, and their sums with infinity to a power of two.
    n_groups = -(-n_boxes // _GROUP)
    # Two arrays, not two rows of one: the compiler uses vectors only where memory has no gaps.
    mass, weights = np.zeros(n_groups * _GROUP, np.float32), np.zeros(n_groups * _GROUP, np.float32)
    mass[:n_boxes] = boxes[:, _FRESH]
    logs, ends = np.empty(n_boxes, np.float32), _ends(lows, highs)
    sums = np.full(1 << math.ceil(math.log2(n_groups)), np.inf)
    powers = factor ** np.arange(_N_POWERS)
    # How often every point was given, and in how many boxes some were given no more often.
    least = np.array([0, n_boxes])
    found, limits = np.empty(_MOST_AT_ONCE, np.int64), np.empty(_MOST_AT_ONCE)
    drawn = np.empty(n_points, np.int64)
    for pair in range(len(needs)):
        at, need = begins[pair], needs[pair]
        while need >= n_points:  # every point, as often as possible
            indices[at : at + n_points] = urn
            at += n_points
            need -= n_points
        for e in range(len(noise)):
            noise[e] = rng.standard_normal()
        for d in range(len(linears)):
            target = targets[pair, d]
            for e in range(len(noise)):
                target += spread[d, e] * noise[e]
            linears[d] = target / within[d]
        shift = _bound(linears, curves, lows, highs, ends, logs, weights)
        total = _sum(weights, mass, sums)
        tries, ahead = max(_FEWEST_TRIES, int(_TRIES_PER_POINT * n_points)) + need, 1 + 2 * need
        n_tries, got = 0, 0
        while got < need and total > 0 and n_tries < tries:
            n_ahead = min(ahead, _MOST_AT_ONCE)
            _propose(
                found[:n_ahead], limits, linears, curves, shift, points, facts, boxes, mass, weights,
                total, sums, powers, rng,
            )  # fmt: skip
            for t in range(n_ahead):
                if found[t] >= 0 and facts[found[t], _LAST] != pair and got < need:
                    facts[found[t], _LAST] = pair
                    drawn[got] = found[t]
                    got += 1
            n_tries += n_ahead
            ahead = 1 + (need - got) * n_tries // max(got, 1)
        while True:
            if got < need:
                got = _by_noise(
                    linears, curves, points, facts, factor, least[0], pair, drawn, got, need, rng
                )
            for t in range(got):
                indices[at + t] = urn[drawn[t]]
            _settle(drawn[:got], points, facts, urn, boxes, mass, powers, least)
            if got == need:
                break
            # This client has all that were given least often; now that they count, others weigh.
            at, need, got = at + got, need - got, 0


@njit(nogil=True, error_model="numpy")
def _unused(n_points, starts):
    """What is known of points and boxes when nothing was given yet."""
    facts, boxes = np.zeros((n_points, 3), np.int32), np.zeros((len(starts) - 1, 4), np.int32)
    facts[:, _LAST] = -1
    for box in range(len(boxes)):
        boxes[box, _START], boxes[box, _END] = starts[box], starts[box + 1]
        boxes[box, _FRESH] = starts[box + 1] - starts[box]
        facts[starts[box] : starts[box + 1], _BOX] = box
    return facts, boxes


@njit(nogil=True, error_model="numpy")
def _ends(lows, highs):
    """Between which all coordinates lie, in each direction."""
    ends = np.empty((len(lows), 2), np.float32)
    for d in range(len(lows)):
        ends[d, 0], ends[d, 1] = lows[d].min(), highs[d].max()
    return ends


@njit(nogil=True, error_model="numpy", fastmath=_VECTORS)
def _bound(linears, curves, lows, highs, ends, logs, bounds):
    """Upper bounds of the weights in each box, the largest 1; return the logarithm of their scale.

    A bound is a product over directions of the largest factor in the box. 2^x is bounded by its chord
    between two integers, which is 4 % above it on average: the bits of that float32, as an integer, are
    a linear function of x (Schraudolph, 1999).
    """
    n = len(logs)
    bits = bounds.view(np.int32)
    # Counted from a bound of all of them, logarithms are negative; and the size of what is rounded.
    outermost, size = 0.0, 1.0
    for d in range(len(linears)):
        y = min(max(_peak(linears[d], curves[d]), ends[d, 0]), ends[d, 1])
        outermost += (linears[d] - curves[d] * y) * y
        y = max(-ends[d, 0], ends[d, 1])
        size += (abs(linears[d]) + curves[d] * y) * y
    logs[:] = -outermost
    for d in range(len(linears)):
        linear, curve = np.float32(linears[d]), np.float32(curves[d])
        peak = np.float32(_peak(linears[d], curves[d]))
        for box in range(n):
            y = min(max(peak, lows[d, box]), highs[d, box])
            logs[box] += (linear - curve * y) * y
    per_octave = np.float32(_OCTAVE / math.log(2.0))
    for box in range(n):
        bits[box] = np.int32(max(logs[box] * per_octave, np.float32(_LEAST)))
    top = bits[0]
    for box in range(n):  # the largest of integers, because vectors have no largest of floats
        top = max(top, bits[box])
    for box in range(n):
        bits[box] = max(bits[box] - top + _ONE, 0)
    return outermost + top / per_octave + _ROUNDING * (len(linears) + 8) * size


@njit(nogil=True, inline="always", error_model="numpy")
def _log_weight(points, j, linears, curves):
    """The log weight of point j for a client."""
    value = 0.0
    for d in range(len(linears)):
        y = points[j, d]
        value += (linears[d] - curves[d] * y) * y
    return value


@njit(nogil=True, inline="always", error_model="numpy")
def _peak(linear, curve):
    """Where (linear - curve y) y is largest, at an end of the line if it is straight."""
    return 0.5 * linear / curve if curve > 0 else math.copysign(_FAR, linear)


@njit(nogil=True, error_model="numpy", fastmath=_VECTORS)
def _sum(weights, mass, sums):
    """Turn bounds of a point's weight into bounds of boxes; sum them over groups; return the sum of all.

    A group has every n-th box, not n boxes side by side: a sum does not wait for the one before.
    """
    n_groups = len(weights) // _GROUP
    of_groups = np.zeros(n_groups, np.float32)
    for k in range(_GROUP):
        for group in range(n_groups):
            weights[k * n_groups + group] *= mass[k * n_groups + group]
            of_groups[group] += weights[k * n_groups + group]
    total = 0.0
    for group in range(n_groups):
        total += of_groups[group]
        sums[group] = total
    return total


@njit(nogil=True, error_model="numpy")
def _propose(
    found, limits, linears, curves, shift, points, facts, boxes, mass, weights, total, sums, powers, rng
):  # fmt: skip
    """Find points, each with probability weight / bound, and else -1.

    One random number has bits for a box, a point of it, and whether it is kept. No step branches by it:
    the processor would guess wrong every other time, and that costs more than the step.
    """
    n, n_groups, factor = len(found), len(weights) // _GROUP, powers[1]
    for t in range(n):
        found[t], limits[t] = 0, rng.random() * total
    half = len(sums) >> 1
    while half > 0:  # the first group whose running sum is above the number
        for t in range(n):
            found[t] += half if sums[found[t] + half - 1] <= limits[t] else 0
        half >>= 1
    for t in range(n):
        group = min(found[t], n_groups - 1)
        x = limits[t] - (sums[group - 1] if group > 0 else 0.0)
        box, weight, before = group, np.float32(0.0), np.float32(0.0)
        for k in range(_GROUP - 1):
            weight += weights[k * n_groups + group]
            box += n_groups if weight <= x else 0
            before = weight if weight <= x else before
        found[t], limits[t] = min(box, len(boxes) - 1), (x - before) / weights[box]
    for t in range(n):
        box = found[t]
        start, n_fresh = boxes[box, _START], boxes[box, _FRESH]
        n_rest = boxes[box, _END] - start - n_fresh
        # Rounding may leave a little more than 1, or choose a box of nothing.
        x = (limits[t] if limits[t] < 1.0 else 1.0) * (n_fresh + factor * n_rest)
        again = x >= n_fresh and factor > 0.0 and n_rest > 0
        x = (x - n_fresh) / factor if again else x
        position = min(int(x), n_rest - 1 if again else n_fresh - 1)
        found[t] = start + position + (n_fresh if again else 0)
        n_more = facts[found[t], _USES] - boxes[box, _FLOOR] - 1 if again else 0
        limits[t] = (x - position) * weights[box] / mass[box] / powers[min(n_more, _N_POWERS - 1)]
    for t in range(n):
        value = _log_weight(points, found[t], linears, curves) - shift
        found[t] = found[t] if limits[t] < math.exp(value) else -1


@njit(nogil=True, error_model="numpy")
def _by_noise(linears, curves, points, facts, factor, base, pair, drawn, got, need, rng):
    """Add points to `drawn` by Gumbel noise, as many as are needed and weigh something."""
    keys, n = np.empty(len(points)), 0
    penalty = math.log(factor) if factor > 0 else 0.0
    for j in range(len(points)):
        keys[j] = -np.inf
        if facts[j, _LAST] != pair and (factor > 0 or facts[j, _USES] == base):
            value = penalty * (facts[j, _USES] - base)
            value += _log_weight(points, j, linears, curves)
            keys[j] = value - math.log(rng.standard_exponential())
            n += 1
    n = min(n, need - got)
    if n == 0:
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
def _settle(drawn, points, facts, urn, boxes, mass, powers, least):
    """Count that the drawn points were given, and put them behind those of their box that were not."""
    for point in drawn:
        facts[point, _USES] += 1
    for point in drawn:
        box = facts[point, _BOX]
        start, end = boxes[box, _START], boxes[box, _END]
        last = start + boxes[box, _FRESH] - 1
        while last >= start and facts[last, _USES] > boxes[box, _FLOOR]:
            last -= 1
        if point < last and facts[point, _USES] > boxes[box, _FLOOR]:  # the last one was not drawn
            _swap(points, facts, urn, point, last)
            last -= 1
        boxes[box, _FRESH] = last - start + 1
        if boxes[box, _FRESH] == 0:
            least[1] -= boxes[box, _FLOOR] == least[0]
            boxes[box, _FLOOR] += 1
            for position in range(start, end):
                if facts[position, _USES] == boxes[box, _FLOOR]:
                    _swap(points, facts, urn, position, start + boxes[box, _FRESH])
                    boxes[box, _FRESH] += 1
        mass[box] = _mass(boxes[box], least[0], powers)
    if least[1] == 0:  # count from what every point has: powers of the factor would become zero
        least[0] = boxes[:, _FLOOR].min()
        for box in range(len(boxes)):
            least[1] += boxes[box, _FLOOR] == least[0]
            mass[box] = _mass(boxes[box], least[0], powers)


@njit(nogil=True, inline="always", error_model="numpy")
def _mass(box, base, powers):
    """What the points of a box weigh, those that are not fresh as if they had been given once more."""
    n_rest = box[_END] - box[_START] - box[_FRESH]
    n_uses = min(box[_FLOOR] - base, _N_POWERS - 1)
    return (box[_FRESH] + powers[1] * n_rest) * powers[n_uses]


@njit(nogil=True, inline="always", error_model="numpy")
def _swap(points, facts, urn, a, b):
    for d in range(points.shape[1]):
        points[a, d], points[b, d] = points[b, d], points[a, d]
    for k in (_USES, _LAST):
        facts[a, k], facts[b, k] = facts[b, k], facts[a, k]
    urn[a], urn[b] = urn[b], urn[a]


@njit(cache=True, nogil=True, error_model="numpy")
def add_moments(located, codes, sums, products):
    """Add each point's coordinates z, and their products, to the sums and products of its label."""
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
    """The coordinates y = turn (z - centre) of some points, float32 of shape (n, n_directions)."""
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
    """Sort the points of one label, and their names `urn`, into boxes of at most `most` points each.

    A region of too many points is cut in the middle of its widest side, where a unit of direction d
    counts `change[d]`: in the tails of the proxy data boxes are as small as others, and have fewer
    points. Returns where each box begins, and the least and the largest coordinates in it,
    (n_directions, n_boxes) each.
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
    """Write (Σ w)² / Σ w² over the points for clients of these styles; proxy points have variance 1."""
    curves, values = 0.5 * (1.0 / within - 1.0), np.empty(len(points))
    for client in range(len(targets)):
        linears = targets[client] / within
        top = -np.inf
        for j in range(len(points)):
            values[j] = _log_weight(points, j, linears, curves)
            top = max(top, values[j])
        total, square = 0.0, 0.0
        for j in range(len(points)):
            weight = math.exp(values[j] - top)
            total += weight
            square += weight * weight
        out[client] = total * total / square
