"""The default method: many starts in the same rounds."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn import MDM, LocalAggregator, SizeBins, Sizes, answer, fit, fit_paper
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.server.em.parameters import from_x, gradient, hessian, to_x
from polyurn.server.em.problem import Problem
from polyurn.server.fit import populated
from polyurn.server.search.climber import Point, Track
from polyurn.server.search.race import Search
from polyurn.server.search.starts import landscape, random_groups, starts, survey
from polyurn.wire import Batch, Expect, Parameters, Survey, total


def run(counts, k, **more):
    counts = np.asarray(counts)
    bounds = {"n_categories": counts.shape[1], "max_size": int(counts.sum(axis=1).max())}
    return fit(LocalAggregator(counts, rng=0), n_components=k, rng=1, **{**bounds, **more})


@pytest.mark.parametrize("name", ["low/1", "medium/3", "high/3", "appendix-a"])
def test_a_handful_of_rounds_beat_the_truth_on_its_own_clients(name):
    mdm = truth(name)
    counts = mdm.sample(2_000, rng=5)
    done = run(counts, mdm.n_components)
    assert done.converged
    assert done.n_rounds <= 20
    learned, true = done.mdm.logpmf_given_size(counts), mdm.logpmf_given_size(counts)
    assert 0 <= learned.mean() - true.mean() < 4 * mdm.n_parameters / (2 * 2_000)


@pytest.mark.parametrize("seed", range(2))
def test_it_ends_no_lower_than_a_thousand_rounds_of_the_paper_do(seed):
    counts = truth("high/3").sample(1_000, rng=seed)
    ours = run(counts, 3, sizes="shared")
    paper = fit_paper(LocalAggregator(counts, rng=0), n_components=3, n_categories=10,
                      max_size=int(counts.sum(axis=1).max()), n_rounds=1_001)  # fmt: skip
    given_size = [f.mdm.logpmf_given_size(counts).mean() for f in (ours, paper)]
    assert given_size[0] >= given_size[1] - 1e-3


@given(st.integers(0, 2**32), st.integers(1, 4))
@settings(max_examples=6)
def test_the_likelihood_path_never_falls_and_ends_at_the_best_start_or_above(seed, k):
    counts = truth("medium/2").sample(150, rng=seed)
    done = run(counts, k, max_rounds=15)
    assert (np.diff(done.log_likelihoods) >= 0).all()
    first = next(r for r in done.rounds if r.starts)
    assert done.log_likelihoods[-1] >= max(first.starts.values())
    got = done.mdm.logpmf(counts).mean()
    assert got == pytest.approx(done.log_likelihoods[-1], abs=2e-2 if done.n_dropped else 1e-9)


class Shards:
    """Clients split between several aggregators, each of which sums its own."""

    def __init__(self, tables):
        self.parts = [LocalAggregator(t) for t in tables]

    def aggregate(self, query, cohort_size):
        return total([p.aggregate(query, None) for p in self.parts])


def test_the_result_does_not_depend_on_client_order_or_on_who_holds_whom():
    counts = truth("medium/3").sample(600, rng=3)
    order = np.random.default_rng(0).permutation(600)
    shuffled = counts[order]
    bounds = {"n_components": 3, "n_categories": 10, "max_size": 20, "rng": 1}
    whole = fit(LocalAggregator(counts), **bounds)
    parts = fit(Shards([shuffled[:100], shuffled[100:450], shuffled[450:]]), **bounds)
    assert whole.n_rounds == parts.n_rounds
    # Sums differ in their last digits, and two nearly equal trials may change places for it.
    assert whole.log_likelihoods[-1] == pytest.approx(parts.log_likelihoods[-1], abs=1e-7)
    np.testing.assert_allclose(whole.mdm.alphas, parts.mdm.alphas, rtol=1e-2)
    np.testing.assert_allclose(whole.mdm.weights, parts.mdm.weights, rtol=1e-2)


def test_starts_do_not_depend_on_who_holds_whom():
    """Opposite axes are as good as each other, and the order of summation once chose between them."""
    query = survey(10, 20, max_upload=50_000)
    for seed in range(10):
        counts = truth("medium/3").sample(600, rng=seed)
        shuffled = np.random.default_rng(seed).permutation(counts)
        parts = total([answer(query, some) for some in np.split(shuffled, [100, 450])])
        one, other = (landscape(query, s, sizes=True) for s in (answer(query, counts), parts))
        np.testing.assert_allclose(other.directions, one.directions, rtol=1e-6, atol=1e-6)


def test_the_same_seed_gives_the_same_fit_to_the_bit():
    counts = truth("medium/2").sample(300, rng=0)
    assert run(counts, 2).mdm == run(counts, 2).mdm


def test_slope_and_curvature_are_those_of_the_likelihood():
    mdm = truth("medium/2")
    counts = mdm.sample(600, rng=0)  # more than are multiplied at once
    sums = answer(Expect(Parameters(mdm.weights, mdm.alphas, mdm.sizes), curvature=(0, 1)), counts)
    x = to_x(Parameters(mdm.weights, mdm.alphas, mdm.sizes))

    def slope(at):
        logs = at.reshape(2, 11)
        tau = np.exp(logs[:, 10]) / np.exp(logs[:, 10]).sum()
        parameters = Parameters(tau, np.exp(logs[:, :10]), mdm.sizes)
        return gradient(parameters, answer(Expect(parameters), counts))

    def value(at):
        logs = at.reshape(2, 11)
        tau = np.exp(logs[:, 10]) / np.exp(logs[:, 10]).sum()
        return MDM(tau, np.exp(logs[:, :10]), mdm.sizes).logpmf(counts).mean()

    h, unit = 1e-5, np.eye(22)
    numeric = [(value(x + h * e) - value(x - h * e)) / (2 * h) for e in unit]
    np.testing.assert_allclose(slope(x), numeric, atol=1e-7)
    second = np.array([(slope(x + h * e) - slope(x - h * e)) / (2 * h) for e in unit])
    np.testing.assert_allclose(hessian(sums), second, atol=1e-7)


def test_curvature_of_some_components_is_a_block_of_the_whole():
    mdm = truth("medium/3")
    parameters = Parameters(mdm.weights, mdm.alphas, mdm.sizes)
    counts = mdm.sample(700, rng=0)
    whole, some = (
        hessian(answer(Expect(parameters, curvature=asked), counts))
        for asked in ((0, 1, 2), (0, 2))
    )
    block = np.r_[0:11, 22:33]
    np.testing.assert_allclose(some, whole[np.ix_(block, block)], rtol=1e-10, atol=1e-10)


def test_with_little_room_the_leader_alone_sends_the_curvature_of_some_components():
    counts = truth("medium/3").sample(400, rng=0)
    asked = []

    class Watched(LocalAggregator):
        def aggregate(self, query, cohort_size=None):
            batch = [q for q in getattr(query, "queries", ()) if isinstance(q, Expect)]
            asked.append([q.curvature for q in batch if q.curvature])
            return super().aggregate(query, cohort_size)

    # Three components take 33 * 34 / 2 = 561 numbers for their curvature, two 253.
    done = fit(
        Watched(counts, rng=0), n_components=3, n_categories=10, max_size=20, max_upload=1900, rng=0
    )
    assert max(len(batch) for batch in asked) == 1
    assert {len(some) for batch in asked for some in batch} == {2}
    assert max(r.n_numbers for r in done.rounds) <= 1900
    assert done.converged


def test_more_components_than_the_data_support_are_dropped_or_harmless():
    counts = np.repeat([[9, 1, 0], [0, 1, 9]], 20, axis=0)
    done = run(counts, 6)
    assert done.mdm.n_components + done.n_dropped == 6
    assert (done.mdm.weights * 40 >= 0.5).all()
    assert np.isfinite(done.mdm.logpmf(counts)).all()


def test_concentrations_at_the_cap_are_reported_as_multinomial():
    counts = np.tile([10, 20, 30], (50, 1))
    done = run(counts, 1)
    assert done.multinomial == (0,)


def test_sizes_tell_components_apart_unless_they_are_shared():
    """Small clients that say little about their kind, but whose size does."""
    rng = np.random.default_rng(0)
    small, large = rng.multinomial(3, [0.2, 0.8], 400), rng.multinomial(60, [0.8, 0.2], 400)
    counts = np.concatenate([small, large])
    binned, shared = run(counts, 2), run(counts, 2, sizes="shared")
    assert sorted(binned.mdm.sizes.mean().round(-1).tolist()) == [0.0, 60.0]
    np.testing.assert_allclose(*shared.mdm.sizes.masses, rtol=1e-12)


def test_a_held_out_client_is_never_impossible():
    bins = SizeBins.logarithmic(300)
    base = truth("high/1")
    mdm = MDM(base.weights, base.alphas, Sizes(bins, np.full((1, bins.n_bins), 1 / bins.n_bins)))
    done = run(mdm.sample(40, rng=0), 3, max_size=300)
    assert np.isfinite(done.mdm.logpmf(mdm.sample(2_000, rng=1))).all()


def test_sampled_cohorts_keep_counting():
    mdm = truth("medium/3")
    everyone = mdm.sample(40_000, rng=0)
    fresh = mdm.sample(20_000, rng=1)
    ours = run(everyone, 3, cohort_size=1_000, max_rounds=41, tol=1e-9)
    paper = fit_paper(LocalAggregator(everyone, rng=0), n_components=3, n_categories=10,
                      max_size=20, cohort_size=1_000, n_rounds=41)  # fmt: skip
    truly = mdm.logpmf_given_size(fresh)
    gaps = [(truly - f.mdm.logpmf_given_size(fresh)).mean() for f in (ours, paper)]
    assert gaps[0] < 0.003
    assert gaps[0] < gaps[1] / 3


def test_sampled_cohorts_stop_when_the_noise_is_all_that_is_left():
    counts = truth("medium/1").sample(20_000, rng=0)
    done = run(counts, 1, cohort_size=1_000, max_rounds=60, tol=5e-3)
    assert done.converged
    assert done.n_rounds < 40


def test_a_client_never_sends_more_than_it_may():
    counts = truth("medium/3").sample(300, rng=0)
    for most in (500, 3_000, 50_000):
        done = run(counts, 3, max_upload=most, max_rounds=12)
        assert max(r.n_numbers for r in done.rounds) <= most


def test_more_components_than_an_upload_has_room_for_are_refused():
    with pytest.raises(ParameterError, match="raise max_upload or take fewer components"):
        run(truth("medium/3").sample(300, rng=0), 3, max_upload=100, max_rounds=12)


def test_stopping_early_is_said_with_advice():
    done = run(truth("medium/3").sample(300, rng=0), 3, max_rounds=5)
    assert not done.converged
    assert "max_rounds=5" in done.stopped
    assert "allow more rounds" in done.stopped


@pytest.mark.parametrize("pairs", [True, False])
def test_every_start_is_a_mixture_that_rules_nothing_out(pairs):
    counts = truth("high/3").sample(200, rng=0)
    query = Survey(10, 20, pairs=pairs)
    land = landscape(query, answer(query, counts), sizes=True)
    rng = np.random.default_rng(0)
    bins = SizeBins.logarithmic(20)
    for k in (1, 2, 5):
        for way in random_groups(land, k, bins, n_ways=20, rng=rng):
            sums = answer(way, counts)
            assert sums.size_counts.sum() == 200
            (start,) = starts([sums], Problem(k, 10, bins, False, 1.0, 1e-3))
            assert (start.mdm().alphas > 0).all()


def test_the_survey_asks_for_covariances_only_where_they_fit():
    assert survey(10, 20, max_upload=50_000).pairs
    assert not survey(1_000, 20, max_upload=50_000).pairs


def test_the_search_needs_a_category_prior():
    with pytest.raises(ParameterError, match="category_prior"):
        run([[1, 2], [2, 1]], 1, category_prior=0.0)


@pytest.mark.parametrize("n_trials", [2, 3, 5, 9])
def test_with_hardly_any_room_a_fit_still_ends(n_trials):
    counts = truth("medium/2").sample(500, rng=0)
    bins = SizeBins.logarithmic(20)
    trial = Problem(2, 10, bins, False, 1.0, 1e-3).trial_cost
    done = fit(
        LocalAggregator(counts, rng=0), n_components=2, n_categories=10, max_size=20,
        max_upload=n_trials * trial, rng=0,
    )  # fmt: skip
    assert done.converged
    assert max(r.n_numbers for r in done.rounds[1:]) <= n_trials * trial


def test_queries_with_different_size_bins_are_answered_each_with_its_own():
    mdm = truth("medium/2")
    counts = mdm.sample(40, rng=0)
    exact = Parameters(mdm.weights, mdm.alphas, mdm.sizes)
    bins = SizeBins.logarithmic(20)
    binned = Parameters(
        mdm.weights, mdm.alphas, Sizes(bins, np.full((2, bins.n_bins), 1 / bins.n_bins))
    )
    together = answer(Batch((Expect(exact), Expect(binned), Expect(exact))), counts).answers
    for asked, found in zip((exact, binned, exact), together, strict=True):
        alone = answer(Expect(asked), counts)
        assert found.log_likelihood == alone.log_likelihood
        np.testing.assert_array_equal(found.size_counts, alone.size_counts)


def test_starts_that_left_lend_components_to_children():
    counts = truth("medium/3").sample(300, rng=0)
    said = answer(survey(10, 20, max_upload=50_000), counts)
    land = landscape(survey(10, 20, max_upload=50_000), said, sizes=False)
    problem = Problem(3, 10, SizeBins.logarithmic(20), True, 1.0, 1e-3)
    search = Search(
        problem, land, sampled=False, max_upload=50_000, tol=1e-3, rng=np.random.default_rng(0)
    )
    for _ in range(6):
        search.learn(list(answer(Batch(tuple(search.queries())), counts, rng=1).answers))
    assert len(search.tracks) == 24
    assert len(search._left) == 48 - 24
    search.tracks = search.tracks[:1]
    leader = search.tracks[0].best_parameters()
    others = np.concatenate([t.best_parameters().alphas for t in search._left])
    children = search._children
    children.young = []
    children.plan(search.tracks + search._left, 50_000, n_crossed=8, niches=False)
    assert len(children.young) == 8
    for track in children.young:
        grown = from_x(track.trials[0], track.shape, track.sizes).alphas
        foreign = [row for row in grown if not np.isclose(leader.alphas, row).all(axis=1).any()]
        assert len(foreign) <= 1
        assert all(np.isclose(others, row).all(axis=1).any() for row in foreign)


def test_few_ways_to_form_groups_are_of_every_kind():
    counts = truth("high/3").sample(300, rng=0)
    query = Survey(10, 20, pairs=True)
    land = landscape(query, answer(query, counts), sizes=True)
    bins = SizeBins.logarithmic(20)
    by_category, cuts, scores, _ = random_groups(
        land, 8, bins, n_ways=4, rng=np.random.default_rng(0)
    )
    dealt = (by_category.directions > 0)[:, :10]
    assert (dealt.sum(axis=0) == 1).all()  # every category to one group
    assert dealt.any(axis=1).all()  # and none without
    assert np.linalg.matrix_rank(cuts.directions) == 1
    assert np.linalg.matrix_rank(scores.directions) > 1
    many = random_groups(
        land, 12, bins, n_ways=4, rng=np.random.default_rng(0)
    )  # more groups than categories
    assert np.linalg.matrix_rank(many[0].directions) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_of_multinomials_converges_at_the_cap(seed):
    rng = np.random.default_rng(seed)
    kinds = [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
    counts = np.concatenate([rng.multinomial(1_000, p, 5) for p in kinds])
    done = fit(
        LocalAggregator(counts, rng=seed), n_components=3, n_categories=3, max_size=1_000, rng=seed
    )
    assert done.converged
    assert done.multinomial


@pytest.mark.parametrize("n_trials", [1, 2, 3])
def test_samples_never_send_more_than_they_may(n_trials):
    counts = truth("medium/2").sample(2_000, rng=0)
    trial = Problem(2, 10, SizeBins.logarithmic(20), False, 1.0, 1e-3).trial_cost
    done = fit(
        LocalAggregator(counts, rng=0), n_components=2, n_categories=10, max_size=20,
        cohort_size=300, max_upload=n_trials * trial, max_rounds=30, rng=0,
    )  # fmt: skip
    assert max(r.n_numbers for r in done.rounds) <= n_trials * trial


def test_components_are_dropped_by_the_clients_of_all_cohorts():
    problem = Problem(2, 10, SizeBins.logarithmic(20), True, 1.0, 1e-3)
    counts = truth("medium/2").sample(240, rng=0)
    query = Survey(10, 20, pairs=True)
    land = landscape(query, answer(query, counts), sizes=False)
    rng = np.random.default_rng(0)
    search = Search(problem, land, sampled=True, max_upload=50_000, tol=1e-3, rng=rng)
    for cohort in np.split(counts, 10):
        search.learn([answer(q, cohort) for q in search.queries()])
    assert (search.n_clients, search.n_supporting) == (24, 240)
    rare = replace(search.best, weights=np.array([0.99, 0.01]))  # a quarter of a client of the last
    assert populated(SimpleNamespace(best=rare, n_supporting=240))[1] == 0
    assert populated(SimpleNamespace(best=rare, n_supporting=24))[1] == 1


class Patchy(LocalAggregator):
    """Now and then nobody joins."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.sizes = []

    def _cohort(self, cohort_size, rng):
        nobody = len(self.sizes) % 3 == 2
        some = np.empty(0, np.uint32) if nobody else rng.choice(self.n_clients, cohort_size)
        self.sizes.append(len(some))
        return some


