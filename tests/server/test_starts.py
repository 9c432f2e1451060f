"""Where to begin: random groupings, the starts that they make, and children of two starts."""

import numpy as np
import pytest

from polyurn import SizeBins, Sizes, answer
from polyurn.model.paper_truths import truth
from polyurn.server.em import Problem
from polyurn.server.starts import landscape, random_groups, recombine, starts, survey
from polyurn.wire import Parameters, Survey, total

COUNTS = truth("high/3").sample(300, rng=0)
BINS = SizeBins.logarithmic(20)


def land_of(counts, *, pairs=True, sizes=True):
    query = Survey(10, BINS, pairs=pairs)
    return landscape(query, answer(query, counts), sizes=sizes)


def test_clients_have_unit_variance_in_every_direction_of_the_landscape():
    land = land_of(COUNTS)
    query = Survey(10, BINS, pairs=True)
    sums = answer(query, COUNTS)
    lower = np.zeros((12, 12))
    lower[np.tril_indices(12)] = sums.products / sums.n_clients
    covariances = lower + np.tril(lower, -1).T - np.outer(land.mean, land.mean)
    spread = land.directions.T @ covariances @ land.directions
    np.testing.assert_allclose(spread, np.eye(len(spread)), atol=1e-6)


def test_starts_do_not_depend_on_who_holds_whom():
    """Opposite axes are as good as each other, and the order of summation once chose between them."""
    query = survey(10, BINS, max_upload=50_000)
    for seed in range(10):
        counts = truth("medium/3").sample(600, rng=seed)
        shuffled = np.random.default_rng(seed).permutation(counts)
        parts = total([answer(query, some) for some in np.split(shuffled, [100, 450])])
        one, other = (landscape(query, s, sizes=True) for s in (answer(query, counts), parts))
        np.testing.assert_allclose(other.directions, one.directions, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("pairs", [True, False])
def test_without_sizes_no_group_goes_by_how_much_a_client_holds(pairs):
    land = land_of(COUNTS, pairs=pairs, sizes=False)
    groups = random_groups(land, 3, BINS, n_ways=12, rng=np.random.default_rng(0))
    assert all(np.abs(way.directions[:, -1]).max() < 1e-9 for way in groups)


@pytest.mark.parametrize("pairs", [True, False])
def test_every_start_is_a_mixture_that_rules_nothing_out(pairs):
    land = land_of(COUNTS, pairs=pairs)
    rng = np.random.default_rng(0)
    for k in (1, 2, 5):
        for way in random_groups(land, k, BINS, n_ways=20, rng=rng):
            sums = answer(way, COUNTS)
            assert sums.size_counts.sum() == 300
            (start,) = starts([sums], Problem(k, 10, BINS, False, 1.0, 1e-3))
            assert (start.mdm().alphas > 0).all()
            assert np.isfinite(start.mdm().logpmf(COUNTS)).all()


def test_a_start_of_one_group_has_the_proportions_of_all_clients():
    (way,) = random_groups(land_of(COUNTS), 1, BINS, n_ways=1, rng=np.random.default_rng(0))
    (start,) = starts([answer(way, COUNTS)], Problem(1, 10, BINS, False, 1.0, 1e-3))
    proportions = (COUNTS / COUNTS.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(start.alphas[0] / start.alphas.sum(), proportions, atol=1e-3)


def test_clients_that_are_all_alike_can_be_grouped_too():
    counts = np.tile([2, 3, 5, 0, 0, 0, 0, 0, 0, 10], (30, 1))
    groups = random_groups(land_of(counts), 3, BINS, n_ways=5, rng=np.random.default_rng(0))
    for start in starts([answer(g, counts) for g in groups], Problem(3, 10, BINS, True, 1.0, 1e-3)):
        assert np.isfinite(start.mdm().logpmf(counts)).all()


def test_few_ways_to_form_groups_are_of_every_kind():
    land = land_of(COUNTS)
    by_category, cuts, scores, _ = random_groups(
        land, 8, BINS, n_ways=4, rng=np.random.default_rng(0)
    )
    dealt = (by_category.directions > 0)[:, :10]
    assert (dealt.sum(axis=0) == 1).all()  # every category to one group
    assert dealt.any(axis=1).all()  # and none without
    assert np.linalg.matrix_rank(cuts.directions) == 1
    assert np.linalg.matrix_rank(scores.directions) > 1
    more_than_categories = random_groups(land, 12, BINS, n_ways=4, rng=np.random.default_rng(0))
    assert np.linalg.matrix_rank(more_than_categories[1].directions) == 1


LEADER = Parameters(
    np.array([0.6, 0.39, 0.01]),
    np.array([[2.0, 3.0, 4.0], [0.5, 0.5, 0.2], [9.0, 1.0, 1.0]]),
    Sizes(SizeBins([1, 5, 21]), [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]),
)
OTHER = Parameters(
    np.array([0.5, 0.3, 0.2]),
    np.array([[2.1, 3.0, 4.1], [0.5, 0.5, 0.2], [0.01, 0.01, 9.0]]),
    Sizes(SizeBins([1, 5, 21]), [[0.1, 0.9], [0.9, 0.1], [0.4, 0.6]]),
)


@pytest.mark.parametrize("seed", range(20))
def test_a_child_is_the_leader_with_one_component_of_another_start(seed):
    made = recombine(LEADER, OTHER, rng=np.random.default_rng(seed))
    kept = (made.sizes.masses == LEADER.sizes.masses).all(axis=1)
    assert kept.sum() == 2
    np.testing.assert_array_equal(made.alphas[kept], LEADER.alphas[kept])
    (row,) = made.alphas[~kept]
    comes = (OTHER.alphas == row).all(axis=1)
    assert comes.sum() == 1
    np.testing.assert_array_equal(made.sizes.masses[~kept], OTHER.sizes.masses[comes])
    assert made.weights.sum() == pytest.approx(1.0)
    relative = made.weights[~kept] / made.weights[kept]
    np.testing.assert_allclose(relative, OTHER.weights[comes] / LEADER.weights[kept])


def test_a_component_that_the_leader_lacks_comes_rather_than_one_that_it_has():
    rng = np.random.default_rng(0)
    novel = [(recombine(LEADER, OTHER, rng=rng).alphas == [0.01, 0.01, 9.0]).all(axis=1).any()
             for _ in range(99)]  # fmt: skip
    assert np.mean(novel) > 0.9
