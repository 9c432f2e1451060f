"""Distances between populations, against loops and known values."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from polyurn.comparison.distances import (
    Floor,
    directions,
    energy_distance,
    energy_floor,
    energy_null,
    energy_ratio,
    random_halves,
    split_distances,
    wasserstein_distance,
    wasserstein_floor,
    wasserstein_ratio,
)

POINTS = st.integers(2, 12).flatmap(lambda n: arrays(np.float64, (n, 3), elements=st.floats(0, 1)))


def naive_energy(x, y, *, biased):
    def mean(a, b, leave_out=0):
        total = sum(np.linalg.norm(p - q) for p in a for q in b)
        return total / (len(a) * (len(b) - leave_out))

    out = 0 if biased else 1
    return 2 * mean(x, y) - mean(x, x, out) - mean(y, y, out)


@given(POINTS, POINTS)
def test_energy_distance_is_the_naive_double_sum(x, y):
    assert energy_distance(x, y) == pytest.approx(naive_energy(x, y, biased=False), abs=1e-12)


def test_energy_distance_does_not_depend_on_the_blocks(monkeypatch):
    x, y = np.random.default_rng(0).random((2, 30, 4))
    whole = energy_distance(x, y)
    monkeypatch.setattr("polyurn.comparison.distances._BLOCK_CELLS", 70)
    assert energy_distance(x, y) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("m", [6, 7])
def test_the_energy_floor_is_the_mean_over_every_possible_split(m):
    points = np.random.default_rng(m).random((m, 3))
    h = m // 2
    halves = np.array([np.isin(range(m), first) for first in combinations(range(m), h)])
    apart = [naive_energy(points[first], points[~first], biased=True) for first in halves]
    floor = energy_floor(points, halves)
    assert np.mean(apart) / (1 / h + 1 / (m - h)) == pytest.approx(floor.distance / (2 / m))
    ratios = np.sort(apart) / np.mean(apart)
    assert floor.low == pytest.approx(ratios[int(np.ceil(0.025 * len(ratios))) - 1])
    assert floor.high == pytest.approx(ratios[int(np.ceil(0.975 * len(ratios))) - 1])


@given(POINTS, POINTS)
def test_wasserstein_is_scipys_on_each_line(x, y):
    expected = [stats.wasserstein_distance(a, b) for a, b in zip(x.T, y.T, strict=True)]
    assert wasserstein_distance(x, y) == pytest.approx(np.mean(expected), abs=1e-12)


def test_the_wasserstein_floor_is_the_mean_of_its_splits():
    lines = np.random.default_rng(0).random((10, 4))
    halves = random_halves(10, 200, rng=1)
    apart = [wasserstein_distance(lines[first], lines[~first]) for first in halves]
    assert wasserstein_floor(lines, halves).distance == pytest.approx(
        np.mean(apart) * np.sqrt((2 / 10) / (1 / 5 + 1 / 5))
    )


def clients(n, rng):
    """Points with gaps, ties and long tails, as normalised histograms have them."""
    group = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    alphas = np.array([[0.5, 1, 2, 0.1], [5, 5, 5, 5], [0.2, 0.2, 0.2, 9]])[group]
    drawn = rng.gamma(alphas)
    shares = np.array([rng.multinomial(20, p / p.sum()) for p in drawn])
    return shares / 20


@pytest.mark.parametrize(("n", "m"), [(40, 40), (41, 41), (200, 40), (20, 40), (10, 60)])
def test_ratios_are_one_in_the_mean_when_nothing_differs(n, m):
    # 300 pairs of samples; 4 standard errors: false alarms 1 in 16,000 for each seed.
    rng = np.random.default_rng([n, m])
    lines = directions(4, 10, rng=rng)
    ratios = []
    for _ in range(300):
        x, y = clients(n, rng), clients(m, rng)
        halves = random_halves(m, 100, rng=rng)
        energy = energy_ratio(energy_distance(x, y), energy_floor(y, halves), n=n, m=m)
        floor = wasserstein_floor(y @ lines, halves)
        ratios.append([energy, wasserstein_ratio(x @ lines, y @ lines, floor)])
    mean, error = np.mean(ratios, axis=0), np.std(ratios, axis=0) / np.sqrt(300)
    assert (np.abs(mean - 1) < 4 * error).all()


@pytest.mark.parametrize(("n", "m"), [(10, 100), (30, 60), (60, 60), (300, 60)])
def test_the_null_range_of_an_energy_ratio_holds_it_when_nothing_differs(n, m):
    # 300 trials at 95 %: 285 in the mean, and beyond 4 standard errors, 15, once in 16,000 seeds. The
    # range is that of few true clients, so that a little more is allowed for.
    rng = np.random.default_rng([n, m, 1])
    inside, ratios = 0, []
    for _ in range(300):
        x, y = clients(n, rng), clients(m, rng)
        floor = energy_floor(y, random_halves(m, 200, rng=rng))
        ratios.append(energy_ratio(energy_distance(x, y), floor, n=n, m=m))
        low, high = energy_null(y, n=n, n_splits=200, rng=rng)
        inside += low <= ratios[-1] <= high
    assert 264 <= inside <= 298
    assert max(np.abs(ratios)) < 10  # of 10 clients against 100 it was 69 once


def test_ratios_of_a_different_population_do_not_depend_on_how_many_were_simulated():
    rng = np.random.default_rng(0)
    y = clients(60, rng)
    other = rng.dirichlet(np.ones(4) * 3, 6_000)
    halves, lines = random_halves(60, 200, rng=rng), directions(4, 10, rng=rng)
    energy, sliced = energy_floor(y, halves), wasserstein_floor(y @ lines, halves)
    few, many = (
        (
            energy_ratio(energy_distance(x, y), energy, n=len(x), m=60),
            wasserstein_ratio(x @ lines, y @ lines, sliced),
        )
        for x in (other[:600], other[:3000])
    )
    assert few == pytest.approx(many, rel=0.1)
    assert min(many) > 2


def test_half_of_the_clients_is_in_the_first_half_of_each_split():
    halves = random_halves(9, 50, rng=0)
    assert (halves.sum(axis=1) == 4).all()
    assert len(np.unique(halves, axis=0)) > 20


def test_where_true_clients_are_all_the_same_a_ratio_is_one_or_infinite():
    same = np.full((10, 3), 1 / 3)
    halves = random_halves(10, 100, rng=0)
    floor = energy_floor(same, halves)
    assert floor == wasserstein_floor(same, halves) == Floor(0.0, 1.0, 1.0, 100)
    assert energy_ratio(energy_distance(same, same), floor, n=10, m=10) == 1
    assert wasserstein_ratio(same, same, floor) == 1
    assert wasserstein_ratio(same + 0.1, same, floor) == np.inf
    assert energy_ratio(energy_distance(same + 0.1, same), floor, n=10, m=10) == np.inf


@pytest.mark.parametrize("n", [2, 7, 50])
def test_the_distance_of_each_split_is_scipys(n):
    rng = np.random.default_rng(n)
    places = rng.integers(0, 20, n) / 20  # with ties
    splits = rng.permuted(np.arange(n)[:, None] < np.full(30, n // 2), axis=0)
    expected = [stats.wasserstein_distance(places[first], places[~first]) for first in splits.T]
    assert split_distances(places, splits, n_first=n // 2) == pytest.approx(expected, abs=1e-12)
