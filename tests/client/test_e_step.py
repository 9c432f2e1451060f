"""The E-step of a cohort against the paper's formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from polyurn import MDM, SizeBins, Sizes, answer, reference
from polyurn.model.paper_truths import truth
from polyurn.wire import Batch, Expect, Parameters, Update
from strategies import mdms


def update_twin(mdm, counts):
    """Algorithm 2, lines 6 to 13, with the sizes in the bins of the MDM."""
    omega, e, u, v = reference.statistics(counts, mdm.weights, mdm.alphas, mdm.sizes.table())
    return omega, np.add.reduceat(e, mdm.sizes.bins.edges[:-1], axis=1), u, v


@given(mdms(max_components=6), st.integers(0, 2**32), st.booleans())
@settings(deadline=None)
def test_an_answer_is_the_sum_of_the_papers_formulas(mdm, seed, as_sparse):
    counts = mdm.sample(15, rng=seed)
    got = answer(Update(mdm), sparse.csr_array(counts) if as_sparse else counts)
    omega, e, u, v = update_twin(mdm, counts)
    assert got.n_clients == 15
    assert got.log_likelihood == pytest.approx(mdm.logpmf(counts).sum(), rel=1e-10)
    np.testing.assert_allclose(got.responsibilities, omega, atol=1e-9)
    np.testing.assert_allclose(got.size_counts, e, atol=1e-9)
    np.testing.assert_allclose(mdm.alphas * got.numerators, mdm.alphas * u, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got.denominators, v, rtol=1e-6, atol=1e-9)


def test_large_counts_give_the_same_answer_by_special_functions():
    """Two tables of the same kind, one small enough for running sums, one not."""
    bins = SizeBins.logarithmic(400_000)
    mdm = MDM([0.6, 0.4], [[0.5, 2.0, 4.0], [3.0, 0.1, 0.1]],
              Sizes(bins, np.full((2, bins.n_bins), 1 / bins.n_bins)))  # fmt: skip
    counts = np.array([[200_000, 3, 17], [5, 90_000, 0], [11, 0, 150_001]])
    omega, _, u, v = update_twin(mdm, counts)
    got = answer(Update(mdm), counts)
    np.testing.assert_allclose(got.numerators, u, rtol=1e-9)
    np.testing.assert_allclose(got.denominators, v, rtol=1e-9)
    np.testing.assert_allclose(got.responsibilities, omega, rtol=1e-9)


def test_an_alpha_of_zero_leaves_no_nan():
    mdm = MDM([0.5, 0.5], [[1.0, 0.0], [1.0, 1.0]], Sizes.constant(3, n_components=2))
    got = answer(Update(mdm), [[2, 1], [3, 0]])
    assert np.isfinite(got.to_vector()).all()
    assert got.numerators[0, 1] == 0


def test_queries_with_different_size_bins_are_answered_each_with_its_own():
    mdm = truth("medium/2")
    counts = mdm.sample(40, rng=0)
    exact = Parameters(mdm.weights, mdm.alphas, mdm.sizes)
    bins = SizeBins.logarithmic(20)
    binned = Parameters(
        mdm.weights, mdm.alphas, Sizes(bins, np.full((2, bins.n_bins), 1 / bins.n_bins))
    )
    together = answer(Batch((Expect(exact), Expect(binned), Expect(exact))), counts).answers
    for asked, found in zip((exact, binned, exact), together, strict=True):
        alone = answer(Expect(asked), counts)
        assert found.log_likelihood == alone.log_likelihood
        np.testing.assert_array_equal(found.size_counts, alone.size_counts)
