"""`polyurn report`: whatever there is, on one page."""

import json
import re

import numpy as np
import pytest

from cli_walk import assert_refused, fit
from polyurn.model.paper_truths import truth
from polyurn.storage.documents import save_document
from polyurn.storage.models import load_saved, save
from polyurn.storage.run_log import RunLog
from polyurn.storage.table_files import write_histograms
from report_material import comparison, pool, runs, selection, style

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
    save_document(comparison().to_dict(), "likeness.json", kind="comparison")
    folder = tmp_path / "runs"
    folder.mkdir()
    with RunLog(folder, {}) as log:
        log.append(runs())
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
        ("other.json",): "an MDM, style, comparison or description file, got other.json",
        ("missing.json",): "cannot read missing.json",
        ("mdm.json", "a=clients.csv", "a=clients.csv"): "got 'a' twice",
    }
    for arguments, words in refused.items():
        assert_refused(run("report", *arguments), words)
    assert not (tmp_path / "report.html").exists()


def test_a_comparison_of_a_later_version_is_refused(run, tmp_path):
    save_document(comparison().to_dict(), "likeness.json", kind="comparison")
    change(tmp_path / "likeness.json", lambda record: record.update(version=4))
    assert_refused(run("report", "likeness.json"), "version 4, newer than 3: upgrade polyurn")


def test_what_a_user_says_about_a_model_is_on_the_page(run, tmp_path):
    save(truth("medium/2"), "m.json", provenance={"data": "survey 2024", "weather": "fine"})
    assert run("report", "m.json").code == 0
    assert "survey 2024" in written(tmp_path)


def change(place, change):
    record = json.loads(place.read_text())
    change(record)
    place.write_text(json.dumps(record))


def sections(folder):
    return re.findall(r'<section id="([\w-]+)"', written(folder))


@pytest.mark.parametrize("quiet", [[], ["--quiet"]], ids=str)
def test_a_foreign_record_is_one_line_and_its_section_is_left_out(run, tmp_path, quiet):
    run(*fit("-o", "mdm.json"))
    save_document(comparison().to_dict(), "likeness.json", kind="comparison")
    assert run("report", "mdm.json", "likeness.json").code == 0
    assert sections(tmp_path) == ["verdict", "components", "rounds", "populations", "provenance"]
    change(tmp_path / "mdm.json", lambda record: record["provenance"].update(fit="by hand"))
    change(tmp_path / "likeness.json", lambda record: record["rows"][1].update(name=None))
    ran = run("report", "mdm.json", "likeness.json", *quiet)
    assert ran.code == 0
    assert ran.err.splitlines()[:2] == [
        "left out of mdm.json: provenance.fit: expected an object, got 'by hand'",
        "left out, because it is damaged: likeness.json: rows[1].name: expected a text, got None",
    ]
    assert sections(tmp_path) == ["verdict", "components", "provenance"]


def test_a_comparison_that_is_damaged_and_all_there_is_is_an_error(run, tmp_path):
    save_document(comparison().to_dict(), "likeness.json", kind="comparison")
    change(tmp_path / "likeness.json", lambda record: record["rows"][1].pop("name"))
    line = "likeness.json is damaged: rows[1].name: expected a text, got nothing"
    assert_refused(run("report", "likeness.json"), line)
    assert not (tmp_path / "report.html").exists()


def test_parameters_that_are_damaged_are_an_error_beside_whatever_else_there_is(run, tmp_path):
    run(*fit("-o", "mdm.json"))
    change(tmp_path / "mdm.json", lambda record: record["weights"].append(-1.0))
    assert_refused(run("report", "mdm.json", "true=clients.csv"), "mdm.json is damaged: ")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("option", ["client", "category", "count", "categories", "seed", "true"])
def test_an_option_that_is_ignored_is_refused(run, tmp_path, option):
    save(truth("medium/2"), "m.json")
    refused = run("report", "m.json", f"--{option}", 1)
    assert_refused(refused, f"--{option} has no effect without a table of clients")
    assert_refused(run("report", "m.json", "--metric", "x"), "--metric has no effect without the")
    own = run("report", "m.json", "true=clients.csv", "--categories", 3)
    assert_refused(own, "--categories has no effect with an MDM file, which has its own categories")
    assert not (tmp_path / "report.html").exists()


def test_a_name_that_is_too_long_for_a_file_is_one_line(run):
    """Of the fuzz: a traceback of pathlib."""
    assert_refused(run("report", "a" * 300 + ".csv", "-o", "out.html"), "cannot read")
    assert_refused(run("compare", "a" * 300 + ".csv", "x=clients.csv"), "cannot read")


