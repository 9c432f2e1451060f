"""The search when cohorts are samples: earlier cohorts keep counting."""

from dataclasses import replace

import numpy as np
import pytest

from polyurn import LocalAggregator, answer, fit, fit_paper
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.server.fit_settings import DEFAULT, Policy, Settings
from polyurn.server.fitting import populated
from polyurn.server.sampled import Average, Quadratic, Sampled
from polyurn.server.starts import random_groups
from polyurn.wire import Expect, Group, Parameters
from searches import landscape_of, parameters_of, problem_of

MEDIUM = truth("medium/2")
BEGIN = Parameters(MEDIUM.weights, 1.3 * MEDIUM.alphas, MEDIUM.sizes)
COUNTS = MEDIUM.sample(2_400, rng=0)
BOUNDS = {"n_categories": 10, "max_size": 20}


def search_of(counts, k, *, n_ways=8, policy=DEFAULT, **more):
    problem = problem_of(counts, k)
    rng = np.random.default_rng(0)
    groups = random_groups(landscape_of(counts), k, problem.size_bins, n_ways=n_ways, rng=rng)
    return Sampled(problem, groups, Settings(policy=policy, **more))


def learned(search, cohorts):
    return [search.learn([answer(q, cohort) for q in search.queries()]) for cohort in cohorts]


def cohorts_of(n, size, *, mdm=MEDIUM):
    return [mdm.sample(size, rng=i) for i in range(n)]


# ------------------------------------------------------------------------------ the search


def test_starts_are_halved_until_one_is_left_whose_averages_then_count_all_cohorts():
    search = search_of(COUNTS, 2, n_ways=8)
    asked = []
    for cohort in cohorts_of(12, 200):
        asked.append(search.queries())
        search.learn([answer(q, cohort) for q in asked[-1]])
    assert all(isinstance(q, Group) for q in asked[0])
    assert [len(queries) for queries in asked[:7]] == [8, 8, 8, 4, 4, 2, 2]
    assert [q.curvature for q in asked[-1]][:2] == [(), (0, 1)]


def test_a_state_counts_the_clients_of_all_cohorts():
    states = learned(search_of(COUNTS, 2), np.split(COUNTS, 10))
    assert [s.n_clients for s in states] == [240] * 10
    assert [s.n_supporting for s in states] == [240 * i for i in range(1, 11)]
    assert states[0].best is None
    assert all(s.best is not None for s in states[1:])
    assert all(s.n_agreeing is None for s in states)  # nothing was counted


def test_components_are_dropped_by_the_clients_of_all_cohorts():
    last = learned(search_of(COUNTS, 2), np.split(COUNTS[:240], 10))[-1]
    rare = replace(last.best, weights=np.array([0.99, 0.01]))  # a quarter of a client of the last
    assert populated(replace(last, best=rare)).n_components == 2
    assert populated(replace(last, best=rare, n_supporting=24.0)).n_components == 1


def test_an_empty_cohort_changes_nothing():
    search = search_of(COUNTS, 2)
    *_, before = learned(search, np.split(COUNTS, 10))
    asked = search.queries()
    nobody = [q.read(np.zeros(q.n_numbers)) for q in asked]
    assert search.learn(nobody) is before
    assert len(search.queries()) == len(asked)


class Patchy:
    """In every third round nobody joins."""

    def __init__(self, counts, *, seed, nobody=lambda i: i % 3 == 0):
        self.clients, self.nobody = LocalAggregator(counts, rng=seed), nobody
        self.n_rounds = self.n_empty = 0

    def aggregate(self, query, cohort_size):
        self.n_rounds += 1
        if self.nobody(self.n_rounds):
            self.n_empty += 1
            return query.read(np.zeros(query.n_numbers))
        return self.clients.aggregate(query, cohort_size)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_cohorts_that_are_empty_by_chance_say_nothing(k, seed):
    clients = Patchy(COUNTS[:600], seed=seed)
    done = fit(clients, n_components=k, cohort_size=9, max_rounds=25, rng=seed, **BOUNDS)
    assert clients.n_empty == 8
    assert np.isfinite(done.mdm.alphas).all()


def test_too_many_empty_cohorts_are_an_error_that_says_so():
    clients = Patchy(COUNTS, seed=0, nobody=lambda i: i > 1)
    with pytest.raises(ParameterError, match="too many were empty; ask larger cohorts"):
        fit(clients, n_components=2, cohort_size=9, max_rounds=5, rng=0, **BOUNDS)


def test_nobody_to_begin_with_is_said():
    clients = Patchy(COUNTS, seed=0, nobody=lambda i: True)
    with pytest.raises(ParameterError, match="no client answered"):
        fit(clients, n_components=1, cohort_size=2, rng=0, **BOUNDS)


def test_sampled_cohorts_keep_counting():
    mdm = truth("medium/3")
    everyone, fresh = mdm.sample(40_000, rng=0), mdm.sample(20_000, rng=1)
    more = {"n_components": 3, "cohort_size": 1_000, **BOUNDS}
    ours = fit(LocalAggregator(everyone, rng=0), max_rounds=41, tol=1e-9, rng=1, **more)
    paper = fit_paper(LocalAggregator(everyone, rng=0), n_rounds=41, **more)
    truly = mdm.logpmf_given_size(fresh)
    gaps = [(truly - f.mdm.logpmf_given_size(fresh)).mean() for f in (ours, paper)]
    assert gaps[0] < 0.003
    assert gaps[0] < gaps[1] / 3


