"""The sections about a model."""

import json
import math
from dataclasses import replace

import pytest

from polyurn.report.model import choice_section, components_section
from polyurn.server.results import Selection
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Made
from polyurn.typed.records import read_record, to_record
from report_material import fitted, gathered, runs, selection


def kept(**records):
    return gathered(Saved(selection().mdm, None, Made(**records)))


def test_a_fit_shows_its_rounds():
    section = choice_section(gathered(fitted()))
    assert (section.name, [figure.name for figure in section.figures]) == ("rounds", ["paths"])
    rows = section.figures[0].panels[0].spec["datasets"]["rows"]
    best = max(row["log_likelihood"] for row in rows)
    assert best == pytest.approx(fitted().log_likelihoods[-1], abs=1e-6)


def test_a_selection_shows_its_table_and_the_rounds_of_the_chosen_number():
    section = choice_section(gathered(selection()))
    assert section.name == "choice"
    assert [figure.name for figure in section.figures] == ["candidates", "paths"]
    assert f"of K = {selection().n_components};" in section.figures[1].says


def test_what_there_is_no_record_of_is_left_out():
    assert choice_section(gathered(selection().mdm)) is None
    quiet = tuple(replace(one, starts={}) for one in fitted().rounds)
    assert choice_section(kept(fit=replace(fitted(), rounds=quiet))) is None
    quiet = tuple(replace(one, starts={}) for one in selection().rounds)
    without = choice_section(kept(selection=replace(selection(), rounds=quiet, paths=())))
    assert [figure.name for figure in without.figures] == ["candidates"]
    assert components_section(gathered(runs=runs())) is None


def test_a_candidate_under_which_a_held_out_client_is_impossible_is_in_the_table_only():
    record = selection()
    never = replace(record.candidates[0], log_likelihood=-math.inf, behind=math.inf)
    choice = replace(record, candidates=(never, *record.candidates[1:]))
    read = read_record(
        Selection, json.loads(json.dumps(to_record(choice))), parsed={"mdm": choice.mdm}
    )
    assert to_record(read) == to_record(choice)
    figure = choice_section(kept(selection=choice)).figures[0]
    drawn = figure.panels[0].spec["datasets"]["rows"]
    assert [row["n_components"] for row in drawn] == [2]
    assert figure.table.rows[0][1] == "-inf"


def test_rounds_that_ended_without_a_word_are_shown():
    section = choice_section(kept(fit=replace(fitted(), stopped="")))
    assert section.name == "rounds"
