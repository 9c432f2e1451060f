"""The section about styles, in words, charts and pictures, and the rows behind it."""

import re

import numpy as np
import pytest

import polyurn as pu
from polyurn.report.style_section import (
    MOST_LABELS,
    PARTS,
    POSITIONS,
    clients_along,
    direction_rows,
    loading_rows,
    points_along,
    serving_rows,
    shown_labels,
    style_section,
    worst_served,
)
from polyurn.storage.models import Saved
from report_material import gathered, pool, runs, selection, style, styled

FLAT = pool()[0].reshape(900, -1)


def section(model=None, **given):
    return style_section(gathered(model, **given))


def figures(found):
    return {figure.name: figure for figure in found.figures}


def test_a_page_without_a_style_has_no_such_section():
    assert section(selection().mdm) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"style": style()}, []),
        ({"style": Saved(style(), features=tuple(f"c{j}" for j in range(36)))}, ["features"]),
        (styled(features=FLAT), ["features"]),
        (styled(), ["along"]),
        ({**styled(), "model": selection().mdm}, ["along", "clients", "served"]),
        ({**styled(features=FLAT), "model": selection().mdm}, ["features", "served"]),
    ],
    ids=[
        "style",
        "names",
        "columns",
        "images",
        "all",
        "served columns",
    ],
)
def test_figures_appear_only_for_what_there_is(given, expected):
    assert [*figures(section(**given))] == [
        "style-directions", *(f"style-{name}" for name in expected),
    ]  # fmt: skip


def test_the_lead_says_what_lies_between_clients_and_what_of_it_is_shared():
    lead = section(style=style()).lead
    assert "40% lies between clients, in 2 directions." in lead
    assert "62% of that is a style that all labels of a client share" in lead


def test_the_table_of_directions_has_shares_and_intervals():
    table = figures(section(style=style()))["style-directions"].table
    assert table.rows[0] == (
        "1: 75%", "0.000 (-0.098 to 0.098)", "0.400 (0.322 to 0.478)", "0.200 (0.161 to 0.239)",
        "0.400 (0.322 to 0.478)",
    )  # fmt: skip
    bare = figures(section(style=style(errors=False)))["style-directions"]
    assert bare.table.rows[0][2] == "0.400"
    assert "intervals" not in bare.says


def test_the_alarm_is_the_first_fact():
    calm, far = (section(style=style(mean=mean)).facts[0] for mean in (0.0, 1.0))
    assert calm[0] == far[0] == "Alarm"
    assert calm[1].startswith("None: ")
    assert far[1].startswith("The clients' mean style is not the proxy data's")
    assert far[1].endswith("take proxy data that are more like the clients.")


def test_far_points_are_said_where_they_are_known():
    known = dict(section(style=style(far_share=0.02)).facts)["Mean style of the clients"]
    assert "2.0% of the clients’ points lie beyond" in known
    unknown = dict(section(style=style(far_share=float("nan"))).facts)
    assert unknown["Mean style of the clients"] == "0.00 standard deviations from the proxy data’s."


def test_how_much_of_the_style_follows_the_labels_is_said_where_it_was_asked():
    assert "Labels and style" not in dict(section(style=style()).facts)
    one = style()
    tie = np.zeros((10, 2))
    tie[0, 0] = 1.0  # u is moved by 1 times the share of label 0
    tied = pu.Style(
        one.space, one.mean, one.shared, one.by_label, one.within, label_effect=tie,
        label_shares=np.full(10, 0.1), label_covariance=0.2 * np.eye(10),
    )  # fmt: skip
    said = dict(section(style=tied).facts)["Labels and style"]
    assert said == "40% of the shared style follows a client’s label shares."  # 0.2 of 0.4 + 0.1


