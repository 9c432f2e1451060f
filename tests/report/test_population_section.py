"""The numbers behind the figures of populations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.report.population_section import (
    MEASURES,
    N_COLOURS,
    distance_rows,
    floor_rows,
    joint_plane,
    population_sizes,
    strip_categories,
    strip_rows,
)
from report_material import comparison


@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_a_strip_is_a_whole_client(seed, n_categories):
    rng = np.random.default_rng(seed)
    counts = {"a": rng.poisson(0.7, size=(9, n_categories)) + np.eye(9, n_categories, dtype=int)}
    counts["a"][:, 0] += 1
    rows = strip_rows(counts, [f"c{j}" for j in range(n_categories)], rng=rng)
    for client in range(1, 10):
        mine = [row["share"] for row in rows if row["client"] == client]
        assert sum(mine) == pytest.approx(1.0, abs=0.01)
    shown = strip_categories(rows)
    assert len(shown) <= N_COLOURS + 1
    assert "other" not in shown[:-1]


def test_the_curve_of_sizes_goes_through_the_median():
    counts = {"a": np.diag(np.arange(1, 12))}
    figure = population_sizes(counts)
    rows = figure.panels[0].spec["datasets"]["rows"]
    assert min(row["size"] for row in rows if row["share"] >= 0.5) == 6
    assert (rows[0]["size"], rows[0]["share"], rows[-1]["share"]) == (1, 0.0, 1.0)
    assert figure.table.rows == (("a", "2", "3", "6", "9", "10", "6.0"),)


def test_clients_of_one_kind_stay_together_in_the_plane():
    kinds = {
        "left": np.tile([20, 1, 1], (30, 1)) + np.arange(30)[:, None] % 3,
        "right": np.tile([1, 1, 20], (30, 1)) + np.arange(30)[:, None] % 3,
    }
    left, right = joint_plane(kinds, rng=0).values()
    apart = np.linalg.norm(left[:, None] - right[None], axis=2).min()
    assert apart > np.linalg.norm(left[:, None] - left[None], axis=2).max() / 4


def test_only_finite_distances_and_floors_are_drawn():
    ones = {"energy_ratio": 1.0, "sliced_wasserstein_ratio": 1.0, "size_ratio": 1.0}
    measured = replace(comparison(), rows=tuple(replace(r, **ones) for r in comparison().rows))
    assert len(distance_rows(measured)) == 6
    floors = (measured.floors.sliced_wasserstein, measured.floors.sizes)
    lows = [*(row.energy_null[0] for row in measured.rows), *(floor.low for floor in floors)]
    assert [row["low"] for row in floor_rows(measured)] == lows
    endless = replace(measured.rows[0], energy_ratio=math.inf, size_ratio=math.nan)
    floors = replace(measured.floors, sizes=replace(measured.floors.sizes, high=math.inf))
    damaged = replace(measured, rows=(endless, *measured.rows[1:]), floors=floors)
    drawn = [(row["population"], row["measure"]) for row in distance_rows(damaged)]
    assert len(drawn) == 4
    assert ("mdm", "content (energy)") not in drawn
    assert [row["measure"] for row in floor_rows(damaged)] == [MEASURES[0], *MEASURES[:2]]
