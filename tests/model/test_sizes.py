import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn import SizeBins, Sizes
from polyurn.errors import MemoryLimitError, ParameterError, SizeError


@given(st.integers(1, 5000), st.integers(1, 12))
def test_logarithmic_bins_cover_every_size_once(max_size, per_doubling):
    bins = SizeBins.logarithmic(max_size, per_doubling=per_doubling)
    assert bins.max_size == max_size
    located = bins.locate(np.arange(1, max_size + 1))
    np.testing.assert_array_equal(np.bincount(located, minlength=bins.n_bins), bins.widths)


@given(st.integers(1, 300), st.integers(0, 2**32))
def test_binned_sizes_sum_to_one_over_all_sizes(max_size, seed):
    bins = SizeBins.logarithmic(max_size)
    sizes = Sizes(bins, np.random.default_rng(seed).dirichlet(np.ones(bins.n_bins), 3))
    np.testing.assert_allclose(sizes.table().sum(axis=1), 1.0, rtol=1e-12)
    every = np.arange(1, max_size + 1)
    np.testing.assert_allclose(np.exp(sizes.logpmf(every)), sizes.table()[:, 1:].T, rtol=1e-12)


def test_a_size_never_seen_has_a_positive_probability_in_a_seen_bin():
    sizes = Sizes(SizeBins([1, 10, 20]), [[0.5, 0.5]])
    assert np.isfinite(sizes.logpmf([13])).all()


def test_a_size_beyond_the_declared_maximum_is_an_error_that_says_so():
    with pytest.raises(SizeError, match="holds 21 points but max_size is 20"):
        Sizes.constant(20).logpmf([21])


def test_exact_sizes_are_the_papers_table():
    table = np.array([[0.0, 0.25, 0.0, 0.75]])
    np.testing.assert_array_equal(Sizes.from_table(table).table(), table)


def test_samples_follow_the_masses():
    sizes = Sizes(SizeBins([1, 2, 6, 11]), [[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    components = np.repeat([0, 1], 40_000)
    drawn = sizes.sample(components, rng=0)
    freq = np.bincount(drawn[:40_000], minlength=11) / 40_000
    # 11 proportions, each within 4.5 standard errors: false alarm below 1e-4.
    p = sizes.table()[0]
    assert (np.abs(freq - p) <= 4.5 * np.sqrt(p * (1 - p) / 40_000)).all()
    assert (drawn[40_000:] == 1).all()
    assert drawn[:40_000].mean() == pytest.approx(sizes.mean()[0], abs=0.06)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SizeBins([2, 3]),
        lambda: SizeBins([1]),
        lambda: SizeBins([1, 1, 2]),
        lambda: SizeBins([1, 2.5]),
        lambda: SizeBins([1, np.nan]),
        lambda: SizeBins([1, np.inf]),
        lambda: SizeBins([1, 10**30]),
        lambda: SizeBins.exact(0),
        lambda: SizeBins.exact(10**9),
        lambda: SizeBins.logarithmic(10**20),
        lambda: SizeBins.logarithmic(np.nan),
        lambda: Sizes(SizeBins([1, 2, 3]), [[0.5, 0.6]]),
        lambda: Sizes(SizeBins([1, 2, 3]), [[1.5, -0.5]]),
        lambda: Sizes(SizeBins([1, 2, 3]), [[np.nan, 1.0]]),
        lambda: Sizes(SizeBins([1, 2, 3]), [[1.0]]),
        lambda: Sizes.from_table([[0.5, 0.5]]),
        lambda: Sizes.from_table([1.0]),
    ],
)
def test_sizes_that_are_no_distribution_are_refused(make):
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize("sizes", [[1.0, np.nan], [2.5], np.array([np.nan])], ids=str)
def test_the_bin_of_nan_or_of_a_fraction_is_refused(sizes):
    """Of the report: `SizeBins.locate` of NaN."""
    for ask in (SizeBins([1, 2, 5]).locate, Sizes.constant(4).logpmf):
        with pytest.raises(SizeError, match="sizes as whole numbers, got fractions or NaN"):
            ask(sizes)


@pytest.mark.parametrize(
    "absurd",
    [
        lambda: SizeBins.exact(10**12),
        lambda: SizeBins.logarithmic(10**12),
        lambda: SizeBins.logarithmic(2**31 - 1, per_doubling=10**9),
        lambda: Sizes.constant(10**12),
        lambda: Sizes.constant(10**7, n_components=10**9),
        lambda: Sizes.constant(4, n_components=10**12),
        lambda: Sizes(SizeBins([1, 2**31]), np.ones((5000, 1))).table(),
    ],
)
def test_absurd_sizes_are_an_error_of_ours_before_anything_is_allocated(absurd):
    with pytest.raises((ParameterError, MemoryLimitError)):
        absurd()
