"""`polyurn report`: whatever there is, on one page."""

import json
import re

import pytest

from cli_walk import assert_refused, fit
from polyurn.storage.atomic import save_record
from report_material import comparison, runs

pytest.importorskip("altair")


def written(folder, name="report.html"):
    return (folder / name).read_text(encoding="utf-8")


def test_four_commands_lead_from_a_table_to_a_report(run, tmp_path):
    (tmp_path / "many.csv").write_text(
        "client,label\n" + "".join(f"{i},{(i * j) % 3}\n" for i in range(40) for j in range(1, 8))
    )
    column = ("--category", "label")
    assert run("fit", "many.csv", *column, "--components", 1, "-o", "mdm.json").code == 0
    assert run("sample", "mdm.json", "--clients", 40, "-o", "simulated.csv").code == 0
    compared = ("compare", "many.csv", "mdm=mdm.json", *column, "--folds", 0, "-o", "c.json")
    assert run(*compared).code == 0
    ran = run("report", "mdm.json", "c.json", "true=many.csv", *column)
    assert ran.code == 0
    assert (tmp_path / "report.html").as_uri() in ran.err
    found = re.findall(r'<section id="([\w-]+)"', written(tmp_path))
    assert found == ["verdict", "components", "rounds", "populations", "provenance"]
    assert "polyurn fit many.csv --category label --components 1 -o mdm.json" in written(tmp_path)


def test_a_comparison_and_the_folder_of_a_sweep_are_known_by_what_is_in_them(run, tmp_path):
    save_record(comparison().to_dict(), "likeness.json", kind="comparison", version=1)
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "runs.jsonl").write_text("".join(r.to_json() + "\n" for r in runs()))
    told = run("report", "runs", "likeness.json", "--title", "All & sundry", "--json").json()
    assert told == {"file": "report.html", "bytes": (tmp_path / "report.html").stat().st_size}
    page = written(tmp_path)
    assert re.findall(r'<section id="([\w-]+)"', page) == [
        "verdict", "populations", "sweep", "provenance",
    ]  # fmt: skip
    assert "<title>All &amp; sundry</title>" in page


def test_what_cannot_be_reported_on_is_refused_and_nothing_is_written(run, tmp_path):
    run(*fit("-o", "mdm.json"))
    (tmp_path / "other.json").write_text(json.dumps({"format": "polyurn.wish", "version": 1}))
    refused = {
        ("mdm.json", "mdm.json"): "expected one mdm file",
        ("other.json",): "name a table of clients as NAME=other.json",
        ("clients.csv",): "name a table of clients as NAME=clients.csv",
        ("missing.json",): "cannot read missing.json",
        ("mdm.json", "a=clients.csv", "a=clients.csv"): "got 'a' twice",
    }
    for arguments, words in refused.items():
        assert_refused(run("report", *arguments), words)
    assert not (tmp_path / "report.html").exists()


def test_a_comparison_of_a_later_version_is_refused(run):
    save_record(comparison().to_dict(), "likeness.json", kind="comparison", version=2)
    assert_refused(run("report", "likeness.json"), "format version 2, newer than 1")
