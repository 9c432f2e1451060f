"""The E-step's loops, compiled: gathers from small tables of log-probabilities, and scatters into sums.

For fixed parameters log p(c | n, α_k) is a sum over categories of a function of (category, count),
so it is tabulated once per round and gathered; and every sum that an update needs follows from
S[pair, k] = Σ_i ω_ik 1[client i has that (category, count) pair], which is scattered. The plain
formulas are oracles in the tests. `rows.py` defines pairs.
"""

import math

import numpy as np
from numba import njit

from polyurn.client.simd import (
    LANES,
    add4,
    div4,
    exp4,
    fill4,
    fma4,
    largest,
    load4,
    log4,
    max4,
    mul4,
    store4,
    sub4,
    total,
    weighted4,
)
from polyurn.model.rising_factorials import SERIES_FROM, STIRLING

# Clients per block: their log-probabilities stay in the first-level cache, and the product of their
# likelihood ratios (each between 1 and K) stays below the largest double for K up to 2^15.
BLOCK = 64
# A running sum over more terms than this takes one step by the asymptotic series instead (measured).
LEAP = 24


@njit(cache=True, nogil=True, error_model="numpy")
def expect(cells, starts, width, size_index, members, pair_logs, size_logs, pair_sums, size_sums):
    """Add the responsibilities of `members` to the tables; return their log-likelihood.

    The cells are those of `Rows`. `pair_logs`, of shape (n_pairs, lanes), is the log-probability that
    each (category, count) pair contributes to each component, and `size_logs`, of shape (n_sizes,
    lanes), that of each size, with the component's log-weight; -inf in unused lanes. Σ ω is added to
    `pair_sums` and `size_sums`, of the same shapes.
    """
    lanes = pair_logs.shape[1]
    pair_logs, pair_sums = pair_logs.reshape(-1), pair_sums.reshape(-1)
    size_logs, size_sums = size_logs.reshape(-1), size_sums.reshape(-1)
    block = np.empty(BLOCK * lanes)
    log_likelihood = 0.0
    for start in range(0, len(members), BLOCK):
        n = min(BLOCK, len(members) - start)
        for b in range(n):
            client = np.int64(members[start + b])
            first, last = _cells_of(client, starts, width)
            size = np.int64(size_index[client]) * lanes
            for lane in range(0, lanes, LANES):
                logs = load4(size_logs, size + lane)
                for cell in range(first, last):
                    logs = add4(logs, load4(pair_logs, np.int64(cells[cell]) * lanes + lane))
                store4(block, b * lanes + lane, logs)
        log_likelihood += _normalise(block, n, lanes)
        for b in range(n):
            client = np.int64(members[start + b])
            first, last = _cells_of(client, starts, width)
            size = np.int64(size_index[client]) * lanes
            for lane in range(0, lanes, LANES):
                omega = load4(block, b * lanes + lane)
                store4(size_sums, size + lane, add4(load4(size_sums, size + lane), omega))
                for cell in range(first, last):
                    pair = np.int64(cells[cell]) * lanes + lane
                    store4(pair_sums, pair, add4(load4(pair_sums, pair), omega))
    return log_likelihood


