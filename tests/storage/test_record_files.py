"""Archives of records: what they hold, and files that are none."""

import numpy as np
import pytest

from polyurn.errors import FileError
from polyurn.storage.record_files import read_record_arrays


def test_features_labels_and_clients_come_as_they_were_written(tmp_path):
    features = np.arange(12).reshape(2, 2, 3)
    np.savez(tmp_path / "r.npz", features=features, labels=[0, 1], clients=["a", "b"])
    read = read_record_arrays(tmp_path / "r.npz")
    assert np.array_equal(read.features, features)
    assert read.clients.tolist() == ["a", "b"]
    assert repr(read) == "RecordArrays(features(2, 2, 3))"


def test_proxy_points_have_no_clients(tmp_path):
    np.savez(tmp_path / "r.npz", features=[[1.0]], labels=[0])
    assert read_record_arrays(tmp_path / "r.npz").clients is None


def test_files_that_are_no_archives_of_records_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", x=[1])
    np.savez(tmp_path / "objects.npz", features=np.array([{}], dtype=object), labels=[0])
    said = {
        "text": "not a readable", "other": "'features' and 'labels', got x", "none": "cannot read",
        "objects": "not a readable",
    }  # fmt: skip
    for name, words in said.items():
        with pytest.raises(FileError, match=words):
            read_record_arrays(tmp_path / f"{name}.npz")
