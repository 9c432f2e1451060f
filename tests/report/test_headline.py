"""The verdict at the top of a page."""

import math
from dataclasses import replace

import pytest

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.report.headline import headline, simulated_row
from report_material import comparison, gathered, runs, selection, true_clients


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
    assert verdict.sentence(about=["mdm", "iid"]) in training.means
    assert training.means.endswith(verdict.regret_sentence(about=["mdm", "iid"]))
    assert verdict.pair_sentence("iid", "mdm") in said.sentence
    assert "oracle" not in training.means


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
    assert ", and it cannot be told which of mdm and IID clients are nearer" in said


def test_the_noise_floor_alone_is_no_verdict_on_simulated_clients():
    said = headline(gathered(runs=runs(populations=("true", "again"))))
    assert not said.numbers[2].known
    whole = headline(gathered(runs=runs(populations=("true", "again", "mdm", "iid"))))
    assert "the true clients trained again differ by" in whole.numbers[2].means


def test_a_loss_is_told_without_points():
    number = headline(gathered(runs=runs(), metric="loss")).numbers[2]
    assert number.value.endswith(" off")
    assert "points" not in number.means


@pytest.mark.parametrize("name", ["mdm", "iid"])
def test_the_population_of_the_verdict_is_mdm_or_else_the_closest(name):
    measured = comparison()
    renamed = [replace(row, name=name if row.name == "mdm" else "other") for row in measured.rows]
    assert simulated_row(replace(measured, rows=tuple(renamed))).name == name


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
    assert "whether simulated ones are like true ones cannot be told" in inside
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
