import numpy as np
import pytest

from polyurn import Sizes
from polyurn.model.paper_truths import truth
from polyurn.server.em.parameters import along_cap, from_x, to_x, within_cap
from polyurn.server.search.climber import N_NEWTON, Bends, Point, Track
from polyurn.wire import Parameters

MDM_2 = truth("medium/2")
START = Parameters(MDM_2.weights, MDM_2.alphas, MDM_2.sizes)


def point(x, value, *, step, slope):
    return Point(x, value, np.full(len(x), slope), MDM_2.sizes, x + step, MDM_2.sizes.masses)


def test_parameters_and_vectors_are_two_forms_of_the_same():
    again = from_x(to_x(START), START.alphas.shape, START.sizes)
    np.testing.assert_allclose(again.alphas, START.alphas, rtol=1e-12)
    np.testing.assert_allclose(again.weights, START.weights, rtol=1e-12)


def test_curvature_that_is_known_at_the_beginning_is_good_for_one_round():
    n = to_x(START).size
    bends = Bends(np.full(n, -2.0), np.eye(n), np.arange(n))
    track = Track.begin(START, bends=bends)
    x = track.trials[0]
    track.learn([point(x, -3.0, step=0.1, slope=0.5)], None)
    track.propose(1, n_curved=2)
    assert len(track.trials) == 1 + N_NEWTON
    np.testing.assert_allclose(track.trials[1], x + 0.25, rtol=1e-6)  # undamped
    track.learn([point(t, -2.0, step=0.1, slope=0.5) for t in track.trials], None)
    assert track.bends is None


def test_a_track_never_goes_down():
    track = Track.begin(START)
    x = track.trials[0]
    track.learn([point(x, -3.0, step=0.1, slope=0.0)], None)
    track.learn([point(x + 0.1, -4.0, step=0.1, slope=0.0)], None)
    assert track.value == -3.0
    np.testing.assert_array_equal(track.best.x, x)


def test_after_a_round_in_vain_the_next_step_is_smaller():
    track = Track.begin(START)
    x = track.trials[0]
    track.learn([point(x, -3.0, step=0.8, slope=1.0)], None)
    track.propose(1)
    np.testing.assert_allclose(track.trials[0], x + 0.8)
    for expected in (0.2, 0.05):
        track.learn([point(track.trials[0], -9.0, step=0.0, slope=0.0)], None)
        track.propose(1)
        np.testing.assert_allclose(track.trials[0], x + expected)
    track.learn([point(track.trials[0], -2.0, step=0.5, slope=1.0)], None)
    track.propose(1)
    np.testing.assert_allclose(track.trials[0], x + 0.05 + 0.5)


def test_rounds_in_vain_are_not_taken_for_convergence():
    """A fit of the Twins table stopped at its start: no gain, but a long way still to go."""
    track = Track.begin(START)
    x = track.trials[0]
    track.learn([point(x, -3.0, step=0.1, slope=0.5)], None)
    for _ in range(4):
        track.learn([point(x, -9.0, step=0.0, slope=0.0)], None)
    assert track.remaining() == pytest.approx(0.5 * 0.1 * len(x) / 2)


def test_bold_trials_go_where_a_linear_em_map_comes_to_rest():
    track = Track.begin(START)
    rest, x = to_x(START), to_x(START) + 1.0
    for _ in range(3):  # x -> rest + 0.95 (x - rest): an EM map near its fixed point
        image = rest + 0.95 * (x - rest)
        value = -float(((x - rest) ** 2).sum())
        track.learn(
            [Point(x, value, np.zeros(len(x)), MDM_2.sizes, image, MDM_2.sizes.masses)], None
        )
        x = image
    track.propose(20)
    nearest = min(float(np.abs(t - rest).max()) for t in track.trials)
    assert nearest < 0.01 * float(np.abs(x - rest).max())


def test_a_saddle_is_not_taken_for_a_top():
    track = Track.begin(START)
    track.curved = (0, 1)
    x = track.trials[0]
    curvature = -np.eye(len(x))
    curvature[0, 0] = 0.1
    for _ in range(4):
        track.learn([point(x, -3.0, step=0.0, slope=0.0)], curvature)
    assert track.remaining() > 0.01
    for _ in range(4):
        track.learn([point(x, -3.0, step=0.0, slope=0.0)], -np.eye(len(x)))
    assert track.remaining() < 1e-6


def test_newton_steps_find_the_top_of_a_parabola():
    track = Track.begin(START)
    track.curved = (0, 1)
    x = track.trials[0]
    top = x + 0.3
    hessian = -np.diag(np.linspace(0.5, 2.0, len(x)))
    at = Point(
        x, -1.0, hessian @ (x - top), Sizes.constant(20, n_components=2), x, MDM_2.sizes.masses
    )
    track.learn([at], hessian)
    track.propose(1, n_curved=2)
    assert min(float(np.abs(t - top).max()) for t in track.trials) < 1e-6
    assert track.curved == (0, 1)


def test_newton_steps_in_one_component_leave_the_others_to_em():
    track = Track.begin(START)
    track.curved = (1,)
    x = track.trials[0]
    n = len(x) // 2
    top, image = x + 0.3, x + np.repeat([0.1, 0.2], n)
    slope = np.concatenate([np.full(n, 0.01), np.full(n, 0.3)])
    at = Point(x, -1.0, slope, Sizes.constant(20, n_components=2), image, MDM_2.sizes.masses)
    track.learn([at], -np.eye(n))
    track.propose(1, n_curved=1)
    expected = np.concatenate([image[:n], top[n:]])
    assert min(float(np.abs(t - expected).max()) for t in track.trials) < 1e-6
    assert track.curved == (1,)  # the steeper one again


def test_at_the_cap_slope_and_curvature_lead_along_it():
    shares = np.array([0.2, 0.3, 0.5])
    alphas = np.stack([1e6 * shares, 5 * shares])[None]  # the first component is at the cap
    outwards = np.concatenate([shares, [0.0], shares, [0.0]])[None]
    inside = within_cap(outwards, alphas)[0]
    assert inside[:4] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(inside[4:], outwards[0, 4:])
    np.testing.assert_allclose(within_cap(-outwards, alphas), -outwards)  # inwards is free
    x = to_x(Parameters(np.array([0.5, 0.5]), alphas[0], Sizes.constant(9, n_components=2)))
    across = np.concatenate([shares, np.zeros(5)])
    bent = -np.eye(8) - 0.1
    along = along_cap(bent, x, inside, (2, 3))
    np.testing.assert_allclose(along @ across, 0.0, atol=1e-12)
    np.testing.assert_array_equal(along[4:, 4:], bent[4:, 4:])
    np.testing.assert_array_equal(along_cap(bent, x, -outwards[0], (2, 3)), bent)
