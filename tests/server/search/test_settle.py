"""The last stage when cohorts are samples."""

import numpy as np
import pytest
from polyurn.server.search.quadratic import Quadratic

from polyurn import MDM, SizeBins, answer
from polyurn.model.paper_truths import truth
from polyurn.server.em.problem import Problem
from polyurn.server.search.sampled import Settle
from polyurn.wire import Expect, Parameters

MEDIUM = truth("medium/2")
BEGIN = Parameters(MEDIUM.weights, 1.3 * MEDIUM.alphas, MEDIUM.sizes)


def problem():
    return Problem(2, 10, SizeBins(MEDIUM.sizes.bins.edges), True, 1.0, 1e-3)


def settled(cohorts, *, max_upload=50_000):
    first, *others = cohorts
    stage = Settle(problem(), BEGIN, answer(Expect(BEGIN), first), max_upload=max_upload, tol=1e-3)
    for cohort in others:
        stage.learn([answer(q, cohort) for q in stage.queries(max_upload)])
    return stage


def mean_likelihood(parameters, counts):
    mdm = MDM(parameters.weights, parameters.alphas, parameters.sizes)
    return mdm.logpmf_given_size(counts).mean()


def test_quadratic_cohorts_are_pooled_exactly_once_all_count_the_same():
    rng = np.random.default_rng(0)
    model, x, pulls, curvatures = Quadratic.empty(3), np.zeros(3), [], []
    for n in range(1, 400):
        root = rng.normal(size=(3, 3))
        curvature, top = -root @ root.T - np.eye(3), rng.normal(size=3)
        weight = min(n / 20, 1.0) ** 2
        curvatures.append(weight * curvature)
        pulls.append(weight * curvature @ top)
        model = model.blend(x, curvature @ (x - top), curvature, 1e12)
        x = model.after(x)
    pooled = np.linalg.solve(sum(curvatures), sum(pulls))
    np.testing.assert_allclose(x, pooled, atol=1e-9)


def test_a_step_goes_uphill_where_the_likelihood_curves_upwards_and_not_too_far():
    model = Quadratic.empty(2).blend(np.zeros(2), np.array([0.1, 1e6]), np.diag([1.0, -1.0]), 1e12)
    step = model.after(np.zeros(2))
    assert step[0] > 0
    assert step[1] == pytest.approx(0.5)


def test_the_answer_is_better_than_the_truth_on_the_clients_that_were_asked():
    cohorts = [MEDIUM.sample(500, rng=i) for i in range(40)]
    everybody = np.concatenate(cohorts)
    stage = settled(cohorts)
    true = Parameters(MEDIUM.weights, MEDIUM.alphas, MEDIUM.sizes)
    assert mean_likelihood(stage.best, everybody) > mean_likelihood(true, everybody)


def test_what_is_asked_stays_within_the_upload():
    cohorts = [MEDIUM.sample(200, rng=i) for i in range(8)]
    trial = problem().trial_cost
    rich, poor = settled(cohorts), settled(cohorts, max_upload=3 * trial)
    poorest = settled(cohorts, max_upload=trial)
    assert [q.curvature for q in rich.queries(50_000)] == [(), (0, 1), ()]
    assert [q.curvature for q in poor.queries(3 * trial)] == [(), ()]
    assert [q.curvature for q in poorest.queries(trial)] == [()]


def test_a_quadratic_model_that_is_clearly_behind_is_not_believed():
    stage = settled([MEDIUM.sample(300, rng=i) for i in range(10)])
    smooth = stage._average.smooth
    stage._leads = [-0.1, -0.11, -0.09, -0.1, -0.12, -0.1]
    np.testing.assert_array_equal(stage.best.alphas, stage._at(smooth).alphas)
    stage._leads = [0.1, 0.11, 0.09, 0.1, 0.12, 0.1]
    np.testing.assert_array_equal(stage.best.alphas, stage._at(stage._bold).alphas)


def test_a_quadratic_model_that_loses_a_component_begins_anew():
    stage = settled([MEDIUM.sample(300, rng=i) for i in range(10)])
    lost = stage._bold.reshape(2, -1)
    lost[1, -1] -= 10.0  # log of its weight
    cohort = MEDIUM.sample(300, rng=99)
    stage.learn([answer(q, cohort) for q in stage.queries(50_000)])
    assert stage._quadratic.n_cohorts == 0
    np.testing.assert_allclose(stage._at(stage._bold).alphas, stage._average.parameters.alphas)
    assert not stage._believes_bold
