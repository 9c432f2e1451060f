import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import logsumexp

from polyurn import MDM, SizeBins, Sizes, dirichlet_multinomial_logpmf, reference
from polyurn.errors import CountsError, ParameterError, SizeError
from polyurn.model.paper_truths import truth
from strategies import mdms


def every_histogram(n_categories, max_size):
    cells = product(range(max_size + 1), repeat=n_categories)
    return np.array([c for c in cells if 1 <= sum(c) <= max_size])


@given(mdms(max_components=3, max_categories=3, max_size=6))
@settings(max_examples=40)
def test_probabilities_sum_to_one_over_all_histograms_and_sizes(mdm):
    everything = every_histogram(mdm.n_categories, mdm.max_size)
    assert np.exp(mdm.logpmf(everything)).sum() == pytest.approx(1.0, abs=1e-10)


@given(mdms(max_size=20), st.integers(0, 2**32))
def test_logpmf_agrees_with_scipy(mdm, seed):
    counts = mdm.sample(20, rng=seed)
    n = counts.sum(axis=1)
    with np.errstate(divide="ignore"):
        joint = [
            np.log(mdm.weights[k])
            + np.array(
                [stats.dirichlet_multinomial.logpmf(c, mdm.alphas[k], c.sum()) for c in counts]
            )
            + np.log(mdm.sizes.table()[k, n])
            for k in range(mdm.n_components)
        ]
    # scipy subtracts log-gamma values of size alpha_0 log alpha_0, so it is the less exact of the two.
    np.testing.assert_allclose(mdm.logpmf(counts), logsumexp(joint, axis=0), rtol=1e-8, atol=1e-8)


@given(mdms(), st.integers(0, 2**32))
def test_dense_sparse_and_single_histograms_give_the_same(mdm, seed):
    counts = mdm.sample(7, rng=seed)
    dense = mdm.logpmf(counts)
    np.testing.assert_allclose(mdm.logpmf(sparse.csr_array(counts)), dense, rtol=1e-13)
    np.testing.assert_allclose(mdm.logpmf(sparse.coo_matrix(counts)), dense, rtol=1e-13)
    np.testing.assert_allclose([mdm.logpmf(c) for c in counts], dense, rtol=1e-13)


@given(mdms(), st.integers(0, 2**32))
def test_responsibilities_are_bayes_rule(mdm, seed):
    counts = mdm.sample(9, rng=seed)
    w = mdm.responsibilities(counts)
    np.testing.assert_allclose(w.sum(axis=1), 1.0, rtol=1e-12)
    parameters = mdm.weights, mdm.alphas, mdm.sizes.table()
    plain = [reference.responsibilities(c, *parameters) for c in counts]
    np.testing.assert_allclose(w, plain, atol=1e-9)


@given(mdms(), st.integers(0, 2**32))
def test_a_histogram_given_its_size_times_the_size_is_the_joint(mdm, seed):
    counts = mdm.sample(9, rng=seed)
    log_size = np.log(mdm.size_marginal()[counts.sum(axis=1)])
    np.testing.assert_allclose(
        mdm.logpmf_given_size(counts) + log_size, mdm.logpmf(counts), rtol=1e-10
    )


@given(mdms(), st.randoms(use_true_random=False))
def test_the_order_of_components_does_not_matter(mdm, random):
    order = list(range(mdm.n_components))
    random.shuffle(order)
    sizes = Sizes(mdm.sizes.bins, mdm.sizes.masses[order])
    shuffled = MDM(mdm.weights[order], mdm.alphas[order], sizes)
    assert (np.diff(shuffled.weights) <= 0).all()
    counts = mdm.sample(5, rng=0)
    np.testing.assert_allclose(shuffled.logpmf(counts), mdm.logpmf(counts), rtol=1e-12)


