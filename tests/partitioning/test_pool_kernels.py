"""Passes over the proxy points, against NumPy."""

import numpy as np
import pytest

from polyurn.partitioning.pool_kernels import add_moments, effective_sizes, into_cells

RNG = np.random.default_rng(0)
LOCATED, CODES = RNG.normal(size=(200, 3)), RNG.integers(0, 4, 200)


def test_moments_are_sums_over_the_points_of_a_label():
    sums, products = np.zeros((4, 3)), np.zeros((4, 3, 3))
    add_moments(LOCATED, CODES, sums, products)
    for label in range(4):
        mine = LOCATED[label == CODES]
        assert sums[label] == pytest.approx(mine.sum(axis=0))
        assert products[label] == pytest.approx(mine.T @ mine)


def test_points_come_into_the_cell_whose_bins_they_are_in():
    urn = np.flatnonzero(CODES == 2)
    centre, turn = np.array([0.1, 0.2, 0.3]), RNG.normal(size=(2, 3))
    bins, edges = np.array([3, 2]), np.array([[-0.5, 0.5], [0.0, 0.0]], np.float32)
    lows, highs = np.empty((2, 2, 3))
    starts, points = np.zeros(7, np.int64), np.empty((len(urn), 2), np.float32)
    named = np.empty(len(urn), np.int64)
    into_cells(LOCATED, urn, centre, turn, bins, edges, lows, highs, starts, points, named)
    assert sorted(named) == urn.tolist()
    assert points == pytest.approx((LOCATED[named] - centre) @ turn.T, abs=1e-5)
    assert starts[-1] == len(urn)
    for cell in range(6):
        for d, k in enumerate(divmod(cell, 2)):
            mine = points[starts[cell] : starts[cell + 1], d]
            assert (mine >= lows[d, k]).all()
            assert (mine <= highs[d, k]).all()


def test_effective_sizes_are_those_of_density_ratios():
    targets, within = np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 0.5]]), np.array([1.0, 0.3, 0.7])
    out = np.empty(2)
    effective_sizes(targets, within, LOCATED, out)
    for target, found in zip(targets, out, strict=True):
        log_w = -0.5 * ((LOCATED - target) ** 2 / within - LOCATED**2).sum(axis=1)
        weights = np.exp(log_w - log_w.max())
        assert found == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