@njit(cache=True, nogil=True, error_model="numpy")
def expect_many(
    cells, starts, width, size_index, members, category, count, size_values, size_bins,
    alphas, densities, log_likelihoods, size_counts, by_category, by_total,
):  # fmt: skip
    """Everything that `Expect` asks about many models, one after the other, except the curvature.

    The cells, pairs and sizes are those of `Rows`, and `size_bins`, of shape (n_sizes,), is the bin of
    each size. `alphas` has shape (n_models, n_components, n_categories), and `densities`, the log of the
    component's weight and of the bin's probability, (n_models, n_components, n_size_bins).

    Written are `log_likelihoods` and `size_counts`, Σ ω by component and bin, one entry for each model;
    `by_category`, of shape (n_models, 3, n_components, n_categories), Σ ω times 1, ψ(c + α) - ψ(α) and
    ψ′(α) - ψ′(c + α) over the clients that have the category; and `by_total`, the same of sizes and α_0.
    """
    n_models, k, _ = alphas.shape
    lanes = -(-k // LANES) * LANES
    pair_logs, pair_sums = np.zeros((len(count), lanes)), np.empty((len(count), lanes))
    size_logs = np.empty((len(size_values), lanes))
    size_sums, rising = np.empty_like(size_logs), np.empty_like(size_logs)
    one = np.zeros(len(size_values), np.int64)  # sizes are counts of a single category
    for i in range(n_models):
        alpha_0 = alphas[i].sum(axis=1).reshape(k, 1)
        tabulate_logs(category, count, alphas[i], pair_logs)
        tabulate_logs(one, size_values, alpha_0, rising)
        size_logs[:] = -np.inf
        for size in range(len(size_values)):
            for j in range(k):
                size_logs[size, j] = densities[i, j, size_bins[size]] - rising[size, j]
        pair_sums[:] = 0.0
        size_sums[:] = 0.0
        log_likelihoods[i] = expect(
            cells, starts, width, size_index, members, pair_logs, size_logs, pair_sums, size_sums
        )
        for size in range(len(size_values)):
            for j in range(k):
                size_counts[i, j, size_bins[size]] += size_sums[size, j]
        sum_rises(
            category, count, alphas[i], pair_sums,
            by_category[i, 0], by_category[i, 1], by_category[i, 2],
        )  # fmt: skip
        sum_rises(
            one, size_values, alpha_0, size_sums,
            by_total[i, 0], by_total[i, 1], by_total[i, 2],
        )  # fmt: skip


@njit(nogil=True, error_model="numpy")
def _cells_of(client, starts, width):
    if width > 0:
        return client * width, client * width + width
    return np.int64(starts[client]), np.int64(starts[client + 1])


@njit(nogil=True, error_model="numpy")
def _normalise(block, n, lanes):
    """Turn joint log-probabilities into responsibilities; return the sum of the log-likelihoods.

    A client with probability zero everywhere makes the sum -inf and adds nothing to the tables.
    """
    log_likelihood = 0.0
    product = 1.0
    for b in range(n):
        row = b * lanes
        peaks = load4(block, row)
        for lane in range(LANES, lanes, LANES):
            peaks = max4(peaks, load4(block, row + lane))
        peak = largest(peaks)
        log_likelihood += peak
        shift = fill4(peak if peak > -np.inf else 0.0)
        sums = fill4(0.0)
        for lane in range(0, lanes, LANES):
            ratios = exp4(sub4(load4(block, row + lane), shift))
            store4(block, row + lane, ratios)
            sums = add4(sums, ratios)
        ratio = total(sums)
        product *= ratio if ratio > 0.0 else 1.0
        inverse = fill4(1.0 / ratio if ratio > 0.0 else 0.0)
        for lane in range(0, lanes, LANES):
            store4(block, row + lane, mul4(load4(block, row + lane), inverse))
    return log_likelihood + math.log(product)


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate_logs(category, count, alphas, out):
    """out[pair, k] = Σ_{m<count} log((α_kj + m) / ((m + 1) α_k0)), by running sums over m.

    `out` has a multiple of four columns; those that stand for no component have no meaning.
    """
    lanes = out.shape[1]
    padded, flat = _padded(alphas, lanes), out.reshape(-1)
    scales = padded.sum(axis=0)
    padded = padded.reshape(-1)
    steps = np.empty(2 * LANES)
    for lane in range(0, lanes, LANES):
        running, alpha, scale = fill4(0.0), fill4(0.0), load4(scales, lane)
        m, last = 0, -1
        for pair in range(len(category)):
            j, stop = category[pair], count[pair]
            if j != last:
                running, m, last = fill4(0.0), 0, j
                alpha = load4(padded, j * lanes + lane)
            leap = _leap_from(m, stop)
            while m < leap:
                above = mul4(fill4(m + 1.0), scale)
                running = add4(running, log4(div4(add4(alpha, fill4(float(m))), above)))
                m += 1
            if m < stop:
                _log_leaps(padded, j * lanes + lane, m, stop, scales, lane, steps)
                running, m = add4(running, load4(steps, 0)), stop
            store4(flat, pair * lanes + lane, running)


@njit(cache=True, nogil=True, error_model="numpy")
def sum_rises(category, count, alphas, pair_sums, present, rises, falls):
    """Add Σ_pairs S[pair, k] times 1, ψ(c + α) - ψ(α) and ψ′(α) - ψ′(c + α), by running sums.

    `pair_sums` has a multiple of four columns, 0 in those that stand for no component.
    """
    lanes = pair_sums.shape[1]
    padded, sums = _padded(alphas, lanes).reshape(-1), pair_sums.reshape(-1)
    steps = np.empty(2 * LANES)
    for lane in range(0, lanes, LANES):
        rise, fall, alpha = fill4(0.0), fill4(0.0), fill4(0.0)
        some, all_rises, all_falls = fill4(0.0), fill4(0.0), fill4(0.0)
        m, last = 0, -1
        for pair in range(len(category)):
            j, stop = category[pair], count[pair]
            if j != last:
                _add_lanes(some, present, lane, last, steps)
                _add_lanes(all_rises, rises, lane, last, steps)
                _add_lanes(all_falls, falls, lane, last, steps)
                rise, fall, m, last = fill4(0.0), fill4(0.0), 0, j
                some, all_rises, all_falls = fill4(0.0), fill4(0.0), fill4(0.0)
                alpha = load4(padded, j * lanes + lane)
            leap = _leap_from(m, stop)
            while m < leap:
                term = div4(fill4(1.0), add4(alpha, fill4(float(m))))
                rise, fall, m = add4(rise, term), fma4(term, term, fall), m + 1
            if m < stop:
                _rise_leaps(padded, j * lanes + lane, m, stop, steps)
                rise, fall = add4(rise, load4(steps, 0)), add4(fall, load4(steps, LANES))
                m = stop
            if m > 0:  # a category with α = 0 has ω = 0 wherever it occurs
                weight = load4(sums, pair * lanes + lane)
                some = add4(some, weight)
                all_rises = add4(all_rises, weighted4(weight, rise))
                all_falls = add4(all_falls, weighted4(weight, fall))
        _add_lanes(some, present, lane, last, steps)
        _add_lanes(all_rises, rises, lane, last, steps)
        _add_lanes(all_falls, falls, lane, last, steps)


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate_rises(category, count, alphas, out):
    """out[pair, k] = α (ψ(c + α) - ψ(α)), by running sums; `out` as in `tabulate_logs`."""
    lanes = out.shape[1]
    padded, flat = _padded(alphas, lanes).reshape(-1), out.reshape(-1)
    steps = np.empty(2 * LANES)
    for lane in range(0, lanes, LANES):
        rise, alpha, m, last = fill4(0.0), fill4(0.0), 0, -1
        for pair in range(len(category)):
            j, stop = category[pair], count[pair]
            if j != last:
                rise, m, last = fill4(0.0), 0, j
                alpha = load4(padded, j * lanes + lane)
            leap = _leap_from(m, stop)
            while m < leap:
                rise, m = add4(rise, div4(fill4(1.0), add4(alpha, fill4(float(m))))), m + 1
            if m < stop:
                _rise_leaps(padded, j * lanes + lane, m, stop, steps)
                rise, m = add4(rise, load4(steps, 0)), stop
            store4(flat, pair * lanes + lane, mul4(alpha, rise))


@njit(nogil=True, error_model="numpy")
def _padded(alphas, lanes):
    """The alphas by category, with 1 in lanes that stand for no component."""
    n_components, n_categories = alphas.shape
    padded = np.ones((n_categories, lanes))
    padded[:, :n_components] = alphas.T
    return padded


@njit(nogil=True, error_model="numpy")
def _add_lanes(vector, out, lane, j, scratch):
    """out[k, j] += vector, for the components of the lanes; of no category, nothing."""
    if j >= 0:
        store4(scratch, 0, vector)
        for k in range(lane, min(lane + LANES, out.shape[0])):
            out[k, j] += scratch[k - lane]


# Leaps are rare and use memory: a function that returns vectors is not inlined and eight times as slow.
@njit(nogil=True, error_model="numpy")
def _leap_from(m, stop):
    """The end of the part of a running sum from m to `stop` that is computed term by term."""
    return stop if stop - m <= LEAP else max(m, SERIES_FROM)


@njit(nogil=True, error_model="numpy")
def _log_leaps(alphas, at, m, stop, scales, lane, steps):
    """What four components add to the logs from m to `stop`, into the first steps."""
    unscaled = _log_rise(m + 1.0, stop - m, 1.0)
    for i in range(LANES):
        steps[i] = _log_rise(alphas[at + i] + m, stop - m, scales[lane + i]) - unscaled


@njit(nogil=True, error_model="numpy")
def _rise_leaps(alphas, at, m, stop, steps):
    """What four components add to the rises and to the falls from m to `stop`, into the steps."""
    for i in range(LANES):
        steps[i], steps[LANES + i] = _leap(alphas[at + i] + m, stop - m)


@njit(nogil=True, error_model="numpy")
def _log_rise(x, c, scale):
    """Σ_{m<c} log((x + m) / scale) for x of at least `SERIES_FROM`: `log_rising` for one number."""
    big = x + c
    far = (big - 0.5) * math.log1p(c / x) + c * (math.log(x / scale) - 1.0)
    return far + _stirling(big) - _stirling(x)


@njit(nogil=True, error_model="numpy")
def _leap(x, c):
    """Σ_{m<c} 1/(x + m) and 1/(x + m)²: `digamma_rise` and `trigamma_fall` for one number."""
    low, high = 1.0 / x, 1.0 / (x + c)
    step = c * low * high
    first, second = 0.0, 0.0
    low_power, high_power = low * low, high * high
    for i in range(len(STIRLING)):
        factor = (2 * i + 1) * STIRLING[i]
        first += factor * (low_power - high_power)
        second += (2 * i + 2) * factor * (low_power * low - high_power * high)
        low_power *= low * low
        high_power *= high * high
    rise = math.log1p(c * low) + 0.5 * step + first
    return rise, step + 0.5 * (low + high) * step + second


@njit(nogil=True, error_model="numpy")
def _stirling(x):
    square = 1.0 / (x * x)
    total = 0.0
    for i in range(len(STIRLING) - 1, -1, -1):
        total = total * square + STIRLING[i]
    return total / x


@njit(cache=True, nogil=True, error_model="numpy")
def client_gradients(
    cells, starts, width, size_index, members, category,
    pair_logs, size_logs, n_components, some, pair_rises, size_rises, shares, out, scores,
):  # fmt: skip
    """The gradient of log p(c, k) in component k's coordinates, and the same times ω_k.

    The coordinates are log α_k1, ..., log α_kC and log τ_k, of `some` of the components, whose
    α / α_0 are in `shares`. `pair_rises` is their α (ψ(c + α) - ψ(α)), and `size_rises` is
    α_0 (ψ(n + α_0) - ψ(α_0)); `out` and `scores` have shape (n_members, n_some, C + 1).
    """
    n_some, n_categories = shares.shape
    lanes, some_lanes = pair_logs.shape[1], pair_rises.shape[1]
    logs, size_parts = pair_logs.reshape(-1), size_logs.reshape(-1)
    rises, size_falls = pair_rises.reshape(-1), size_rises.reshape(-1)
    padded = _padded(shares, some_lanes).reshape(-1)
    omega, gradient = np.empty(lanes), np.empty(n_categories * some_lanes)
    for i in range(len(members)):
        client = np.int64(members[i])
        size = np.int64(size_index[client])
        first, last = _cells_of(client, starts, width)
        for lane in range(0, lanes, LANES):
            log = load4(size_parts, size * lanes + lane)
            for cell in range(first, last):
                log = add4(log, load4(logs, np.int64(cells[cell]) * lanes + lane))
            store4(omega, lane, log)
        for lane in range(0, some_lanes, LANES):
            fall = sub4(fill4(0.0), load4(size_falls, size * some_lanes + lane))
            for at in range(lane, n_categories * some_lanes, some_lanes):
                store4(gradient, at, mul4(load4(padded, at), fall))
            for cell in range(first, last):
                pair = np.int64(cells[cell])
                at = category[pair] * some_lanes + lane
                rise = load4(rises, pair * some_lanes + lane)
                store4(gradient, at, add4(load4(gradient, at), rise))
        peak, ratios = omega[:n_components].max(), 0.0
        for k in range(n_components):
            omega[k] = math.exp(omega[k] - peak)
            ratios += omega[k]
        for k in range(n_some):
            share = omega[some[k]] / ratios
            for j in range(n_categories):
                out[i, k, j] = gradient[j * some_lanes + k]
                scores[i, k, j] = share * out[i, k, j]
            out[i, k, n_categories], scores[i, k, n_categories] = 1.0, share
