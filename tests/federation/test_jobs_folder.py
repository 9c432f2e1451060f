"""A run as files: what is asked for, what happens meanwhile, and what came of it."""

import json
import os
from dataclasses import replace

import pytest

from federation_jobs import job_of, style_job_of
from polyurn.errors import FileError
from polyurn.federation.jobs import JobFolder, runs_of
from polyurn.federation.processes import keep_pid

JOB = job_of("fed")


def test_a_job_is_read_as_it_was_written(tmp_path):
    assert JobFolder.make(tmp_path / "runs", JOB).read() == JOB
    chosen = replace(
        JOB, selects=True, components=(), cohort_size=5, checkpoint="rounds", command="c"
    )
    folder = JobFolder.make(tmp_path / "runs", chosen)
    assert JobFolder(folder.path).read() == chosen


def test_what_a_job_asks_for_is_known_by_its_file(tmp_path):
    style = style_job_of("fed", label_effect=True)
    for job in (style, JOB):
        read = JobFolder.make(tmp_path / "runs", job).read()
        assert type(read) is type(job)
        assert read == job


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


def test_events_are_kept_and_told_as_they_come(tmp_path):
    folder, told = JobFolder.make(tmp_path, JOB), []
    assert folder.events() == []
    folder.on_event = told.append
    folder.tell({"round": 1})
    assert told == [{"round": 1}]
    folder.tell({"round": 2, "log_likelihood": None})
    assert JobFolder(folder.path).events() == told
    assert told[1:] == [{"round": 2, "log_likelihood": None}]


def test_half_a_line_is_no_event_and_the_next_one_takes_its_place(tmp_path):
    folder = JobFolder.make(tmp_path, JOB)
    with open(folder.path / "job.jsonl", "a", encoding="utf-8") as file:
        file.write('{"rou')
    assert folder.events() == []
    folder.tell({"round": 1})
    assert folder.events() == [{"round": 1}]


def test_what_became_of_a_run_is_a_word_or_its_reason(tmp_path):
    folder = JobFolder.make(tmp_path, JOB)
    assert folder.state == "died"
    keep_pid(folder.pid, os.getpid())
    assert folder.state == "running"
    folder.tell({"failed": "too few nodes"})
    assert folder.state == "failed: too few nodes"
    JobFolder.make(tmp_path, JOB).result.write_text("{}")
    assert [run.state for run in runs_of(tmp_path)] == ["failed: too few nodes", "completed"]


def test_a_failure_is_kept_with_its_reason(tmp_path):
    folder = JobFolder.make(tmp_path, JOB)
    folder.tell({"failed": "too few nodes"})
    assert JobFolder(folder.path).state == "failed: too few nodes"
    assert folder.events() == [{"failed": "too few nodes"}]


def test_a_job_that_is_not_there_is_named_and_nothing_is_made(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*job\.jsonl"):
        JobFolder(tmp_path).read()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "polyurn.job", "version": 3}'])
def test_a_damaged_job_is_named(tmp_path, text):
    folder = JobFolder.make(tmp_path, JOB)
    (folder.path / "job.jsonl").write_text(text)
    with pytest.raises(FileError, match=r"job\.jsonl"):
        folder.read()


@pytest.mark.parametrize("asks", ["weather", None, []], ids=str)
def test_a_job_that_asks_for_something_else_is_damaged(tmp_path, asks):
    folder = JobFolder.make(tmp_path, JOB)
    path = folder.path / "job.jsonl"
    path.write_text(json.dumps({**json.loads(path.read_text()), "asks": asks}) + "\n")
    with pytest.raises(FileError, match=r"asks: expected mixture or style"):
        folder.read()
