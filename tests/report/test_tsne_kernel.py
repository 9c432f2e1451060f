import numpy as np
import pytest

from polyurn.report.tsne import affinities, kl_gradient


def test_the_gradient_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    near = affinities(rng.random((40, 3)), 6.0)
    places = rng.normal(size=(40, 2))
    apart = places[:, None] - places[None]
    weights = 1 / (1 + (apart**2).sum(axis=2))
    np.fill_diagonal(weights, 0)
    forces = (near.toarray() - weights / weights.sum()) * weights
    expected = 4 * (forces[:, :, None] * apart).sum(axis=1)
    found = kl_gradient(near.indptr, near.indices, near.data, places)
    assert found == pytest.approx(expected, abs=1e-6)  # the repulsion is summed in float32
