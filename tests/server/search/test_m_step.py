import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from polyurn import answer
from polyurn.model.paper_truths import truth
from polyurn.model.rising_factorials import digamma_rise, log_rising
from polyurn.server.em.m_step import MAX_CONCENTRATION, blend, maximise, poles
from polyurn.wire import Expect, Parameters
from strategies import mdms


def asked(mdm, counts):
    parameters = Parameters(mdm.weights, mdm.alphas, mdm.sizes)
    return answer(Expect(parameters), counts)


@given(mdms(max_size=30), st.integers(0, 2**32))
def test_poles_reproduce_the_sums_that_they_stand_for(mdm, seed):
    sums = asked(mdm, mdm.sample(20, rng=seed))
    p = poles(mdm.alphas, sums)
    a, a_0 = mdm.alphas, mdm.alphas.sum(axis=1)
    np.testing.assert_allclose(p.present + p.weight * a / (a + p.place), sums.tables, rtol=1e-9)
    spread = p.present + p.weight * (a / (a + p.place)) ** 2
    np.testing.assert_allclose(spread, sums.spread, rtol=1e-6, atol=1e-9)
    total = p.total_present + p.total_weight * a_0 / (a_0 + p.total_place)
    np.testing.assert_allclose(total, sums.total_tables, rtol=1e-9)


@given(mdms(max_size=30), st.integers(0, 2**32), st.floats(0.3, 3.0))
def test_one_pole_stands_for_all_the_others_near_and_far(mdm, seed, factor):
    """F′ at another α, from the poles and from the counts themselves."""
    counts = mdm.sample(20, rng=seed)
    alone = Parameters(
        np.ones(1), mdm.alphas[:1], type(mdm.sizes)(mdm.sizes.bins, mdm.sizes.masses[:1])
    )
    p = poles(alone.alphas, answer(Expect(alone), counts))
    a = alone.alphas * factor
    exact = (a[0] * digamma_rise(a[0], counts)).sum(axis=0)
    np.testing.assert_allclose(
        (p.present + p.weight * a / (a + p.place))[0], exact, rtol=0.15, atol=1e-9
    )


@pytest.mark.parametrize("name", ["medium/1", "high/1", "low/1"])
def test_a_few_m_steps_find_the_maximum_of_a_single_component(name):
    mdm = truth(name)
    counts = mdm.sample(500, rng=0)
    alphas = np.ones((1, 10))
    for _ in range(5):
        sums = answer(Expect(Parameters(np.ones(1), alphas, mdm.sizes)), counts)
        alphas = maximise(poles(alphas, sums), alphas, category_prior=0.0)

    def loss(x):
        a = np.exp(x)
        n = counts.sum(axis=1)
        return -(log_rising(a, counts).sum() - log_rising(a.sum(), n).sum())

    found = minimize(loss, np.zeros(10), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(alphas[0], np.exp(found.x), rtol=1e-4)


@given(mdms(), st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_maximising_never_goes_down(mdm, seed, prior):
    p = poles(mdm.alphas, asked(mdm, mdm.sample(20, rng=seed)))

    def value(a):
        a_0 = a.sum(axis=1)
        f = ((p.present + prior) * np.log(a) + p.weight * np.log(a + p.place)).sum(axis=1)
        return f - p.total_present * np.log(a_0) - p.total_weight * np.log(a_0 + p.total_place)

    prior = max(prior, 1e-6)
    after = maximise(p, mdm.alphas, category_prior=prior)
    assert (after > 0).all()
    assert (after.sum(axis=1) <= MAX_CONCENTRATION * (1 + 1e-9)).all()
    assert (value(after) >= value(mdm.alphas) - 1e-9 * np.abs(value(mdm.alphas))).all()


def test_clients_that_vary_like_a_multinomial_end_at_the_stated_cap():
    counts = np.random.default_rng(0).multinomial(50, [0.2, 0.3, 0.5], 400)
    counts[:] = counts.mean(axis=0).round().astype(int)  # less than any multinomial
    mdm = truth("low/1", size=50)
    alphas = np.ones((1, 3))
    for _ in range(30):
        sums = answer(Expect(Parameters(np.ones(1), alphas, mdm.sizes)), counts)
        alphas = maximise(poles(alphas, sums), alphas, category_prior=1e-3)
    assert alphas.sum() == pytest.approx(MAX_CONCENTRATION, rel=1e-6)
    np.testing.assert_allclose(alphas[0] / alphas.sum(), counts[0] / counts[0].sum(), rtol=1e-3)


@given(mdms(), st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_a_blend_is_the_average_of_the_sums_where_it_is_made(mdm, seed, step):
    one, two = (asked(mdm, mdm.sample(15, rng=[seed, i])) for i in (0, 1))
    mixed = blend(poles(mdm.alphas, one), poles(mdm.alphas, two), mdm.alphas, step)
    tables = mixed.present + mixed.weight * mdm.alphas / (mdm.alphas + mixed.place)
    np.testing.assert_allclose(
        tables, (1 - step) * one.tables + step * two.tables, rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("support", [0.0, 1e-300])
def test_a_component_that_no_client_supports_stays_where_it_was(support):
    mdm = truth("medium/2")
    sums = asked(mdm, mdm.sample(50, rng=0))
    p = poles(mdm.alphas, sums)
    for block in vars(p).values():
        block[1] *= support
    after = maximise(p, mdm.alphas, category_prior=1e-3)
    np.testing.assert_array_equal(after[1], mdm.alphas[1])
    assert (after[0] != mdm.alphas[0]).any()
