"""The log of a run's rounds on disk."""

import json
import os

import numpy as np
import pytest

from full_disk import full_disk
from polyurn import Journal
from polyurn.errors import FileError


def test_other_settings_are_refused(tmp_path):
    Journal(tmp_path, {"seed": 1})
    with pytest.raises(FileError, match="differs in settings"):
        Journal(tmp_path, {"seed": 2})


def test_a_record_keeps_its_name_wherever_its_folder_is(tmp_path):
    name = Journal(tmp_path / "rounds", {}).name
    assert Journal(tmp_path / "rounds", {}).name == name
    os.rename(tmp_path / "rounds", tmp_path / "moved")
    assert Journal(tmp_path / "moved", {}).name == name
    assert Journal(tmp_path / "rounds", {}).name != name


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(FileError, match="something else"):
        Journal(tmp_path, {})
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def two_rounds(folder):
    journal = Journal(folder, {"seed": 1})
    for i in range(2):
        journal.append(np.arange(5.0) + i)
    return folder / "rounds.jsonl"


def test_rounds_come_back_as_they_were(tmp_path):
    two_rounds(tmp_path)
    journal = Journal(tmp_path, {"seed": 1})
    assert [journal[i].tolist() for i in range(len(journal))] == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]


def kept(folder):
    journal = Journal(folder, {"seed": 1})
    return [journal[i].tolist() for i in range(len(journal))]


def test_a_damaged_checkpoint_is_not_believed_whichever_byte_of_it_is_another(tmp_path):
    place = two_rounds(tmp_path)
    whole, rounds = place.read_bytes(), kept(tmp_path)
    for i in range(len(whole)):
        place.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(FileError, match=r"rounds\.jsonl"):
            kept(tmp_path)
    for end in range(len(whole)):
        place.write_bytes(whole[:end])
        assert kept(tmp_path) == rounds[: len(kept(tmp_path))]


def test_a_round_in_the_place_of_another_or_from_another_run_is_not_believed(tmp_path):
    place = two_rounds(tmp_path / "one")
    head, first, second = place.read_text().splitlines(keepends=True)
    for lines in ([head, first, first], [head, second], [head, second, first]):
        place.write_text("".join(lines))
        with pytest.raises(FileError, match="damaged: it is not the line"):
            Journal(tmp_path / "one", {"seed": 1})
    Journal(tmp_path / "other", {"seed": 2})
    other = tmp_path / "other" / "rounds.jsonl"
    other.write_text(other.read_text() + first)
    with pytest.raises(FileError, match=r"line 2, is damaged: .* delete it"):
        Journal(tmp_path / "other", {"seed": 2})


def test_a_folder_of_another_version_or_with_damaged_settings_says_so(tmp_path):
    place = two_rounds(tmp_path)
    whole = place.read_text()
    for text, words in (
        (whole.replace('"search_version": 7', '"search_version": 6'), "differs in search_version"),
        ("[]\n", r"rounds\.jsonl is not the log of a run"),
    ):
        place.write_text(text)
        with pytest.raises(FileError, match=words):
            Journal(tmp_path, {"seed": 1})


def test_a_full_disk_in_a_checkpoint_says_the_cause_what_is_kept_and_how_to_go_on(tmp_path):
    two_rounds(tmp_path)
    journal = Journal(tmp_path, {"seed": 1})
    before = sorted(os.listdir(tmp_path))
    with full_disk(100), pytest.raises(FileError) as error:
        journal.append(np.arange(100.0))
    assert str(error.value) == (
        f"cannot write {tmp_path}/rounds.jsonl: File too large; the 2 rounds before it are kept: "
        "repeat the command, or the call, when there is space for more"
    )
    assert sorted(os.listdir(tmp_path)) == before
    assert len(Journal(tmp_path, {"seed": 1})) == 2


def test_what_a_killed_process_left_half_written_does_not_refuse_the_folder(tmp_path):
    left, old = tmp_path / f".polyurn-{0:016x}", tmp_path / f".polyurn-{1:016x}"
    for place in (left, old):
        place.write_bytes(b"half")
    os.utime(old, (0, 0))
    Journal(tmp_path, {"seed": 1})
    assert sorted(os.listdir(tmp_path)) == [left.name, "rounds.jsonl"]


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot use"):
        Journal(tmp_path / "file", {})


def test_settings_are_kept_readable(tmp_path):
    Journal(tmp_path / "new" / "folder", {"seed": 3})
    head = (tmp_path / "new" / "folder" / "rounds.jsonl").read_text().splitlines()[0]
    assert json.loads(head)["settings"] == {"seed": 3}
