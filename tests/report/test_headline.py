"""The verdict at the top of a page."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyurn as pu
from polyurn.comparison.estimates import Estimate
from polyurn.model.paper_truths import truth
from polyurn.report.headline import headline
from polyurn.report.model_section import components_section, distinctive_rows
from polyurn.report.population_section import populations_section
from polyurn.report.sweep_section import sweep_section
from polyurn.wording import capital
from report_material import comparison, gathered, runs, selection, styled, true_clients


def test_the_three_numbers_are_those_of_the_comparison_and_the_sweep():
    said = headline(gathered(comparison=comparison(), runs=runs()))
    alpha, ratio, off = (number.value for number in said.numbers)
    assert alpha == f"α ≈ {comparison().heterogeneity.alpha.value:.2f}"
    assert ratio == f"{comparison()['mdm'].energy_ratio:.2f}×"
    verdict = pu.compare_sweeps(runs())
    assert off == f"{100 * verdict['mdm'].difference.value:.1f} pts off"
    assert all(number.known for number in said.numbers)
    training = said.numbers[2]
    assert training.label == "What training on them predicts"
    assert verdict.pair_sentence("iid", "mdm") in said.sentence
    assert "oracle" not in training.means


def test_the_headline_is_one_sentence_whatever_there_is():
    for things in ({"comparison": comparison(), "runs": runs()}, {"runs": runs()}, styled()):
        said = headline(gathered(**things)).sentence
        assert re.findall(r"\. ", said) == []
        assert said.endswith(".")
    assert said == "40% of the variance among points of the same label lies between clients."


def test_the_sections_say_their_verdict_first():
    material = gathered(selection().mdm, comparison=comparison(), clients={"true": true_clients()})
    verdict = comparison().verdict
    assert populations_section(material).lead.startswith(f"{capital(verdict)}. ")
    lead, rows = (
        components_section(material).lead,
        distinctive_rows(material.mdm, list("0123456789")),
    )
    assert f"They differ most in {rows[0]['category']}, " in lead


def test_without_iid_runs_the_headline_says_what_is_promised():
    said = headline(gathered(runs=runs(populations=("true", "mdm"))))
    assert said.sentence.startswith("mdm clients are off by ")  # the errors have both signs
    assert said.numbers[2].known


def test_one_seed_is_not_enough_for_the_headline_to_tell_who_is_nearer():
    alone = headline(gathered(runs=runs(seeds=(0,)))).sentence
    assert alone.startswith("It cannot be told which of mdm and IID clients are nearer")


def test_it_is_not_the_clients_who_cannot_tell():
    said = headline(gathered(comparison=comparison(), runs=runs(seeds=(0,)))).sentence
    assert said.startswith("Clients are ")
    assert "; it cannot be told which of mdm and IID clients are nearer" in said


def test_the_noise_floor_alone_is_no_verdict_on_simulated_clients():
    said = headline(gathered(runs=runs(populations=("true", "again"))))
    assert not said.numbers[2].known
    whole = headline(gathered(runs=runs(populations=("true", "again", "mdm", "iid"))))
    assert "The true clients trained again differ by" in whole.numbers[2].means


def test_the_card_about_training_does_not_say_what_the_section_under_it_says():
    material = gathered(runs=runs())
    lead, means = sweep_section(material).lead, headline(material).numbers[2].means
    assert material.verdict.sentence() in lead
    assert material.verdict.regret_sentence() in lead
    assert not any(sentence in lead for sentence in means.rstrip(".").split(". "))


def test_a_loss_is_told_without_points():
    number = headline(gathered(runs=runs(), metric="loss")).numbers[2]
    assert number.value.endswith(" off")
    assert "points" not in number.means


@pytest.mark.parametrize("name", ["mdm", "iid"])
def test_the_population_of_the_verdict_is_mdm_or_else_the_closest(name):
    measured = comparison()
    renamed = [replace(row, name=name if row.name == "mdm" else "other") for row in measured.rows]
    assert replace(measured, rows=tuple(renamed)).simulated.name == name


def test_what_was_not_measured_says_how_to():
    said = headline(gathered(selection().mdm))
    assert [number.known for number in said.numbers] == [True, False, False]
    assert all("Not measured: polyurn" in number.means for number in said.numbers[1:])
    assert said.sentence.startswith("Clients are ")


def test_true_clients_are_measured_where_there_is_no_comparison():
    said = headline(gathered(clients={"true": true_clients()}))
    assert said.numbers[0].known
    assert "True clients are" in said.numbers[0].means


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        (math.inf, "almost alike"),
        (3.0, "mildly different"),
        (0.7, "clearly different"),
        (0.1, "very different"),
        (math.nan, "too small to tell"),
    ],
)
def test_how_different_clients_are_is_said_in_words(alpha, words):
    measured = comparison()
    found = replace(measured.heterogeneity.alpha, value=alpha)
    summary = replace(measured.heterogeneity, alpha=found)
    said = headline(gathered(comparison=replace(measured, heterogeneity=summary)))
    assert words in said.sentence


def test_few_held_out_clients_show_in_the_pages_words():
    few = replace(comparison(), n_clients=12, n_compared=12)
    close = replace(few.rows[0], name="mdm", energy_ratio=1.0, energy_null=(0.5, 1.9))
    inside = headline(gathered(comparison=replace(few, rows=(close,)))).sentence
    assert "; whether simulated clients (mdm) are like true ones cannot be told" in inside
    assert "12 true clients are few: intervals are wide" in inside
    assert "cannot be told from true ones" not in inside
    far = replace(close, energy_ratio=5.0)
    outside = headline(gathered(comparison=replace(few, rows=(far,)))).sentence
    assert "5.00 times as far" in outside
    assert "12 true clients are few" in outside
    many = replace(few, n_clients=500, n_compared=500, rows=(close,))
    assert "few" not in headline(gathered(comparison=many)).sentence


@pytest.mark.parametrize(("n", "said"), [(12, True), (60, False)])
def test_few_true_clients_show_without_a_comparison_too(n, said):
    table = truth("medium/3").sample(n, rng=0)
    words = headline(gathered(clients={"true": table})).sentence
    assert ("12 true clients are few" in words) == said


CLOSE = {
    "name": "mdm",
    "energy_ratio": 1.0,
    "energy_null": (0.5, 1.9),
    "auc": Estimate(0.5, 0.46, 0.54),
}
CANNOT = "cannot be told from true ones that were held out"


def compared(n_fitted=0, **changes):
    """A comparison with 500 clients, of whom so many were fitted, and one population."""
    row = replace(comparison().rows[0], **{**CLOSE, **changes})
    return replace(
        comparison(), rows=(row,), n_clients=500, n_compared=500, n_fitted=n_fitted, n_twins=500
    )


def said_of(measured):
    return headline(gathered(comparison=measured)).sentence


def test_all_three_measures_together_say_that_clients_cannot_be_told_apart():
    assert f"; simulated clients (mdm) {CANNOT} (AUC 0.50 ± 0.04)." in said_of(compared())


def test_clients_that_a_classifier_tells_apart_are_not_said_to_be_alike():
    said = said_of(compared(auc=Estimate(0.68, 0.64, 0.72)))
    assert "but a classifier tells them apart (AUC 0.68 ± 0.04)" in said
    assert "cannot be told" not in said


@pytest.mark.parametrize(
    ("n_fitted", "words"),
    [
        (500, "500 of these true ones were fitted"),
        (3, "3 of these"),
        (None, "polyurn cannot tell whether"),
    ],
)
def test_clients_that_may_have_been_fitted_do_not_pass_for_held_out_ones(n_fitted, words):
    said = said_of(compared(n_fitted))
    assert words in said
    assert "cannot be told" not in said
    assert "held out" not in said


def test_without_a_classifier_nobody_is_said_to_be_indistinguishable():
    said = said_of(compared(auc=None))
    assert "no classifier tried" in said
    assert "cannot be told" not in said


@pytest.mark.parametrize(
    "changes", [{"energy_ratio": 0.3}, {"auc": Estimate(0.3, 0.2, 0.4)}], ids=["energy", "AUC"]
)
def test_copies_of_true_clients_do_not_pass_for_simulated_ones(changes):
    said = said_of(compared(**changes))
    assert "more like these true ones than other true ones are" in said
    assert "cannot be told" not in said


def test_an_energy_ratio_outside_its_range_is_not_outweighed_by_a_classifier():
    said = said_of(compared(energy_ratio=2.5))
    assert "2.50 times as far from true ones" in said
    assert "cannot be told" not in said


@given(
    st.sampled_from([None, 0, 7]),
    st.floats(0, 4),
    st.none() | st.floats(0.05, 0.95).map(lambda auc: Estimate(auc, auc - 0.05, auc + 0.05)),
)
def test_the_terminal_never_says_another_verdict_than_the_page(n_fitted, ratio, auc):
    measured = compared(n_fitted, energy_ratio=ratio, auc=auc)
    verdict = measured.sentences()[0]
    assert f"; {verdict}." in said_of(measured)
    alike = n_fitted == 0 and 0.5 <= ratio <= 1.9 and auc and auc.low <= 0.5 <= auc.high
    assert (CANNOT in verdict) == bool(alike)
