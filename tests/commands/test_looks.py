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
    assert_refused(refused, "about another mixture")
