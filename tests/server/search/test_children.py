"""Children of a leader: what they are made of, when they are compared, and what they may cost."""

import numpy as np
import pytest
from polyurn.server.search.children import Children
from polyurn.server.search.recombination import niche

from polyurn import LocalAggregator, SizeBins, Sizes, fit
from polyurn.model.paper_truths import truth
from polyurn.server.em.problem import Problem
from polyurn.server.search.climber import Point, Track
from polyurn.wire import Parameters

BINS = SizeBins([1, 5, 21])
LEADER = Parameters(
    np.array([0.6, 0.39, 0.01]),
    np.array([[2.0, 3.0, 4.0], [0.5, 0.5, 0.2], [9.0, 1.0, 1.0]]),
    Sizes(BINS, [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]),
)
PROBLEM = Problem(3, 3, BINS, False, 1.0, 1e-3)
ROOM = 50_000


def track(value, *, youth=0, n_rounds=1):
    """A track whose best point is the leader's parameters, after some rounds."""
    begun = Track.begin(LEADER, youth=youth)
    x = begun.trials[0]
    still = Point(x, value, np.zeros(len(x)), LEADER.sizes, x, LEADER.sizes.masses)
    for _ in range(n_rounds):
        begun.learn([still], None)
    return begun


def children(*young, most_niches=24, tol=1e-3):
    numbers = iter(range(1_000))
    made = Children(
        PROBLEM, tol=tol, new_number=lambda: next(numbers), most_niches=most_niches,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    made.young = list(young)
    return made


@pytest.mark.parametrize("seed", range(20))
def test_a_niche_is_a_small_component_in_the_place_of_one(seed):
    made = niche(LEADER, rng=np.random.default_rng(seed))
    changed = (made.alphas != LEADER.alphas).any(axis=1)
    assert changed.sum() == 1
    assert made.weights[changed] == pytest.approx([0.02])
    assert made.weights.sum() == pytest.approx(1.0)
    assert (made.alphas > 0).all()
    kept = made.weights[~changed] / made.weights[~changed].sum()
    np.testing.assert_allclose(kept, LEADER.weights[~changed] / LEADER.weights[~changed].sum())


def test_a_niche_mostly_takes_the_place_of_the_smallest_component():
    rng = np.random.default_rng(0)
    goes = [
        (niche(LEADER, rng=rng).alphas != LEADER.alphas).any(axis=1).argmax() for _ in range(99)
    ]
    assert np.mean(np.array(goes) == 2) > 0.8


def test_no_client_becomes_impossible_in_a_niche():
    for seed in range(30):
        masses = niche(LEADER, rng=np.random.default_rng(seed)).sizes.masses
        assert (masses.max(axis=0) > 0).all()


def test_children_stand_among_the_others_when_they_are_grown_or_lead():
    old, young, ahead = (
        track(-3.0, youth=3, n_rounds=3),
        track(-3.0, youth=3, n_rounds=2),
        track(-1.0, youth=6, n_rounds=2),
    )
    brood = children(old, young, ahead)
    assert brood.leave(-2.0) == [old, ahead]
    assert brood.young == [young]
    assert brood.n_vain == 0  # one of them leads


def test_a_generation_that_brings_nothing_is_in_vain():
    brood = children(*(track(-3.0, youth=3, n_rounds=3) for _ in range(4)))
    assert not brood.may_end(2)
    assert len(brood.leave(-2.0)) == 4
    assert brood.n_vain == 1
    assert brood.leave(-2.0) == []
    assert brood.n_vain == 1


def test_nobody_waits_for_niches_alone():
    assert children(track(-3.0, youth=6, n_rounds=2)).may_end(1)
    assert not children(track(-3.0, youth=3, n_rounds=2)).may_end(2)
    assert children(track(-3.0, youth=3, n_rounds=2)).may_end(1)


def test_new_children_begin_when_there_are_none_and_cost_what_is_said():
    brood = children()
    parents = [track(-1.0), track(-2.0)]
    cost = brood.plan(parents, ROOM, n_crossed=8, niches=True)
    kinds = [t.youth for t in brood.young]
    assert kinds == [3] * 8 + [6] * 24
    assert all(bool(t.curved) == (t.youth == 6) for t in brood.young)
    assert len({t.number for t in brood.young}) == 32
    assert sum(map(asked, brood.young)) <= cost <= ROOM
    for t in brood.young:
        t.learn([track(-3.0).best], None)
    assert brood.plan(parents, ROOM, n_crossed=8, niches=True) == cost
    assert len(brood.young) == 32


def asked(one):
    trials = len(one.trials) * PROBLEM.trial_cost
    return trials + PROBLEM.newton_cost(len(one.curved)) * bool(one.curved)


@pytest.mark.parametrize("room", [-10, 0, 300, 1_000, 3_000])
def test_children_for_whom_there_is_no_room_any_more_are_gone(room):
    brood = children()
    parents = [track(-1.0), track(-2.0)]
    brood.plan(parents, ROOM, n_crossed=8, niches=True)
    for t in brood.young:
        t.learn([track(-3.0).best], None)
    cost = brood.plan(parents, room, n_crossed=0, niches=False)
    assert cost <= max(0, room)
    assert sum(map(asked, brood.young)) <= cost


def test_niches_are_looked_into_where_tops_are_close_together():
    """Truth low/3: many components of few clients are tops within a thousandth of each other."""
    counts = truth("low/3").sample(2_000, rng=3)
    more = {"n_components": 3, "n_categories": 10, "max_size": 20, "sizes": "shared", "rng": 3}
    done = fit(LocalAggregator(counts, rng=0), **more)
    assert done.converged
    assert max(r.n_numbers for r in done.rounds) <= ROOM
    sent = [r.n_numbers for r in done.rounds]
    assert max(sent) > 0.6 * ROOM  # without niches about a third
