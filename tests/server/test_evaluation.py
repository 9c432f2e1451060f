"""Points that clients have judged: value, gradient and EM image."""

import numpy as np
import pytest

from polyurn import SizeBins, Sizes, answer
from polyurn.model.paper_truths import truth
from polyurn.server.em import Problem, evaluate, fingerprint
from polyurn.wire import Expect, Parameters
from searches import parameters_of, to_x

MDM = truth("medium/3")
COUNTS = MDM.sample(400, rng=0)
PROBLEM = Problem(3, 10, MDM.sizes.bins, False, 0.0, 1e-9)


def judged(*models):
    trials = [(to_x(m), m.sizes) for m in models]
    return evaluate(PROBLEM, trials, [answer(Expect(m), COUNTS) for m in models])


def scaled(factor):
    return Parameters(MDM.weights, factor * MDM.alphas, MDM.sizes)


def test_trials_are_judged_together_as_each_alone():
    together = judged(scaled(0.5), scaled(1.0), scaled(2.0))
    for factor, found in zip((0.5, 1.0, 2.0), together, strict=True):
        (alone,) = judged(scaled(factor))
        assert found.value == alone.value
        np.testing.assert_array_equal(found.gradient, alone.gradient)
        np.testing.assert_array_equal(found.image, alone.image)
        np.testing.assert_array_equal(found.masses, alone.masses)


def test_a_fingerprint_counts_clients_by_size_and_category_whatever_was_asked():
    counts = truth("appendix-a").sample(200, rng=1)
    counts[:20] //= 2
    counts = counts[counts.sum(axis=1) > 0]
    bins = SizeBins([1, 20, 60, 101])
    sizes = bins.locate(counts.sum(axis=1))
    expected = [*np.bincount(sizes, minlength=3), *(counts > 0).sum(axis=0)]
    rng = np.random.default_rng(2)
    for _ in range(5):
        some = Sizes(bins, rng.dirichlet(np.ones(3), size=2))
        asked = Parameters(rng.dirichlet([1, 1]), rng.gamma(0.5, size=(2, 5)) + 1e-3, some)
        assert fingerprint([answer(Expect(asked), counts)]) == tuple(expected)


def test_a_fingerprint_tells_that_a_client_has_left_or_was_replaced():
    query = Expect(parameters_of(MDM))
    everyone = fingerprint([answer(query, COUNTS)])
    assert fingerprint([answer(query, COUNTS[::-1])]) == everyone  # in another order
    assert fingerprint([answer(query, COUNTS[1:])]) != everyone
    other = next(row for row in COUNTS if ((row > 0) != (COUNTS[0] > 0)).any())
    assert fingerprint([answer(query, np.vstack([other, COUNTS[1:]]))]) != everyone


def test_a_value_is_the_mean_log_likelihood_per_client():
    (point,) = judged(parameters_of(MDM))
    assert point.value == pytest.approx(MDM.logpmf(COUNTS).mean(), rel=1e-12)


def test_a_point_knows_its_parameters_and_those_that_its_em_step_leads_to():
    (point,) = judged(scaled(2.0))
    np.testing.assert_allclose(point.parameters().alphas, 2 * MDM.alphas, rtol=1e-12)
    after = point.image_parameters()
    np.testing.assert_allclose(to_x(after), point.image, atol=1e-12)
    np.testing.assert_array_equal(after.sizes.masses, point.masses)
    assert after.mdm().logpmf(COUNTS).mean() > point.value


def test_the_em_step_promises_a_gain_of_each_component_and_to_first_order_that_of_all():
    (point,) = judged(scaled(1.2))
    assert (point.promise > 0).all()
    assert point.promise.sum() == pytest.approx(point.gradient @ point.step)
    h = 1e-5
    near = from_point(point, h).mdm().logpmf(COUNTS).mean()
    assert (near - point.value) / h == pytest.approx(point.promise.sum(), rel=1e-3)


def from_point(point, share):
    """The parameters that a share of the EM step leads to."""
    logs = (point.x + share * point.step).reshape(3, 11)
    weights = np.exp(logs[:, 10]) / np.exp(logs[:, 10]).sum()
    return Parameters(weights, np.exp(logs[:, :10]), point.sizes)


def test_at_an_optimum_there_is_no_step_and_nothing_promised():
    at = scaled(1.0)
    for _ in range(600):
        (point,) = judged(at)
        at = point.image_parameters()
    assert np.abs(point.step).max() < 1e-3
    assert 0 <= point.promise.sum() < 1e-6
