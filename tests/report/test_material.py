"""What a page is made from, and what is refused: records from files are checked here, once."""

import json

import numpy as np
import pytest

from damage import damaged
from polyurn.errors import CountsError, ParameterError, PolyurnError
from polyurn.model.paper_truths import truth
from polyurn.report.material import SavedComparison
from polyurn.report.style_section import style_section
from polyurn.storage.documents import load_document, save_document
from polyurn.storage.models import Saved, load_saved, save
from polyurn.storage.provenance import Provenance
from polyurn.storage.run_log import read_runs
from polyurn.typed.json_form import to_json
from report_material import (
    NAMES,
    comparison,
    fitted,
    gathered,
    html_report,
    pool,
    runs,
    saved,
    selection,
    style,
    styled,
    true_clients,
)


def test_nothing_to_report_on_is_refused():
    with pytest.raises(ParameterError, match="expected something to report on"):
        gathered()


def test_populations_of_other_categories_are_refused():
    with pytest.raises(ParameterError, match="same categories"):
        gathered(clients={"true": [[1, 2], [3, 4]], "iid": [[1, 2, 3], [3, 2, 1]]})
    with pytest.raises(CountsError, match="expected 10 categories"):
        gathered(selection().mdm, clients={"true": [[1, 2], [3, 4]]})


def test_names_are_as_many_as_categories():
    with pytest.raises(ParameterError, match="expected 10 category names, got 2"):
        gathered(selection().mdm, categories=["a", "b"])


def test_with_true_clients_those_of_the_model_and_iid_ones_are_drawn():
    material = gathered(selection().mdm, clients={"true": true_clients()})
    assert [*material.clients] == ["true", "mdm", "iid"]
    assert material.n_clients == {"true": 60, "mdm": 60, "iid": 60}
    assert material.populations == ["true", "mdm", "iid"]


def test_a_fit_and_a_selection_bring_their_rounds_along():
    assert gathered(fitted()).provenance.fit.n_rounds == fitted().n_rounds
    assert gathered(selection()).provenance.fit.n_rounds == selection().n_rounds
    assert gathered(selection().mdm).provenance.fit is None


def test_a_comparison_file_is_read_with_how_it_came_about(tmp_path):
    place = tmp_path / "c.json"
    save_document(comparison().to_dict(), place, kind="comparison", provenance={"seed": 4})
    read = SavedComparison.from_json(load_document(place, kind="comparison"))
    assert read.provenance.seed == 4
    assert read.comparison.to_dict() == comparison().to_dict()
    assert SavedComparison.from_json(comparison().to_dict()).provenance.seed is None
    foreign = SavedComparison.from_json({**comparison().to_dict(), "provenance": 3})
    assert foreign.provenance.left_out == ("provenance: expected an object, got 3",)


# ------------------------------------------------------------------------ damage and foreigners


def mdm_file(place, rng):
    whole = json.loads(place.read_text()) if place.exists() else _written(place)
    changed = place.with_name("damaged.json")
    changed.write_text(json.dumps({**whole, "provenance": damaged(whole["provenance"], rng=rng)}))
    return {"model": load_saved(changed)}


def _written(place):
    provenance = {**saved().provenance.to_json(), "fit": to_json(fitted())}
    save(saved().model, place, provenance=provenance)
    return json.loads(place.read_text())


def comparison_file(place, rng):
    record = damaged({**comparison().to_dict(), "provenance": {"seed": 1, "command": "x"}}, rng=rng)
    save_like = {"format": "polyurn.comparison", "version": 3}
    place.write_text(json.dumps({**(record if isinstance(record, dict) else {}), **save_like}))
    read = load_document(place, kind="comparison")
    return {"comparison": SavedComparison.from_json(read)}