# ---------------------------------------------------------------------------------------- styles


@pytest.fixture
def styles(tmp_path):
    """A model, a style, and the proxy points as pictures in an archive and as columns in a table."""
    features, labels = pool()
    save(selection().mdm, "mdm.json")
    save(style(), "style.json", categories=list("abcdefghij"), provenance={"seed": 8})
    np.savez(tmp_path / "proxy.npz", features=features, labels=labels)
    flat = features.reshape(len(labels), -1)
    rows = [",".join(["digit", *(f"p{j}" for j in range(36))])]
    rows += [
        ",".join(["abcdefghij"[label], *map(str, point)])
        for label, point in zip(labels, flat, strict=True)
    ]
    (tmp_path / "proxy.csv").write_text("\n".join(rows) + "\n")


def test_a_style_is_shown_by_pictures_where_proxy_points_are_some(run, tmp_path, styles):
    assert run("report", "mdm.json", "style.json", "--proxy", "proxy.npz").code == 0
    page = written(tmp_path)
    assert sections(tmp_path) == ["verdict", "components", "style", "provenance"]
    assert page.count("data:image/png;base64,") == 2 * 5 + 2 * 3
    assert "Style: seed" in page


def test_a_style_is_shown_by_features_where_proxy_points_are_columns(run, tmp_path, styles):
    table = ("--proxy", "proxy.csv", "--category", "digit")
    assert run("report", "style.json", *table).code == 0
    page = written(tmp_path)
    assert sections(tmp_path) == ["verdict", "style", "provenance"]
    assert 'id="style-features"' in page
    assert "data:image/png" not in page
    names = ",".join(f"p{j}" for j in range(36))
    assert run("report", "style.json", *table, "--features", names).code == 0
    assert written(tmp_path).count('id="style-features"') == 1


def test_a_style_alone_is_a_page(run, tmp_path, styles):
    assert run("report", "style.json").code == 0
    assert sections(tmp_path) == ["verdict", "style", "provenance"]


def test_what_does_not_go_with_a_style_is_refused(run, tmp_path, styles):
    refused = {
        ("style.json", "style.json"): "expected one style file",
        ("mdm.json", "--proxy", "proxy.npz"): "--proxy has no effect without a style file",
        ("style.json", "--features", "p0"): "--features has no effect without --proxy",
        ("style.json", "--category", "x"): "--category has no effect without",
        (
            "style.json",
            "--proxy",
            "proxy.npz",
            "--category",
            "x",
        ): "--category has no effect without",
        ("style.json", "--proxy", "proxy.csv"): "'label'",
        ("style.json", "--proxy", "missing.npz"): "missing.npz",
    }
    for arguments, words in refused.items():
        assert_refused(run("report", *arguments), words)
    few = ("--proxy", "proxy.csv", "--category", "digit", "--features", "p0,p1")
    assert_refused(run("report", "style.json", *few), "expected points of 36 features")
    assert not (tmp_path / "report.html").exists()


def test_a_table_without_a_name_is_not_refused_as_it_is_the_true_clients(run, tmp_path):
    run(*fit("-o", "mdm.json"))
    assert run("report", "clients.csv", "mdm.json").code == 0
    assert "true: 6 of 6 drawn" in written(tmp_path)


def test_a_page_does_not_show_fitted_clients_where_others_were_held_out(run, tmp_path):
    write_histograms(truth("medium/3").sample(80, rng=0), "table.csv")
    scored = ("--components", "1:2", "--held-out", 0.2, "--rounds", 6)
    run("fit", "table.csv", *scored, "-o", "mdm.json")
    n_held_out = load_saved("mdm.json").provenance.fit.n_held_out
    says = f"table.csv: the {n_held_out} of 80 clients that were held out are taken"
    ran = run("report", "mdm.json", "true=table.csv")
    assert says in ran.err
    assert f"<dd>{says}</dd>" in written(tmp_path)
    assert f"true: {n_held_out} of {n_held_out} drawn" in written(tmp_path)
    for everybody in (("--components", 1), ("--components", "1:2", "--rounds", 6)):
        run("fit", "table.csv", *everybody, "-o", "mdm.json")
        run("report", "mdm.json", "true=table.csv")
        assert "<dd>table.csv: 80 of 80 clients were fitted</dd>" in written(tmp_path)
    write_histograms(truth("medium/3").sample(70, rng=1), "table.csv")
    run("report", "mdm.json", "true=table.csv")
    assert "table.csv: polyurn cannot tell which clients were fitted" in written(tmp_path)
