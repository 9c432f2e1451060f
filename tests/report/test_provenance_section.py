"""Where a page says that everything came from."""

from dataclasses import replace

import pytest

from polyurn.report.material import SavedComparison
from polyurn.report.provenance_section import provenance_section
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Provenance
from report_material import (
    comparison,
    everything,
    federated,
    fitted,
    gathered,
    runs,
    saved,
    selection,
    style,
    styled,
    traffic_case,
)


def facts(*things, **more):
    return provenance_section(gathered(*things, **more)).facts


def test_everything_that_a_page_is_made_from_is_named():
    found = facts(saved(), **everything())
    said = " ".join(text for _, text in found)
    sent = [one.n_numbers for one in saved().provenance.fit.rounds]
    for words in (
        "polyurn fit 'my clients.csv'",
        f"at most {max(sent):,} in a round; in all rounds together",
        "my clients.csv: 400 clients, 8,000 points, 10 categories",
        "never a client’s records",
        "48 runs",
        comparison().standing,
    ):
        assert words in said
    assert ("Model: seed", "5") in found
    assert ("Held out", f"{saved().provenance.fit.n_held_out:,} clients only scored") in found


def test_a_comparison_file_says_how_it_came_about():
    made = Provenance(command="polyurn compare held-out.csv", seed=3)
    found = facts(comparison=SavedComparison(comparison(), made))
    assert ("Comparison: command", "polyurn compare held-out.csv") in found
    assert ("Comparison: seed", "3") in found


@pytest.mark.parametrize("data", ["survey 2024", "{'name': 'survey'}"])
def test_the_user_s_own_words_about_the_data_are_shown(data):
    assert ("Model: data", data) in facts(Saved(selection().mdm, None, Provenance(data=data)))


def test_an_mdm_alone_has_nothing_to_say_about_itself():
    assert [term for term, _ in facts(selection().mdm)] == ["Page"]
    assert [term for term, _ in facts(runs=runs())] == ["Page", "Sweep"]


def test_a_fit_that_was_interrupted_says_so():
    made = Provenance(interrupted_after_round=7)
    found = facts(Saved(fitted().mdm, None, made))
    assert ("Model: rounds", "interrupted by hand after round 7") in found


@pytest.mark.parametrize(
    ("fewest", "words"),
    [
        (60, "with 60 clients each"),
        (9, "with up to 60 clients; the smallest sums are over 9 of them"),
    ],
)
def test_the_smallest_crowd_that_a_sum_is_over_is_said(fewest, words):
    first, *others = fitted().rounds
    record = replace(fitted(), rounds=(replace(first, n_clients=fewest), *others))
    found = dict(facts(Saved(fitted().mdm, None, Provenance(fit=record))))
    assert found["Privacy: rounds"] == f"{record.n_rounds} {words}"


def test_the_traffic_of_a_federation_is_one_line():
    found = dict(facts(federated()))["Privacy: traffic on the wire"]
    assert found.startswith(f"{federated().provenance.traffic.line}; ")
    assert dict(facts(federated()))["Privacy: what is guaranteed"].startswith("no guarantee")
    assert "histogram" not in found  # of a plain sum over one client, that would not be true


def test_the_traffic_of_a_style_is_one_line_with_the_nodes_that_are_not_in_it():
    record = traffic_case(3, odd=0).named({9: "ward 9"})
    asked = Saved(style(), None, Provenance(traffic=record))
    found = dict(facts(**styled(style=asked)))["Style: traffic on the wire"]
    assert found == f"{record.line}; without ward 9: it was not there"
