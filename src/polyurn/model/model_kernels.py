"""The hot loops of the model, compiled: Pólya urns, scores of mixtures, coordinates of styles.

An urn starts with α_j balls of colour j; each draw puts the ball back with one more of its colour. The
colours of n draws have exactly the Dirichlet-multinomial distribution, without a gamma or a binomial
variate: the next point is a copy of one of the t before it with probability t/(α_0 + t), and else new,
with the proportions of α. For clients of few points a category this is several times as fast, and it
needs nothing but uniform numbers and products, which are the same on every platform.

Scores are gathered from tables: for fixed parameters Σ_{m<c} log(α + m) and Σ_{m<c} 1 / (α + m) are
tabulated once for every category and the first counts; a series continues them. The plain formulas stand
in the tests.

Server and clients have to agree on a point's style coordinates bit for bit, whatever their number of
cores, their linear algebra and how the points are cut in blocks. So every sum runs in the order of its
index, point by point; products and sums are not fused.
"""

import math

import numpy as np
from numba import njit

from polyurn.typed.declared import Floats, Ints


def draw_counts(
    alphas: Floats, components: Ints, sizes: Ints, counts: Ints, rng: np.random.Generator
) -> None:
    """Add each client's points to its row of `counts`, of shape (n_clients, n_categories).

    The components and sizes of the clients have shape (n_clients,); the sum of each row of `alphas` is
    finite.

    >>> counts = np.zeros((2, 3), np.int64)
    >>> one, sizes = np.zeros(2, np.int64), np.array([4, 6])
    >>> draw_counts(np.array([[1.0, 2.0, 0.0]]), one, sizes, counts, np.random.default_rng(0))
    >>> counts.sum(axis=1).tolist(), counts[:, 2].tolist()
    ([4, 6], [0, 0])
    """
    shares, others = _alias_tables(alphas / alphas.sum(axis=1, keepdims=True))
    points = np.empty(int(sizes.max(initial=0)), np.int64)
    _draw(alphas.sum(axis=1), shares, others, components, sizes, points, counts, rng)


@njit(cache=True, nogil=True)
def _draw(alpha_0, shares, others, components, sizes, points, counts, rng):
    n_categories = shares.shape[1]
    for client in range(len(sizes)):
        k = components[client]
        total = alpha_0[k]
        for t in range(sizes[client]):
            at = rng.random() * (total + t)
            # Rounding may put `at` at the very end: there is no point t yet.
            if at < total or at >= total + t:
                position = rng.random() * n_categories
                j = np.int64(position)
                if position - j >= shares[k, j]:
                    j = others[k, j]
            else:
                j = points[min(np.int64(at - total), t - 1)]
            points[t] = j
            counts[client, j] += 1


@njit(cache=True, nogil=True)
def _alias_tables(proportions):
    """Walker's tables: category j is drawn as itself with `shares[j]`, and as `others[j]` if not.

    All arrays have the shape (n_components, n_categories).
    """
    n_components, n_categories = proportions.shape
    shares, others = proportions * n_categories, np.zeros(proportions.shape, np.int64)
    low, high = np.empty(n_categories, np.int64), np.empty(n_categories, np.int64)
    for k in range(n_components):
        n_low, n_high = 0, 0
        largest = 0
        for j in range(n_categories):
            if shares[k, j] > shares[k, largest]:
                largest = j
            if shares[k, j] < 1.0:
                low[n_low], n_low = j, n_low + 1
            else:
                high[n_high], n_high = j, n_high + 1
        while n_low > 0 and n_high > 0:
            n_low -= 1
            poor, rich = low[n_low], high[n_high - 1]
            others[k, poor] = rich
            shares[k, rich] -= 1.0 - shares[k, poor]
            if shares[k, rich] < 1.0:
                n_high -= 1
                low[n_low], n_low = rich, n_low + 1
        for i in range(n_high):
            shares[k, high[i]] = 1.0
        for i in range(n_low):  # what rounding left: all but whole, or nothing and never drawn
            others[k, low[i]] = largest
            if shares[k, low[i]] > 0.5:
                shares[k, low[i]] = 1.0
    return shares, others


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate(alphas, largest, most):
    """Running sums of log(α + m) and 1 / (α + m) for counts 0 to `largest`, at most `most`, of each
    category.

    Two arrays of shape (n_categories, most + 1, n_components).
    """
    n_components, n_categories = alphas.shape
    logs = np.zeros((n_categories, most + 1, n_components))
    rises = np.zeros(logs.shape)
    for j in range(n_categories):
        for k in range(n_components):
            alpha, log, rise = alphas[k, j], 0.0, 0.0
            for c in range(largest[j]):
                log += math.log(alpha + c)
                rise += 1.0 / (alpha + c)
                logs[j, c + 1, k] = log
                rises[j, c + 1, k] = rise
    return logs, rises


