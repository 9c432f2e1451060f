import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.model.rising_factorials import digamma_rise, log_rising, trigamma_fall

positive = st.floats(1e-9, 1e9)
steps = st.integers(0, 200)


@given(positive, steps)
def test_each_function_is_the_sum_that_defines_it(x, c):
    m = x + np.arange(c)
    # A naive sum rounds each of its c terms, so it is good to about c units in the last place.
    assert log_rising(x, c) == pytest.approx(np.log(m).sum(), rel=1e-12, abs=1e-12 * (c + 1))
    assert digamma_rise(x, c) == pytest.approx((1 / m).sum(), rel=1e-12)
    assert trigamma_fall(x, c) == pytest.approx((m**-2.0).sum(), rel=1e-12)


@given(positive, st.integers(0, 10**6), st.integers(0, 10**6))
def test_rising_factorials_multiply_by_adding_steps(x, a, b):
    both = log_rising(x, a) + log_rising(x + a, b)
    assert log_rising(x, a + b) == pytest.approx(both, rel=1e-12, abs=1e-9)


# mpmath 1.4 at 60 digits: loggamma(x + c) - loggamma(x), psi(0, x + c) - psi(0, x) and
# psi(1, x) - psi(1, x + c), each rounded to a double.
EXACT = [
    (1e9, 1000, 20723.266336446246, 9.999995005003329e-07, 9.999990010009985e-16),
    (1e-9, 7, -14.14401462248631, 1000000002.4499999, 9.999999999999999e17),
]


@pytest.mark.parametrize(("x", "c", "log", "psi", "psi1"), EXACT)
def test_values_agree_with_sixty_digits(x, c, log, psi, psi1):
    assert log_rising(x, c) == pytest.approx(log, rel=3e-15)
    assert digamma_rise(x, c) == pytest.approx(psi, rel=3e-15)
    assert trigamma_fall(x, c) == pytest.approx(psi1, rel=3e-15)


def test_zero_allows_no_step():
    np.testing.assert_array_equal(log_rising(0.0, [0, 1, 5]), [0.0, -np.inf, -np.inf])


@given(st.floats(1e3, 1e15), st.integers(1, 100))
def test_a_scale_of_x_leaves_nothing_of_the_size_of_log_x(x, c):
    expected = np.log1p(np.arange(c) / x).sum()
    assert log_rising(x, c, scale=x) == pytest.approx(expected, abs=1e-15 * c, rel=1e-9)


def test_arrays_broadcast():
    assert log_rising(np.ones((3, 1)), np.arange(4)).shape == (3, 4)
