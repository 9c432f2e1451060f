"""The tables of a choice of K and of a comparison."""

from rich.console import Console

from cli_walk import EXAMPLE
from polyurn import compare
from polyurn.commands.views import choice_table, comparison_tables, say_learned
from polyurn.model.paper_truths import truth
from polyurn.server.fit_results import Candidate, Fit, Round
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Provenance
from polyurn.typed.json_form import from_json, to_json

LOW = truth("low/1")


def candidate(n_components, **settings):
    usual = {
        "log_likelihood": -10.0 - n_components,
        "standard_error": 0.5,
        "behind": 0.25 * n_components,
        "behind_error": 0.1,
        "n_rounds": 7,
        "n_parameters": 1000 * n_components,
        "mdm": None,
        "converged": True,
    }
    return Candidate(n_components=n_components, **{**usual, **settings})


def chose(k, candidates, *, mdm=LOW, rounds=(), n_held_out=20):
    return Fit(mdm, rounds, True, "", n_components=k, candidates=candidates, n_held_out=n_held_out)


def shown(*candidates, chosen=2):
    choice = chose(chosen, candidates)
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.capture() as capture:
        console.print(choice_table(choice))
    console.file.close()
    return capture.get()


def test_every_number_of_components_has_a_row_and_the_chosen_one_is_marked():
    text = shown(candidate(1), candidate(2), candidate(3, converged=False))
    rows = [line for line in text.splitlines() if "-1" in line]
    assert len(rows) == 3
    assert "-12.0000 ± 0.9800" in rows[1]
    assert "2,000" in rows[1]
    assert [word for row in rows for word in ("chosen", "unfinished") if word in row] == [
        "chosen",
        "unfinished",
    ]
    assert "20 clients" in text
    assert "early" not in text


def test_a_candidate_that_was_stopped_early_is_explained():
    text = shown(candidate(2), candidate(3, overtaken=True, converged=False))
    assert "early: a smaller K was already better than this one could become" in text
    assert "unfinished" not in text


def test_the_caution_of_a_selection_is_said_from_its_file_as_federation_run_does(capsys):
    choice = chose(
        1, (candidate(1),), mdm=EXAMPLE, n_held_out=3, rounds=(Round(1, None, -3.0, 80, 5),)
    )
    kept = from_json(Fit, to_json(choice), parsed={"mdm": EXAMPLE})
    assert kept.caution == choice.caution != ""
    say_learned(Saved(EXAMPLE, None, Provenance(fit=kept)))
    assert choice.caution in capsys.readouterr().err


def test_the_tables_of_a_selection_and_of_a_comparison_fit_80_columns_without_breaking_a_cell():
    tried = (candidate(1), candidate(2, log_likelihood=-135.25), candidate(3, overtaken=True))
    choice = chose(2, tried)
    held_out = truth("low/1").sample(60, rng=0)
    verdict = compare({"mdm": truth("low/1")}, held_out, n_splits=100, n_bootstrap=100, rng=0)
    for table in (choice_table(choice), *comparison_tables(verdict)):
        assert Console(width=200).measure(table).maximum <= 80
