"""Parts of the standard errors: covariances of quadratic forms, and a client like the mean one."""

import numpy as np
import pytest

from polyurn.server.style_fit import Clients, _pairs
from polyurn.wire.style_queries import triangle


def test_covariances_of_products_are_those_of_normal_vectors():
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.3], [0.3, 0.5]])
    x = rng.multivariate_normal([0, 0], covariance, size=200_000)
    seen = np.cov(triangle(x[:, :, None] * x[:, None, :]).T)
    np.testing.assert_allclose(_pairs(covariance), seen, atol=0.04)


@pytest.mark.parametrize(("squared", "present"), [(0.3, 10), (0.9, 3), (1.0, 1)])
def test_the_mean_client_has_the_mean_squared_shares(squared, present):
    shares = Clients(100, squared, 0.02, 0.02 * present, 20).shares()
    assert len(shares) == present
    assert shares.sum() == pytest.approx(1)
    assert (shares**2).sum() == pytest.approx(squared, abs=1e-6)
