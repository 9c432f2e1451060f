"""A history on the page: what is drawn of every look, and what a page of nothing else needs."""

import pytest

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.report.looks_section import look_rows
from polyurn.report.page import report_on
from polyurn.server.drift import drift
from polyurn.storage.look_history import LookEntry, LookHistory

WAS = truth("medium/2")


@pytest.fixture(scope="module")
def looks():
    seen = [drift(pu.LocalAggregator(WAS.sample(500, rng=seed)), WAS) for seed in (1, 2)]
    return tuple(LookEntry.now(f"month {i}", one) for i, one in enumerate(seen, start=1))


def test_every_look_has_its_weights_with_intervals(looks):
    rows = look_rows("component", looks)
    assert [(row["look"], row["name"]) for row in rows] == [(1, "1"), (1, "2"), (2, "1"), (2, "2")]
    assert all(row["value"].low < row["value"].value < row["value"].high for row in rows)


def test_sizes_that_hardly_occur_are_not_drawn(looks):
    assert {row["name"] for row in look_rows("size", looks)} == {"16 to 20"}


def test_a_history_alone_is_a_page_with_every_verdict(looks):
    report = report_on(looks=looks)
    assert {"looks-component", "looks-size", "looks-fit"} <= set(report.figures)
    page = report.html()
    # One of each look, and the last in the headline and first in the section.
    assert page.count("as it was: nothing moved beyond chance") == 4
    assert "month 1" in page


def test_a_history_file_is_a_page(run, looks, tmp_path):
    history = LookHistory(tmp_path / "looks.jsonl", WAS)
    for look in looks:
        history.append(look)
    ran = run("report", "looks.jsonl", "-o", "page.html")
    assert ran.code == 0, ran.err
    assert "Weights of the components" in (tmp_path / "page.html").read_text()