def sweep_folder(place, rng):
    lines = [to_json(run) for run in runs(seeds=(0,))]
    i = rng.integers(len(lines))
    lines[i] = damaged(lines[i], rng=rng)
    lines.insert(0, {"format": "polyurn.runs", "version": 3})
    place.with_name("runs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return {"runs": read_runs(place.parent)}


FILES = {"mdm": mdm_file, "comparison": comparison_file, "runs": sweep_folder}


def assert_a_page_or_one_line(read, place, *, n_records, n_pages):
    """Damage a file again and again: it is one line of ours, or it is read and makes a page."""
    rng = np.random.default_rng(7)
    lines, pages = [], []
    for _ in range(n_records):
        try:
            given = read(place, rng)
            lines += given["model"].provenance.left_out if "model" in given else ()
            if len(pages) < n_pages:
                pages.append(html_report(**given).encode()[:15])
        except PolyurnError as error:
            lines.append(str(error))
    assert all(page == b"<!doctype html>" for page in pages)
    assert pages
    assert not any("\n" in line for line in lines)
    assert any(": expected " in line for line in lines)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_a_page_or_one_clear_line(tmp_path, name):
    assert_a_page_or_one_line(FILES[name], tmp_path / "file.json", n_records=150, n_pages=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_hundreds_of_damaged_files_are_pages_or_one_clear_line_each(tmp_path, name):
    assert_a_page_or_one_line(FILES[name], tmp_path / "file.json", n_records=500, n_pages=500)


@pytest.mark.parametrize(
    "provenance",
    [
        {"data": "survey 2024"},
        {"data": 7, "seed": [1, 2], "command": None},
        {"polyurn": None, "seed": 2**100},
        {"data": {"file": "a.csv"}, "weather": {"fine": True}},
    ],
    ids=str,
)
def test_whatever_a_user_says_about_a_model_is_a_page(tmp_path, provenance):
    save(selection().mdm, tmp_path / "m.json", provenance=provenance)
    page = html_report(load_saved(tmp_path / "m.json")).encode()
    assert page.startswith(b"<!doctype html>")


def test_a_style_alone_is_enough_for_a_page():
    found = gathered(style=style()).style
    assert found.labels == tuple("0123456789")
    assert (found.proxy, found.styled) == (None, None)


@pytest.mark.parametrize(
    "given",
    [
        {"features": pool()[0]},
        {"style": style(), "features": pool()[0]},
        {"style": style(), "labels": pool()[1]},
        {"features": pool()[0], "labels": pool()[1]},
    ],
    ids="+".join,
)
def test_proxy_points_are_features_and_labels_with_a_style(given):
    with pytest.raises(ParameterError, match="together with a style, and only then"):
        gathered(selection().mdm, **given)


def test_points_of_another_shape_are_refused():
    with pytest.raises(ParameterError, match="expected points of 36 features"):
        gathered(**styled(features=np.zeros((900, 5))))


def test_clients_of_the_model_are_drawn_with_the_style_and_hold_its_histograms():
    found = gathered(selection().mdm, **styled()).style
    assert len(found.styled.clients) == 300
    assert found.styled.report.exact
    assert found.styled.style.n_directions == 2


def test_without_a_model_true_clients_lend_their_histograms():
    found = gathered(**styled(clients={"true": true_clients()})).style
    held = found.styled.clients.histograms(found.proxy.labels, 10)
    assert sorted(held.tolist()) == sorted(true_clients().tolist())


def test_a_model_of_other_categories_has_no_clients_with_that_style():
    assert gathered(truth("medium/2"), **styled()).style.styled is not None
    found = gathered(**styled(clients={"true": true_clients()[:, :4] + 1})).style
    assert found.styled is None
    assert found.proxy is not None


def test_a_pool_without_any_label_of_the_clients_serves_nobody():
    only_nine = np.zeros((4, 10), int)
    only_nine[:, 9] = 3
    features, labels = pool()
    some = labels < 9
    given = styled(features=features[some], labels=labels[some], clients={"true": only_nine})
    assert gathered(**given).style.styled is None


def test_the_page_says_how_many_points_the_pool_lacks():
    features, labels = pool()
    some = labels < 9
    counts = np.full((4, 10), 2)
    given = styled(features=features[some], labels=labels[some], clients={"true": counts})
    material = gathered(**given)
    assert material.style.styled.n_lacking == 8
    facts = dict(style_section(material).facts)
    assert (
        facts["Labels that the proxy data lack"]
        == "8 points of them were left out of these clients."
    )


def test_names_of_labels_are_the_files_own_else_the_models_else_numbers():
    named = Saved(style(), tuple("abcdefghij"), Provenance(seed=3))
    assert gathered(style=named).style.labels == tuple("abcdefghij")
    assert gathered(saved(), style=named).style.labels == tuple("abcdefghij")
    assert gathered(saved(), style=style()).style.labels == NAMES
    assert gathered(style=named).style.provenance.seed == 3
    assert gathered(style=style(), categories=NAMES).style.labels == NAMES


def test_what_else_is_drawn_is_the_same_with_a_style_and_without():
    true = {"true": true_clients()}
    without, with_it = (
        gathered(selection().mdm, clients=true, **given) for given in ({}, styled())
    )
    for name, table in without.clients.items():
        np.testing.assert_array_equal(with_it.clients[name], table)