def test_sampled_cohorts_stop_when_the_noise_is_all_that_is_left():
    counts = truth("medium/1").sample(20_000, rng=0)
    done = fit(
        LocalAggregator(counts, rng=0), n_components=1, cohort_size=1_000, max_rounds=60, tol=5e-3,
        rng=1, **BOUNDS,
    )  # fmt: skip
    assert done.converged
    assert done.n_rounds < 40
    assert done.n_agreeing is None


@pytest.mark.parametrize("n_trials", [1, 2, 3])
def test_samples_never_send_more_than_they_may(n_trials):
    trial = problem_of(COUNTS, 2).trial_cost
    done = fit(
        LocalAggregator(COUNTS, rng=0), n_components=2, cohort_size=300,
        max_upload=n_trials * trial, max_rounds=30, rng=0, **BOUNDS,
    )  # fmt: skip
    assert max(r.n_numbers for r in done.rounds) <= n_trials * trial


def test_one_start_is_enough_to_begin_with():
    done = fit(
        LocalAggregator(COUNTS, rng=0), n_components=2, cohort_size=300, max_rounds=12,
        policy=Policy(starts=1), rng=0, **BOUNDS,
    )  # fmt: skip
    assert np.isfinite(done.log_likelihoods).all()


# ------------------------------------------------------------------------------ the averages


def average_of(cohorts, *, max_upload=50_000, lead=0.0):
    """The averages of some cohorts; `lead` is added to what they say about the quadratic models."""
    first, *others = cohorts
    average = Average(problem(), BEGIN, answer(Expect(BEGIN), first), Settings())
    for cohort in others:
        asked = average.queries(max_upload)
        sums = [answer(q, cohort) for q in asked]
        sums = [
            replace(s, log_likelihood=s.log_likelihood + lead * len(cohort) * bool(q.curvature))
            for q, s in zip(asked, sums, strict=True)
        ]
        average.learn(sums)
    return average


def problem():
    return replace(problem_of(COUNTS, 2), size_bins=MEDIUM.sizes.bins)


def test_the_answer_is_better_than_the_truth_on_the_clients_that_were_asked():
    cohorts = cohorts_of(40, 500)
    everybody, best = np.concatenate(cohorts), average_of(cohorts).best
    learned, true = (p.mdm().logpmf_given_size(everybody) for p in (best, parameters_of(MEDIUM)))
    assert learned.mean() > true.mean()


def test_what_is_asked_stays_within_the_upload():
    cohorts = cohorts_of(8, 200)
    trial = problem().trial_cost
    for most, expected in ((50_000, [(), (0, 1), ()]), (3 * trial, [(), ()]), (trial, [()])):
        asked = average_of(cohorts, max_upload=most).queries(most)
        assert [q.curvature for q in asked] == expected
        assert sum(q.n_numbers for q in asked) <= most


def test_a_quadratic_model_that_is_clearly_behind_is_not_believed():
    cohorts = cohorts_of(12, 300)
    behind, ahead = (average_of(cohorts, lead=lead).best for lead in (-0.1, 0.1))
    without = average_of(cohorts, max_upload=problem().trial_cost).best  # EM's average alone
    np.testing.assert_array_equal(behind.alphas, without.alphas)
    assert (ahead.alphas != without.alphas).any()


def test_a_quadratic_model_that_loses_a_component_begins_anew():
    first, *others = cohorts_of(30, 300)
    average = Average(problem(), BEGIN, answer(Expect(BEGIN), first), Settings())
    n_anew = 0
    for i, cohort in enumerate(others):
        em, newton, *_ = asked = average.queries(50_000)
        assert (newton.parameters.weights >= em.parameters.weights / 4).all()
        same = np.allclose(em.parameters.alphas, newton.parameters.alphas, rtol=1e-12)
        n_anew += i > 0 and same
        sums = [answer(q, cohort) for q in asked]
        every = sums[1].size_counts.sum(axis=0)
        lost = np.stack([every, 0 * every])  # as if the second held nobody
        average.learn([sums[0], replace(sums[1], size_counts=lost), *sums[2:]])
    assert n_anew > 0


def test_quadratic_models_are_pooled_exactly_once_all_count_the_same():
    rng = np.random.default_rng(0)
    model, x, pulls, hessians = Quadratic(3), np.zeros(3), [], []
    for n in range(1, 400):
        root = rng.normal(size=(3, 3))
        hessian, optimum = -root @ root.T - np.eye(3), rng.normal(size=3)
        weight = min(n / 20, 1.0) ** 2
        hessians.append(weight * hessian)
        pulls.append(weight * hessian @ optimum)
        model.add(x, hessian @ (x - optimum), hessian, 1e12, 20)
        x = model.optimum(x)
    pooled = np.linalg.solve(sum(hessians), sum(pulls))
    np.testing.assert_allclose(x, pooled, atol=1e-9)


def test_a_step_goes_uphill_where_the_likelihood_curves_upwards_and_not_too_far():
    model = Quadratic(2)
    model.add(np.zeros(2), np.array([0.1, 1e6]), np.diag([1.0, -1.0]), 1e12, 20)
    step = model.optimum(np.zeros(2))
    assert step[0] > 0
    assert step[1] == pytest.approx(0.5)
