"""The log of a node: whole lines, never rewritten, and rounds are counted from it."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from polyurn.errors import FileError
from polyurn.federation import node_log as node_log_file
from polyurn.federation.messages import Refusal
from polyurn.federation.node_log import LogEntry, NodeLogFile

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def entry(minutes, stage="plain", refusal=None):
    return LogEntry(NOW + timedelta(minutes=minutes), stage, "survey", 7, refusal)


def test_lines_are_appended_and_read_by_a_later_process(tmp_path):
    NodeLogFile(tmp_path / "log").append(entry(0))
    NodeLogFile(tmp_path / "log").append(entry(1, refusal=Refusal.TOO_OFTEN))
    lines = (tmp_path / "log").read_text().splitlines()
    assert [LogEntry.parse(line) for line in lines] == [
        entry(0), entry(1, refusal=Refusal.TOO_OFTEN),
    ]  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_only_its_owner_can_read_it(tmp_path):
    NodeLogFile(tmp_path / "log")
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_rounds_are_the_messages_in_which_clients_were_looked_at(tmp_path):
    log = NodeLogFile(tmp_path / "log")
    for one in (
        entry(0), entry(1, "advertise"), entry(2, "mask"), entry(3, "reveal"),
        entry(4, refusal=Refusal.SECURE_ONLY), entry(5, refusal=Refusal.NO_ANSWER),
    ):  # fmt: skip
        log.append(one)
    assert log.n_rounds_since(NOW) == 3
    assert log.n_rounds_since(NOW + timedelta(minutes=2)) == 2
    assert log.n_rounds_since(NOW + timedelta(minutes=6)) == 0


def test_rounds_are_counted_beyond_any_number_of_refusals(tmp_path, monkeypatch):
    monkeypatch.setattr(node_log_file, "_BLOCK", 100)
    log = NodeLogFile(tmp_path / "log")
    for minute in range(3):
        log.append(entry(minute))
    for _ in range(200):
        log.append(entry(3, refusal=Refusal.SECURE_ONLY))
    assert log.n_rounds_since(NOW) == 3
    assert log.n_rounds_since(NOW + timedelta(minutes=1)) == 2


def test_a_stage_that_was_answered_is_found_by_its_round_until_it_is_too_old(tmp_path):
    log = NodeLogFile(tmp_path / "log")
    log.append(LogEntry(NOW, "advertise", "survey", round_name="5f"))
    log.append(LogEntry(NOW, "confirm", "survey", round_name="5f"))
    log.append(LogEntry(NOW, "reveal", "survey", refusal=Refusal.FAILED, round_name="5f"))
    with (tmp_path / "log").open("a") as file:
        file.write("1 note of 5f\n")  # its owner's own, which is older than no line
    log.append(entry(1))
    assert log.has_answered("confirm", "5f", since=NOW)
    assert log.has_answered("advertise", "5f", since=NOW)
    assert not log.has_answered("mask", "5f", since=NOW)
    assert not log.has_answered("reveal", "5f", since=NOW)
    assert not log.has_answered("advertise", "5f", since=NOW + timedelta(seconds=1))


def test_a_line_that_was_cut_off_is_ended_and_passed_over(tmp_path):
    log = NodeLogFile(tmp_path / "log")
    log.append(entry(0))
    with open(tmp_path / "log", "ab") as file:
        file.write(b"2026-11-17 12:01")
    log.append(entry(2))
    assert (tmp_path / "log").read_text().splitlines()[1:] == ["2026-11-17 12:01", entry(2).line()]
    assert log.n_rounds_since(NOW) == 2


def test_a_write_that_fails_leaves_whole_lines(tmp_path, monkeypatch):
    log = NodeLogFile(tmp_path / "log")
    log.append(entry(0))
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(FileError, match="No space left"):
        log.append(entry(1))
    monkeypatch.undo()
    assert (tmp_path / "log").read_text() == entry(0).line() + "\n"


def test_a_place_that_cannot_be_used_is_one_line(tmp_path):
    with pytest.raises(FileError, match="cannot use") as error:
        NodeLogFile(tmp_path / "none" / "log")
    assert "\n" not in str(error.value)
