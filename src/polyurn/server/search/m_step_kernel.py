"""The M-step's inner loop, compiled: one component after the other.

What is maximised, and where it comes from, is `poles.py`.
"""

import math

import numpy as np
from numba import njit

# α_0 beyond this is a multinomial for all purposes: with clients of n points it changes the
# log-likelihood by about n²/α_0.
MAX_CONCENTRATION = 1e6
_MAX_STEPS = 60
# A step may change an alpha tenfold; Newton's quadratic model is no better than that far away.
_MAX_FACTOR = 10.0
# A component with less than this part of a client has none; its square would not be a number.
_NOBODY = 1e-100
_ENOUGH = 1e-12


@njit(cache=True, nogil=True, error_model="numpy")
def maximised(present, weight, place, total_present, total_weight, total_place, alphas):
    """The alphas of each component that maximise Σ_j F_j(α_j) - F_0(α_0), see `poles.maximise`."""
    after = alphas.copy()
    newton, fixed = np.empty((2, alphas.shape[1]))
    for k in range(len(alphas)):
        total = total_present[k], total_weight[k], total_place[k]
        if total[0] <= _NOBODY:
            continue
        rows, a = (present[k], weight[k], place[k]), after[k]
        best = _value(rows, total, a)
        for _ in range(_MAX_STEPS):
            _steps(rows, total, a, newton, fixed)
            value = _value(rows, total, newton)
            if value >= best:
                a[:] = newton
            else:
                a[:] = fixed
                value = _value(rows, total, fixed)
            gain, best = value - best, value
            if gain <= _ENOUGH * abs(best):
                break
    return after


@njit(nogil=True, error_model="numpy")
def _value(rows, total, a):
    """What is maximised, of one component."""
    present, weight, place = rows
    value = 0.0
    for j in range(len(a)):
        value += present[j] * math.log(a[j]) + weight[j] * math.log(a[j] + place[j])
    a_0 = a.sum()
    return value - total[0] * math.log(a_0) - total[1] * math.log(a_0 + total[2])


@njit(nogil=True, error_model="numpy")
def _steps(rows, total, a, newton, fixed):
    """Where Newton's method leads from a, and the paper's fixed point: written to the last two."""
    present, weight, place = rows
    a_0 = a.sum()
    slope_0 = total[0] / a_0 + total[1] / (a_0 + total[2])  # F_0′
    bend_0 = total[0] / a_0**2 + total[1] / (a_0 + total[2]) ** 2  # -F_0″
    gradient, bend = newton, fixed  # until they are needed
    along, room = 0.0, 0.0
    for j in range(len(a)):
        gradient[j] = present[j] / a[j] + weight[j] / (a[j] + place[j]) - slope_0
        bend[j] = present[j] / a[j] ** 2 + weight[j] / (a[j] + place[j]) ** 2  # -F_j″
        along += gradient[j] / bend[j]
        room += 1 / bend[j]
    # (-diag(bend) + bend_0 11')^-1 gradient, by the formula of Sherman and Morrison.
    shared = along / (1 / bend_0 - room)
    for j in range(len(a)):
        step = (gradient[j] + shared) / bend[j]
        newton[j] = min(max(a[j] + step, a[j] / _MAX_FACTOR), a[j] * _MAX_FACTOR)
        fixed[j] = (present[j] + weight[j] * a[j] / (a[j] + place[j])) / slope_0
    newton /= max(newton.sum() / MAX_CONCENTRATION, 1.0)
    fixed /= max(fixed.sum() / MAX_CONCENTRATION, 1.0)
