"""The record of a sweep on disk."""

import json

import pytest

from polyurn.errors import FileError
from polyurn.storage.run_log import RunLog, RunRecord, read_runs
from sweep_cases import small_sweep


def test_records_come_back_from_json_as_they_were():
    for run in small_sweep(seeds=[0]).runs:
        assert RunRecord.from_json(run.to_json()) == run


def test_two_sweeps_cannot_write_to_one_folder(tmp_path):
    with RunLog(tmp_path, {"a": 1}), pytest.raises(FileError, match="another sweep is running"):
        RunLog(tmp_path, {"a": 1})


def test_a_damaged_line_is_named(tmp_path):
    small_sweep(tmp_path, seeds=[0])
    log = tmp_path / "runs.jsonl"
    lines = log.read_text().splitlines()
    for damage in ("{", "[]", json.dumps({"format": "other"}), lines[1].replace('"seed"', '"sed"')):
        log.write_text("\n".join([lines[0], damage, *lines[2:], ""]))
        with pytest.raises(FileError, match=r"runs\.jsonl, line 2: not a run"):
            read_runs(tmp_path)
    log.write_text(lines[0].replace('"version": 1', '"version": 2') + "\n")
    with pytest.raises(FileError, match="later version"):
        read_runs(tmp_path)
    with pytest.raises(FileError, match="cannot read"):
        read_runs(tmp_path / "nowhere")
