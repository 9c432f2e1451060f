import numpy as np
import pytest
from scipy import stats

from polyurn.comparison.distances import split_distances


@pytest.mark.parametrize("n", [2, 7, 50])
def test_the_distance_of_each_split_is_scipys(n):
    rng = np.random.default_rng(n)
    places = rng.integers(0, 20, n) / 20  # with ties
    splits = rng.permuted(np.arange(n)[:, None] < np.full(30, n // 2), axis=0)
    expected = [stats.wasserstein_distance(places[first], places[~first]) for first in splits.T]
    assert split_distances(places, splits, n_first=n // 2) == pytest.approx(expected, abs=1e-12)
