"""`polyurn select`: which numbers of components, and what the file keeps."""

import pytest

from cli_walk import assert_refused
from polyurn.storage.mdm_json import load_saved


@pytest.mark.parametrize(
    ("components", "words"), [("6:1", "from few to many, got '6:1'"), ("a", "1:6, 2,4,8 or auto")]
)
def test_components_that_are_none_are_said(run, components, words):
    assert_refused(run("select", "clients.csv", "--components", components), words)


def test_a_way_to_draw_cohorts_is_refused_where_there_are_none(run):
    refused = run("select", "clients.csv", "--sampling", "poisson")
    assert_refused(refused, "--sampling has no effect without --cohort")


def test_a_file_keeps_the_rounds_and_the_table_of_its_selection(run):
    asked = ("--components", "1,2", "--rounds", 4, "--held-out", 0.5)
    run("select", "clients.csv", *asked, "-o", "s.json")
    kept = load_saved("s.json").made.selection
    assert [c.n_components for c in kept.candidates] == [1, 2]
    assert kept.n_numbers == max(kept.n_numbers_by_round)
    assert all(path.last_round <= kept.n_rounds for path in kept.paths)
