"""What is to be fitted: its cost in numbers, its priors, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn import SizeBins, answer
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.server.em import Problem, _stacked
from polyurn.wire import Expect
from searches import parameters_of
from strategies import mdms

BINS = SizeBins([1, 5, 21])


def problem(k=2, c=10, bins=BINS, *, shared=False, size_prior=1.0, category_prior=1e-3):
    return Problem(k, c, bins, shared, size_prior, category_prior)


@given(mdms())
def test_costs_are_what_a_client_sends(mdm):
    p, k = problem(*mdm.alphas.shape, mdm.sizes.bins), mdm.n_components
    assert p.trial_cost == Expect(parameters_of(mdm)).n_numbers
    for n in range(1, k + 1):
        asked = Expect(parameters_of(mdm), curvature=tuple(range(n)))
        assert p.trial_cost + p.hessian_cost(n) == asked.n_numbers


def test_free_parameters_are_counted_without_those_of_the_sizes():
    assert problem(1, 10).n_parameters == 10
    assert problem(3, 10).n_parameters == 3 * 10 + 2


def test_a_category_prior_of_zero_is_refused():
    with pytest.raises(ParameterError, match="category_prior above 0"):
        problem(category_prior=0.0)


def test_an_upload_that_holds_no_trial_is_refused_with_advice():
    one, two = problem(1), problem(2)
    two.check_upload(two.trial_cost)
    with pytest.raises(ParameterError, match=r"^2 components take 70 .* 69 are allowed"):
        two.check_upload(two.trial_cost - 1)
    with pytest.raises(ParameterError, match=r"^1 component takes 36 numbers"):
        one.check_upload(1)
    with pytest.raises(ParameterError, match=r"fewer size bins than 20 \(sizes='binned'\)"):
        problem(2, bins=SizeBins.exact(20)).check_upload(1)


COUNTS_BY_BIN = st.lists(
    st.lists(st.floats(0.0, 50.0), min_size=2, max_size=2), min_size=3, max_size=3
)


@given(COUNTS_BY_BIN, st.floats(0.1, 9.0), st.booleans())
def test_with_a_prior_every_size_stays_possible(counts, prior, shared):
    masses = problem(3, shared=shared, size_prior=prior).size_masses(np.array(counts))
    np.testing.assert_allclose(masses.sum(axis=1), 1.0)
    assert (masses > 0).all()


@given(COUNTS_BY_BIN)
def test_shared_sizes_are_the_same_for_all_components(counts):
    masses = problem(3, shared=True).size_masses(np.array(counts))
    np.testing.assert_array_equal(masses, masses[[0, 0, 0]])


def test_a_prior_draws_sizes_towards_those_of_all_clients():
    counts = np.array([[30.0, 0.0], [0.0, 10.0]])
    free, drawn = (problem(size_prior=p).size_masses(counts) for p in (0.0, 1e9))
    np.testing.assert_allclose(free, np.eye(2))
    np.testing.assert_allclose(drawn, 0.5, atol=1e-6)  # so large a prior is even itself
    near = problem(size_prior=4.0).size_masses(counts)
    together = (counts.sum(axis=0) + 2.0) / 44.0
    np.testing.assert_allclose(near[1], (counts[1] + 4 * together) / 14.0)


def test_a_component_without_clients_has_the_sizes_of_all_and_hardly_any_weight():
    counts = np.array([[30.0, 10.0], [0.0, 0.0]])
    p = problem(size_prior=0.0)
    np.testing.assert_allclose(p.size_masses(counts)[1], [0.75, 0.25])
    weights = p.weights(counts)
    assert weights.sum() == pytest.approx(1.0)
    assert 0 < weights[1] < 1e-6


@pytest.mark.parametrize("name", ["low/3", "medium/3", "high/3"])
def test_an_em_step_of_many_models_is_that_of_each_and_raises_its_likelihood(name):
    mdm = truth(name)
    counts = mdm.sample(300, rng=0)
    p = problem(3, 10, mdm.sizes.bins, size_prior=0.0, category_prior=1e-9)
    models = [mdm.alphas * factor for factor in (0.5, 1.0, 3.0)]
    asked = [type(mdm)(mdm.weights, alphas, mdm.sizes) for alphas in models]
    sums = [answer(Expect(parameters_of(m)), counts) for m in asked]
    weights, alphas, masses = p.em_step(np.array(models), _stacked(sums))
    for i, before in enumerate(asked):
        alone = p.em_step(np.array(models[i : i + 1]), _stacked(sums[i : i + 1]))
        for found, expected in zip((weights, alphas, masses), alone, strict=True):
            np.testing.assert_array_equal(found[i], expected[0])
        after = type(mdm)(weights[i], alphas[i], type(mdm.sizes)(mdm.sizes.bins, masses[i]))
        assert after.logpmf(counts).mean() >= before.logpmf(counts).mean()