@pytest.mark.parametrize("alpha_0", [1e6, 1e9, 1e12])
def test_a_large_concentration_is_the_multinomial_to_the_last_digits(alpha_0):
    p = np.array([0.2, 0.5, 0.3])
    counts = np.array([[20, 51, 29], [3, 4, 0]])
    exact = stats.multinomial.logpmf(counts, counts.sum(axis=1), p)
    # First-order correction in 1/alpha_0; what is left is of the order of n^3 / alpha_0^2.
    correction = ((counts * (counts - 1) / p).sum(axis=1) - (n := counts.sum(axis=1)) * (n - 1)) / 2
    got = dirichlet_multinomial_logpmf(counts, alpha_0 * p)
    left = 1e2**3 / alpha_0**2
    np.testing.assert_allclose(got, exact + correction / alpha_0, atol=1e-12 + left)


@pytest.mark.parametrize("alpha", [1e-9, 1e-6])
def test_a_small_concentration_puts_all_points_in_one_category(alpha):
    got = dirichlet_multinomial_logpmf([[5, 0, 0], [0, 3, 2]], [alpha] * 3)
    assert got[0] == pytest.approx(np.log(1 / 3), abs=1e-5)
    # p(0, 3, 2) = 10 (α)_3 (α)_2 / (3α)_5 → 10 · 2α · α / (3α · 24)
    assert got[1] == pytest.approx(np.log(10 * 2 * alpha / 72), abs=1e-5)


def test_minus_zero_is_zero():
    mdm = MDM([1.0], [[-0.0, 1.0]], Sizes.constant(5))
    assert mdm.sample(20, rng=0)[:, 0].sum() == 0


def test_a_category_with_alpha_zero_never_occurs():
    mdm = MDM([1.0], [[1.0, 0.0, 2.0]], Sizes.constant(4))
    assert mdm.logpmf([1, 1, 2]) == -np.inf
    assert mdm.logpmf([2, 0, 2]) == pytest.approx(dirichlet_multinomial_logpmf([2, 2], [1.0, 2.0]))
    assert (mdm.sample(200, rng=0)[:, 1] == 0).all()
    with pytest.raises(CountsError, match="probability zero"):
        mdm.responsibilities([1, 1, 2])


@pytest.mark.parametrize("name", ["medium/3", "high/3"])
def test_samples_have_the_mean_and_the_sizes_of_the_distribution(name):
    base = truth(name)
    bins = SizeBins.logarithmic(40)
    masses = np.random.default_rng(3).dirichlet(np.ones(bins.n_bins), base.n_components)
    mdm = MDM(base.weights, base.alphas, Sizes(bins, masses))
    counts = mdm.sample(60_000, rng=1)
    error = counts.std(axis=0) / np.sqrt(len(counts))
    assert (np.abs(counts.mean(axis=0) - mdm.mean()) < 4.5 * error).all()  # false alarm < 1e-4
    p = mdm.size_marginal()
    frequency = np.bincount(counts.sum(axis=1), minlength=41) / len(counts)
    assert (np.abs(frequency - p) <= 4.5 * np.sqrt(p * (1 - p) / len(counts))).all()


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 0.1, 3.0])
def test_pairs_of_points_share_a_category_as_often_as_they_should(alpha):
    """Two points of one client agree with probability (α + 1)/(Cα + 1): a check of every alpha."""
    counts = MDM([1.0], [[alpha] * 4], Sizes.constant(2)).sample(40_000, rng=0)
    p = (alpha + 1) / (4 * alpha + 1)
    agree = (counts.max(axis=1) == 2).mean()
    assert agree == pytest.approx(p, abs=4.5 * np.sqrt(p * (1 - p) / 40_000) + 1e-12)
    share = counts.mean(axis=0) / 2
    np.testing.assert_allclose(share, 0.25, atol=4.5 * np.sqrt(0.25 * 0.75 / 40_000))


