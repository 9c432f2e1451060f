"""Archives of arrays: what they hold, and files that are none."""

import numpy as np
import pytest

from polyurn.errors import FileError
from polyurn.storage.npz_files import read_arrays

NEEDED = ("features", "labels")


def test_arrays_come_as_they_were_written(tmp_path):
    features = np.arange(12).reshape(2, 2, 3)
    np.savez(tmp_path / "r.npz", features=features, labels=[0, 1], clients=["a", "b"])
    read = read_arrays(tmp_path / "r.npz", needed=NEEDED)
    assert np.array_equal(read["features"], features)
    assert read["clients"].tolist() == ["a", "b"]


def test_an_archive_with_other_bytes_is_said_to_be_unreadable(tmp_path):
    np.savez(tmp_path / "r.npz", features=[[1.0]], labels=[0])
    whole = (tmp_path / "r.npz").read_bytes()
    entry = whole.index(b"PK\x01\x02") + 6  # the version of zip that it takes to read it
    end = whole.index(b"PK\x05\x06") + 16  # where the list of entries begins
    for place, other in ((entry, b"\x60"), (end, b"\xff\xff\xff\x7f")):
        changed = whole[:place] + other + whole[place + len(other) :]
        (tmp_path / "r.npz").write_bytes(changed)
        with pytest.raises(FileError, match=r"not a readable \.npz file .*write it again"):
            read_arrays(tmp_path / "r.npz")


def test_files_that_are_no_such_archives_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", x=[1])
    np.save(tmp_path / "one.npy", [1])
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    np.savez(tmp_path / "objects.npz", features=np.array([{}], dtype=object), labels=[0])
    said = {
        "text": "not a readable", "other": "'features' and 'labels', got x", "none": "cannot read",
        "objects": "not a readable", "one": "not a readable",
    }  # fmt: skip
    for name, words in said.items():
        with pytest.raises(FileError, match=words):
            read_arrays(tmp_path / f"{name}.npz", needed=NEEDED)
