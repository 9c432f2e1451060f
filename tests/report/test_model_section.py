"""The sections about a model, and the numbers behind their figures."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyurn as pu
from polyurn import MDM, SizeBins, Sizes, report_on
from polyurn.model.paper_truths import truth
from polyurn.report.model_section import (
    candidate_rows,
    choice_section,
    components_section,
    distinctive_rows,
    path_rows,
    profile_rows,
    size_curves,
    summary_rows,
)
from polyurn.report.population_section import size_rows
from polyurn.server.fit_results import Fit, Round
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Provenance
from polyurn.typed.json_form import from_json, to_json
from report_material import fitted, gathered, runs, selection
from strategies import mdms


@pytest.mark.parametrize("n", [3, 20, 40, 90])
def test_the_heat_map_names_every_category_that_it_draws(n, tmp_path):
    alphas = np.random.default_rng(0).gamma(0.3, size=(3, n)) + 0.01
    mdm = MDM([0.5, 0.3, 0.2], alphas, Sizes.constant(30, n_components=3))
    names = [f"category {j:02d}" for j in range(n)]
    figure = report_on(mdm, categories=names)["profiles"]
    figure.save(tmp_path / "profiles.svg")
    drawn = {row["category"] for row in profile_rows(mdm, names)}
    named = set(re.findall(r">(category \d\d)<", (tmp_path / "profiles.svg").read_text()))
    assert named == drawn
    assert len(drawn) == min(n, 64)
    assert (f"The 64 most frequent of {n}" in figure.says) == (n > 64)


@given(mdms())
def test_the_shares_of_every_component_sum_to_one(mdm):
    rows = profile_rows(mdm, [str(j) for j in range(mdm.n_categories)])
    for k in range(mdm.n_components):
        mine = [row["share"] for row in rows if row["component"] == str(k + 1)]
        assert sum(mine) == pytest.approx(1.0)


@given(mdms())
def test_weights_are_those_of_the_model_and_sizes_end_at_one(mdm):
    rows = summary_rows(mdm, [str(j) for j in range(mdm.n_categories)])
    assert [row["weight"].value for row in rows] == mdm.weights.tolist()
    curve = size_rows("component", size_curves(mdm))
    for k in {row["component"] for row in curve}:
        shares = [row["share"] for row in curve if row["component"] == k]
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)


def one_component(sizes):
    return MDM([1.0], [[1.0, 1.0]], sizes)


def test_clients_who_all_hold_20_points_jump_at_20_and_not_at_the_end_of_the_bin():
    bins = SizeBins([1, 19, 23, 40], fine=[1, 19, 20, 21, 23, 40], shares=[1, 0, 1, 0, 1])
    rows = size_rows("k", size_curves(one_component(Sizes(bins, [[0.0, 1.0, 0.0]]))))
    assert rows == [{"k": "1", "size": 20, "share": 0.0}, {"k": "1", "size": 20, "share": 1.0}]


@given(st.integers(0, 2**32 - 1), st.integers(1, 2_000))
def test_few_rows_draw_the_sizes_up_to_one_level_and_large_steps_exactly(seed, max_size):
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(np.full(max_size, 0.3))
    masses[rng.integers(max_size)] += 1.0
    mdm = one_component(Sizes(SizeBins.exact(max_size), [masses / masses.sum()]))
    rows = size_rows("component", size_curves(mdm))
    assert len(rows) <= 101
    true = np.cumsum(mdm.sizes.table()[0])
    drawn = np.zeros(max_size + 1)
    for row in rows:  # a step after each row
        drawn[row["size"] :] = row["share"]
    assert (drawn <= true + 1e-9).all()
    assert (true - drawn <= 1 / 100 + 1e-9).all()
    largest = 1 + int(np.argmax(masses))
    assert drawn[largest] == pytest.approx(true[largest], abs=1e-9)
    assert rows[-1]["share"] == pytest.approx(1.0)


def test_a_category_that_only_one_component_holds_tells_most():
    alphas = [[4.0, 4.0, 0.0], [4.0, 1.0, 3.0]]
    mdm = MDM([0.5, 0.5], alphas, Sizes.constant(5, n_components=2))
    rows = distinctive_rows(mdm, ["both", "mostly", "only"])
    assert rows[0]["category"] == "only"
    parts = {row["category"]: row["part"] for row in rows}
    assert sum(parts.values()) == pytest.approx(1.0)


def test_no_category_is_said_to_tell_apart_what_reads_the_same():
    rest = [1e-4] * 5
    alphas = [[6.0, 3.0, *rest], [3.0, 6.0, *rest], [5.0, 4.0, *rest]]
    mdm = MDM([0.4, 0.3, 0.3], alphas, Sizes.constant(5, n_components=3))
    rows = distinctive_rows(mdm, list("abcdefg"))
    assert {row["category"] for row in rows} == {"a", "b"}


def test_no_category_is_shown_for_components_that_are_not():
    alphas = np.ones((20, 12)) + 5 * np.eye(20, 12)
    alphas[8:, :8] = (
        0.01  # what differs among the later components, which have no place on the page
    )
    alphas[:8, 8:] = 1e-9
    mdm = MDM([0.05] * 20, alphas, Sizes.constant(5, n_components=20))
    rows = distinctive_rows(mdm, list("abcdefghijkl"))
    assert {row["category"] for row in rows} == set("abcdefgh")


def test_nothing_tells_a_single_component_apart():
    assert distinctive_rows(truth("low/1"), [str(j) for j in range(10)]) == []


def test_the_candidates_are_the_selection_s_with_95_percent_intervals():
    rows = candidate_rows(selection())
    for row, candidate in zip(rows, selection().candidates, strict=True):
        found = row["log_likelihood"]
        assert found.value == candidate.log_likelihood
        assert found.high - found.low == pytest.approx(2 * 1.96 * candidate.standard_error)
    assert [row["n_components"] for row in rows if row["chosen"]] == [selection().n_components]


def judged(*starts):
    return [Round(i, None, -5.0, 9, 4, of_round) for i, of_round in enumerate(starts, start=1)]


def test_the_start_that_is_best_in_the_last_round_wins():
    # The first was better, and is gone: those may have been other clients.
    rows = path_rows(judged({1: -9.0, 2: -9.0}, {1: -1.0, 2: -5.0, 3: -6.0}, {2: -4.0, 3: -4.5}))
    assert {row["start"] for row in rows if row["winner"]} == {2}
    assert len(rows) == 7
    assert path_rows([]) == []


def test_a_round_in_which_a_client_was_impossible_is_not_drawn():
    rows = path_rows(judged({1: -math.inf, 2: -math.inf}, {1: -5.0}))
    assert [(row["start"], row["round"]) for row in rows] == [(1, 2)]


def kept(**records):
    return gathered(Saved(selection().mdm, None, Provenance(**records)))


def test_a_fit_shows_its_rounds():
    section = choice_section(gathered(fitted()))
    assert (section.name, [figure.name for figure in section.figures]) == ("rounds", ["paths"])
    rows = section.figures[0].panels[0].spec["datasets"]["rows"]
    best = max(row["log_likelihood"] for row in rows)
    assert best == pytest.approx(fitted().log_likelihoods[-1], abs=1e-6)


def test_a_selection_shows_its_table_and_the_rounds_of_the_chosen_number():
    section = choice_section(gathered(selection()))
    assert section.name == "choice"
    assert [figure.name for figure in section.figures] == ["candidates", "paths"]
    assert f"of K = {selection().n_components};" in section.figures[1].says


def test_what_there_is_no_record_of_is_left_out():
    assert choice_section(gathered(selection().mdm)) is None
    quiet = tuple(replace(one, starts={}) for one in fitted().rounds)
    assert choice_section(kept(fit=replace(fitted(), rounds=quiet))) is None
    quiet = tuple(replace(one, starts={}) for one in selection().rounds)
    without = choice_section(kept(fit=replace(selection(), rounds=quiet)))
    assert [figure.name for figure in without.figures] == ["candidates"]
    assert components_section(gathered(runs=runs())) is None


def test_a_candidate_under_which_a_held_out_client_is_impossible_is_in_the_table_only():
    record = selection()
    never = replace(record.candidates[0], log_likelihood=-math.inf, behind=math.inf)
    choice = replace(record, candidates=(never, *record.candidates[1:]))
    read = from_json(Fit, json.loads(json.dumps(to_json(choice))), parsed={"mdm": choice.mdm})
    assert to_json(read) == to_json(choice)
    figure = choice_section(kept(fit=choice)).figures[0]
    drawn = figure.panels[0].spec["datasets"]["rows"]
    assert [row["n_components"] for row in drawn] == [2]
    assert figure.table.rows[0][1].startswith("-inf")


def test_rounds_that_ended_without_a_word_are_shown():
    section = choice_section(kept(fit=replace(fitted(), stopped="")))
    assert section.name == "rounds"


def test_weights_and_concentrations_have_intervals_where_the_fit_gives_errors():
    fit = pu.fit(truth("medium/2").sample(600, rng=0), n_components=2, rng=0)
    section = components_section(gathered(fit.mdm))
    weights, profiles = section.figures[:2]
    assert re.fullmatch(r"[\d.]+% \([\d.]+% to [\d.]+%\)", weights.table.rows[0][1])
    assert "Lines are 95 % intervals" in weights.says
    assert "within" in json.dumps(profiles.panels[0].spec)
    row = summary_rows(fit.mdm, list("0123456789"))[0]
    assert row["weight"].low < row["weight"].value < row["weight"].high
    plain = components_section(gathered(replace(fit.mdm, covariance=None))).figures[0]
    assert "95 % interval" not in plain.table.caption + plain.says


def test_a_refit_says_whose_numbers_its_components_have():
    mdm = MDM(
        [0.3, 0.7], [[1.0, 2.0], [2.0, 1.0]], Sizes.constant(4, n_components=2), as_given=True
    )
    assert "numbers of the mixture that the fit began at" in components_section(gathered(mdm)).lead
