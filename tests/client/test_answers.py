"""Which questions a client answers, and what it refuses."""

import numpy as np
import pytest

from polyurn import MDM, SizeBins, Sizes, answer
from polyurn.errors import CountsError, InputError, ParameterError, SizeError
from polyurn.wire import Initialise, Query, Update, decode_query, encode_query


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
        n_categories, lengths = 2, {}

    with pytest.raises(ParameterError, match="Other"):
        answer(Other(), [[1, 1]])


def test_an_alpha_that_no_message_may_have_is_answered_in_this_process():
    mdm = MDM([1.0], [[1e-160, 1.0]], Sizes.constant(3))
    assert answer(Update(mdm), [[0, 3]]).n_clients == 1
    with pytest.raises(InputError, match="alphas of 0 or at least 1e-150"):
        decode_query(encode_query(Update(mdm)))


def test_the_start_is_the_papers_algorithm_1():
    counts = np.array([[3, 1, 0], [0, 0, 5], [1, 1, 2], [2, 0, 0]])
    query = Initialise(2, 3, SizeBins.exact(5))
    got = answer(query, counts, rng=11)
    joined = np.random.default_rng(11).integers(2, size=4)
    p, q, e = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 5))
    for k, c in zip(joined, counts, strict=True):
        e[k, c.sum() - 1] += 1
        p[k] += c / c.sum()
        q[k] += (c / c.sum()) ** 2
    np.testing.assert_allclose(got.first_moments, p, rtol=1e-14)
    np.testing.assert_allclose(got.second_moments, q, rtol=1e-14)
    np.testing.assert_array_equal(got.size_counts, e)
