"""What clients say before there are parameters."""

import numpy as np

from polyurn import SizeBins, answer
from polyurn.wire import Initialise


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
