"""The section about a sweep: its verdict, the sentence above it, and the numbers behind its figures."""

from dataclasses import replace

import pytest

import polyurn as pu
from polyurn.report.sweep_section import agreement_rows, profile_rows, sweep_section
from polyurn.sweeps.choice_of_settings import varied
from report_material import gathered, runs


def test_the_curve_of_a_setting_is_the_best_over_the_others():
    rows = profile_rows(runs(seeds=(0,)), "local_learning_rate", metric="accuracy")
    true = {row["value"]: row["metric"] for row in rows if row["population"] == "true"}
    assert true[0.1] == pytest.approx(0.9 - 0.002)
    assert varied(runs()) == ["local_epochs", "local_learning_rate"]


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
    return replace(run, population=population)


def test_where_scores_are_negative_a_diverged_run_is_below_all_others():
    some = runs(seeds=(0,))
    below = [replace(r, metrics={"accuracy": [r.final["accuracy"] - 1.0]}) for r in some]
    below[0] = replace(below[0], metrics={"accuracy": []}, diverged_at=1)
    settings = dict(below[0].settings)
    rows = agreement_rows(below, true="true", metric="accuracy")
    named = f"local_epochs {settings['local_epochs']}, "
    mine = [r for r in rows if r["settings"].startswith(named)]
    assert min(min(r["true"], r["simulated"]) for r in mine) < min(
        r.metrics["accuracy"][0] for r in below[1:]
    )


def test_rows_show_the_mean_of_the_last_half_of_the_evaluations():
    curve = {"rounds": [1, 2, 3], "loss": [3.0, 2.0, 1.0], "metrics": {"accuracy": [0.1, 0.4, 0.6]}}
    flat = [replace(r, **curve) for r in runs(seeds=(0,))]
    rows = profile_rows(flat, "local_epochs", metric="accuracy")
    assert {round(row["metric"], 6) for row in rows} == {0.5}
    rows = agreement_rows(flat, true="true", metric="loss")
    assert {row["simulated"] for row in rows} == {row["true"] for row in rows} == {1.5}


def test_the_best_loss_of_a_setting_is_the_smallest():
    some = [replace(r, loss=[float(r.settings["local_epochs"])]) for r in runs(seeds=(0,))]
    rows = profile_rows(some, "local_learning_rate", metric="loss")
    assert {row["metric"] for row in rows} == {1.0}


NAMES = ("true", "mdm", "iid", "again")


def test_the_verdicts_table_has_the_floor_first_and_pairs_against_mdm():
    some = runs(populations=NAMES)
    (table,) = sweep_section(gathered(runs=some)).tables
    verdict = pu.compare_sweeps(some)
    measures = [row[0] for row in table.rows]
    columns = zip(*(row[1:] for row in table.rows), strict=True)
    rows = {
        name: dict(zip(measures, column, strict=True))
        for name, column in zip(table.head[1:], columns, strict=True)
    }
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
