"""One climber: it never goes down, and what it tries next."""

import numpy as np
import pytest

from polyurn import Sizes
from polyurn.model.paper_truths import truth
from polyurn.server.em import Point
from polyurn.server.fit_settings import DEFAULT
from polyurn.server.search import Climber
from polyurn.wire import Parameters
from searches import parameters_of, to_x

MDM = truth("medium/2")
START = parameters_of(MDM)
X = to_x(START)
N = len(X)


def point(x, value, *, step=0.0, gradient=0.0):
    """A judged point with this EM step and gradient in every entry, or in each."""
    return Point(x, value, np.zeros(N) + gradient, MDM.sizes, x + step, MDM.sizes.masses)


def climber(first, *, hessian=None, curved=(0, 1), **more):
    """A climber that has learned about its first trial."""
    begun = Climber.begin(START, 1, DEFAULT, **more)
    begun.curved = curved
    begun.learn([first], hessian, DEFAULT)
    return begun


def test_before_it_is_judged_it_is_worse_than_any_and_may_gain_anything():
    begun = Climber.begin(START, 1, DEFAULT)
    assert begun.value == -np.inf
    assert begun.remaining() == np.inf
    (asked,) = begun.queries((2, 10))
    np.testing.assert_allclose(asked.parameters.alphas, START.alphas, rtol=1e-12)
    assert asked.curvature == ()


def test_it_never_goes_down():
    c = climber(point(X, -3.0, step=0.1))
    c.learn([point(X + 0.1, -4.0, step=0.1)], None, DEFAULT)
    assert c.value == -3.0
    np.testing.assert_array_equal(c.point.x, X)


def test_once_it_has_forgotten_what_others_said_it_moves_to_its_best_trial_however_low():
    c = climber(point(X, -3.0, step=0.1), hessian=-np.eye(N))
    c.forget()
    c.learn([point(X + 0.1, -5.0), point(X + 0.2, -4.0)], None, DEFAULT)
    assert c.value == -4.0
    np.testing.assert_array_equal(c.point.x, X + 0.2)
    assert c.curvature is None
    assert c.n_vain == 0
    assert c.remaining() == np.inf  # nobody knows how much of it was a gain


def test_of_several_trials_it_moves_to_the_best():
    c = climber(point(X, -3.0))
    c.learn([point(X + i, v) for i, v in enumerate((-2.5, -2.0, -9.0))], None, DEFAULT)
    assert c.value == -2.0
    np.testing.assert_array_equal(c.point.x, X + 1)


def test_a_trial_under_which_a_client_is_impossible_is_not_a_place_to_be():
    c = climber(point(X, -np.inf))
    assert c.best is None
    assert c.value == -np.inf


def test_after_a_round_in_vain_the_next_em_step_is_smaller():
    c = climber(point(X, -3.0, step=0.8, gradient=1.0))
    c.propose(DEFAULT, n_curved=0)
    np.testing.assert_allclose(c.trials[0], X + 0.8)
    for expected in (0.2, 0.05):
        c.learn([point(c.trials[0], -9.0)], None, DEFAULT)
        c.propose(DEFAULT, n_curved=0)
        np.testing.assert_allclose(c.trials[0], X + expected)
    c.learn([point(c.trials[0], -2.0, step=0.5, gradient=1.0)], None, DEFAULT)
    c.propose(DEFAULT, n_curved=0)
    np.testing.assert_allclose(c.trials[0], X + 0.05 + 0.5)


def test_rounds_in_vain_are_not_taken_for_convergence():
    """A fit of the Twins table stopped at its start: no gain, but a long way still to go."""
    c = climber(point(X, -3.0, step=0.1, gradient=0.5))
    for _ in range(4):
        c.learn([point(X, -9.0)], None, DEFAULT)
    assert c.remaining() == pytest.approx(0.5 * 0.1 * N / 2)


def test_without_a_hessian_the_pace_says_what_is_left():
    c = climber(point(X, -3.0))
    for value in (-2.5, -2.1):
        c.learn([point(X, value)], None, DEFAULT)
    assert c.remaining() == pytest.approx(3 * 0.5)
    c.learn([point(X, -2.1)], None, DEFAULT)
    c.learn([point(X, -2.1)], None, DEFAULT)
    assert c.remaining() == 0.0


def test_newton_steps_find_the_optimum_of_a_quadratic():
    optimum, hessian = X + 0.3, -np.diag(np.linspace(0.5, 2.0, N))
    c = climber(point(X, -1.0, gradient=hessian @ (X - optimum)), hessian=hessian)
    c.propose(DEFAULT, n_curved=2)
    assert min(float(np.abs(t - optimum).max()) for t in c.trials) < 1e-5
    assert c.curved == (0, 1)
    gap = 0.5 * (X - optimum) @ -hessian @ (X - optimum)
    assert c.remaining() == pytest.approx(gap, rel=1e-3)