@njit(cache=True, nogil=True, error_model="numpy")
def _log_beyond(x, c):
    """Σ_{m<c} log(x + m) beyond a table, for x of at least 32: four terms of Stirling's series."""
    big = x + c
    total = (big - 0.5) * math.log1p(c / x) + c * (math.log(x) - 1.0)
    return total + _stirling(1.0 / big) - _stirling(1.0 / x)


@njit(cache=True, nogil=True, error_model="numpy")
def _stirling(y):
    """Stirling's series of log Γ(1 / y), without its leading terms."""
    z = y * y
    return y * (1 / 12 + z * (-1 / 360 + z * (1 / 1260 - z / 1680)))


@njit(cache=True, nogil=True, error_model="numpy")
def _rise_beyond(x, c):
    """Σ_{m<c} 1 / (x + m) beyond a table: the derivative of `_log_beyond` in x."""
    big = x + c
    return math.log1p(c / x) + 0.5 * c / (x * big) + _fall(1.0 / x) - _fall(1.0 / big)


@njit(cache=True, nogil=True, error_model="numpy")
def _fall(y):
    """The derivative of `_stirling` in 1 / y, negated."""
    z = y * y
    return z * (1 / 12 + z * (-1 / 120 + z * (1 / 252 - z / 240)))


@njit(cache=True, nogil=True, error_model="numpy")
def e_step(counts, sizes, log_weights, alphas, alpha_0, logs, size_logs, omega):
    """Write each client's responsibilities into `omega`; return its log-likelihood without the
    multinomial's.

    `logs` and `size_logs` are what `tabulate` returns, of α and of α_0.
    """
    n, n_categories = counts.shape
    n_components, most = len(log_weights), logs.shape[1] - 1
    values = np.empty(n)
    for i in range(n):
        rest = sizes[i] - most
        for k in range(n_components):
            omega[i, k] = log_weights[k] - size_logs[0, min(sizes[i], most), k]
            if rest > 0:
                omega[i, k] -= _log_beyond(alpha_0[k] + most, rest)
        for j in range(n_categories):
            count = counts[i, j]
            if count > 0:
                for k in range(n_components):
                    omega[i, k] += logs[j, min(count, most), k]
                    if count > most:
                        omega[i, k] += _log_beyond(alphas[k, j] + most, count - most)
        peak = omega[i].max()
        total = 0.0
        for k in range(n_components):
            omega[i, k] = math.exp(omega[i, k] - peak)
            total += omega[i, k]
        for k in range(n_components):
            omega[i, k] /= total
        values[i] = peak + math.log(total)
    return values


@njit(cache=True, nogil=True, error_model="numpy")
def gradients(counts, sizes, weights, alphas, alpha_0, rises, size_rises, omega, out):
    """Write each client's gradient of log q in log α_k1, ..., log α_kC and the logit of τ_k, k by k.

    `out` has shape (n_clients, n_components * (n_categories + 1)); the rest is as in `e_step`.
    """
    n, n_categories = counts.shape
    n_components, most = len(weights), rises.shape[1] - 1
    for i in range(n):
        for k in range(n_components):
            share, fall = omega[i, k], size_rises[0, min(sizes[i], most), k]
            if sizes[i] > most:
                fall += _rise_beyond(alpha_0[k] + most, sizes[i] - most)
            first = k * (n_categories + 1)
            for j in range(n_categories):
                rise = rises[j, min(counts[i, j], most), k]
                if counts[i, j] > most:
                    rise += _rise_beyond(alphas[k, j] + most, counts[i, j] - most)
                out[i, first + j] = share * alphas[k, j] * (rise - fall)
            out[i, first + n_categories] = share - weights[k]


