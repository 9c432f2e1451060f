"""Fits and selections as JSON records: what a model's file keeps of them."""

import json

import pytest

from polyurn.errors import FileError
from polyurn.server.fit_results import Fit, Selection
from polyurn.typed.json_form import from_json, to_json
from report_material import fitted, selection


def as_read(result):
    return json.loads(json.dumps(to_json(result), allow_nan=False))


@pytest.mark.parametrize("result", [fitted(), selection()], ids=lambda one: type(one).__name__)
def test_a_result_comes_back_from_json_as_it_was(result):
    back = from_json(type(result), as_read(result), parsed={"mdm": result.mdm})
    assert to_json(back) == to_json(result)
    assert back.mdm is result.mdm
    assert (back.paths, back.n_rounds, back.n_clients, back.stopped, back.caution) == (
        result.paths, result.n_rounds, result.n_clients, result.stopped, result.caution
    )  # fmt: skip


def test_the_paths_of_a_fit_are_what_its_rounds_were():
    done = fitted()
    last = {path.start: path.values[-1] for path in done.paths if path.last_round == done.n_rounds}
    assert last == dict(done.rounds[-1].starts)


def test_the_names_in_a_file_are_these():
    fit, choice = as_read(fitted()), as_read(selection())
    assert [*fit] == ["rounds", "converged", "stopped", "n_dropped"]
    assert [*fit["rounds"][0]] == ["number", "log_likelihood", "n_clients", "n_numbers", "starts"]
    assert [*choice] == [
        "n_components",
        "candidates",
        "n_rounds",
        "n_held_out",
        "rounds",
        "skipped",
        "paths",
    ]
    assert [*choice["rounds"][0]] == ["number", "n_clients", "n_numbers"]
    assert [*choice["candidates"][0]] == [
        "n_components", "log_likelihood", "standard_error", "behind", "behind_error", "n_rounds",
        "converged", "overtaken", "n_parameters", "n_dropped", "multinomial",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"n_rounds": "many"}, "selection.n_rounds: expected an integer of at least 0, got 'many'"),
        ({"n_components": 7}, "selection: expected n_components among the candidates, got 7"),
        ({"candidates": []}, "selection: expected n_components among the candidates, got 2"),
    ],
    ids=str,
)
def test_a_damaged_record_is_one_line(change, line):
    parsed = {"mdm": selection().mdm}
    with pytest.raises(FileError) as error:
        from_json(Selection, {**as_read(selection()), **change}, where="selection", parsed=parsed)
    assert str(error.value) == line


def test_a_selection_publishes_the_starts_of_the_chosen_number_of_components_only():
    choice = selection()
    others = {k for r in choice.rounds for k in r.starts} - {choice.n_components}
    assert others, "other numbers of components have starts, too"
    kept = {path["start"] for path in as_read(choice)["paths"]}
    assert kept == {path.start for path in choice.paths}
    assert "starts" not in json.dumps(as_read(choice))


def test_a_fit_without_its_model_is_refused():
    with pytest.raises(FileError, match="expected mdm as an MDM, got None"):
        from_json(Fit, as_read(fitted()), where="fit")


def test_reading_a_file_does_not_load_the_search():
    import subprocess
    import sys

    code = "import sys, polyurn.storage.models; print('polyurn.server.fitting' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
