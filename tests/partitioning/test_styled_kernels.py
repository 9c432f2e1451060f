"""Draws by rejection from cells, against the distribution that they stand for."""

from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from polyurn.partitioning.styled_kernels import draw_styled, into_boxes

POINTS = np.random.default_rng(0).normal(size=(7, 2))


def drawn(points, needs, *, target, within, most, factor=1.0, spread=None, rng=0):
    """What clients who ask for so many points each are given, in the order of the draws."""
    points, needs = np.asarray(points, float), np.asarray(needs)
    n, m = points.shape
    sorted_points, urn = points.astype(np.float32), np.arange(n)
    boxes = into_boxes(sorted_points, urn, np.ones(m), most)
    assert np.array_equal(sorted_points, points[urn].astype(np.float32))
    places = np.cumsum(needs) - needs
    indices = np.empty(needs.sum(), np.int64)
    draw_styled(
        places, needs, np.tile(np.asarray(target, float), (len(needs), 1)),
        np.zeros((m, m)) if spread is None else spread, np.asarray(within), sorted_points, *boxes,
        urn, factor, indices, np.random.default_rng(rng),
    )  # fmt: skip
    assert np.array_equal(sorted_points, points[urn].astype(np.float32))
    return np.split(indices, np.cumsum(needs)[:-1])


def log_weights(points, target, within):
    target, within = np.asarray(target), np.asarray(within)
    ratio = stats.norm(target, np.sqrt(within)).logpdf(points) - stats.norm.logpdf(points)
    return ratio.sum(axis=1)


def one_after_the_other(weights, n):
    """The probability of each set of n points, if they are drawn in turn: Plackett (1975)."""
    found = defaultdict(float)
    for sequence in permutations(range(len(weights)), n):
        left, chance = weights.sum(), 1.0
        for point in sequence:
            chance *= weights[point] / left
            left -= weights[point]
        found[tuple(sorted(sequence))] += chance
    return found


# The last two find no cell that suits: nearly every point is drawn by Gumbel noise.
@pytest.mark.parametrize(
    ("target", "within", "most"),
    [
        ([0.5, -0.2], [0.5, 0.8], 2),
        ([1.0, 1.0], [0.2, 0.9], 3),
        ([0.0, 0.3], [1.0, 1.0], 4),
        ([9.0, -9.0], [0.9, 0.9], 7),
        ([1.5, 3.0], [0.2, 0.2], 7),
    ],
)
def test_sets_of_points_have_the_probabilities_of_draws_one_after_the_other(target, within, most):
    n_clients = 60_000
    given = drawn(POINTS, [3] * n_clients, target=target, within=within, most=most)
    weights = np.exp(log_weights(POINTS, target, within))
    expected = one_after_the_other(weights / weights.sum(), 3)
    sets, seen = np.unique(np.sort(given, axis=1), axis=0, return_counts=True)
    seen = dict(zip(map(tuple, sets.tolist()), seen.tolist(), strict=True))
    # Cells that are expected less than five times are counted together. False alarm: 0.1 % each.
    often = [s for s, chance in expected.items() if chance * n_clients >= 5]
    rest = 1 - sum(expected[s] for s in often)
    observed = [seen.get(s, 0) for s in often]
    assert n_clients - sum(observed) <= 5 + 3 * rest * n_clients
    chances = np.array([expected[s] for s in often])
    assert stats.chisquare(observed, chances / chances.sum() * sum(observed)).pvalue > 0.001


def test_a_point_that_was_given_is_less_likely_by_the_factor():
    # Two clients, a point each, of three that weigh the same: the same one again with 0.3 / 2.3.
    points, n = np.zeros((3, 1)), 4_000
    again = 0
    for seed in range(n):
        first, second = drawn(
            points, [1, 1], target=[0.0], within=[1.0], most=3, factor=0.3, rng=seed
        )
        again += int(first[0] == second[0])
    assert stats.binomtest(again, n, 0.3 / 2.3).pvalue > 0.001


def test_points_are_given_evenly_although_some_are_preferred():
    points = np.random.default_rng(1).normal(size=(40, 2))
    given = drawn(points, [4] * 5_000, target=[0.5, 0.5], within=[0.5, 0.5], most=2, factor=0.3)
    uses = np.bincount(np.concatenate(given), minlength=40)
    # log w of the points differ by 11, so uses by about 11 / -log 0.3 = 9, of 500 each.
    assert uses.sum() == 20_000
    assert np.ptp(uses) < 30


def test_with_factor_zero_no_point_is_given_again_before_all_others():
    points = np.random.default_rng(1).normal(size=(23, 2))
    needs = np.random.default_rng(2).integers(1, 9, 60)
    given = drawn(points, needs, target=[1.5, -1.0], within=[0.3, 0.4], most=4, factor=0.0)
    uses = np.zeros(23, int)
    for mine in given:
        assert len(set(mine.tolist())) == len(mine)
        uses[mine] += 1
    assert np.ptp(uses) <= 2  # a client that takes the last ones begins the next turn


def test_a_client_that_asks_for_more_than_there_are_has_all_of_them():
    given = drawn(POINTS, [17, 7], target=[1.0, 0.0], within=[0.4, 0.6], most=2, factor=0.3)
    assert np.bincount(given[0]).min() == 2
    assert sorted(given[1].tolist()) == list(range(7))


def test_what_belongs_to_client_and_label_is_spread():
    points = np.random.default_rng(3).normal(size=(20_000, 1))
    given = drawn(
        points, [5] * 3_000, target=[0.0], within=[0.4], most=50, spread=np.array([[0.6**0.5]])
    )
    means = np.array([points[mine].mean() for mine in given])
    assert means.var() == pytest.approx(0.6 + 0.4 / 5, rel=0.1)


def test_who_takes_all_that_were_given_least_often_goes_on_with_the_others():
    first, second = drawn(POINTS, [4, 5], target=[0, 0], within=[1.0, 1.0], most=7, factor=0.0)
    assert len(set(second)) == 5
    assert set(first) | set(second) == set(range(7))  # the three that were left, and two again