@njit(cache=True, nogil=True, error_model="numpy")
def row_products(rows, matrix):
    """Rows @ matrix, each row by itself: its bits do not depend on the rows beside it.

    BLAS computes a product of many rows in another order than one of few, so that one client more
    would change the rounding of all others, and with it a sum that noise is to protect.
    """
    out = np.zeros((rows.shape[0], matrix.shape[1]))
    for i in range(rows.shape[0]):
        total = out[i]
        for j in range(matrix.shape[0]):
            x, row = rows[i, j], matrix[j]
            for k in range(len(row)):
                total[k] += x * row[k]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def row_norms(rows):
    """The norm of each row, by itself as in `row_products`."""
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        square = 0.0
        for j in range(rows.shape[1]):
            square += rows[i, j] * rows[i, j]
        out[i] = math.sqrt(square)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def whitened(features, labels, centres, basis, whitening, radius, out, far):
    """Write z = W_l^(-1/2) (P'f - c_l) of each point, clipped to the radius, into `out`.

    `features`, of any type of number, have shape (n_points, n_features), `centres` (n_labels,
    n_directions), `basis` (n_features, n_directions), and `whitening` (n_labels, n_directions,
    n_directions). `far` becomes 1 where the point lies beyond the radius. Returns the first point whose
    coordinates are not finite, and 0 in `out`; -1 if there is none.
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


# Terms this far below the largest add nothing to a sum in float64, however many there are.
_NEGLIGIBLE = -50.0
# Counts that share a scale, and the least sum of products by which nothing that counts is lost.
_BLOCK, _LEAST_SUM = 64, 1e-200


@njit(cache=True, nogil=True, error_model="numpy")
def _scaled(log_f):
    """Values f(c) / exp(base), at most 1, and the base of each block of counts."""
    values, bases = np.zeros(len(log_f)), np.empty((len(log_f) - 1) // _BLOCK + 1)
    for block in range(len(bases)):
        some = slice(block * _BLOCK, (block + 1) * _BLOCK)
        bases[block] = log_f[some].max()
        if bases[block] > -np.inf:
            values[some] = np.exp(log_f[some] - bases[block])
    return values, bases


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _split_law(sides, scaled, total, law):
    """Write f_l(x) f_r(N - x) / s for x from 0 to N; return log s and the sum.

    Log s is -inf if no split is possible. `scaled` has `_scaled` of both `sides`.
    """
    (left, left_bases), (right, right_bases) = scaled
    peak, mass, x = -np.inf, 0.0, 0
    for i in range(total // _BLOCK + 1):
        j = total // _BLOCK - i
        peak = max(peak, left_bases[i] + max(right_bases[j], right_bases[max(j - 1, 0)]))
    while x <= total:
        i, j = x // _BLOCK, (total - x) // _BLOCK
        end = min((i + 1) * _BLOCK, total - j * _BLOCK + 1)
        base = left_bases[i] + right_bases[j]
        factor = math.exp(base - peak) if base > -np.inf else 0.0
        for y in range(x, end):
            law[y] = left[y] * right[total - y] * factor
        x = end
    # The sum has a loop of its own, for the same bits in every process: one that also writes is compiled
    # twice, and where the arrays lie in memory decides which version runs.
    for y in range(total + 1):
        mass += law[y]
    return (peak, mass) if mass > _LEAST_SUM else _split_law_by_logs(sides, total, law)


@njit(cache=True, nogil=True, error_model="numpy")
def _split_law_by_logs(sides, total, law):
    """As `_split_law`, by an exponential for each x."""
    peak, mass = -np.inf, 0.0
    for x in range(total + 1):
        law[x] = sides[0, x] + sides[1, total - x]
        peak = max(peak, law[x])
    for x in range(total + 1):
        law[x] = math.exp(law[x] - peak) if law[x] - peak > _NEGLIGIBLE else 0.0
        mass += law[x]
    return peak, mass


@njit(cache=True, nogil=True, error_model="numpy")
def log_normalisers(log_laws, nodes, totals):
    """Log Z(N) of two-way convolutions, for each pair of an inner node and a total, shape (n_pairs,
    n_components).

    `log_laws`, of shape (n_components, n_splits, 2, most + 1), is log f of both sides of each split, as
    `Splits.log_laws` has them.
    """
    out = np.empty((len(nodes), len(log_laws)))
    law = np.empty(log_laws.shape[3])
    for k in range(len(log_laws)):
        for i in range(len(nodes)):
            sides = log_laws[k, nodes[i]]
            if i == 0 or nodes[i] != nodes[i - 1]:
                scaled = _scaled(sides[0]), _scaled(sides[1])
            peak, mass = _split_law(sides, scaled, totals[i], law)
            out[i, k] = peak + math.log(mass)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def expected_counts(log_laws, totals, weights):
    """Log Z(N) of every split, and how often each count goes to each side, over weighted totals.

    They have the shapes of `weights`, (n_components, n_splits, n_totals), and of `log_laws`, as in
    `log_normalisers`. Log Z(N) is 0 where the weight is.
    """
    log_z, counts = np.zeros(weights.shape), np.zeros(log_laws.shape)
    law = np.empty(log_laws.shape[3])
    for k in range(weights.shape[0]):
        for v in range(weights.shape[1]):
            sides = log_laws[k, v]
            scaled = _scaled(sides[0]), _scaled(sides[1])
            for i, total in enumerate(totals):
                if weights[k, v, i] == 0.0:
                    continue
                peak, mass = _split_law(sides, scaled, total, law)
                log_z[k, v, i] = peak + math.log(mass)
                if mass > 0.0:
                    law[: total + 1] *= weights[k, v, i] / mass
                    counts[k, v, 0, : total + 1] += law[: total + 1]
                    counts[k, v, 1, : total + 1] += law[total::-1]
    return log_z, counts


# Up to so many points a Pólya urn is faster than a beta and a binomial variate.
_URN = 24


@njit(cache=True, nogil=True, error_model="numpy")
def draw_down(children, concentrations, components, sizes, counts, rng):
    """Write each client's histogram into its row of `counts`, drawn by beta-binomials down a tree.

    `concentrations` has shape (n_components, n_splits, 2); the rest is as in `draw_counts`.
    """
    n_splits = len(children)
    totals = np.zeros(2 * n_splits + 1, np.int64)
    for client in range(len(sizes)):
        k = components[client]
        totals[0] = sizes[client]
        for v in range(n_splits):
            n, a, b = totals[v], concentrations[k, v, 0], concentrations[k, v, 1]
            left = np.int64(0)
            if b == 0.0:
                left = n
            elif a > 0.0 and n > _URN:
                left = np.int64(rng.binomial(n, rng.beta(a, b)))
            elif a > 0.0:
                for t in range(n):
                    if rng.random() * (a + b + t) < a + left:
                        left += 1
            totals[children[v, 0]] = left
            totals[children[v, 1]] = n - left
        counts[client] = totals[n_splits:]


def draw_bent(
    children: Ints,
    log_laws: Floats,
    components: Ints,
    sizes: Ints,
    counts: Ints,
    rng: np.random.Generator,
) -> None:
    """As `draw_down`, by a table of f_l(x) f_r(N - x) for each component, split and total that occur.

    `log_laws` are those of `Splits.log_laws`, for counts up to the largest size.
    """
    n_splits = len(children)
    totals = np.zeros((2 * n_splits + 1, len(sizes)), np.int64)
    totals[0] = sizes
    for node, (left, right) in enumerate(children):
        together = np.argsort(components * log_laws.shape[3] + totals[node], kind="stable")
        laws = np.ascontiguousarray(log_laws[:, node])
        _draw_law(laws, components, totals[node], together, totals[left], rng)
        totals[right] = totals[node] - totals[left]
    counts[:] = totals[n_splits:].T


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_law(laws, components, totals, order, left, rng):
    """Write what goes left at one split; `order` has clients of one component and total together."""
    law = np.empty(laws.shape[2])
    k, total = -1, -1
    for i in order:
        if components[i] != k or totals[i] != total:
            k, total = components[i], totals[i]
            _split_law_by_logs(laws[k], total, law)
            for x in range(total):
                law[x + 1] += law[x]
        at = np.searchsorted(law[: total + 1], rng.random() * law[total], side="right")
        left[i] = min(at, total)
