"""Splits and laws against enumeration, closed forms and finite differences."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from polyurn.errors import ParameterError
from polyurn.model import model_kernels as kernels
from polyurn.model.mdm import dirichlet_multinomial_logpmf
from polyurn.model.splits import Laws, Splits, hats, law_knots
from polyurn.model.trees import Tree

TREE = Tree.declared([["a", "c"], ["b", "d"]], list("abcd"))
KNOTS = law_knots(9, dense=3, ratio=1.5)


def histograms(n, c):
    """All histograms of n points in c categories."""
    bars = np.array(list(itertools.combinations(range(n + c - 1), c - 1)))
    return np.diff(bars, axis=1, prepend=-1, append=n + c - 1) - 1


def log_shares(splits, counts):
    """Log p(c | n, k): the sum of the terms of the nodes."""
    totals = splits.tree.totals(counts)
    nodes = np.tile(np.arange(totals.shape[1]), len(totals))
    terms = splits.terms(nodes, totals.ravel())
    return terms.reshape(*totals.shape, -1).sum(axis=1)


def splits_of(kind, seed=0, n_components=2):
    rng = np.random.default_rng(seed)
    concentrations = rng.gamma(1.0, 2.0, (n_components, 3, 2))
    values = rng.normal(size=(*concentrations.shape, len(KNOTS)))
    return Splits(TREE, concentrations, Laws(KNOTS, values) if kind == "laws" else None)


@pytest.mark.parametrize("kind", ["splits", "laws"])
@pytest.mark.parametrize("n", [1, 4, 9, 13])
def test_probabilities_of_all_histograms_of_a_size_add_up_to_one(kind, n):
    total = np.exp(log_shares(splits_of(kind), histograms(n, 4))).sum(axis=0)
    assert np.abs(total - 1).max() < 1e-12


def test_splits_of_a_dirichlet_multinomial_are_that_dirichlet_multinomial():
    alphas = np.array([[1.0, 0.2, 3.0, 4e5], [0.0, 0.0, 2.0, 1.0], [0.5, 0.0, 0.0, 0.0]])
    splits, counts = Splits.of_alphas(TREE, alphas), histograms(6, 4)
    wanted = np.stack([dirichlet_multinomial_logpmf(counts, alpha) for alpha in alphas], axis=1)
    unbent = Splits(TREE, splits.concentrations, Laws(KNOTS, np.zeros((3, 3, 2, len(KNOTS)))))
    for one in (splits, unbent):
        found = log_shares(one, counts)
        assert np.array_equal(np.isneginf(found), np.isneginf(wanted))
        assert np.allclose(np.exp(found), np.exp(wanted), rtol=1e-11, atol=0)
    assert np.allclose(splits.alphas(), alphas, rtol=1e-12, atol=0)


def test_a_chain_is_the_generalised_dirichlet_multinomial():
    """Connor and Mosimann 1969: c_1 of n, then c_2 of what is left, by beta-binomials."""
    chain = Tree.declared(["a", ["b", ["c", "d"]]], list("abcd"))
    a = np.random.default_rng(3).gamma(1.0, 2.0, (1, 3, 2))
    for c in histograms(5, 4):
        left, wanted = 5, 0.0
        for j in range(3):
            wanted += stats.betabinom.logpmf(c[j], left, *a[0, j])
            left -= c[j]
        assert log_shares(Splits(chain, a), c[None])[0, 0] == pytest.approx(wanted, abs=1e-12)


def test_a_law_makes_a_split_hypergeometric_or_binomial():
    """f(c) = (13 over c) is an urn of 13 of each, without replacement; f(c) = p^c / c!, a binomial."""
    tree, counts = Tree([[1, 2]]), np.arange(14)
    law = Splits(tree, [[[1.0, 1.0]]]).log_laws(13)[0, 0, 0]
    urn = stats.binom.logpmf(counts, 13, 0.5) - law
    splits = Splits(tree, [[[1.0, 1.0]]], Laws(counts, [[[urn, urn]]]))
    for n in (5, 13):
        c = np.arange(n + 1)
        found = log_shares(splits, np.stack([c, n - c], axis=1))[:, 0]
        assert np.allclose(np.exp(found), stats.hypergeom.pmf(c, 26, 13, n), atol=1e-13)
    coin = stats.poisson.logpmf(counts, 3.0) - law, stats.poisson.logpmf(counts, 1.0) - law
    splits = Splits(tree, [[[1.0, 1.0]]], Laws(counts, [[coin]]))
    c = np.arange(11)
    found = log_shares(splits, np.stack([c, 10 - c], axis=1))[:, 0]
    assert np.allclose(np.exp(found), stats.binom.pmf(c, 10, 0.75), atol=1e-13)


@pytest.mark.parametrize("steepness", [0.0, 1.0, 3_000.0])
def test_normalisers_of_large_totals_are_those_of_logarithms(steepness):
    """A law that falls by more than float64 spans within a block of counts is no exception."""
    rng = np.random.default_rng(0)
    values = steepness * rng.normal(size=(1, 3, 2, 4))
    concentrations = rng.gamma(1.0, [2.0, 2_000.0], (1, 3, 2))
    splits = Splits(TREE, concentrations, Laws([0, 1, 40, 300], values))
    log_laws, totals = splits.log_laws(700), np.array([0, 1, 63, 64, 65, 128, 500, 700])
    sides = [(one[0, : n + 1], one[1, n::-1]) for one in log_laws[0] for n in totals]
    wanted = np.array([special.logsumexp(left + right) for left, right in sides])
    nodes = np.repeat(np.arange(3), len(totals))
    found = kernels.log_normalisers(log_laws, nodes, np.tile(totals, 3))[:, 0]
    assert found == pytest.approx(wanted, rel=1e-13, abs=1e-12)
    log_z, sums = kernels.expected_counts(log_laws, totals, np.ones((1, 3, len(totals))))
    assert log_z.ravel() == pytest.approx(wanted, rel=1e-13, abs=1e-12)
    assert sums.sum(axis=3) == pytest.approx(len(totals))


def test_expected_counts_are_the_same_bits_wherever_arrays_lie_in_memory():
    """A fit with laws once differed from process to process: the order of a sum hung on addresses."""
    rng = np.random.default_rng(5)
    log_laws = np.cumsum(rng.normal(size=(1, 14, 2, 116)), axis=3)
    totals, weights = np.arange(2, 100), rng.random((1, 14, 98))
    found, kept = set(), []
    for _ in range(100):
        kept.append(np.empty(rng.integers(1, 300)))  # the next arrays lie elsewhere
        sums = kernels.expected_counts(log_laws, totals, weights)
        found.add(b"".join(one.tobytes() for one in sums))
    assert len(found) == 1


def test_expected_hat_sums_are_the_gradient_of_log_z():
    splits, totals = splits_of("laws"), np.array([1, 4, 9, 12])
    weights = np.random.default_rng(1).random((2, 3, 4))
    hat_sums = splits.expected_hats(totals, weights)

    def log_z(values):
        bent = Splits(TREE, splits.concentrations, Laws(KNOTS, values))
        return (kernels.expected_counts(bent.log_laws(12), totals, weights)[0] * weights).sum()

    for at in itertools.product(range(2), range(3), range(2), range(0, len(KNOTS), 2)):
        step = np.zeros(splits.laws.values.shape)
        step[at] = 1e-5
        low, high = log_z(splits.laws.values - step), log_z(splits.laws.values + step)
        assert hat_sums[at] == pytest.approx((high - low) / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("kind", ["splits", "laws"])
@pytest.mark.parametrize("n", [5, 40])
def test_drawn_histograms_have_the_probabilities_of_the_model(kind, n):
    """Chi-square of the frequencies of one category pair's total; false alarm one in ten thousand."""
    splits, rng = splits_of(kind, n_components=1), np.random.default_rng(4)
    n_clients = 40_000
    some, sizes = np.zeros(n_clients, np.int64), np.full(n_clients, n)
    drawn = np.empty((n_clients, 4), np.int64)
    if kind == "laws":
        kernels.draw_bent(TREE.children, splits.log_laws(n), some, sizes, drawn, rng)
    else:
        kernels.draw_down(TREE.children, splits.concentrations, some, sizes, drawn, rng)
    assert (drawn.sum(axis=1) == n).all()
    whole = histograms(n, 4)
    p = np.exp(log_shares(splits, whole)[:, 0])
    for of in (
        lambda h: h @ [n + 1, 0, 1, 0],
        lambda h: h[:, 1],
        lambda h: h[:, 3] * (n + 1) + h[:, 0],
    ):
        mass = np.bincount(of(whole), p, minlength=(n + 1) ** 2 + n + 1)
        seen = np.bincount(of(drawn), minlength=len(mass))
        expected = n_clients * mass
        rare = expected < 8
        observed = np.append(seen[~rare], seen[rare].sum())
        wanted = np.append(expected[~rare], expected[rare].sum())
        assert stats.chisquare(observed[wanted > 1e-9], wanted[wanted > 1e-9]).pvalue > 1e-4


def test_hats_add_up_to_one_and_the_last_one_stays():
    table = hats(KNOTS, np.arange(20))
    assert np.allclose(table.sum(axis=1), 1)
    assert (table >= 0).all()
    assert (table[9:, -1] == 1).all()
    assert np.array_equal(table[KNOTS], np.eye(len(KNOTS)))


@pytest.mark.parametrize(
    ("concentrations", "message"),
    [
        ([[[1.0, 1.0], [1.0, 1.0]]], "shape"),
        ([[[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]], "not negative"),
        ([[[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]], "each split that gets points"),
    ],
)
def test_concentrations_that_are_no_splits_are_refused(concentrations, message):
    with pytest.raises(ParameterError, match=message):
        Splits(TREE, concentrations)
