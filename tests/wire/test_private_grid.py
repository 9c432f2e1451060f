from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polyurn.wire.private_grid import STEP, unit_rows

ROWS = arrays(np.float64, (3, 5), elements=st.floats(allow_nan=True, allow_infinity=True))


def square(row):
    """The square of a norm, without any rounding."""
    return sum(Fraction(float(value)) ** 2 for value in row)


@settings(max_examples=300, deadline=None)
@given(ROWS)
def test_no_row_is_longer_than_one_in_exact_arithmetic(vectors):
    assert all(square(row) <= 1 for row in unit_rows(vectors))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-8, 8))
def test_rows_near_the_sphere_are_not_rounded_out_of_it(seed, log_off):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4, 300))
    rows *= (1 + 10 ** -(log_off + 9)) / np.linalg.norm(rows, axis=1, keepdims=True)
    assert all(square(row) <= 1 for row in unit_rows(rows))


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, (3, 5), elements=st.floats(-0.4, 0.4)))
def test_short_rows_are_cut_off_by_less_than_a_step_and_towards_zero(vectors):
    rows = unit_rows(vectors)
    assert (np.abs(rows - vectors) < STEP).all()
    assert (np.abs(rows) <= np.abs(vectors)).all()


def test_long_rows_keep_their_direction():
    rows = unit_rows(np.array([[3e200, 4e200], [-30.0, 40.0]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [-0.6, 0.8]], atol=1e-8)


def test_a_row_that_is_not_finite_says_nothing():
    rows = unit_rows(np.array([[np.nan, 1.0], [np.inf, 0.0], [0.5, -np.inf], [0.5, 0.5]]))
    assert rows.tolist() == [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.5, 0.5]]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_sums_of_rows_are_the_same_in_any_order(seed):
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng.normal(size=(5000, 3)))
    shuffled = rng.permutation(rows)
    assert np.array_equal(rows.sum(axis=0), np.add.reduce(shuffled[::-1], axis=0))
    assert np.array_equal(rows.cumsum(axis=0)[-1], rows.sum(axis=0))