@pytest.mark.parametrize("seed", range(3))
def test_cohorts_that_are_empty_by_chance_say_nothing(seed):
    counts = truth("medium/1").sample(600, rng=0)
    clients = Patchy(counts, rng=seed)
    done = fit(
        clients, n_components=1, n_categories=10, max_size=20, cohort_size=2, max_rounds=25,
        rng=seed,
    )  # fmt: skip
    assert 0 in clients.sizes
    assert np.isfinite(done.mdm.alphas).all()


def test_nobody_to_begin_with_is_said():
    counts = truth("medium/1").sample(600, rng=0)
    clients = LocalAggregator(counts, rng=0, sampling="poisson")
    clients._cohort = lambda *_: np.empty(0, np.uint32)
    with pytest.raises(ParameterError, match="no client answered"):
        fit(clients, n_components=1, n_categories=10, max_size=20, cohort_size=2, rng=0)


def race(*values, promises=None, n_generations=0):
    """A search whose tracks have these values, and these nats left to gain."""
    counts = truth("medium/2").sample(300, rng=0)
    query = Survey(10, 20, pairs=True)
    land = landscape(query, answer(query, counts), sizes=False)
    problem = Problem(2, 10, SizeBins.logarithmic(20), True, 1.0, 1e-3)
    rng = np.random.default_rng(0)
    search = Search(problem, land, sampled=False, max_upload=50_000, tol=1e-3, rng=rng)
    for value, left in zip(values, promises or [0.0] * len(values), strict=True):
        track = Track([np.zeros(22)], Sizes.constant(20, n_components=2), (2, 10))
        track.best = Point(np.zeros(22), value, np.zeros(22), track.sizes, np.zeros(22), None)
        track.remaining = lambda left=left: left
        search.tracks.append(track)
    search._children.n_vain = n_generations
    return search


def test_close_starts_take_more_rounds_and_more_generations_to_wait_for():
    alone, close = race(-3.0, -3.5), race(-3.0, -3.001)
    assert (alone._calm_rounds, close._calm_rounds) == (3, 5)
    two, four = race(-3.0, -3.001, n_generations=2), race(-3.0, -3.001, n_generations=4)
    assert race(-3.0, -3.5, n_generations=1)._owed
    assert not race(-3.0, -3.5, n_generations=2)._owed
    assert two._owed
    assert not four._owed


def test_a_leader_at_rest_waits_for_starts_that_may_pass_it():
    assert race(-3.0, -3.5)._is_calm
    assert race(-3.0, -3.5, promises=[0.9e-4, 0.4])._is_calm
    assert not race(-3.0, -3.5, promises=[0.9e-4, 0.6])._is_calm
    assert not race(-3.0, -3.5, promises=[1.1e-4, 0.4])._is_calm
