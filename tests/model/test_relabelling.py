"""Other labels and other sizes for a mixture's clients: what each rule keeps, and exactly that."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM, Relabelled
from polyurn.model.relabelling import destinations
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.model.splits import Laws, Splits
from polyurn.model.trees import Tree
from strategies import mdms

TWO = MDM(
    [0.6, 0.4],
    [[1.0, 2.0, 3.0, 0.5], [9.0, 1.0, 1.0, 1.0]],
    Sizes.constant(3, n_components=2),
    categories=["a", "b", "c", "d"],
)
SHARES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=9)


def pooled(mdm):
    return mdm.mean() / mdm.mean().sum()


def histograms(n, n_categories):
    """All histograms of n points."""
    for bars in itertools.combinations(range(n + n_categories - 1), n_categories - 1):
        yield np.diff([-1, *bars, n + n_categories - 1]) - 1


@given(mdms(), SHARES, st.sampled_from(["rank", "random", "marginal"]))
def test_every_rule_keeps_weights_concentrations_and_sizes(mdm, shares, rule):
    other = mdm.relabelled(len(shares), rule, shares=shares, rng=0)
    assert other.n_categories == len(shares)
    assert np.array_equal(other.weights, mdm.weights)
    assert other.sizes == mdm.sizes
    np.testing.assert_allclose(other.alphas.sum(axis=1), mdm.alphas.sum(axis=1), rtol=1e-9)


def test_merged_clients_have_the_law_of_the_sums_of_their_counts():
    merged = TWO.relabelled(2)
    found = dict.fromkeys(map(tuple, histograms(3, 2)), 0.0)
    to = _labels_of_categories(TWO, 2)
    for counts in histograms(3, 4):
        sums = np.bincount(to, weights=counts, minlength=2).astype(int)
        found[tuple(sums)] += float(np.exp(TWO.logpmf(counts)))
    for counts, probability in found.items():
        assert np.exp(merged.logpmf(np.array(counts))) == pytest.approx(probability, rel=1e-10)


def _labels_of_categories(mdm, n_labels):
    """Which label each category becomes by rank, from one category at a time."""
    order = np.argsort(-mdm.mean(), kind="stable")
    to = np.empty(len(order), dtype=int)
    to[order] = np.arange(len(order)) % n_labels
    return to


@given(mdms(), SHARES)
def test_labels_that_a_category_was_split_into_merge_to_it_again(mdm, shares):
    n_more = max(len(shares), mdm.n_categories)
    more = np.resize(shares, n_more)
    split = mdm.relabelled(n_more, shares=more)
    source = np.argsort(-mdm.mean(), kind="stable")
    # Of shares that differ in the last bit, those that sum to one decide which is more frequent.
    target = np.argsort(-more / more.sum(), kind="stable")
    back = np.zeros_like(mdm.alphas)
    for i, label in enumerate(target):
        back[:, source[i % mdm.n_categories]] += split.alphas[:, label]
    np.testing.assert_allclose(back, mdm.alphas, rtol=1e-9)


@given(mdms(), st.integers(2, 5), st.sampled_from(["rank", "random"]))
def test_no_client_has_a_larger_entropy_after_merging(mdm, n_labels, rule):
    n_labels = min(n_labels, mdm.n_categories)
    counts = mdm.sample(20, rng=0)
    even, stream = np.full(n_labels, 1 / n_labels), np.random.default_rng(1)
    merged = counts @ destinations(pooled(mdm), even, rule, stream)
    shares = [one / one.sum(axis=1, keepdims=True) for one in (counts, merged)]
    before, after = (entr(one).sum(axis=1) for one in shares)
    assert (after <= before + 1e-12).all()


@given(mdms(), st.integers(2, 5))
def test_by_rank_the_order_of_merged_frequencies_stays(mdm, n_labels):
    n_labels = min(n_labels, mdm.n_categories)
    shares = np.random.default_rng(n_labels).permutation(np.arange(1.0, n_labels + 1))
    found = pooled(mdm.relabelled(n_labels, shares=shares))
    assert (np.diff(found[np.argsort(-shares)]) <= 1e-12).all()


@given(mdms(), st.sampled_from(["rank", "random"]))
def test_as_many_labels_as_categories_are_other_names_for_them(mdm, rule):
    """So that evenness, and the entropy of each client, are the same."""
    other = mdm.relabelled(mdm.n_categories, rule, rng=3)
    columns = sorted(map(tuple, other.alphas.T)), sorted(map(tuple, mdm.alphas.T))
    assert columns[0] == columns[1]


@given(mdms(), SHARES)
def test_by_marginal_the_pooled_shares_are_the_labels_and_odds_ratios_stay(mdm, shares):
    by_rank = mdm.relabelled(len(shares), shares=shares)
    other = mdm.relabelled(len(shares), "marginal", shares=shares)
    np.testing.assert_allclose(pooled(other), np.array(shares) / sum(shares), atol=1e-9)
    odds = [np.log(one.alphas) - np.log(one.alphas[:, :1]) for one in (by_rank, other)]
    ratios = [one - one[:1] for one in odds]
    np.testing.assert_allclose(ratios[0], ratios[1], atol=1e-6)


def test_labels_without_points_get_none():
    for rule in ("rank", "random", "marginal"):
        other = TWO.relabelled(3, rule, shares=[5, 0, 1], rng=0)
        assert not other.alphas[:, 1].any()


def test_at_random_another_seed_is_another_matching_and_the_same_seed_the_same():
    found = [TWO.relabelled(4, "random", rng=seed).alphas.tolist() for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("labels", "rule", "shares", "words"),
    [
        (1, "rank", None, "at least 2 labels"),
        (3, "marginal", None, "needs shares="),
        (3, "rank", [1, 2], "expected 3 shares"),
        (3, "rank", [1, -2, 1], "expected 3 shares"),
        (3, "rank", [1, 0, 0], "two at least"),
        (["a", "a"], "rank", None, "different"),
        (3, "best", None, "rank"),
    ],
)
def test_labels_that_make_no_sense_are_refused(labels, rule, shares, words):
    with pytest.raises(ParameterError, match=words):
        TWO.relabelled(labels, rule, shares=shares)


def test_shares_that_no_such_mixture_can_have_are_refused():
    apart = MDM([0.9, 0.1], [[1.0, 0.0], [0.0, 1.0]], Sizes.constant(3, n_components=2))
    with pytest.raises(ParameterError, match="match by 'rank'"):
        apart.relabelled(2, "marginal", shares=[0.5, 0.5])


@pytest.mark.parametrize("mean", [1, 1.5, 3, 40, 1_000, 123_456])
def test_scaled_sizes_have_the_mean_that_is_asked_for(mean):
    sizes = Sizes(SizeBins([1, 2, 30, 400]), [[0.2, 0.5, 0.3], [0.0, 0.9, 0.1]])
    mdm = MDM([0.5, 0.5], TWO.alphas, sizes)
    assert mdm.resized(mean).mean().sum() == pytest.approx(mean, rel=2e-3)
    assert mdm.resized(mean).sample(1_000, rng=0).sum(axis=1).min() >= 1


def test_sizes_in_another_unit_vary_as_much_for_their_mean():
    sizes = Sizes(SizeBins.logarithmic(1_000), np.full((1, 35), 1 / 35))
    mdm = MDM([1.0], [[1.0, 1.0]], sizes)
    n, larger = (one.sample(20_000, rng=0).sum(axis=1) for one in (mdm, mdm.resized(5_000)))
    assert larger.std() / larger.mean() == pytest.approx(n.std() / n.mean(), rel=0.03)


def test_splits_that_add_up_are_relabelled_as_the_mixture_that_they_are():
    """Drawn counts are merged and split: means and variances as those of the alphas (z below 5)."""
    tree = Tree([[1, 4], [2, 3]])
    splits = Splits(tree, [[[5.0, 1.0], [3.0, 2.0]]])
    mdm = MDM([1.0], None, Sizes.constant(12), splits=splits)
    plain = MDM([1.0], mdm.alphas, mdm.sizes)
    for shares in ([0.7, 0.3], [0.1, 0.2, 0.3, 0.25, 0.15]):
        drawn, closed = (one.relabelled(len(shares), shares=shares) for one in (mdm, plain))
        assert isinstance(drawn, Relabelled)
        assert isinstance(closed, MDM)
        a, b = (one.sample(20_000, rng=seed) for seed, one in enumerate((drawn, closed)))
        np.testing.assert_allclose(drawn.mean(), closed.mean(), rtol=1e-9)
        for x, y in ((a, b), (a**2, b**2)):
            error = np.sqrt((x.var(axis=0) + y.var(axis=0)) / len(x))
            assert (np.abs(x.mean(axis=0) - y.mean(axis=0)) < 5 * error).all()
        assert (a.sum(axis=1) == 12).all()


@pytest.mark.parametrize("mean", [3, 12, 150])
def test_scaled_clients_of_laws_are_as_even_as_before(mean):
    """Counts of a mixture with laws are scaled: laws are not known beyond the sizes of the fit."""
    laws = Laws([0, 1, 2, 4], np.zeros((1, 2, 2, 4)))
    splits = Splits(Tree([[1, 4], [2, 3]]), [[[500.0, 100.0], [300.0, 200.0]]], laws)
    mdm = MDM([1.0], None, Sizes.constant(30), splits=splits, categories=["a", "b", "c"])
    other = mdm.resized(mean)
    counts = other.sample(4_000, rng=0)
    assert counts.sum(axis=1).mean() == pytest.approx(mean, rel=0.02)
    assert counts.sum(axis=1).min() >= 1
    assert other.mean().sum() == pytest.approx(mean)
    assert other.categories == mdm.categories
    shares = counts.sum(axis=0) / counts.sum()
    np.testing.assert_allclose(shares, mdm.mean() / mdm.mean().sum(), atol=0.02)


def test_a_mixture_with_splits_has_no_marginal_rule():
    splits = Splits(Tree([[1, 2]]), [[[1.0, 5.0]]])
    mdm = MDM([1.0], None, Sizes.constant(12), splits=splits)
    with pytest.raises(ParameterError, match=r"'marginal'.*has splits: use 'rank'"):
        mdm.relabelled(2, "marginal", shares=[1, 1])
