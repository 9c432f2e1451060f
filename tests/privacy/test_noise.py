from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from polyurn.errors import InputError, ParameterError
from polyurn.privacy.noise import discrete_gaussian, noised
from polyurn.wire.private_grid import STEP


def rounded(rng):
    return lambda n, scale: np.rint(rng.normal(0.0, scale, n)).astype(np.int64)


def test_noise_has_the_standard_deviation_that_was_asked_for_and_no_mean():
    sums = np.full(20_000, 3.0)
    released = noised(sums, 2.5) - 3.0
    # 5 standard errors each: a false alarm in a million.
    assert abs(released.mean()) < 5 * 2.5 / np.sqrt(20_000)
    assert abs(released.std() / 2.5 - 1) < 5 / np.sqrt(2 * 20_000)


def test_what_is_released_lies_on_the_grid():
    released = noised(np.array([0.25, -7.0, 1e6]), 3.7)
    assert (released / STEP == np.rint(released / STEP)).all()


def test_two_releases_of_the_same_sum_differ_whatever_the_seed():
    np.random.seed(0)  # noqa: NPY002
    first = noised(np.zeros(4), 1.0)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, noised(np.zeros(4), 1.0))


def test_several_adders_have_the_noise_of_their_sum():
    released = noised(np.zeros(20_000), 0.5, n_adders=100)
    assert abs(released.std() / 5.0 - 1) < 5 / np.sqrt(2 * 20_000)


def test_a_sum_that_is_not_on_the_grid_is_refused():
    with pytest.raises(InputError, match="on the grid"):
        noised(np.array([0.1]), 1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, 2.0**26])
def test_a_sum_that_no_clients_have_is_refused(value):
    with pytest.raises(InputError, match="private sum"):
        noised(np.array([value]), 1.0)


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf, 1e-6, 1e9])
def test_noise_out_of_range_is_refused(sigma):
    with pytest.raises(ParameterError, match="noise multiplier"):
        noised(np.zeros(3), sigma)


@settings(max_examples=100, deadline=None)
@given(st.floats(-6.0, 6.0), st.floats(2.0, 40.0))
def test_a_rounded_gaussian_is_as_close_to_the_discrete_one_as_the_docstring_says(place, scale):
    """At scales at which the difference can be seen; ours are above 1,000."""
    x = round(place * scale)
    rounding = norm.cdf((x + 0.5) / scale) - norm.cdf((x - 0.5) / scale)
    if x > 0:  # the tail that keeps its digits
        rounding = norm.sf((x - 0.5) / scale) - norm.sf((x + 0.5) / scale)
    whole = np.arange(-int(40 * scale), int(40 * scale) + 1)
    exact = np.exp(-(x**2) / (2 * scale**2)) / np.exp(-(whole**2) / (2 * scale**2)).sum()
    bound = (1 + x**2 / scale**2) / (24 * scale**2) + 3 * np.exp(-2 * np.pi**2 * scale**2)
    assert abs(np.log(rounding / exact)) <= bound + 1e-9


def test_draws_are_whole_numbers_of_python_size():
    draws = discrete_gaussian(100, 2.0**46)
    assert all(Fraction(int(draw)).denominator == 1 for draw in draws)
    assert np.abs(draws).max() > 2**44


def test_noise_for_tests_can_be_passed():
    one = noised(np.zeros(5), 1.0, noise=rounded(np.random.default_rng(3)))
    other = noised(np.zeros(5), 1.0, noise=rounded(np.random.default_rng(3)))
    assert np.array_equal(one, other)
