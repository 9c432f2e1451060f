"""The concentration of the best single Dirichlet."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from polyurn import MDM, Sizes, concentration, dirichlet_multinomial_logpmf, heterogeneity


def drawn(alpha, n_clients, size, rng):
    return MDM([1.0], [alpha], Sizes.constant(size)).sample(n_clients, rng=rng)


def test_concentration_is_where_the_likelihood_is_largest():
    counts = drawn([0.2, 1.0, 0.5], 50, 30, rng=0)
    marginal = counts.sum(axis=0) / counts.sum()

    def cost(log_alpha):
        return -dirichlet_multinomial_logpmf(counts, np.exp(log_alpha) * 3 * marginal).sum()

    best = minimize_scalar(cost, bounds=(-6, 6), method="bounded", options={"xatol": 1e-9})
    assert concentration(counts) == pytest.approx(np.exp(best.x), rel=1e-5)
    assert concentration(sparse.csr_array(counts)) == concentration(counts)


@pytest.mark.parametrize("size", [5, 200])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 20.0])
def test_concentration_finds_what_clients_were_drawn_from_whatever_their_size(alpha, size):
    counts = drawn([alpha] * 4, 4000, size, rng=1)
    assert concentration(counts) == pytest.approx(alpha, rel=0.15 if alpha < 20 else 0.3)


def test_concentration_is_infinite_for_clients_more_even_than_a_multinomial():
    assert concentration([[5, 5], [5, 5], [6, 4], [4, 6]]) == np.inf
    assert concentration([[1, 0, 1, 0], [0, 2, 0, 0]]) == np.inf  # exactly as much as a multinomial
    assert concentration([[5, 0], [0, 5]]) == 0


def test_clients_of_one_point_say_nothing_about_the_concentration():
    assert np.isnan(concentration([[1, 0], [0, 1], [0, 1]]))
    alpha = heterogeneity([[1, 0], [0, 1]], rng=0).alpha
    assert np.isnan([alpha.value, alpha.low, alpha.high]).all()
    counts = drawn([0.5, 1.5], 30, 20, rng=3)
    with_ones = np.concatenate([counts, np.eye(2, dtype=int)])
    assert np.isfinite(concentration(with_ones))


def test_the_bootstrap_covers_the_concentration_that_clients_were_drawn_from():
    # 40 trials at 95 %: fewer than 33 by chance in 1 of 1,000.
    hits = 0
    for seed in range(40):
        alpha = heterogeneity(drawn([0.5] * 3, 80, 20, rng=seed), n_bootstrap=100, rng=seed).alpha
        hits += alpha.low <= 0.5 <= alpha.high
    assert hits >= 33
