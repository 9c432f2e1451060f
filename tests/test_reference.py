"""The plain twin of the paper: against scipy, by hand, and by the theorem."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from polyurn import Laws, Splits, Tree, reference
from polyurn.model.paper_truths import truth
from strategies import mdms


@given(mdms(max_size=20), st.integers(0, 2**32))
def test_the_likelihood_is_that_of_scipys_dirichlet_multinomial(mdm, seed):
    counts, sizes = mdm.sample(8, rng=seed), mdm.sizes.table()
    components = range(mdm.n_components)
    joint = [
        [
            np.log(mdm.weights[k] * sizes[k, n])
            + stats.dirichlet_multinomial.logpmf(c, mdm.alphas[k], n)
            for k in components
        ]
        for c, n in zip(counts, counts.sum(axis=1), strict=True)
    ]
    got = reference.log_likelihood(counts, mdm.weights, mdm.alphas, sizes)
    assert got == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("n_categories", [2, 3, 7])
@pytest.mark.parametrize("bent", [False, True])
def test_splits_and_laws_have_the_probabilities_of_the_plain_twin(n_categories, bent):
    rng = np.random.default_rng(n_categories)
    tree = Tree.by_share(rng.random(n_categories))
    concentrations = rng.gamma(1.0, 2.0, (1, n_categories - 1, 2))
    knots = np.array([0, 1, 3, 7])
    values = bent * rng.normal(size=(*concentrations.shape, len(knots)))
    splits = Splits(tree, concentrations, Laws(knots, values))
    bends = (values @ splits.laws.hats(30).T)[0]
    counts = rng.integers(0, 5, (20, n_categories))
    wanted = [reference.splits_logpmf(c, tree.children, concentrations[0], bends) for c in counts]
    np.testing.assert_allclose(splits.logpmf(counts)[:, 0], wanted, rtol=1e-11, atol=1e-12)
    if not bent:
        unbent = Splits(tree, concentrations).logpmf(counts)[:, 0]
        np.testing.assert_allclose(unbent, wanted, rtol=1e-11, atol=1e-12)


def test_responsibilities_are_bayes_rule_by_hand():
    """Two points in one category: p = α(α + 1) / (α_0(α_0 + 1)), which is 1/3 and 3/5 here."""
    weights, alphas = np.array([0.5, 0.5]), np.array([[1.0, 1.0], [3.0, 1.0]])
    sizes = np.array([[0, 0.5, 0.5], [0, 0, 1.0]])
    got = reference.responsibilities(np.array([2, 0]), weights, alphas, sizes)
    np.testing.assert_allclose(got, [1 / 6 / (1 / 6 + 3 / 5), 3 / 5 / (1 / 6 + 3 / 5)], rtol=1e-14)
    alone = reference.responsibilities(np.array([1, 0]), weights, alphas, sizes)
    np.testing.assert_array_equal(alone, [1.0, 0.0])  # the second component has no client of one


def test_the_start_has_the_first_two_moments_of_the_first_category():
    counts = truth("medium/1").sample(200, rng=0)
    weights, alphas, sizes = reference.initialise(counts, n_components=1, max_size=20, rng=0)
    shares, alpha_0 = counts / 20, alphas.sum()
    np.testing.assert_allclose(alphas[0] / alpha_0, shares.mean(axis=0), rtol=1e-12)
    second = alphas[0, 0] * (1 + alphas[0, 0]) / (alpha_0 * (1 + alpha_0))
    assert second == pytest.approx((shares[:, 0] ** 2).mean(), rel=1e-12)
    np.testing.assert_array_equal(weights, [1.0])
    np.testing.assert_array_equal(sizes, [[0] * 20 + [1]])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["low/3", "medium/2", "high/2"])
def test_every_round_on_the_full_cohort_raises_the_likelihood(name, seed):
    counts = truth(name).sample(100, rng=seed)
    parameters = reference.initialise(counts, n_components=3, max_size=25, rng=seed)
    values = [reference.log_likelihood(counts, *parameters)]
    for _ in range(10):
        parameters = reference.update(counts, *parameters)
        values.append(reference.log_likelihood(counts, *parameters))
    assert (np.diff(values) > 0).all()


def test_a_round_leaves_weights_and_sizes_that_sum_to_one():
    counts = truth("medium/3").sample(80, rng=0)
    weights, _, sizes = reference.fit(counts, n_components=3, max_size=20, n_rounds=3, rng=1)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(sizes.sum(axis=1), 1.0)
    assert (sizes[:, 0] == 0).all()


def test_a_cohort_is_so_many_different_clients_and_rounds_have_other_ones():
    table, rng = np.arange(50)[:, None], np.random.default_rng(0)
    first, second = (reference.draw_cohort(table, 20, rng=rng) for _ in range(2))
    assert len(np.unique(first)) == len(np.unique(second)) == 20
    assert set(first.ravel()) != set(second.ravel())
    assert reference.draw_cohort(table, None, rng=rng) is table
