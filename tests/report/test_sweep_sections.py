"""The section about a sweep: the table of its verdict, and the sentence above it."""

import pytest

import polyurn as pu
from polyurn.report.sweep_runs import sweep_section
from report_material import gathered, runs

NAMES = ("true", "mdm", "iid", "again")


def test_the_verdicts_table_has_the_floor_first_and_pairs_against_mdm():
    some = runs(populations=NAMES)
    (table,) = sweep_section(gathered(runs=some)).tables
    verdict = pu.compare_sweeps(some)
    rows = {row[0]: dict(zip(table.head, row, strict=True)) for row in table.rows}
    assert [*rows] == ["again (noise floor)", "mdm", "iid"]
    assert "in points" in table.caption
    paired = verdict.paired("iid", "mdm")
    assert rows["iid"]["difference less mdm's"] == (
        f"{100 * paired.value:.2f} ({100 * paired.low:.2f} to {100 * paired.high:.2f})"
    )
    assert rows["mdm"]["difference less mdm's"] == "–"
    assert rows["mdm"]["difference of means"] == (f"{100 * verdict['mdm'].difference_of_means:.2f}")
    assert rows["iid"]["simulated less true"].startswith(f"{100 * verdict['iid'].signed.value:.2f}")


def test_the_section_begins_with_the_verdict_in_words():
    some = runs(populations=NAMES)
    lead = sweep_section(gathered(runs=some)).lead
    assert pu.compare_sweeps(some).sentence() in lead
    assert "“again” are the true clients in other cohorts" in lead
    assert "again" not in sweep_section(gathered(runs=runs())).lead


@pytest.mark.parametrize(("metric", "at_0"), [("accuracy", True), ("loss", False)])
def test_a_run_that_diverged_counts_as_0_except_for_the_loss(metric, at_0):
    profile, *_ = sweep_section(gathered(runs=runs(), metric=metric)).figures
    assert ("counts as 0" in profile.says) == at_0
    assert ("counts as far beyond the worst as the best is from it" in profile.says) != at_0


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_a_loss_is_no_percentage(metric):
    section = sweep_section(gathered(runs=runs(), metric=metric))
    cells = [cell for figure in section.figures for row in figure.table.rows for cell in row]
    assert any(cell.endswith("%") for cell in cells) == (metric == "accuracy")
    assert ("points" in section.tables[0].caption) == (metric == "accuracy")
