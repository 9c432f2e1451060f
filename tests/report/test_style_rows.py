"""A style as rows: what directions carry, what lies along them, and how the pool serves them."""

import numpy as np
import pytest

import polyurn as pu
from polyurn.report.style import (
    MOST_LABELS,
    PARTS,
    PLACES,
    clients_along,
    direction_rows,
    floor_rows,
    forecast_rows,
    loading_rows,
    points_along,
    serving_rows,
    shown_labels,
    worst_served,
)
from report_material import gathered, pool, runs, selection, style, styled


@pytest.fixture(scope="module")
def shown():
    return gathered(selection().mdm, **styled()).style


def test_shares_of_the_directions_are_what_they_carry_and_add_up():
    rows = direction_rows(style())
    carried = [sum(r["share"] for r in rows if r["direction"] == k) for k in ("1", "2")]
    np.testing.assert_allclose(carried, style().carried)
    assert sum(carried) == pytest.approx(1)
    assert [r["share"] for r in rows if r["part"] == PARTS[2]] == [0, 0]


def test_intervals_are_of_95_percent_and_of_no_width_without_errors():
    row = direction_rows(style())[0]
    assert row["error"] == pytest.approx(0.04)
    assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * 0.04)
    bare = direction_rows(style(errors=False))[0]
    assert bare["error"] is None
    assert bare["low"] == bare["high"] == bare["variance"]


def test_a_style_without_differences_carries_nothing():
    space = style().space
    nothing = pu.Style(space, [0, 0], np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2))
    assert {row["share"] for row in direction_rows(nothing)} == {0.0}


def test_the_features_that_were_given_more_variance_move_most_along_a_direction(shown):
    names = [f"column {j}" for j in range(36)]
    first, second = (
        [row for row in loading_rows(style(), names, shown.pool) if row["direction"] == k]
        for k in ("1", "2")
    )
    assert first[0]["feature"] == "column 0"
    assert second[0]["feature"] == "column 1"
    # Of a feature that is nearly all of its direction: one standard deviation for one.
    assert abs(first[0]["moves"]) == pytest.approx(1, abs=0.05)
    raw = loading_rows(style(), names, None)[0]
    assert abs(raw["moves"]) == pytest.approx(np.sqrt(17), rel=0.1)


def test_points_along_a_direction_are_of_one_label_and_lie_in_order(shown):
    points = points_along(shown.pool, 3, 0)
    assert (shown.pool.labels[points] == 3).all()
    places = shown.pool.coordinates[points, 0]
    assert (np.diff(places) >= 0).all()
    assert np.abs(places - PLACES).max() < 1


def test_the_labels_shown_are_frequent_ones():
    material = gathered(**styled(labels=np.r_[np.zeros(500, int), np.arange(400) % 3 + 4])).style
    assert shown_labels(material.pool, 10) == [0, 4, 5, 6]
    assert shown_labels(gathered(**styled()).style.pool, 10) == [0, 1, 2, 3, 4]


def test_clients_along_a_direction_are_ordered_by_the_mean_of_their_points(shown):
    rows = clients_along(shown.styled, shown.pool, 0)
    places = [row["place"] for row in rows]
    assert places == sorted(places)
    assert places[0] < -0.3 < 0.3 < places[-1]
    for row in rows:
        held = shown.styled.clients[row["client"]]
        assert row["place"] == pytest.approx(shown.pool.coordinates[held, 0].mean())
        assert set(row["points"]) <= set(held)
        labels = shown.pool.labels[row["points"]]
        assert (np.diff(labels) >= 0).all()
        assert len(row["points"]) == min(10, len(held))


def test_a_clients_points_are_of_as_many_labels_as_it_has(shown):
    for row in clients_along(shown.styled, shown.pool, 1):
        held = shown.pool.labels[shown.styled.clients[row["client"]]]
        seen = shown.pool.labels[row["points"]]
        assert len(set(seen)) == min(len(set(held)), 10)


def test_serving_rows_are_those_of_the_partition(shown):
    rows = serving_rows(shown.styled, shown.pool, [f"label {j}" for j in range(10)])
    assert sum(row["used"] for row in rows) == shown.styled.report.n_used
    assert all(row["low"] <= row["median"] <= row["available"] + 1e-9 for row in rows)
    held = shown.styled.clients.histograms(shown.pool.labels, 10)
    first = held[held[:, 0] > 0, 0]
    assert rows[0]["asked"] == pytest.approx(first.mean())


def test_of_many_labels_those_that_are_served_worst_are_drawn():
    rows = [{"label": str(j), "asked": 1.0, "low": float((7 * j) % 40)} for j in range(40)]
    rows[3]["low"] = np.nan
    drawn = worst_served(rows)
    assert len(drawn) == MOST_LABELS
    assert max(row["low"] for row in drawn) <= 25
    numbers = [int(row["label"]) for row in drawn]
    assert numbers == sorted(numbers)


def test_the_forecast_is_the_verdicts_in_points():
    verdict = pu.compare_sweeps(runs(populations=("true", "mdm", "style", "again")))
    rows = {row["population"]: row for row in forecast_rows(verdict, {"style"})}
    assert rows["style"]["off"] == pytest.approx(100 * verdict["style"].signed.value)
    assert {name: row["style"] for name, row in rows.items()} == {
        "again": "without style", "mdm": "without style", "style": "with style",
    }  # fmt: skip
    (floor,) = floor_rows(verdict)
    assert floor["high"] == -floor["low"] == pytest.approx(100 * verdict.floor.difference.value)
    assert floor_rows(pu.compare_sweeps(runs(populations=("true", "mdm")))) == []


def test_one_seed_has_no_interval():
    verdict = pu.compare_sweeps(runs(populations=("true", "style"), seeds=(0,)))
    (row,) = forecast_rows(verdict, {"style"})
    assert row["low"] == row["off"] == row["high"]


def test_the_pool_of_the_tests_is_the_one_that_the_space_was_made_of(shown):
    assert shown.pool.features.shape == pool()[0].shape
    np.testing.assert_allclose(shown.pool.coordinates.mean(axis=0), 0, atol=0.05)