def test_the_same_seed_gives_the_same_clients_whatever_the_block_size(monkeypatch):
    mdm = truth("medium/2")
    np.testing.assert_array_equal(mdm.sample(50, rng=7), mdm.sample(50, rng=7))
    assert (mdm.sample(50, rng=7) != mdm.sample(50, rng=8)).any()
    assert mdm.sample(0, rng=0).shape == (0, 10)


def test_parameters_are_counted():
    mdm = MDM([0.5, 0.5], np.ones((2, 3)), Sizes(SizeBins([1, 2, 9]), np.full((2, 2), 0.5)))
    assert mdm.n_parameters == 1 + 2 * 3 + 2 * 1


def test_arrays_cannot_be_changed_and_the_callers_are_not_kept():
    weights = np.array([0.6, 0.4])
    mdm = MDM(weights, np.ones((2, 3)), Sizes.constant(3, n_components=2))
    weights[0] = 9.0
    assert mdm.weights[0] == 0.6
    for array in (mdm.weights, mdm.alphas, mdm.sizes.masses, mdm.sizes.bins.edges):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("weights", "alphas"),
    [
        ([], np.ones((0, 3))),
        ([0.5, 0.4], np.ones((2, 3))),
        ([1.5, -0.5], np.ones((2, 3))),
        ([1.0, 0.0], np.ones((2, 3))),
        ([np.nan, 1.0], np.ones((2, 3))),
        ([0.5, 0.5], np.ones((3, 3))),
        ([0.5, 0.5], np.ones((2, 1))),
        ([0.5, 0.5], [[1.0, 1.0], [0.0, 0.0]]),
        ([0.5, 0.5], [[1.0, 1.0], [-1.0, 2.0]]),
        ([0.5, 0.5], [[1.0, 1.0], [np.inf, 2.0]]),
    ],
)
def test_parameters_that_are_no_mixture_are_refused(weights, alphas):
    with pytest.raises(ParameterError):
        MDM(weights, alphas, Sizes.constant(3, n_components=2))


def test_a_client_beyond_max_size_is_an_error_and_not_a_zero():
    with pytest.raises(SizeError, match="max_size is 20"):
        truth("low/1").logpmf([[3] * 10])


@pytest.mark.parametrize(
    ("counts", "alpha", "message"),
    [
        ([1.5, 2], [1.0, 1.0], "got fractions"),
        ([-1, 2], [1.0, 1.0], "at least 0, got -1"),
        ([np.nan, 2], [1.0, 1.0], "NaN or infinity"),
        (["a", "b"], [1.0, 1.0], "counts as numbers, got texts"),
        (3, [1.0, 1.0], r"got shapes \(\) and \(2,\)"),
        ([1, 2], 1.0, r"got shapes \(2,\) and \(\)"),
        ([1, 2], [1.0, -1.0], "alpha finite and not negative"),
        ([1, 2], [0.0, 0.0], "a positive one"),
        ([1, 2], [1.0, np.inf], "alpha finite"),
        ([1, 2], None, "alpha as numbers, got None"),
        ([1, 2], [[1.0], [2.0]], r"got shapes \(2,\) and \(2, 1\)"),
        ([1, 2, 3], [1.0, 1.0], r"got shapes \(3,\) and \(2,\)"),
    ],
)
def test_dirichlet_multinomial_logpmf_checks_what_it_is_given(counts, alpha, message):
    with pytest.raises((CountsError, ParameterError), match=message):
        dirichlet_multinomial_logpmf(counts, alpha)


def test_names_of_categories_are_checked_kept_shown_and_compared():
    named = MDM([1.0], [[1.0, 2.0]], Sizes.constant(3), categories=np.array(["cat", "dog"]))
    assert named.categories == ("cat", "dog")
    assert "cat, dog" in repr(named)
    assert pickle.loads(pickle.dumps(named)) == named != replace(named, categories=None)
    for wrong in (["cat"], ["cat", "cat"], [1, 2], "ab"):
        with pytest.raises(ParameterError, match="categor"):
            replace(named, categories=wrong)
