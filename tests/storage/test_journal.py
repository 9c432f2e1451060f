"""The record of a run's rounds on disk."""

import json
import os

import numpy as np
import pytest

from full_disk import full_disk
from polyurn import Journal
from polyurn.errors import FileError


def test_other_settings_are_refused(tmp_path):
    Journal(tmp_path, {"seed": 1})
    with pytest.raises(FileError, match="other settings"):
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
    return folder / "round-0001.npy", folder / "round-0002.npy"


def test_rounds_come_back_as_they_were_and_numpy_reads_them_too(tmp_path):
    first, _ = two_rounds(tmp_path)
    journal = Journal(tmp_path, {"seed": 1})
    assert [journal[i].tolist() for i in range(len(journal))] == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    assert np.load(first).tolist() == [0, 1, 2, 3, 4]


def test_a_damaged_checkpoint_is_not_believed_whichever_byte_of_a_round_is_another(tmp_path):
    first, _ = two_rounds(tmp_path)
    whole = first.read_bytes()
    for i in range(len(whole)):
        first.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(FileError, match=f"{first} is damaged: delete it to ask again"):
            Journal(tmp_path, {"seed": 1})[0]
    for end in range(len(whole)):
        first.write_bytes(whole[:end])
        with pytest.raises(FileError, match="is damaged: delete it to ask again"):
            Journal(tmp_path, {"seed": 1})[0]


def test_a_round_in_the_place_of_another_or_from_another_run_is_not_believed(tmp_path):
    first, second = two_rounds(tmp_path / "one")
    second.write_bytes(first.read_bytes())
    with pytest.raises(FileError, match=r"round-0002\.npy is damaged"):
        Journal(tmp_path / "one", {"seed": 1})[1]
    other = Journal(tmp_path / "other", {"seed": 2})
    other.append(np.arange(5.0))
    (tmp_path / "other" / "round-0001.npy").write_bytes(first.read_bytes())
    with pytest.raises(FileError, match=r"round-0001\.npy is damaged"):
        other[0]


def test_a_folder_of_another_version_or_with_damaged_settings_says_so(tmp_path):
    two_rounds(tmp_path)
    settings = tmp_path / "settings.json"
    for text, words in (
        (
            settings.read_text().replace('"version": 7', '"version": 6'),
            "another version of polyurn",
        ),
        ("{", r"settings\.json is damaged; take an empty folder"),
        ("[]", r"settings\.json is damaged"),
    ):
        settings.write_text(text)
        with pytest.raises(FileError, match=words):
            Journal(tmp_path, {"seed": 1})


def test_a_full_disk_in_a_checkpoint_says_the_cause_what_is_kept_and_how_to_go_on(tmp_path):
    two_rounds(tmp_path)
    journal = Journal(tmp_path, {"seed": 1})
    before = sorted(os.listdir(tmp_path))
    with full_disk(100), pytest.raises(FileError) as error:
        journal.append(np.arange(100.0))
    assert str(error.value) == (
        f"cannot write {tmp_path}/round-0003.npy: File too large; the 2 rounds before it are kept: "
        "repeat the command, or the call, when there is a place for more"
    )
    assert sorted(os.listdir(tmp_path)) == before
    assert len(Journal(tmp_path, {"seed": 1})) == 2


def test_what_a_killed_process_left_half_written_does_not_refuse_the_folder(tmp_path):
    left, old = tmp_path / f".polyurn-{0:016x}", tmp_path / f".polyurn-{1:016x}"
    for place in (left, old):
        place.write_bytes(b"half")
    os.utime(old, (0, 0))
    Journal(tmp_path, {"seed": 1})
    assert sorted(os.listdir(tmp_path)) == [left.name, "settings.json"]


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot use"):
        Journal(tmp_path / "file", {})


def test_settings_are_kept_readable(tmp_path):
    Journal(tmp_path / "new" / "folder", {"seed": 3})
    kept = json.loads((tmp_path / "new" / "folder" / "settings.json").read_text())
    assert kept["settings"] == {"seed": 3}
