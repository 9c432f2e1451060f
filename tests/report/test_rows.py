"""The numbers behind the figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polyurn.report.embedding import joint_plane

from polyurn.model.paper_truths import truth
from polyurn.report.model_rows import profile_rows, size_rows, summary_rows, telling_rows
from polyurn.report.palette import FILLS, TONES, population_looks
from polyurn.report.population_rows import (
    N_COLOURS,
    neighbour_rows,
    population_size_rows,
    strip_categories,
    strip_rows,
)
from polyurn.report.sweep_rows import agreement_rows, varied
from polyurn.report.sweep_rows import profile_rows as metric_rows
from report_material import runs
from strategies import mdms


@given(mdms())
def test_the_shares_of_every_component_sum_to_one(mdm):
    rows = profile_rows(mdm, [str(j) for j in range(mdm.n_categories)])
    for k in range(mdm.n_components):
        mine = [row["share"] for row in rows if row["component"] == str(k + 1)]
        assert sum(mine) == pytest.approx(1.0)


@given(mdms())
def test_weights_are_those_of_the_model_and_sizes_end_at_one(mdm):
    rows = summary_rows(mdm, [str(j) for j in range(mdm.n_categories)])
    assert [row["weight"] for row in rows] == mdm.weights.tolist()
    curve = size_rows(mdm)
    for k in {row["component"] for row in curve}:
        shares = [row["share"] for row in curve if row["component"] == k]
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)


def test_a_category_that_only_one_component_holds_tells_most():
    from polyurn import MDM, Sizes

    alphas = [[4.0, 4.0, 0.0], [4.0, 1.0, 3.0]]
    mdm = MDM([0.5, 0.5], alphas, Sizes.constant(5, n_components=2))
    rows = telling_rows(mdm, ["both", "mostly", "only"])
    assert rows[0]["category"] == "only"
    parts = {row["category"]: row["part"] for row in rows}
    assert sum(parts.values()) == pytest.approx(1.0)


def test_nothing_tells_a_single_component_apart():
    assert telling_rows(truth("low/1"), [str(j) for j in range(10)]) == []


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
    rows = population_size_rows(counts)
    assert [row["size"] for row in rows if row["share"] == 0.5] == [6]


def test_neighbours_of_mixed_populations_are_mixed():
    rng = np.random.default_rng(0)
    places = {name: rng.normal(size=(200, 2)) for name in ("a", "b")}
    shares = [row["share"] for row in neighbour_rows(places)]
    assert np.abs(np.array(shares) - 0.5).max() < 0.05


def test_clients_of_one_kind_stay_together_in_the_plane():
    kinds = {
        "left": np.tile([20, 1, 1], (30, 1)) + np.arange(30)[:, None] % 3,
        "right": np.tile([1, 1, 20], (30, 1)) + np.arange(30)[:, None] % 3,
    }
    rows = neighbour_rows(joint_plane(kinds, rng=0))
    own = [row["share"] for row in rows if row["population"] == row["neighbour"]]
    assert min(own) > 0.95


def test_the_curve_of_a_setting_is_the_best_over_the_others():
    rows = metric_rows(runs(seeds=(0,)), "local_learning_rate", metric="accuracy")
    true = {row["value"]: row["metric"] for row in rows if row["population"] == "true"}
    assert true[0.1] == pytest.approx(0.9 - 0.002)
    assert varied(runs()) == {"local_epochs": [1, 4], "local_learning_rate": [0.01, 0.1, 1.0]}


def test_agreement_pairs_the_same_settings():
    rows = agreement_rows(runs(populations=("true", "copy")), true="true", metric="accuracy")
    same = agreement_rows(
        runs(populations=("true",)) + [_as(r, "copy") for r in runs(populations=("true",))],
        true="true",
        metric="accuracy",
    )
    assert len(rows) == len(same) == 6
    assert all(row["simulated"] == row["true"] for row in same)


def _as(run, population):
    from dataclasses import replace

    return replace(run, population=population)


def test_known_populations_have_the_same_colour_on_every_page():
    assert population_looks(["iid", "true"])["iid"] == population_looks(["mdm", "iid"])["iid"]
    looks = population_looks(["true", "mdm", "iid", "oracle", "a", "b", "c", "d", "e"])
    assert len({look.tone for look in looks.values()}) == 9
    assert looks["true"].dash != ()


def test_the_style_sheet_has_the_colours_of_the_palette():
    from importlib.resources import files

    style = files("polyurn.report").joinpath("style.css").read_text()
    for name, colours in (("tone", TONES), ("fill", FILLS)):
        for i, colour in enumerate(colours):
            assert f"--{name}-{i}: {colour};" in style


def test_where_scores_are_negative_a_diverged_run_is_below_all_others():
    some = runs(seeds=(0,))
    below = [replace(r, final={"accuracy": r.final["accuracy"] - 1.0}) for r in some]
    below[0] = replace(below[0], final={"accuracy": None}, diverged_at=1)
    settings = below[0].settings.to_record()
    rows = agreement_rows(below, true="true", metric="accuracy")
    named = f"local_epochs {settings['local_epochs']}, "
    mine = [r for r in rows if r["settings"].startswith(named)]
    assert min(min(r["true"], r["simulated"]) for r in mine) < min(
        r.final["accuracy"] for r in below[1:]
    )
