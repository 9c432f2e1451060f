"""A run as files: what is asked for, what happens meanwhile, and what came of it."""

import json
from dataclasses import replace

import pytest

from federation_jobs import job_of
from polyurn.errors import FileError, ParameterError
from polyurn.storage.federation_job import JobFolder

JOB = job_of("fed")


def test_a_job_is_read_as_it_was_written(tmp_path):
    assert JobFolder.make(tmp_path / "runs", JOB).read() == JOB
    chosen = replace(JOB, selects=True, components=(), cohort=5, checkpoint="rounds", command="c")
    folder = JobFolder.make(tmp_path / "runs", chosen)
    assert JobFolder(folder.path).read() == chosen


def test_every_run_has_a_folder_of_its_own(tmp_path):
    (tmp_path / "notes").mkdir()
    names = [JobFolder.make(tmp_path, JOB).path.name for _ in range(3)]
    assert names == ["0001", "0002", "0003"]
    (tmp_path / "0041").mkdir()
    assert JobFolder.make(tmp_path, JOB).path.name == "0042"


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(FileError, match="cannot write"):
        JobFolder.make(tmp_path / "runs", JOB)


def test_a_run_goes_on_only_with_the_settings_that_decide_about_its_rounds():
    assert replace(JOB, timeout=5.0, settling=1.0, retries=0, command="c").settings == JOB.settings
    assert replace(JOB, rounds=50).settings == JOB.settings
    for other in (
        {"seed": 1},
        {"secure": False},
        {"cohort": 2},
        {"tol": 0.1},
        {"components": (3,)},
    ):
        assert replace(JOB, **other).settings != JOB.settings
    selection = replace(JOB, selects=True)
    assert replace(selection, rounds=50).settings != selection.settings
    json.dumps(JOB.settings)


PRIVATE = replace(JOB, epsilon=1.0, delta=1e-6, trust="distributed")


def test_a_private_run_goes_on_with_the_same_guarantee_and_a_larger_budget():
    assert replace(PRIVATE, ledger_epsilon=2.0).settings == PRIVATE.settings
    for other in ({"epsilon": 2.0}, {"delta": 1e-7}, {"trust": "local"}):
        assert replace(PRIVATE, **other).settings != PRIVATE.settings
    assert PRIVATE.settings != JOB.settings


@pytest.mark.parametrize(
    ("job", "other", "why"),
    [
        (JOB, {"delta": 1e-6}, "with epsilon only"),
        (JOB, {"trust": "local"}, "with epsilon only"),
        (PRIVATE, {"delta": None}, "expected delta with epsilon"),
        (PRIVATE, {"epsilon": -1.0}, "epsilon above 0"),
        (PRIVATE, {"ledger_epsilon": 0.0}, "epsilon above 0"),
        (PRIVATE, {"trust": "nobody"}, "expected trust distributed, central, local in secure sums"),
        (PRIVATE, {"secure": False}, "expected trust central, local in plain sums"),
        (PRIVATE, {"selects": True, "components": ()}, "got auto"),
        (PRIVATE, {"cohort": 3}, "no cohort"),
        (PRIVATE, {"sizes": "exact"}, "binned or shared"),
    ],
)
def test_a_guarantee_that_cannot_be_given_is_refused(job, other, why):
    with pytest.raises(ParameterError, match=why):
        replace(job, **other)


def test_events_come_as_they_are_told_and_none_where_there_is_no_new_one(tmp_path):
    folder = JobFolder.make(tmp_path, JOB)
    events = folder.events()
    assert next(events) is None
    folder.tell({"round": 1})
    folder.tell({"round": 2, "log_likelihood": None})
    told = [next(events) for _ in range(3)]
    assert told == [{"round": 1}, {"round": 2, "log_likelihood": None}, None]


def test_half_a_line_is_no_event_until_it_is_whole(tmp_path):
    folder = JobFolder.make(tmp_path, JOB)
    events = folder.events()
    with open(folder.path / "events.jsonl", "a", encoding="utf-8") as file:
        file.write('{"rou')
        file.flush()
        assert next(events) is None
        file.write('nd": 1}\n')
    assert next(events) == {"round": 1}


def test_a_failure_is_kept_with_its_reason(tmp_path):
    folder = JobFolder.make(tmp_path, JOB)
    assert folder.failure is None
    folder.fail("too few nodes")
    assert JobFolder(folder.path).failure == "too few nodes"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "polyurn.job", "version": 1}'])
def test_a_damaged_job_is_named(tmp_path, text):
    folder = JobFolder.make(tmp_path, JOB)
    (folder.path / "job.json").write_text(text)
    with pytest.raises(FileError, match=r"job\.json"):
        folder.read()
