"""The search when every client is asked in every round, driven by its queries and states alone."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from polyurn import LocalAggregator, Sizes
from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.model.mdm import MDM
from polyurn.model.paper_truths import truth
from polyurn.server.fit_settings import DEFAULT, Policy
from polyurn.server.search import Climber
from polyurn.wire import Batch, Expect, Group, Parameters
from searches import problem_of, race_of, rounds_of, states_of

MEDIUM = truth("medium/3").sample(400, rng=0)
# Three kinds of clients, each with a category of its own and two that they share.
KINDS = MDM(
    np.full(3, 1 / 3),
    30 * np.array([[0.8, 0.01, 0.01, 0.1, 0.08], [0.01, 0.8, 0.01, 0.1, 0.08],
                   [0.01, 0.01, 0.8, 0.1, 0.08]]),
    Sizes.constant(40, n_components=3),
).sample(300, rng=0)  # fmt: skip


def grouping(counts, directions, offsets):
    """Clients join the group with the highest score of their proportions."""
    directions = np.pad(np.array(directions, float), ((0, 0), (0, 2)))
    bins = problem_of(counts, len(offsets)).size_bins
    return Group(directions, np.array(offsets, float), bins)


def even_sizes(counts, k):
    """Bins of which every one is as likely."""
    bins = problem_of(counts, k).size_bins
    return Sizes(bins, np.full((k, bins.n_bins), 1 / bins.n_bins))


# One kind in two groups, told apart by what all share, and the other two kinds in one group.
SPLIT_FIRST = grouping(KINDS, [[1, 0, 0, 1, 0], [1, 0, 0, 0, 1], [0, 1, 1, 0, 0]], [0, 0, 0])
SPLIT_SECOND = grouping(KINDS, [[0, 1, 0, 1, 0], [0, 1, 0, 0, 1], [1, 0, 1, 0, 0]], [0, 0, 0])
APART = grouping(KINDS, [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]], [0, 0, 0])


def test_the_first_round_groups_the_clients_and_the_next_judges_every_start():
    (groups, first), (trials, second), *_ = rounds_of(race_of(MEDIUM, 3), MEDIUM, at_most=2)
    assert len(groups) == len(trials) == len(second.starts) == DEFAULT.starts
    assert all(isinstance(q, Group) for q in groups)
    assert all(isinstance(q, Expect) for q in trials)
    assert first.best is None
    assert not first.starts
    assert (first.n_clients, second.n_clients) == (400, 400)


@pytest.mark.parametrize("name", ["low/3", "medium/3", "high/3"])
def test_no_climber_ever_goes_down_and_the_best_one_leads(name):
    counts = truth(name).sample(300, rng=1)
    judged = [s for s in states_of(race_of(counts, 3), counts) if s.best is not None]
    assert judged[-1].converged
    for before, after in pairwise(judged):
        assert after.value >= before.value
        for number in before.starts.keys() & after.starts.keys():
            assert after.starts[number] >= before.starts[number]
    for state in judged:
        assert state.value == max(state.starts.values())
        assert state.best.mdm().logpmf(counts).mean() == pytest.approx(state.value, abs=1e-9)


def test_every_other_round_half_of_the_starts_leave_until_the_finalists_are_left():
    policy = Policy(recombined=0, met=0.0)  # none leaves because it has met another
    states = states_of(race_of(MEDIUM, 3, policy=policy, tol=1e-9), MEDIUM, at_most=11)[1:]
    assert [len(s.starts) for s in states] == [48, 48, 24, 24, 12, 12, 6, 6, 6, 6]


def test_of_starts_that_meet_only_the_best_goes_on_and_they_are_counted():
    counts = KINDS
    alone = states_of(race_of(counts, 3, groups=[APART]), counts)[-1]
    three = states_of(race_of(counts, 3, groups=[APART] * 3), counts)
    assert alone.n_agreeing == 1
    assert len(three[1].starts) == 3
    assert len(three[2].starts) == 1
    assert three[-1].n_agreeing == 3


def test_two_starts_at_different_optima_do_not_agree():
    policy = Policy(recombined=0)
    last = states_of(race_of(KINDS, 3, groups=[SPLIT_FIRST, APART], policy=policy), KINDS)[-1]
    assert last.converged
    assert last.n_agreeing == 1


@pytest.mark.parametrize("retired", [False, True])
def test_recombination_finds_an_optimum_that_no_start_reaches(retired):
    """Each of two starts has one kind in two components and the two others in one."""
    policy = Policy(halve_every=1, finalists=1) if retired else DEFAULT
    lost = [SPLIT_FIRST, SPLIT_SECOND]
    best, without, recombined = (
        states_of(race_of(KINDS, 3, groups=groups, policy=some), KINDS)
        for groups, some in (
            ([APART], policy), (lost, replace(policy, recombined=0)), (lost, policy)
        )
    )  # fmt: skip
    assert [len(s.starts) for s in without[1:3]] == [2, 1 if retired else 2]
    assert all(path[-1].converged for path in (best, without, recombined))
    assert without[-1].value < best[-1].value - 1.0
    assert recombined[-1].value == pytest.approx(best[-1].value, abs=1e-3)
    assert recombined[-1].n_agreeing == 1  # the child itself: no start came there


def test_children_are_the_leader_with_one_component_of_another_start():
    rounds = rounds_of(race_of(MEDIUM, 3, tol=1e-9), MEDIUM, at_most=9)
    seen = np.concatenate([q.parameters.alphas for asked, _ in rounds[1:] for q in asked])
    for (_, state), (asked, _) in pairwise(rounds):
        if state.best is None:
            continue
        leader = state.best.alphas
        kept = [np.isclose(q.parameters.alphas, leader, rtol=1e-12).all(axis=1) for q in asked]
        children = [q for q, rows in zip(asked, kept, strict=True) if rows.sum() == 2]
        first_trials = [s for _, s in rounds].index(state) >= DEFAULT.recombined_from
        assert len(children) == (DEFAULT.recombined if first_trials else 0)
        for q in children:
            foreign = q.parameters.alphas[~np.isclose(q.parameters.alphas, leader).all(axis=1)]
            assert np.isclose(seen, foreign, rtol=1e-9).all(axis=1).any()


def test_only_the_best_few_are_asked_for_a_hessian():
    for policy in (DEFAULT, Policy(finalists=2)):
        rounds = rounds_of(race_of(MEDIUM, 3, policy=policy), MEDIUM, at_most=8)
        asked = [sum(bool(q.curvature) for q in queries) for queries, _ in rounds[2:]]
        assert max(asked) == policy.finalists


def climb(counts, at, **more):
    """The rounds of a single climber."""
    k = len(at.weights)
    return rounds_of(race_of(counts, k, begin=Climber.begin(at, 1, DEFAULT), **more), counts)


def test_where_the_whole_hessian_does_not_fit_that_of_some_components_is_asked_for():
    mdm = truth("medium/3")
    at = Parameters(mdm.weights, 2 * mdm.alphas, even_sizes(MEDIUM, 3))
    problem, most = problem_of(MEDIUM, 3), 1_000
    steps = (1 + len(DEFAULT.dampings)) * problem.trial_cost
    assert problem.hessian_cost(2) + steps <= most < problem.hessian_cost(3) + steps
    rounds, whole = climb(MEDIUM, at, max_upload=most), climb(MEDIUM, at)
    asked = [q.curvature for queries, _ in rounds for q in queries if q.curvature]
    assert {len(some) for some in asked} == {2}
    assert len(set(asked)) > 1  # of those that promise most, in turn
    assert max(Batch(tuple(queries)).n_numbers for queries, _ in rounds) <= most
    assert rounds[-1][1].converged
    assert rounds[-1][1].value == pytest.approx(whole[-1][1].value, abs=1e-3)


def test_of_starts_that_have_no_budget_for_the_whole_hessian_the_leader_alone_asks_for_some():
    rounds = rounds_of(race_of(MEDIUM, 3, max_upload=1_650), MEDIUM)
    asked = [[q.curvature for q in queries if q.curvature] for queries, _ in rounds[1:]]
    partial = [hessians for hessians in asked if any(len(some) < 3 for some in hessians)]
    assert partial
    assert all(len(hessians) == 1 and len(hessians[0]) == 2 for hessians in partial)


@pytest.mark.parametrize("n_trials", [1, 2, 5, 9, 30])
def test_what_is_asked_stays_within_the_upload_which_may_change_between_rounds(n_trials):
    trial = problem_of(MEDIUM, 3).trial_cost
    race = race_of(MEDIUM, 3, max_upload=n_trials * trial)
    clients = LocalAggregator(MEDIUM)
    for _ in range(8):
        asked = Batch(tuple(race.queries()))
        assert asked.n_numbers <= race.max_upload
        race.max_upload += 3 * trial  # what another search no longer needs
        race.learn(list(clients.aggregate(asked, None).answers))


TWO_KINDS = KINDS[KINDS[:, 2] < 10]
EQUAL = Parameters(
    np.full(2, 0.5), np.tile([8.0, 8.0, 0.2, 2.0, 2.0], (2, 1)), even_sizes(TWO_KINDS, 2)
)


def test_two_components_that_are_nearly_equal_are_left_behind():
    """EM alone takes such a saddle for an optimum, two nats below it."""
    alphas = EQUAL.alphas * (1 + 1e-6 * np.arange(10).reshape(2, 5))
    at = Parameters(EQUAL.weights, alphas, EQUAL.sizes)
    newton = climb(TWO_KINDS, at)[-1][1]
    em = climb(TWO_KINDS, at, max_upload=problem_of(TWO_KINDS, 2).trial_cost)[-1][1]
    assert newton.converged
    assert newton.value > em.value + 1.0
    shares = newton.best.alphas / newton.best.alphas.sum(axis=1, keepdims=True)
    assert np.abs(shares[0] - shares[1]).max() > 0.7


def test_two_components_that_are_equal_are_not_taken_for_convergence():
    states = [state for _, state in climb(TWO_KINDS, EQUAL)][:12]
    assert not any(s.converged for s in states)
    assert states[-1].promise > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_patience_changes_when_it_stops_and_not_where_it_goes(seed):
    counts = truth("medium/2").sample(300, rng=seed)
    hasty, usual, patient = (
        states_of(race_of(counts, 2, patience=p, seed=seed), counts) for p in (0, 3, 6)
    )
    assert len(hasty) <= len(usual) <= len(patient)
    assert all(path[-1].converged for path in (hasty, usual, patient))
    for path in (hasty, usual):
        assert [s.value for s in path[1:]] == [s.value for s in patient[1 : len(path)]]
    # In the rounds that it waits there is no gain.
    assert usual[-1].value - usual[-4].value < 1e-3
    assert patient[-1].value - patient[-7].value < 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_the_round_before_the_last_says_that_the_next_may_be_the_last(seed):
    counts = truth("appendix-a").sample(300, rng=seed)
    states = states_of(race_of(counts, 2, seed=seed), counts)
    assert states[-1].converged
    assert states[-2].nearly_done


def test_a_leader_at_rest_waits_for_starts_that_may_pass_it():
    n_waited = 0
    for seed in range(6):
        counts = truth("appendix-a").sample(300, rng=seed)
        states = states_of(race_of(counts, 2, seed=seed), counts)
        for i, state in enumerate(states[4:], start=4):
            at_rest = state.nearly_done and state.value - states[i - 3].value < 1e-3
            n_waited += at_rest and not state.converged
    assert n_waited > 0


def test_what_is_left_to_gain_is_below_tol_when_it_has_converged():
    states = states_of(race_of(MEDIUM, 3), MEDIUM)
    promises = [s.promise for s in states]
    assert promises[0] == promises[1] == np.inf
    assert states[-1].converged
    assert promises[-1] < 2e-3
    longer = states_of(race_of(MEDIUM, 3, tol=1e-9), MEDIUM, at_most=len(states) + 5)
    assert longer[-1].value - states[-1].value < 1e-3


# ------------------------------------------------------------------------ clients that leave and come

# Eight nodes with their own shares of three kinds of clients; the first is most unlike the others.
NODES = [
    MDM(w, truth("medium/3").alphas, truth("medium/3").sizes).sample(50, rng=i)
    for i, w in enumerate(np.random.default_rng(3).dirichlet(np.ones(3), size=8))
]


def among(places):
    return np.vstack([NODES[i] for i in places])


@cache
def optimum_of(places):
    """The best likelihood of these nodes, and how many rounds a race of theirs takes."""
    counts = among(places)
    value = states_of(race_of(counts, 3, tol=1e-7), counts)[-1].value
    return value, len(rounds_of(race_of(counts, 3), counts))


EVERY = range(8)
CHANGES = {  # who is there at first, for how many rounds then, and in the end
    "leaves": (EVERY, EVERY[1:], 0, EVERY[1:]),
    "comes back": (EVERY, EVERY[1:], 3, EVERY),
    "two leave": (EVERY, EVERY[1:], 2, EVERY[2:]),
    "replaced": (EVERY[:-1], EVERY[1:], 0, EVERY[1:]),  # by a node of as many clients
}


@pytest.mark.parametrize("how", CHANGES)
def test_it_ends_at_the_optimum_of_those_who_are_there_in_whichever_round_a_node_leaves(how):
    first, between, n_between, last = (CHANGES[how][i] for i in range(4))
    best, n_quiet = optimum_of(last)
    for n_before in range(2, 11, 2):
        race = race_of(among(first), 3)
        n_rounds = len(rounds_of(race, among(first), at_most=n_before))
        if n_between:
            n_rounds += len(rounds_of(race, among(between), at_most=n_between))
        states = states_of(race, among(last))
        assert states[0].changed
        assert not any(s.changed for s in states[1:])
        assert states[-1].converged
        assert states[-1].value == pytest.approx(best, abs=1e-4), n_before
        assert n_rounds + len(states) <= max(n_rounds, n_quiet) + 8


def test_clients_in_another_order_are_the_same_clients():
    race, rng = race_of(MEDIUM, 3), np.random.default_rng(0)
    for _ in range(8):
        (state,) = states_of(race, rng.permutation(MEDIUM), at_most=1)
        assert not state.changed


def test_a_leader_at_rest_does_not_wait_anew_for_every_client_that_is_absent_once():
    counts = truth("medium/3").sample(3_000, rng=1)
    quiet = states_of(race_of(counts, 3), counts)
    race, states = race_of(counts, 3), []
    while not states or not states[-1].converged:
        states += states_of(race, np.delete(counts, len(states), axis=0), at_most=1)
        assert len(states) <= len(quiet) + 2
    assert sum(s.changed for s in states) >= len(states) - 3  # but where two are alike
    assert states[-1].value == pytest.approx(quiet[-1].value, abs=0.02)  # of others
    assert states[-1].best.mdm().logpmf(counts).mean() == pytest.approx(quiet[-1].value, abs=1e-3)


def test_a_leader_that_still_climbs_waits_after_a_change():
    race = race_of(among(EVERY), 3)
    rounds_of(race, among(EVERY), at_most=3)
    for state in states_of(race, among(EVERY[1:]), at_most=3):
        assert not state.converged


def test_a_round_without_any_client_is_an_error_that_says_so():
    race = race_of(MEDIUM, 3)
    rounds_of(race, MEDIUM, at_most=3)
    nobody = [q.read(np.zeros(q.n_numbers)) for q in race.queries()]
    with pytest.raises(ParameterError, match="no client answered"):
        race.learn(nobody)


def test_more_components_than_clients_are_refused():
    few = MEDIUM[:3]
    with pytest.raises(ParameterError, match="4 components need at least as many clients"):
        states_of(race_of(few, 4), few)


def test_a_client_that_is_impossible_under_every_start_is_an_error():
    race = race_of(MEDIUM, 2, size_prior=0.0)
    states_of(race, MEDIUM, at_most=1)  # clients of 20 points each
    smaller = np.concatenate([MEDIUM, np.full((1, 10), 1)])
    with pytest.raises(ZeroLikelihoodError, match="probability zero under every start"):
        states_of(race, smaller, at_most=1)


def test_the_same_seed_asks_the_same_to_the_bit():
    one, other = (rounds_of(race_of(MEDIUM, 3, seed=5), MEDIUM) for _ in range(2))
    assert [s.value for _, s in one[1:]] == [s.value for _, s in other[1:]]
    assert [s.starts for _, s in one] == [s.starts for _, s in other]
