"""The M-step's inner loop, compiled: one component after the other.

What is maximised, and where it comes from, is `poles.py`.
"""

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
    for k in range(len(alphas)):
        total = total_present[k], total_weight[k], total_place[k]
        if total[0] <= _NOBODY:
            continue
        rows, a = (present[k], weight[k], place[k]), alphas[k]
        best = _value(rows, total, a)
        for _ in range(_MAX_STEPS):
            newton, fixed = _steps(rows, total, a)
            a, value = newton, _value(rows, total, newton)
            if not value >= best:
                a, value = fixed, _value(rows, total, fixed)
            gain, best = value - best, value
            if gain <= _ENOUGH * abs(best):
                break
        after[k] = a
    return after


@njit(nogil=True, error_model="numpy")
def _value(rows, total, a):
    """What is maximised, of one component."""
    a_0 = a.sum()
    terms = rows[0] * np.log(a) + rows[1] * np.log(a + rows[2])
    return terms.sum() - total[0] * np.log(a_0) - total[1] * np.log(a_0 + total[2])


@njit(nogil=True, error_model="numpy")
def _steps(rows, total, a):
    """Where Newton's method leads from a, and the paper's fixed point."""
    present, weight, place = rows
    a_0 = a.sum()
    slope_0 = total[0] / a_0 + total[1] / (a_0 + total[2])  # F_0′
    bend_0 = total[0] / a_0**2 + total[1] / (a_0 + total[2]) ** 2  # -F_0″
    gradient = present / a + weight / (a + place) - slope_0
    bend = present / a**2 + weight / (a + place) ** 2  # -F_j″
    # (-diag(bend) + bend_0 11')^-1 gradient, by the formula of Sherman and Morrison.
    shared = (gradient / bend).sum() / (1 / bend_0 - (1 / bend).sum())
    newton = a + (gradient + shared) / bend
    newton = np.minimum(np.maximum(newton, a / _MAX_FACTOR), a * _MAX_FACTOR)
    fixed = (present + weight * a / (a + place)) / slope_0
    return _capped(newton), _capped(fixed)


@njit(nogil=True, error_model="numpy")
def _capped(a):
    return a / max(a.sum() / MAX_CONCENTRATION, 1.0)
