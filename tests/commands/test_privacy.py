"""`polyurn privacy`, and `fit` and `select` with --epsilon: what is declared, spent and stated."""

import pytest

from cli_walk import EXAMPLE, assert_refused
from polyurn.storage.models import load_saved, save
from polyurn.storage.table_files import write_histograms

BOUNDS = ("--categories", 3, "--max-size", 20)
BUDGET = ("--epsilon", 1, "--delta", 1e-6)


@pytest.fixture
def table(run, tmp_path):
    """Three hundred clients of three categories."""
    counts = EXAMPLE.sample(300, rng=0)
    n = counts.shape[1]
    write_histograms(counts, "many.csv")
    return "many.csv", ("--categories", n, "--max-size", EXAMPLE.max_size)


def test_a_private_fit_states_its_guarantee_wherever_it_is_shown(run, table):
    name, bounds = table
    ran = run("fit", name, "--components", 1, *BUDGET, *bounds, "-o", "mdm.json")
    assert ran.code == 0
    assert "(1, 1e-06)-differentially private for one client" in ran.err
    kept = load_saved("mdm.json").provenance
    assert kept.privacy.guarantee.epsilon == pytest.approx(1, abs=1e-6)
    assert "differentially private" in kept.privacy.statement
    assert "differentially private" in " ".join(run("show", "mdm.json").out.split())
    assert run("show", "mdm.json", "--json").json()["privacy"]["guarantee"]["delta"] == 1e-6


def test_a_private_file_does_not_say_how_many_clients_there_were(run, table):
    name, bounds = table
    run("fit", name, "--components", 1, *BUDGET, *bounds, "-o", "mdm.json")
    provenance = load_saved("mdm.json").provenance
    assert provenance.data == name
    assert provenance.fit.n_clients != 300


def test_an_ordinary_fit_says_in_as_many_words_that_there_is_no_guarantee(run, table):
    name, bounds = table
    run("fit", name, "--components", 1, *bounds, "-o", "mdm.json")
    assert load_saved("mdm.json").provenance.privacy.statement.startswith("no guarantee")
    assert "no guarantee" in run("show", "mdm.json").out
    save(EXAMPLE, "own.json")
    assert "no guarantee" in run("show", "own.json").out


def test_a_ledger_refuses_the_second_fit(run, table):
    name, bounds = table
    asked = ("fit", name, "--components", 1, *BUDGET, *bounds, "--ledger", "ledger.jsonl")
    assert run(*asked).code == 0
    assert_refused(run(*asked), "it was not asked")


def test_a_private_choice_states_its_guarantee(run, table):
    name, bounds = table
    ran = run("fit", name, "--components", "1:2", *BUDGET, *bounds, "-o", "mdm.json", "--json")
    assert ran.code == 0
    assert {c["n_components"] for c in ran.json()["candidates"]} == {1, 2}
    assert load_saved("mdm.json").provenance.privacy.guarantee.n_rounds <= 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", 1, *BOUNDS), "expected --delta with --epsilon"),
        (BUDGET, "expected --categories and --max-size"),
        ((*BUDGET, *BOUNDS, "--search", "tol=1"), "--search has no effect with --epsilon"),
        ((*BUDGET, *BOUNDS, "--sizes", "exact"), "binned or shared"),
        (("--delta", 1e-6), "--delta has no effect without --epsilon"),
        ((*BUDGET, *BOUNDS, "--ledger-epsilon", 3), "without --ledger"),
        (("--epsilon", 0, "--delta", 1e-6, *BOUNDS), "expected epsilon above 0"),
    ],
)
@pytest.mark.parametrize("components", [2, "1:2"])
def test_what_a_private_fit_cannot_use_is_refused(run, components, options, words):
    assert_refused(run("fit", "clients.csv", "--components", components, *options), words)


def test_a_plan_has_a_line_for_each_epsilon_and_one_without_privacy(run):
    ran = run(
        "privacy", "plan", "--clients", 500, "--categories", 3, "--components", 1,
        "--epsilon", "0.5,8", "--runs", 1, "--json",
    )  # fmt: skip
    losses = ran.json()["losses"]
    assert [loss["epsilon"] for loss in losses] == [None, 0.5, 8.0]
    assert all(loss["mean"] > -0.01 for loss in losses)


def test_epsilons_that_are_no_numbers_are_refused(run):
    ran = run("privacy", "plan", "--clients", 500, "--categories", 3, "--epsilon", "much")
    assert_refused(ran, "numbers with commas")