def test_newton_steps_in_one_component_leave_the_others_to_em():
    n = N // 2
    step, gradient = np.repeat([0.1, 0.2], n), np.repeat([0.01, 0.3], n)
    first = point(X, -1.0, step=step, gradient=gradient)
    c = climber(first, hessian=-np.eye(n), curved=(1,))
    c.propose(DEFAULT, n_curved=1)
    expected = np.concatenate([X[:n] + 0.1, X[n:] + 0.3])
    assert min(float(np.abs(t - expected).max()) for t in c.trials) < 1e-5
    assert c.curved == (1,)  # the one that promises more, again


def test_the_hessian_is_asked_for_at_one_trial_only():
    c = climber(point(X, -1.0, step=0.1, gradient=0.1))
    c.propose(DEFAULT, n_curved=2)
    assert [q.curvature for q in c.queries((2, 10))] == [(0, 1)]
    c.learn([point(c.trials[0], -0.9, step=0.1, gradient=0.1)], -np.eye(N), DEFAULT)
    c.propose(DEFAULT, n_curved=2)
    asked = [q.curvature for q in c.queries((2, 10))]
    assert len(asked) == 1 + len(DEFAULT.dampings)
    assert [a for a in asked if a] == [(0, 1)]
    assert asked[0] == ()  # at a Newton step, which is more likely to be taken than EM's


def test_a_hessian_that_is_known_at_the_beginning_serves_the_first_steps():
    known = np.full(N, -2.0), np.eye(N), np.arange(N)
    c = climber(point(X, -3.0, step=0.1, gradient=0.5), curvature=known)
    c.propose(DEFAULT, n_curved=2)
    assert len(c.trials) == 1 + len(DEFAULT.dampings)
    np.testing.assert_allclose(c.trials[1], X + 0.25, rtol=1e-4)
    c.learn([point(t, -2.0, step=0.1, gradient=0.5) for t in c.trials], None, DEFAULT)
    assert c.curvature is None


def proposed():
    c = climber(point(X, -3.0, gradient=0.5), hessian=-np.eye(N))
    c.propose(DEFAULT, n_curved=2)
    return c


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_damping_that_was_best_is_tried_again(best):
    c = proposed()
    tried = [factor * DEFAULT.damping for factor in DEFAULT.dampings]
    values = [-9.0] * 4
    values[1 + best] = -2.0
    c.learn([point(t, v) for t, v in zip(c.trials, values, strict=True)], None, DEFAULT)
    assert c.damping == pytest.approx(tried[best])


def test_after_newton_steps_in_vain_damping_is_stronger():
    c = proposed()
    c.learn([point(t, -9.0) for t in c.trials], None, DEFAULT)
    assert c.damping > max(DEFAULT.dampings) * DEFAULT.damping


def test_no_step_is_longer_than_the_longest():
    c = climber(point(X, -3.0, gradient=1e3), hessian=-np.eye(N))
    c.propose(DEFAULT, n_curved=2)
    for trial in c.trials[1:]:
        assert np.abs(trial - X).max() == pytest.approx(DEFAULT.longest)


def test_a_saddle_is_not_taken_for_an_optimum_and_repels():
    saddle = -np.eye(N)
    saddle[0, 0] = 0.1
    gradient = np.zeros(N)
    gradient[0] = 1e-3
    c = climber(point(X, -3.0, gradient=gradient), hessian=saddle)
    for _ in range(3):
        c.learn([point(X, -3.0, gradient=gradient)], saddle, DEFAULT)
    assert c.remaining() > 0.01
    c.propose(DEFAULT, n_curved=2)
    assert c.trials[1][0] > X[0] + 0.009  # uphill, though the likelihood curves upwards there
    rest = climber(point(X, -3.0), hessian=-np.eye(N))
    for _ in range(3):
        rest.learn([point(X, -3.0)], -np.eye(N), DEFAULT)
    assert rest.remaining() < 1e-6


def at(parameters, value):
    begun = Climber.begin(parameters, 1, DEFAULT)
    begun.learn([point(to_x(parameters), value)], None, DEFAULT)
    return begun


def test_climbers_are_at_one_place_whatever_the_order_of_their_components():
    turned = Parameters(START.weights[::-1], START.alphas[::-1], START.sizes)
    moved = Parameters(START.weights, START.alphas * np.exp(0.2), START.sizes)
    here = at(START, -3.0)
    assert here.is_near(at(turned, -3.0), DEFAULT, 1e-3)
    assert not here.is_near(at(turned, -3.01), DEFAULT, 1e-3)
    assert not here.is_near(at(moved, -3.0), DEFAULT, 1e-3)


def test_its_next_trials_have_the_sizes_of_the_em_step():
    after = np.full((2, MDM.sizes.bins.n_bins), 1 / MDM.sizes.bins.n_bins)
    first = Point(X, -3.0, np.zeros(N), Sizes.constant(20, n_components=2), X, after)
    c = climber(first)
    c.propose(DEFAULT, n_curved=0)
    for asked in c.queries((2, 10)):
        np.testing.assert_array_equal(asked.parameters.sizes.masses, after)
