"""Passes over the proxy points, against NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from polyurn.partitioning.styled_kernels import add_moments, effective_sizes, into_boxes, turned

RNG = np.random.default_rng(0)
LOCATED, CODES = RNG.normal(size=(200, 3)), RNG.integers(0, 4, 200)


def test_moments_are_sums_over_the_points_of_a_label():
    sums, products = np.zeros((4, 3)), np.zeros((4, 3, 3))
    add_moments(LOCATED, CODES, sums, products)
    for label in range(4):
        mine = LOCATED[label == CODES]
        assert sums[label] == pytest.approx(mine.sum(axis=0))
        assert products[label] == pytest.approx(mine.T @ mine)


def test_points_are_turned_around_the_centre():
    centre, turn = np.array([0.1, 0.2, 0.3]), RNG.normal(size=(2, 3))
    assert turned(LOCATED, centre, turn) == pytest.approx((LOCATED - centre) @ turn.T, abs=1e-5)


@pytest.mark.parametrize("most", [1, 7, 1_000])
def test_every_point_comes_into_one_box_and_lies_in_it(most):
    points, urn = LOCATED.astype(np.float32), np.arange(200)
    starts, lows, highs = into_boxes(points, urn, np.ones(3), most)
    assert sorted(urn) == list(range(200))
    assert np.array_equal(points, LOCATED[urn].astype(np.float32))
    assert (starts[0], starts[-1]) == (0, 200)
    assert (np.diff(starts) >= 1).all()
    assert (np.diff(starts) <= most).all()
    for box, (begin, end) in enumerate(pairwise(starts)):
        assert np.array_equal(lows[:, box], points[begin:end].min(axis=0))
        assert np.array_equal(highs[:, box], points[begin:end].max(axis=0))


def test_boxes_are_narrower_where_a_unit_counts_more():
    points = LOCATED.astype(np.float32)
    _, lows, highs = into_boxes(points, np.arange(200), np.array([3.0, 1.0, 0.0]), 10)
    widths = (highs - lows).mean(axis=1)
    assert 2 * widths[0] < widths[1] < widths[2] / 2


def test_points_that_are_all_the_same_come_into_boxes_too():
    starts, _, _ = into_boxes(np.zeros((9, 2), np.float32), np.arange(9), np.ones(2), 4)
    assert starts.tolist() == [0, 4, 6, 9]


def test_effective_sizes_are_those_of_density_ratios():
    targets, within = np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 0.5]]), np.array([1.0, 0.3, 0.7])
    out = np.empty(2)
    effective_sizes(targets, within, LOCATED, out)
    for target, found in zip(targets, out, strict=True):
        log_w = -0.5 * ((LOCATED - target) ** 2 / within - LOCATED**2).sum(axis=1)
        weights = np.exp(log_w - log_w.max())
        assert found == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
