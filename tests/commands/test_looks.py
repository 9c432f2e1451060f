"""`polyurn describe` and the drift check of `polyurn score`: what they show, keep and refuse."""

import json

import numpy as np
import pytest

from cli_walk import EXAMPLE, assert_refused
from polyurn.model.mdm import MDM
from polyurn.storage.look_history import LookHistory
from polyurn.storage.models import load, save

SCORE = ("score", "clients.csv", "mdm.json", "--categories")


@pytest.fixture
def tables(tmp_path):
    """Clients of a mixture, and others with .3 of its weight moved."""
    from polyurn.storage.table_files import write_histograms

    w = EXAMPLE.weights + np.array([-0.3, 0.3])
    save(EXAMPLE, tmp_path / "mdm.json", categories=["bird", "cat"])
    other = MDM(w, EXAMPLE.alphas, EXAMPLE.sizes)
    for name, mdm in (("same.csv", EXAMPLE), ("moved.csv", other)):
        write_histograms(mdm.sample(3000, rng=1), tmp_path / name, categories=["bird", "cat"])


def test_a_description_is_the_same_on_the_terminal_in_json_and_in_its_file(run, tables, tmp_path):
    shown = run("describe", "same.csv", "-o", "found.json")
    assert "clients: 3,000" in shown.out
    assert "no guarantee" in shown.out
    found = run("describe", "same.csv", "--json").json()
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept["between"] == found["between"]
    assert kept["provenance"]["data"] == "same.csv"
    assert found["categories"] == ["bird", "cat"]


def test_a_private_description_takes_nothing_from_the_table(run, tables):
    noised = ("describe", "same.csv", "--epsilon", 1, "--delta", 1e-6)
    assert_refused(run(*noised), "--categories with --epsilon")
    ran = run(*noised, "--categories", "bird,cat", "--json").json()
    assert ran["guarantee"]["epsilon"] == pytest.approx(1)


def test_drift_ends_with_3_where_scripts_ask_for_it(run, tables):
    score = ("score", "moved.csv", "mdm.json")
    assert run("score", "same.csv", "mdm.json", "--fail-on-drift").code == 0
    assert run(*score).code == 0
    ran = run(*score, "--fail-on-drift")
    assert ran.code == 3
    assert "it has moved" in ran.out


def test_a_noised_look_shows_no_exact_number(run, tables):
    options = ("--epsilon", 2, "--delta", 1e-6, "--json")
    found = run("score", "moved.csv", "mdm.json", *options).json()
    assert list(found) == ["drift"]
    assert found["drift"]["guarantee"]["trust"] == "central"


def test_looks_are_appended_and_later_ones_compared_with_the_first(run, tables, tmp_path):
    history = ("--history", "looks.jsonl")
    assert_refused(
        run("score", "same.csv", "mdm.json", "--against", "first"), "no effect without --history"
    )
    refused = run("score", "same.csv", "mdm.json", *history, "--against", "first")
    assert_refused(refused, "no look yet")
    for table in ("moved.csv", "moved.csv", "same.csv"):
        run("score", table, "mdm.json", *history)
    first = ("--against", "first", "--json")
    as_first = run("score", "moved.csv", "mdm.json", *history, *first).json()["drift"]
    assert (as_first["against"], as_first["moved"]) == ("look", False)
    other = run("score", "same.csv", "mdm.json", *history, *first).json()["drift"]
    assert other["moved"]
    looks = LookHistory(tmp_path / "looks.jsonl").read()
    assert [look.clients for look in looks] == [
        "moved.csv", "moved.csv", "same.csv", "moved.csv", "same.csv",
    ]  # fmt: skip


def test_a_history_is_about_one_mixture(run, tables):
    run("score", "same.csv", "mdm.json", "--history", "looks.jsonl")
    was = load("mdm.json")
    save(MDM([0.7, 0.3], was.alphas, was.sizes, categories=was.categories), "other.json")
    refused = run("score", "same.csv", "other.json", "--history", "looks.jsonl")
    assert_refused(refused, "that differs in mixture")


@pytest.fixture
def delays(tmp_path):
    """A table with a row for each point, and a column of numbers."""
    rows = "".join(f"{i // 4},cat,{(i * 37) % 100 / 4}\n" for i in range(800))
    (tmp_path / "rows.csv").write_text("client,category,delay\n" + rows)


def test_a_column_is_described_and_its_line_is_one_that_histogram_takes(run, delays):
    shown = run("describe", "rows.csv", "--column", "delay", "--bins", 4, "-o", "found.json")
    (line,) = [line for line in shown.out.splitlines() if line.startswith("--bins=")]
    assert len(line.split(",")) == 5
    columns = ("--category", "delay", "--client", "client")
    ran = run("histogram", "rows.csv", *columns, line, "-o", "counts.csv")
    assert ran.code == 0, ran.err
    found = run("describe", "rows.csv", "--column", "delay", "--bins", 4, "--json").json()
    assert found["bins"] == line.removeprefix("--bins=")
    assert [one["value"] for one in found["quantiles"]] == pytest.approx(
        [6.25, 12.5, 18.75], abs=0.5
    )


def test_options_that_a_column_has_no_use_for_are_refused(run, delays):
    column = ("describe", "rows.csv", "--column", "delay")
    assert_refused(run(*column, "--max-size", 9), "--max-size has no effect with --column")
    assert_refused(
        run("describe", "rows.csv", "--bins", 4), "--bins has no effect without --column"
    )
    assert_refused(run(*column, "--bins", 1), "from 2 to 1000, got 1")
    assert_refused(
        run("describe", "rows.csv", "--column", "category"), "expected numbers in column"
    )
    assert_refused(run("describe", "rows.csv", "--column", "no"), "'no'")


def test_packed_clients_have_no_columns_and_the_line_says_what_has(run, delays):
    assert run("pack", "rows.csv", "--categories", "cat,dog", "-o", "packed").code == 0
    for words in (("describe", "packed", "--column", "delay"), ("features", "packed")):
        refused = run(*words, *(["--category", "category"] if words[0] == "features" else []))
        assert_refused(refused, "packed clients have no columns: give the table that was packed")


def test_a_cluster_plays_packed_clients_only(run, tables):
    cluster = ("--scheduler", "tcp://localhost:1")
    for words in (("describe", "same.csv"), ("score", "same.csv", "mdm.json")):
        assert_refused(run(*words, *cluster), "--scheduler has no effect with a table")


def test_a_renewing_ledger_refuses_the_second_look_of_a_month(run, delays):
    looks = (
        "describe", "rows.csv", "--categories", "cat,dog", "--epsilon", 3, "--delta", 1e-6,
        "--ledger", "privacy.ledger", "--ledger-epsilon", 20,
    )  # fmt: skip
    assert run(*looks, "--renew", "monthly").code == 0
    refused = run(*looks)
    assert_refused(refused, "of 3 for 20", "wait for the next period")
    assert_refused(run(*looks, "--renew", "weekly"), "expected a renewal as monthly:0.5")
    assert run(*looks, "--renew", "monthly:8").code == 0


def test_descriptions_are_pages(run, tables, delays, tmp_path):
    run("describe", "same.csv", "-o", "found.json")
    assert run("report", "found.json", "-o", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "Share of variance between clients" in page
    assert "there is something to model" in page
    run("describe", "rows.csv", "--column", "delay", "-o", "column.json")
    assert run("report", "column.json", "-o", "page.html").code == 0
    assert "--bins=-inf," in (tmp_path / "page.html").read_text()
    assert_refused(run("report", "found.json", "column.json"), "one description file")
