import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polyurn.errors import InputError, ParameterError
from polyurn.federation.masking import FixedPoint

BOUNDS = st.one_of(st.just(0.0), st.floats(1e-300, 1e300))
SHARES = arrays(np.float64, 5, elements=st.floats(-1, 1))


@given(arrays(np.float64, 5, elements=BOUNDS), st.lists(SHARES, min_size=1, max_size=20))
def test_a_sum_of_words_is_the_sum_of_the_numbers_whatever_the_bounds(bounds, shares):
    scale = FixedPoint(bounds, n_summands=len(shares))
    words = sum((scale.encode(share * bounds) for share in shares), np.zeros(5, np.uint64))
    error = np.abs(scale.decode(words) - np.sum([share * bounds for share in shares], axis=0))
    assert (error <= 1e-12 * bounds).all()


@pytest.mark.parametrize("n_summands", [1, 2, 3, 1000, 1023, 1024, 1025, 10**6, 2**32])
@pytest.mark.parametrize("bound", [1.0, np.nextafter(1, 0), np.nextafter(1, 2), 1e-300, 7e299])
def test_the_largest_sum_of_the_declared_summands_does_not_overflow(n_summands, bound):
    scale = FixedPoint(np.array([bound]), n_summands=n_summands)
    for sign in (1, -1):
        word = int(scale.encode([sign * bound * (1 + 0.9e-9)]).view(np.int64)[0])
        assert abs(n_summands * word) < 2**63  # Python's whole numbers do not wrap


def test_the_sum_of_a_thousand_nodes_is_off_by_less_than_1e_12_of_the_bound():
    rng = np.random.default_rng(3)
    bounds = 10.0 ** rng.integers(-6, 9, 200)
    scale = FixedPoint(bounds, n_summands=1000)
    values = bounds * np.concatenate(
        [rng.uniform(-1, 1, (500, 200)), rng.uniform(0.9, 1, (500, 200))]
    )
    words = np.sum([scale.encode(row) for row in values], axis=0, dtype=np.uint64)
    exact = np.array([float(sum(map(int, np.ldexp(c, 90)))) for c in values.T]) / 2.0**90
    assert (np.abs(scale.decode(words) - exact) <= 1e-12 * bounds).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.1, -1.1, 1e300, 1 + 2e-9])
def test_a_number_that_is_not_finite_or_beyond_its_bound_is_refused(value):
    scale = FixedPoint(np.array([5.0, 1.0]), n_summands=3)
    with pytest.raises(InputError, match=r"nothing is sent$") as refused:
        scale.encode([0.0, value])
    assert str(value) not in str(refused.value)


def test_a_bound_of_zero_lets_only_zero_through():
    scale = FixedPoint(np.zeros(1), n_summands=3)
    assert scale.decode(scale.encode([0.0])) == 0
    with pytest.raises(InputError, match="exceed"):
        scale.encode([1e-300])


def test_an_answer_of_another_length_is_refused():
    with pytest.raises(InputError, match="expected 2 numbers"):
        FixedPoint(np.ones(2), n_summands=3).encode([1.0])


@pytest.mark.parametrize(
    ("bounds", "n_summands"),
    [([-1.0], 3), ([np.nan], 3), ([[1.0]], 3), ([1.0], 0), ([1.0], 2**33)],
)
def test_bounds_and_summands_that_make_no_scale_are_refused(bounds, n_summands):
    with pytest.raises(ParameterError, match="expected"):
        FixedPoint(np.array(bounds), n_summands=n_summands)
