"""Gradients of a mixture's log-likelihood, client by client, compiled: gathers from tables of rises.

For fixed parameters Σ_{m<c} log(α + m) and Σ_{m<c} 1 / (α + m) are tabulated once for every category
and count that can occur, and gathered. The plain formulas stand in the tests. What the gradients are
used for is `scores.py`'s caller's business.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate(alphas, largest):
    """Running sums of log(α + m) and 1 / (α + m) for counts 0 to `largest` of each category.

    Parameters
    ----------
    alphas : float array of shape (n_components, n_categories)
    largest : int array of shape (n_categories,)

    Returns
    -------
    starts : int array of shape (n_categories + 1,)
        Count c of category j stands in row starts[j] + c.
    logs, rises : float arrays of shape (n_rows, n_components)
    """
    n_components, n_categories = alphas.shape
    starts = np.zeros(n_categories + 1, np.int64)
    for j in range(n_categories):
        starts[j + 1] = starts[j] + largest[j] + 1
    logs = np.zeros((starts[n_categories], n_components))
    rises = np.zeros((starts[n_categories], n_components))
    for j in range(n_categories):
        for k in range(n_components):
            alpha, log, rise = alphas[k, j], 0.0, 0.0
            for c in range(largest[j]):
                log += math.log(alpha + c)
                rise += 1.0 / (alpha + c)
                logs[starts[j] + c + 1, k] = log
                rises[starts[j] + c + 1, k] = rise
    return starts, logs, rises


@njit(cache=True, nogil=True, error_model="numpy")
def e_step(counts, sizes, log_weights, starts, logs, size_logs, omega):
    """Write each client's responsibilities; return its log-likelihood without the multinomial's.

    Parameters
    ----------
    counts : int array of shape (n_clients, n_categories)
    sizes : int array of shape (n_clients,)
    log_weights : float array of shape (n_components,)
    starts, logs : arrays
        As `tabulate` made them, and `size_logs` of sizes and α_0.
    omega : float array of shape (n_clients, n_components)
    """
    n, n_categories = counts.shape
    n_components = len(log_weights)
    values = np.empty(n)
    for i in range(n):
        for k in range(n_components):
            omega[i, k] = log_weights[k] - size_logs[sizes[i], k]
        for j in range(n_categories):
            if counts[i, j] > 0:
                row = starts[j] + counts[i, j]
                for k in range(n_components):
                    omega[i, k] += logs[row, k]
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
def gradients(counts, sizes, weights, alphas, starts, rises, size_rises, omega, out):
    """Write each client's gradient of log q in log α_k1, ..., log α_kC and the logit of τ_k, k by k.

    `out` has shape (n_clients, n_components * (n_categories + 1)); the rest is as in `e_step`.
    """
    n, n_categories = counts.shape
    n_components = len(weights)
    for i in range(n):
        for k in range(n_components):
            share, fall = omega[i, k], size_rises[sizes[i], k]
            first = k * (n_categories + 1)
            for j in range(n_categories):
                rise = rises[starts[j] + counts[i, j], k]
                out[i, first + j] = share * alphas[k, j] * (rise - fall)
            out[i, first + n_categories] = share - weights[k]
