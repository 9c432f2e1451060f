"""Which questions a client answers, and what it refuses."""

import numpy as np
import pytest

from polyurn import MDM, SizeBins, Sizes, answer
from polyurn.errors import CountsError, SizeError
from polyurn.model.paper_truths import truth
from polyurn.wire import Batch, Expect, Parameters, Query, Update


def test_a_client_larger_than_max_size_is_told_so():
    mdm = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    with pytest.raises(SizeError, match="max_size is 3"):
        answer(Update(mdm), [[2, 2]])


def test_histograms_of_another_length_are_refused():
    mdm = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    with pytest.raises(CountsError, match="expected 2 categories, got histograms of 3"):
        answer(Update(mdm), [[1, 1, 1]])


def test_a_query_that_no_client_knows_is_refused():
    class Other(Query):
        dimensions = Update(MDM([1.0], [[1.0, 1.0]], Sizes.constant(2))).dimensions

    with pytest.raises(TypeError, match="Other"):
        answer(Other(), [[1, 1]])


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