def test_distinct_points_and_how_the_pool_serves_are_said():
    material = gathered(selection().mdm, **styled())
    facts = dict(style_section(material).facts)
    report = material.style.styled.report
    assert f"{report.n_used:,} of them distinct" in facts["Simulated clients"]
    assert "300 clients were drawn with this style" in facts["Simulated clients"]
    assert facts["How the proxy data serve them"].endswith(".")
    rows = figures(style_section(material))["style-served"].table.rows
    assert sum(int(row[5].replace(",", "")) for row in rows) == report.n_used


def test_a_pool_that_is_too_small_is_said_and_is_no_warning():
    features, labels = pool()
    given = styled(features=features[:60], labels=labels[:60])
    facts = dict(section(selection().mdm, **given).facts)
    assert "use more proxy data, or smaller clients" in facts["How the proxy data serve them"]


def test_each_direction_has_a_row_of_pictures_for_each_of_some_labels():
    figure = figures(section(**styled()))["style-along"]
    assert len(figure.pictures) == 2
    for k, block in enumerate(figure.pictures, start=1):
        assert block.marks == ("−2", "", "−1", "", "0", "", "+1", "", "+2")
        assert [one.name for one in block.strips] == ["0", "1", "2", "3", "4"]
        for one in block.strips:
            assert one.says == f"Points of label {one.name} from −2 to +2 along direction {k}"
            assert one.source.startswith("data:image/png;base64,")
    assert figure.table.head[2:] == (
        "−2.0", "−1.5", "−1.0", "−0.5", "0", "+0.5", "+1.0", "+1.5", "+2.0",
    )  # fmt: skip
    assert len(figure.table.rows) == 2 * 5


def test_simulated_clients_are_pictured_from_one_end_to_the_other():
    figure = figures(section(selection().mdm, **styled()))["style-clients"]
    for k, block in enumerate(figure.pictures, start=1):
        assert [re.split(r" of |:", one.says)[0] for one in block.strips] == [
            "A simulated client at the low end", "A simulated client in the middle",
            "A simulated client at the high end",
        ]  # fmt: skip
        assert all(f"direction {k}: labels " in one.says for one in block.strips)
    ends = ["at the low end", "in the middle", "at the high end"]
    assert [row[1] for row in figure.table.rows] == ends * 2


def test_features_are_called_by_their_names_and_their_unit_is_said():
    names = tuple(f"c{j}" for j in range(36))
    alone = figures(section(style=Saved(style(), features=names)))["style-features"]
    assert alone.table.rows[0][:2] == ("1", "c0")
    assert "in its own unit" in alone.says
    beside = figures(section(**styled(features=FLAT)))["style-features"]
    assert beside.table.rows[0][1] == "feature 0"
    assert "in standard deviations of the feature" in beside.says
    assert [panel.title for panel in beside.panels] == [
        "direction 1: 75% of the differences", "direction 2: 25% of the differences",
    ]  # fmt: skip


def forecast(*populations, styled=("style",)):
    some = runs(populations=populations, styled=styled)
    return dict(section(style=style(), runs=some).facts).get("Forecast with and without style")


def test_the_forecast_holds_style_against_the_same_clients_without():
    said = forecast("true", "mdm", "style", "iid", "again")
    assert said.startswith(
        "In training, mdm clients are nearer to the true ones than style clients by"
    )


@pytest.mark.parametrize(
    "populations", [("true", "mdm", "iid"), ("true", "style"), ("mdm", "style"), ()]
)
def test_no_forecast_is_said_where_there_are_not_both(populations):
    assert forecast(*populations) is None
    assert forecast("true", "mdm", "style", styled=("mdm", "style")) is None


def test_a_label_that_nobody_asks_for_has_no_row():
    counts = np.zeros((20, 10), int)
    counts[:, :3] = 4
    figure = figures(section(**styled(clients={"true": counts})))["style-served"]
    assert [row[0] for row in figure.table.rows] == ["0", "1", "2"]


@pytest.fixture(scope="module")
def shown():
    return gathered(selection().mdm, **styled()).style


