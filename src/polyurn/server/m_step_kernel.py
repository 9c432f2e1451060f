"""The inner loop of the M-step, compiled: one component after the other.

`em.py` derives the function that is maximised.
"""

import math

import numpy as np
from numba import njit

from polyurn.model.mdm import MAX_CONCENTRATION

_NEAR_CAP = 0.999 * MAX_CONCENTRATION  # a step that the cap cut short ends there, rounding aside
_MAX_STEPS = 60
# A step may change an alpha tenfold; Newton's quadratic model is no better than that far away.
_MAX_FACTOR = 10.0
_RELATIVE_GAIN = 1e-12
# A component with less than this part of a client counts as empty: its square would underflow.
_NO_CLIENT = np.sqrt(np.finfo(np.float64).tiny)


@njit(cache=True, nogil=True, error_model="numpy")
def maximised(present, weight, shift, alphas):
    """The alphas of each component that maximise Σ_j F_j(α_j) - F_0(α_0), see `Surrogate.maximise`."""
    after = alphas.copy()
    newton, fixed, smaller = np.empty((3, alphas.shape[1]))
    for k in range(len(alphas)):
        if present[k, -1] <= _NO_CLIENT:
            continue
        rows, a = (present[k], weight[k], shift[k]), after[k]
        best = _value(rows, a)
        for _ in range(_MAX_STEPS):
            _steps(rows, a, newton, fixed)
            value = _value(rows, newton)
            if not value >= best:  # NaN is not
                value = -np.inf
            if value < best or newton.sum() > _NEAR_CAP:
                # Far above its optimum the objective is convex in the concentration, and Newton's
                # method leads away from it, up to the cap; the fixed point comes back too slowly.
                smaller[:] = a / _MAX_FACTOR
                for other in (fixed, smaller):
                    instead = _value(rows, other)
                    if instead > value:
                        newton[:] = other
                        value = instead
            a[:] = newton
            gain, best = value - best, value
            if gain <= _RELATIVE_GAIN * abs(best):
                break
    return after


@njit(nogil=True, error_model="numpy")
def _value(rows, a):
    """What is maximised, of one component."""
    present, weight, shift = rows
    value = 0.0
    for j in range(len(a)):
        value += present[j] * math.log(a[j]) + weight[j] * math.log(a[j] + shift[j])
    a_0 = a.sum()
    return value - present[-1] * math.log(a_0) - weight[-1] * math.log(a_0 + shift[-1])


@njit(nogil=True, error_model="numpy")
def _steps(rows, a, newton, fixed):
    """Write the steps from a of Newton's method and of the paper's fixed point into the last two."""
    present, weight, shift = rows
    a_0 = a.sum()
    gradient_0 = present[-1] / a_0 + weight[-1] / (a_0 + shift[-1])  # F_0′
    curvature_0 = present[-1] / a_0**2 + weight[-1] / (a_0 + shift[-1]) ** 2  # -F_0″
    gradient, curvature = newton, fixed  # until they are needed
    along, across = 0.0, 0.0
    for j in range(len(a)):
        gradient[j] = present[j] / a[j] + weight[j] / (a[j] + shift[j]) - gradient_0
        curvature[j] = present[j] / a[j] ** 2 + weight[j] / (a[j] + shift[j]) ** 2  # -F_j″
        along += gradient[j] / curvature[j]
        across += 1 / curvature[j]
    # (-diag(curvature) + curvature_0 11')^-1 gradient, by the formula of Sherman and Morrison (1950).
    shared = along / (1 / curvature_0 - across)
    for j in range(len(a)):
        step = (gradient[j] + shared) / curvature[j]
        newton[j] = min(max(a[j] + step, a[j] / _MAX_FACTOR), a[j] * _MAX_FACTOR)
        fixed[j] = (present[j] + weight[j] * a[j] / (a[j] + shift[j])) / gradient_0
    newton /= max(newton.sum() / MAX_CONCENTRATION, 1.0)
    fixed /= max(fixed.sum() / MAX_CONCENTRATION, 1.0)
