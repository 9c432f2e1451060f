"""Parameters as a vector, the gradient and Hessian in it, and the geometry of the cap."""

import numpy as np
import pytest
from hypothesis import given

from polyurn import Sizes, answer
from polyurn.model.paper_truths import truth
from polyurn.server import em
from polyurn.server.em import (
    _stacked,
    along_cap,
    gradients,
    hessian,
    within_cap,
)
from polyurn.wire import Expect, Parameters
from searches import from_x, parameters_of, to_x
from strategies import mdms


def gradient(parameters, sums):
    return gradients(parameters.weights[None], parameters.alphas[None], _stacked([sums]))[0]


@given(mdms())
def test_parameters_and_vectors_are_two_forms_of_the_same(mdm):
    before = parameters_of(mdm)
    after = from_x(to_x(before), before.alphas.shape, before.sizes)
    np.testing.assert_allclose(after.alphas, before.alphas, rtol=1e-12)
    np.testing.assert_allclose(after.weights, before.weights, rtol=1e-12)
    assert after.sizes is before.sizes


def test_every_vector_stands_for_parameters_that_are_possible():
    wild = np.array([900.0, -900.0, 800.0, -900.0, 30.0, 0.0, 0.0, 900.0])
    found = from_x(wild, (2, 3), Sizes.constant(9, n_components=2))
    assert (found.alphas > 0).all()
    assert (found.alphas.sum(axis=1) <= 1e6 * (1 + 1e-9)).all()
    np.testing.assert_allclose(found.weights, [0.0, 1.0], atol=1e-12)


def test_many_models_are_stacked_one_by_one():
    models = [parameters_of(truth(name)) for name in ("low/2", "medium/2", "high/2")]
    xs = em.to_x(np.array([m.weights for m in models]), np.array([m.alphas for m in models]))
    weights, alphas = em.from_x(xs, (2, 10))
    for i, m in enumerate(models):
        np.testing.assert_array_equal(xs[i], to_x(m))
        alone = from_x(xs[i], (2, 10), m.sizes)
        np.testing.assert_array_equal(weights[i], alone.weights)
        np.testing.assert_array_equal(alphas[i], alone.alphas)


def test_gradient_and_hessian_are_those_of_the_likelihood():
    mdm = truth("medium/2")
    counts = mdm.sample(600, rng=0)  # more than are multiplied at once
    x = to_x(parameters_of(mdm))
    sums = answer(Expect(parameters_of(mdm), curvature=(0, 1)), counts)

    def gradient_at(at):
        parameters = from_x(at, (2, 10), mdm.sizes)
        return gradient(parameters, answer(Expect(parameters), counts))

    def value_at(at):
        return from_x(at, (2, 10), mdm.sizes).mdm().logpmf(counts).mean()

    h, unit = 1e-5, np.eye(22)
    numeric = [(value_at(x + h * e) - value_at(x - h * e)) / (2 * h) for e in unit]
    np.testing.assert_allclose(gradient_at(x), numeric, atol=1e-7)
    second = np.array([(gradient_at(x + h * e) - gradient_at(x - h * e)) / (2 * h) for e in unit])
    np.testing.assert_allclose(hessian(sums), second, atol=1e-7)


def test_the_hessian_of_some_components_is_a_block_of_the_whole():
    mdm = truth("medium/3")
    counts = mdm.sample(700, rng=0)
    whole, some = (
        hessian(answer(Expect(parameters_of(mdm), curvature=asked), counts))
        for asked in ((0, 1, 2), (0, 2))
    )
    block = np.r_[0:11, 22:33]
    np.testing.assert_allclose(some, whole[np.ix_(block, block)], rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(whole, whole.T)


def test_there_is_no_hessian_where_none_was_asked_for():
    mdm = truth("medium/2")
    assert hessian(answer(Expect(parameters_of(mdm)), mdm.sample(9, rng=0))) is None


SHARES = np.array([0.2, 0.3, 0.5])
AT_CAP = np.stack([1e6 * SHARES, 5 * SHARES])[None]  # the first component is at the cap
OUTWARDS = np.concatenate([SHARES, [0.0], SHARES, [0.0]])[None]


def test_at_the_cap_a_gradient_leads_along_it_or_inwards():
    inside = within_cap(OUTWARDS, AT_CAP)[0]
    assert inside[:4] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(inside[4:], OUTWARDS[0, 4:])
    np.testing.assert_allclose(within_cap(-OUTWARDS, AT_CAP), -OUTWARDS)  # inwards is free
    np.testing.assert_array_equal(within_cap(OUTWARDS, AT_CAP / 2), OUTWARDS)


def test_along_the_cap_the_hessian_does_not_see_what_leads_across_it():
    x = to_x(Parameters(np.array([0.5, 0.5]), AT_CAP[0], Sizes.constant(9, n_components=2)))
    inside = within_cap(OUTWARDS, AT_CAP)[0]
    across = np.concatenate([SHARES, np.zeros(5)])
    whole = -np.eye(8) - 0.1
    along = along_cap(whole, x, inside, (2, 3))
    np.testing.assert_allclose(along @ across, 0.0, atol=1e-12)
    np.testing.assert_array_equal(along[4:, 4:], whole[4:, 4:])
    np.testing.assert_array_equal(along_cap(whole, x, -OUTWARDS[0], (2, 3)), whole)