def test_each_direction_is_named_with_what_it_carries():
    (panel,) = figures(section(style=style()))["style-directions"].panels
    rows = panel.spec["datasets"]["rows"]
    assert [(row["direction"], row["part"]) for row in rows] == [
        (name, part) for name in ("1: 75%", "2: 25%") for part in PARTS
    ]


def test_intervals_are_of_95_percent_and_missing_without_errors():
    part = next(iter(PARTS))
    shared = direction_rows(style())[0][part]
    assert shared.high - shared.low == pytest.approx(2 * 1.96 * 0.04)
    assert np.isnan(direction_rows(style(errors=False))[0][part].low)


def test_a_style_without_differences_carries_nothing():
    space = style().space
    nothing = pu.Style(space, [0, 0], np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2))
    assert [row["direction"] for row in direction_rows(nothing)] == ["1: 0%", "2: 0%"]


def test_the_features_that_were_given_more_variance_move_most_along_a_direction(shown):
    names = [f"column {j}" for j in range(36)]
    first, second = (
        [row for row in loading_rows(style(), names, shown.proxy) if row["direction"] == k]
        for k in ("1", "2")
    )
    assert first[0]["feature"] == "column 0"
    assert second[0]["feature"] == "column 1"
    # Of a feature that is nearly all of its direction: one standard deviation for one.
    assert abs(first[0]["moves"]) == pytest.approx(1, abs=0.05)
    raw = loading_rows(style(), names, None)[0]
    assert abs(raw["moves"]) == pytest.approx(np.sqrt(17), rel=0.1)


def test_points_along_a_direction_are_of_one_label_and_lie_in_order(shown):
    points = points_along(shown.proxy, 3, 0)
    assert (shown.proxy.labels[points] == 3).all()
    places = shown.proxy.coordinates[points, 0]
    assert (np.diff(places) >= 0).all()
    assert np.abs(places - POSITIONS).max() < 1


def test_the_labels_shown_are_frequent_ones():
    material = gathered(**styled(labels=np.r_[np.zeros(500, int), np.arange(400) % 3 + 4])).style
    assert shown_labels(material.proxy, 10) == [0, 4, 5, 6]
    assert shown_labels(gathered(**styled()).style.proxy, 10) == [0, 1, 2, 3, 4]


def test_clients_along_a_direction_are_ordered_by_the_mean_of_their_points(shown):
    rows = clients_along(shown.styled, shown.proxy, 0)
    positions = [row["position"] for row in rows]
    assert positions == sorted(positions)
    assert positions[0] < -0.3 < 0.3 < positions[-1]
    for row in rows:
        held = shown.styled.clients[row["client"]]
        assert row["position"] == pytest.approx(shown.proxy.coordinates[held, 0].mean())
        assert set(row["points"]) <= set(held)
        labels = shown.proxy.labels[row["points"]]
        assert (np.diff(labels) >= 0).all()
        assert len(row["points"]) == min(10, len(held))


def test_a_clients_points_are_of_as_many_labels_as_it_has(shown):
    for row in clients_along(shown.styled, shown.proxy, 1):
        held = shown.proxy.labels[shown.styled.clients[row["client"]]]
        seen = shown.proxy.labels[row["points"]]
        assert len(set(seen)) == min(len(set(held)), 10)


def test_serving_rows_are_those_of_the_partition(shown):
    rows = serving_rows(shown.styled, shown.proxy, [f"label {j}" for j in range(10)])
    assert sum(row["used"] for row in rows) == shown.styled.report.n_used
    assert all(row["low"] <= row["median"] <= row["available"] + 1e-9 for row in rows)
    held = shown.styled.clients.histograms(shown.proxy.labels, 10)
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


def test_the_pool_of_the_tests_is_the_one_that_the_space_was_made_of(shown):
    assert shown.proxy.features.shape == pool()[0].shape
    np.testing.assert_allclose(shown.proxy.coordinates.mean(axis=0), 0, atol=0.05)
