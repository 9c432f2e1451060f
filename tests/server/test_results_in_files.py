"""Fits and selections as JSON documents: what a model's file keeps of them."""

import json
from dataclasses import replace

import pytest

from polyurn.errors import FileError
from polyurn.server.fit_results import Fit, Round
from polyurn.typed.json_form import from_json, to_json
from report_material import fitted, selection


def as_read(result):
    return json.loads(json.dumps(to_json(result), allow_nan=False))


@pytest.mark.parametrize("result", [fitted(), selection()], ids=["one", "several"])
def test_a_result_comes_back_from_json_as_it_was(result):
    back = from_json(type(result), as_read(result), parsed={"mdm": result.mdm})
    assert to_json(back) == to_json(result)
    assert back.mdm is result.mdm
    for name in ("n_rounds", "n_clients", "fewest_clients", "stopped", "caution"):
        assert getattr(back, name) == getattr(result, name), name


def test_the_names_in_a_file_are_these():
    fit, choice = as_read(fitted()), as_read(selection())
    assert [*fit] == [*choice] == [
        "rounds", "converged", "stopped", "n_clients", "fewest_clients", "n_components",
        "candidates", "n_held_out", "skipped", "taken", "joined", "stages", "no_errors",
    ]  # fmt: skip
    assert [*fit["rounds"][0]] == ["number", "log_likelihood", "n_numbers", "starts", "sent"]
    assert [*choice["candidates"][0]] == [
        "n_components", "log_likelihood", "standard_error", "behind", "behind_error", "n_rounds",
        "converged", "overtaken", "n_parameters",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"n_held_out": "many"}, "fit.n_held_out: expected an integer of at least 0, got 'many'"),
        ({"n_components": 7}, "fit: expected n_components among the candidates, got 7"),
    ],
    ids=str,
)
def test_a_damaged_document_is_one_line(change, line):
    parsed = {"mdm": selection().mdm}
    with pytest.raises(FileError) as error:
        from_json(Fit, {**as_read(selection()), **change}, where="fit", parsed=parsed)
    assert str(error.value) == line


def test_a_selection_publishes_the_starts_of_the_chosen_number_of_components_only():
    choice = selection()
    last = next(r for r in reversed(choice.rounds) if r.starts)
    assert len(last.values) == 2, "other numbers of components have starts, too"
    leader = last.values[choice.n_components]
    assert max(last.starts.values()) == last.log_likelihood == pytest.approx(leader, abs=1e-6)
    assert {r.log_likelihood for r in choice.rounds}.isdisjoint(
        v for r in choice.rounds for k, v in r.values.items() if k != choice.n_components
    )
    assert "values" not in json.dumps(as_read(choice))


def test_a_file_says_how_many_clients_there_were_and_the_fewest_of_a_round_and_no_more():
    """The number of every round would say in which of them somebody left."""
    rounds = tuple(Round(i, None, -3.0, n, 9) for i, n in enumerate((5000, 38, 4567, 41), start=1))
    fit = Fit(fitted().mdm, rounds, converged=True, stopped="")
    choice = replace(fit, n_components=2, candidates=selection().candidates, n_held_out=30)
    for result, last in ((fit, 41), (choice, 5000)):
        document = as_read(result)
        assert (document["n_clients"], document["fewest_clients"]) == (last, 38)
        assert not any("n_clients" in one for one in document["rounds"])
        assert "4567" not in json.dumps(document)
        back = from_json(type(result), document, parsed={"mdm": result.mdm})
        assert {one.n_clients for one in back.rounds} == {None}
        assert (back.n_clients, back.fewest_clients) == (last, 38)


def test_the_caution_about_few_clients_is_the_same_from_a_file():
    rounds = (Round(1, None, -3.0, 15, 9),)
    few = Fit(fitted().mdm, rounds, converged=True, stopped="")
    back = from_json(Fit, as_read(few), parsed={"mdm": few.mdm})
    assert "15 clients are few" in few.caution
    assert back.caution == few.caution


def test_a_fit_without_its_model_is_refused():
    with pytest.raises(FileError, match="expected mdm as an MDM, got None"):
        from_json(Fit, as_read(fitted()), where="fit")


def test_reading_a_file_does_not_load_the_search():
    import subprocess
    import sys

    code = "import sys, polyurn.storage.models; print('polyurn.server.fitting' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
