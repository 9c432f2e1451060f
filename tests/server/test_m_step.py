"""The M-step of the alphas: what a surrogate stands for, and where its maximum is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from polyurn import MDM, Sizes, answer
from polyurn.model.mdm import at_cap
from polyurn.model.paper_truths import truth
from polyurn.model.rising_factorials import digamma_rise, log_rising
from polyurn.server.em import Surrogate, capped
from polyurn.server.m_step_kernel import MAX_CONCENTRATION
from polyurn.wire import Expect, Parameters
from searches import parameters_of
from strategies import mdms


def asked(mdm, counts):
    return answer(Expect(parameters_of(mdm)), counts)


def with_total(alphas):
    return np.concatenate([alphas, alphas.sum(axis=1, keepdims=True)], axis=1)


def first(surrogate, alphas):
    """α F′ of a surrogate, of every category and of the total."""
    a = with_total(alphas)
    return surrogate.present + surrogate.weight * a / (a + surrogate.shift)


@given(mdms(max_size=30), st.integers(0, 2**32))
def test_a_surrogate_reproduces_the_sums_that_it_stands_for(mdm, seed):
    sums = asked(mdm, mdm.sample(20, rng=seed))
    s, a = Surrogate.of(mdm.alphas, sums), with_total(mdm.alphas)
    tables = np.column_stack([sums.tables, sums.total_tables]) / 20
    # Where F″ leaves less than eps^(3/4) beyond the first term, the other terms are left out: at most
    # about the root of that, eps^(3/8), of F′.
    np.testing.assert_allclose(first(s, mdm.alphas), tables, rtol=2e-6)
    spread = np.column_stack([sums.spread, sums.total_spread]) / 20
    second = s.present + s.weight * (a / (a + s.shift)) ** 2
    np.testing.assert_allclose(second, spread, rtol=1e-6, atol=1e-9)


@given(mdms(max_size=30), st.integers(0, 2**32), st.floats(0.3, 3.0))
def test_one_term_stands_for_all_the_others_near_and_far(mdm, seed, factor):
    """F′ at another α, from the surrogate and from the counts themselves."""
    counts = mdm.sample(20, rng=seed)
    alone = Parameters(np.ones(1), mdm.alphas[:1], Sizes(mdm.sizes.bins, mdm.sizes.masses[:1]))
    surrogate = Surrogate.of(alone.alphas, answer(Expect(alone), counts))
    a = alone.alphas * factor
    exact = (a[0] * digamma_rise(a[0], counts)).mean(axis=0)
    np.testing.assert_allclose(first(surrogate, a)[0, :-1], exact, rtol=0.15, atol=1e-9)


@pytest.mark.parametrize("name", ["medium/1", "high/1", "low/1"])
def test_a_few_m_steps_find_the_maximum_of_a_single_component(name):
    mdm = truth(name)
    counts = mdm.sample(500, rng=0)
    alphas = np.ones((1, 10))
    for _ in range(5):
        sums = answer(Expect(Parameters(np.ones(1), alphas, mdm.sizes)), counts)
        alphas = Surrogate.of(alphas, sums).maximise(alphas, category_prior=0.0)

    def loss(x):
        a = np.exp(x)
        n = counts.sum(axis=1)
        return -(log_rising(a, counts).sum() - log_rising(a.sum(), n).sum())

    found = minimize(loss, np.zeros(10), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(alphas[0], np.exp(found.x), rtol=1e-4)


@given(mdms(), st.integers(0, 2**32), st.floats(1e-6, 1.0))
def test_maximising_never_goes_down(mdm, seed, prior):
    s = Surrogate.of(mdm.alphas, asked(mdm, mdm.sample(20, rng=seed)))

    def value(alphas):
        a = with_total(alphas)
        f = s.present * np.log(a) + s.weight * np.log(a + s.shift)
        return f[:, :-1].sum(axis=1) - f[:, -1] + prior * np.log(alphas).sum(axis=1)

    after = s.maximise(mdm.alphas, category_prior=prior)
    assert (after > 0).all()
    assert (after.sum(axis=1) <= MAX_CONCENTRATION * (1 + 1e-9)).all()
    assert (value(after) >= value(mdm.alphas) - 1e-9 * np.abs(value(mdm.alphas))).all()


def test_many_models_are_maximised_as_each_of_them_alone():
    mdm = truth("medium/3")
    tables = [mdm.sample(50, rng=i) for i in range(4)]
    alone = [Surrogate.of(mdm.alphas, asked(mdm, counts)) for counts in tables]
    names = ("present", "weight", "shift")
    stacked = Surrogate(*(np.array([getattr(s, name) for s in alone]) for name in names))
    together = stacked.maximise(np.array([mdm.alphas] * 4), category_prior=1e-3)
    for one, found in zip(alone, together, strict=True):
        np.testing.assert_array_equal(found, one.maximise(mdm.alphas, category_prior=1e-3))


def test_clients_that_vary_like_a_multinomial_end_at_the_stated_cap():
    counts = np.random.default_rng(0).multinomial(50, [0.2, 0.3, 0.5], 400)
    counts[:] = counts.mean(axis=0).round().astype(int)  # less than any multinomial
    mdm = truth("low/1", size=50)
    alphas = np.ones((1, 3))
    for _ in range(30):
        sums = answer(Expect(Parameters(np.ones(1), alphas, mdm.sizes)), counts)
        alphas = Surrogate.of(alphas, sums).maximise(alphas, category_prior=1e-3)
    assert alphas.sum() == pytest.approx(MAX_CONCENTRATION, rel=1e-6)
    np.testing.assert_allclose(alphas[0] / alphas.sum(), counts[0] / counts[0].sum(), rtol=1e-3)


@given(mdms(), st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_a_blend_is_the_average_of_the_sums_where_it_is_made(mdm, seed, step):
    one, two = (asked(mdm, mdm.sample(15, rng=[seed, i])) for i in (0, 1))
    old, new = (Surrogate.of(mdm.alphas, sums) for sums in (one, two))
    mixed = first(old.blend(new, mdm.alphas, step), mdm.alphas)[:, :-1]
    expected = ((1 - step) * one.tables + step * two.tables) / 15
    np.testing.assert_allclose(mixed, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("support", [0.0, 1e-300])
def test_a_component_that_no_client_supports_stays_where_it_was(support):
    mdm = truth("medium/2")
    s = Surrogate.of(mdm.alphas, asked(mdm, mdm.sample(50, rng=0)))
    share = np.array([[1.0], [support]])
    s = Surrogate(s.present * share, s.weight * share, s.shift * share)
    after = s.maximise(mdm.alphas, category_prior=1e-3)
    np.testing.assert_array_equal(after[1], mdm.alphas[1])
    assert (after[0] != mdm.alphas[0]).any()


def test_concentrations_beyond_the_cap_are_scaled_to_it_and_said():
    alphas = np.array([[2.0, 3.0], [4e6, 6e6], [4e5, 6e5 * (1 - 1e-12)]])
    np.testing.assert_allclose(capped(alphas)[:2], [[2.0, 3.0], [4e5, 6e5]])
    assert at_cap(alphas).tolist() == [False, True, True]  # rounding aside
    assert not at_cap(0.99 * capped(alphas)).any()


@pytest.mark.parametrize("concentration", [2.0, 30.0, 300.0])
def test_a_component_at_the_cap_comes_back_in_one_m_step_if_its_clients_are_overdispersed(
    concentration,
):
    """Newton's method once stayed at the cap for ever, and EM gained 0.004 nats a round."""
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    clients = MDM([1.0], [concentration * shares], Sizes.constant(60)).sample(500, rng=0)
    stuck = Parameters(np.ones(1), MAX_CONCENTRATION * shares[None], Sizes.constant(60))
    surrogate = Surrogate.of(stuck.alphas, answer(Expect(stuck), clients))
    after = surrogate.maximise(stuck.alphas, category_prior=1e-6).sum()
    assert concentration / 3 < after < 3 * concentration
