import math
from itertools import pairwise

import dp_accounting
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from polyurn.errors import ParameterError
from polyurn.privacy.accounting import (
    delta_of,
    epsilon_of,
    sigma_for,
    spent,
)

# Of the fit's eleven releases; their sum is 1.
SHARES = [
    share / 0.92 for share in (0.04, 0.16, 0.08, 0.08, 0.08, 0.06, 0.08, 0.10, 0.10, 0.07, 0.07)
]


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(0.5, 1e4**-1.1, 6.364), (1.0, 1e5**-1.1, 3.983), (8.0, 1e6**-1.1, 0.683)],
)
def test_sigma_is_that_of_the_published_table(epsilon, delta, sigma):
    assert sigma_for(epsilon, delta) == pytest.approx(sigma, abs=5e-4)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 50), st.floats(-20, -3))
def test_sigma_and_epsilon_are_inverse_and_on_the_safe_side(epsilon, log_delta):
    delta = 10**log_delta
    sigma = sigma_for(epsilon, delta)
    assert delta_of(sigma, epsilon) <= delta
    assert epsilon_of([sigma], delta) == pytest.approx(epsilon, rel=1e-6)


def test_delta_is_the_formula_of_balle_and_wang():
    for sigma in (0.3, 1.0, 5.0):
        for epsilon in (0.1, 1.0, 4.0):
            formula = norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * norm.cdf(
                -0.5 / sigma - epsilon * sigma
            )
            assert delta_of(sigma, epsilon) == pytest.approx(formula, rel=1e-6)


def test_releases_add_up_to_the_one_that_their_shares_divide():
    sigma = sigma_for(1.0, 1e-6)
    total = sum(SHARES)
    sigmas = [sigma / math.sqrt(share / total) for share in SHARES]
    assert spent(sigmas) == pytest.approx(sigma**-2)
    assert epsilon_of(sigmas, 1e-6) == pytest.approx(1.0)


def test_more_releases_never_cost_less():
    costs = [epsilon_of([5.0] * n, 1e-6) for n in range(20)]
    assert costs[0] == 0.0
    assert all(one < other for one, other in pairwise(costs))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_privacy_loss_distributions_agree_with_the_closed_form(epsilon):
    total = sum(SHARES)
    sigma = sigma_for(epsilon, 1e-5)
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for share in SHARES:
        accountant.compose(dp_accounting.GaussianDpEvent(sigma / math.sqrt(share / total)))
    assert accountant.get_epsilon(1e-5) == pytest.approx(epsilon, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0)]
)
def test_a_budget_out_of_range_is_refused(epsilon, delta):
    with pytest.raises(ParameterError, match="expected"):
        sigma_for(epsilon, delta)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_a_release_without_noise_has_no_price(sigma):
    with pytest.raises(ParameterError, match="noise multipliers above 0"):
        epsilon_of([sigma], 1e-6)
