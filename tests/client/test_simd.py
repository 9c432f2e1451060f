"""Four doubles at a time against NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from polyurn.client import simd


@njit
def exp_of(x):
    out = np.empty(4)
    simd.store4(out, 0, simd.exp4(simd.load4(x, 0)))
    return out


@given(st.lists(st.floats(-800, 0), min_size=4, max_size=4))
def test_exp4_is_exp_to_two_units_in_the_last_place(values):
    x = np.array(values)
    expected = np.where(x < -708, 0.0, np.exp(x))
    np.testing.assert_allclose(exp_of(x), expected, rtol=5e-16, atol=0)


def test_exp4_of_minus_infinity_is_zero():
    np.testing.assert_array_equal(exp_of(np.array([-np.inf, 0.0, -709.0, -1e300])), [0, 1, 0, 0])


@njit
def log_of(x):
    out = np.empty(4)
    simd.store4(out, 0, simd.log4(simd.load4(x, 0)))
    return out


@given(st.lists(st.floats(0, 1e300), min_size=4, max_size=4))
def test_log4_is_log_to_three_units_in_the_last_place(values):
    x = np.array(values)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(log_of(x), np.log(x), rtol=7e-16, atol=0)


@given(st.floats(-0.4, 0.4))
def test_log4_keeps_its_digits_near_one(step):
    np.testing.assert_allclose(log_of(np.full(4, 1 + step)), np.log(1 + step), rtol=7e-16, atol=0)
