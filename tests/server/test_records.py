"""What an MDM file keeps of a fit and of a selection."""

import json

import pytest

from polyurn.errors import FileError
from polyurn.server.records import FitRecord, SelectionRecord
from report_material import fitted, selection

FIT, SELECTION = FitRecord.of(fitted()), SelectionRecord.of(selection())


def as_read(record):
    return json.loads(json.dumps(record.to_record(), allow_nan=False))


@pytest.mark.parametrize("record", [FIT, SELECTION], ids=lambda record: type(record).__name__)
def test_a_record_comes_back_from_json_as_it_was(record):
    assert type(record).from_record(as_read(record)) == record


def test_the_record_of_a_fit_is_what_its_rounds_were():
    done = fitted()
    assert FIT.n_rounds == len(FIT.n_numbers_by_round) == done.n_rounds
    assert FIT.log_likelihoods == tuple(done.log_likelihoods)
    last = {path.start: path.values[-1] for path in FIT.paths if path.last_round == done.n_rounds}
    assert last == pytest.approx(dict(done.rounds[-1].starts), abs=1e-6)


def test_the_record_of_a_selection_is_its_table():
    choice = selection()
    assert SELECTION.chosen_candidate.n_components == choice.n_components
    assert [c.behind for c in SELECTION.candidates] == [c.behind for c in choice.candidates]


def test_the_names_in_a_file_are_these():
    assert [*FIT.to_record()] == [
        "n_clients", "fewest_clients", "n_rounds", "converged", "stopped", "n_dropped", "multinomial",
        "n_numbers", "n_numbers_by_round", "log_likelihoods", "paths",
    ]  # fmt: skip
    assert [*SELECTION.to_record()] == [
        "chosen", "skipped", "stopped", "n_rounds", "n_clients", "fewest_clients", "n_held_out",
        "n_numbers", "n_numbers_by_round", "candidates", "paths",
    ]  # fmt: skip
    assert [*SELECTION.to_record()["candidates"][0]] == [
        "n_components", "log_likelihood", "standard_error", "behind", "behind_error", "n_rounds",
        "n_parameters", "n_dropped", "multinomial", "converged", "outdone",
    ]  # fmt: skip
    assert [*FIT.to_record()["paths"][0]] == ["start", "first_round", "values"]


def test_older_files_that_do_not_say_everything_are_read():
    record = as_read(SELECTION)
    for name in ("fewest_clients", "skipped", "stopped"):
        del record[name]
    for candidate in record["candidates"]:
        del candidate["outdone"]
    read = SelectionRecord.from_record(record)
    assert (read.fewest_clients, read.skipped, read.stopped) == (None, (), "")
    assert not any(candidate.outdone for candidate in read.candidates)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"n_rounds": "many"}, "selection.n_rounds: expected an integer of at least 0, got 'many'"),
        ({"chosen": 7}, "selection: expected chosen among the candidates, got 7"),
        ({"candidates": []}, "selection: expected chosen among the candidates, got 2"),
        (
            {"paths": [{"start": 1, "first_round": 2, "values": []}]},
            "selection.paths[0]: expected values of at least one round, got none",
        ),
    ],
    ids=str,
)
def test_a_damaged_record_is_one_line(change, line):
    with pytest.raises(FileError) as error:
        SelectionRecord.from_record({**as_read(SELECTION), **change})
    assert str(error.value) == line


def test_reading_a_file_does_not_load_the_search():
    import subprocess
    import sys

    code = "import sys, polyurn.storage.mdm_json; print('polyurn.server.results' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
