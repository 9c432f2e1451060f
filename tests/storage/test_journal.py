"""The record of a run's rounds on disk."""

import json

import numpy as np
import pytest

from polyurn import Journal
from polyurn.errors import FileError


def test_other_settings_are_refused(tmp_path):
    Journal(tmp_path, {"seed": 1})
    with pytest.raises(FileError, match="other settings"):
        Journal(tmp_path, {"seed": 2})


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(FileError, match="something else"):
        Journal(tmp_path, {})
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_damaged_round_is_refused_with_advice(tmp_path):
    Journal(tmp_path, {}).append(np.arange(5.0))
    (tmp_path / "round-0001.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(FileError, match="delete it to ask again"):
        Journal(tmp_path, {})[0]


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot use"):
        Journal(tmp_path / "file", {})


def test_settings_are_kept_readable(tmp_path):
    Journal(tmp_path / "new" / "folder", {"seed": 3})
    kept = json.loads((tmp_path / "new" / "folder" / "settings.json").read_text())
    assert kept["settings"] == {"seed": 3}
