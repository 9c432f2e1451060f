"""`polyurn fit` with several numbers of components: which they are, and what the file keeps."""

import pytest

from cli_walk import assert_refused
from polyurn.model.paper_truths import truth
from polyurn.storage.models import load_saved
from polyurn.storage.tables import write_histograms


@pytest.mark.parametrize(
    ("components", "words"), [("6:1", "from few to many, got '6:1'"), ("a", "1:6, 2,4,8 or auto")]
)
def test_components_that_are_none_are_said(run, components, words):
    assert_refused(run("fit", "clients.csv", "--components", components), words)


@pytest.mark.parametrize("cohort", ["poisson", "poisson:", "fixed:3", "-1", "x"])
def test_a_cohort_that_is_none_is_said(run, cohort):
    refused = run("fit", "clients.csv", "--cohort", cohort)
    assert_refused(refused, f"expected --cohort as 1000 or poisson:1000, got '{cohort}'")


def test_a_file_keeps_the_rounds_and_the_table_of_its_selection(run):
    asked = ("--components", "1,2", "--rounds", 4, "--held-out", 0.5)
    run("fit", "clients.csv", *asked, "-o", "s.json")
    kept = load_saved("s.json").made.selection
    assert [c.n_components for c in kept.candidates] == [1, 2]
    assert all(path.last_round <= kept.n_rounds for path in kept.paths)


def test_plus_minus_is_a_95_percent_interval_as_in_compare_and_labelled(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    write_histograms(truth("medium/2").sample(80, rng=0), "clients.csv")
    arguments = ("fit", "clients.csv", "--components", "1,2", "--rounds", 8)
    candidates = run(*arguments, "--json").json()["candidates"]
    shown = run(*arguments).out
    assert "mean ± 95 %" in shown
    assert "behind the best (s.e.)" in shown
    for c in candidates:
        assert f"{c['log_likelihood']:.4f} ± {1.96 * c['standard_error']:.4f}" in shown
        assert f"{c['behind']:.4f} ({c['behind_error']:.4f})" in shown


@pytest.mark.parametrize("n_clients", [1, 2, 3, 5])
def test_one_held_out_client_is_one_line_before_any_round(run, n_clients):
    write_histograms(truth("medium/2").sample(n_clients, rng=0), "clients.csv")
    ran = run("fit", "clients.csv")
    assert ran.code == 2
    assert "round" not in ran.err
    assert "held_out=0.2 needs 25 clients or more" in ran.err


@pytest.mark.parametrize(
    ("category", "said"),
    [
        ("client", "expected another column for the category than the client's, got 'client'"),
        (
            "client,category",
            "expected another column for the category than the client's, got 'client'",
        ),
        ("category,category", "expected different columns to cross, got 'category' twice"),
    ],
)
def test_a_column_that_cannot_be_part_of_the_category_is_refused_in_one_line(run, category, said):
    assert_refused(run("fit", "clients.csv", "--category", category), said)
