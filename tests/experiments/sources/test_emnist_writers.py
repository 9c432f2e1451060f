"""FEMNIST as LEAF's JSON and TFF's HDF5, whole, cut off and wrong."""

import json
import sys
import tarfile

import h5py
import numpy as np
import pytest

from polyurn.errors import FileError, MissingDependencyError
from sources import femnist

WRITERS = {
    "train": {"f0000_14": [3, 10, 36], "f0001_41": [61]},
    "test": {"f0000_14": [4], "f0001_41": [12, 12]},
}


def pictures(labels):
    """Pictures whose pixels tell their label: exact in text and in float32."""
    return np.stack([np.full(784, y / 64) for y in labels])


def leaf(writers):
    return json.dumps(
        {
            "users": list(writers),
            "num_samples": [len(y) for y in writers.values()],
            "hierarchies": ["class_9", "class_\u00e9"],
            "user_data": {name: {"x": pictures(y).tolist(), "y": y} for name, y in writers.items()},
        }
    )


def write_json(folder, splits=WRITERS):
    """One file per writer, as LEAF makes several."""
    for split, writers in splits.items():
        (folder / split).mkdir(parents=True)
        for j, (name, labels) in enumerate(writers.items()):
            (folder / split / f"all_data_{j}_niid_0_keep_0_{split}_9.json").write_text(
                leaf({name: labels})
            )


def write_hdf5(folder, splits=WRITERS):
    for split, writers in splits.items():
        with h5py.File(folder / f"fed_emnist_{split}.h5", "w") as file:
            for name, labels in writers.items():
                pixels = pictures(labels).reshape(-1, 28, 28).astype(np.float32)
                file[f"examples/{name}/pixels"] = pixels
                file[f"examples/{name}/label"] = np.array(labels, np.int32)


def check(dataset):
    for split, writers in WRITERS.items():
        records = getattr(dataset, split)
        assert records.client_ids.tolist() == list(writers)
        assert records.features.dtype == np.float32
        assert records.features.shape == (len(records.labels), 28, 28)
        assert (records.features == (records.labels / 64)[:, None, None]).all()
        for client, labels in enumerate(writers.values()):
            assert records.labels[records.clients == client].tolist() == labels
    assert dataset.histograms().shape == (2, 62)
    assert [dataset.categories[j] for j in (3, 10, 36, 61)] == ["3", "A", "a", "z"]


@pytest.mark.parametrize("below", [".", "femnist", "data", "femnist/data"])
def test_json_is_read_from_all_files(tmp_path, below):
    write_json(tmp_path / below)
    check(femnist(root=tmp_path))


def test_hdf5_is_read(tmp_path):
    write_hdf5(tmp_path)
    check(femnist(root=tmp_path))


def test_the_archive_is_unpacked_once(tmp_path):
    write_hdf5(tmp_path)
    archive = tmp_path / "fed_emnist.tar.bz2"
    with tarfile.open(archive, "w:bz2") as tar:
        for split in WRITERS:
            tar.add(tmp_path / f"fed_emnist_{split}.h5", f"fed_emnist_{split}.h5")
    names = {path.name for path in tmp_path.iterdir()}
    for split in WRITERS:
        (tmp_path / f"fed_emnist_{split}.h5").unlink()
    check(femnist(root=tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == names
    check(femnist(root=tmp_path))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_an_archive_that_was_cut_off_leaves_nothing_behind(tmp_path, share):
    write_hdf5(tmp_path)
    archive = tmp_path / "fed_emnist.tar.bz2"
    with tarfile.open(archive, "w:bz2") as tar:
        tar.add(tmp_path / "fed_emnist_train.h5", "fed_emnist_train.h5")
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(share * len(whole))])
    for split in WRITERS:
        (tmp_path / f"fed_emnist_{split}.h5").unlink()
    with pytest.raises(FileError, match=r"fed_emnist\.tar\.bz2"):
        femnist(root=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["fed_emnist.tar.bz2"]


def test_an_archive_without_one_of_the_files_is_refused(tmp_path):
    write_hdf5(tmp_path)
    with tarfile.open(tmp_path / "fed_emnist.tar.bz2", "w:bz2") as tar:
        tar.add(tmp_path / "fed_emnist_train.h5", "fed_emnist_train.h5")
    (tmp_path / "fed_emnist_test.h5").unlink()
    with pytest.raises(FileError, match=r"it lacks fed_emnist_test\.h5"):
        femnist(root=tmp_path)


WHOLE = json.dumps(
    {"users": ["a", "b"], "user_data": {"a": {"x": [[0.5]], "y": [1]}, "b": {"y": [2], "x": [[1]]}}}
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected '{' at position 0"),
        ("{}", "expected user_data"),
        ('{"users": []}', "expected user_data"),
        (WHOLE + "x", "expected nothing after"),
        ('{"user_data": {"a": {"x": [[1]]}}}', "expected x and y"),
        ('{"user_data": {"a": [1]}}', "expected x and y"),
        ('{"user_data": {"a": {"x": [[1], [1, 2]], "y": [1, 2]}}}', "inhomogeneous"),
        ('{"user_data": {"a": {"x": [[null]], "y": [1]}}}', "expected 1 pictures"),
        ('{"user_data": {"a": {"x": [["b"]], "y": [1]}}}', "could not convert"),
        ('{"user_data": {"a": {"x": [[1]], "y": [1]}}}', "expected 1 pictures of 28 x 28"),
        ('{"user_data": {}}', "expected writers with pictures"),
        ('{"user_data": ' + "[" * 100_000, "damaged"),
    ],
)
def test_wrong_json_is_named(tmp_path, text, message):
    write_json(tmp_path, {"train": {"a": [1]}, "test": {"a": [1]}})
    path = next((tmp_path / "train").iterdir())
    path.write_text(text)
    with pytest.raises(FileError, match=message) as raised:
        femnist(root=tmp_path)
    assert "train" in str(raised.value)


def test_a_label_beyond_the_letters_is_refused(tmp_path):
    write_json(tmp_path, {"train": {"a": [62]}, "test": {"a": [1]}})
    with pytest.raises(FileError, match=r"labels from 0 to 61 .* got 62"):
        femnist(root=tmp_path)


@pytest.mark.parametrize("pixel", ["null", "NaN", "1e999"])
def test_a_pixel_that_is_no_number_is_refused(tmp_path, pixel):
    write_json(tmp_path)
    text = leaf({"a": [0]}).replace("[[0.0,", f"[[{pixel},")
    (tmp_path / "train" / "more.json").write_text(text)
    with pytest.raises(FileError, match=r"expected numbers as pixels in .*more\.json"):
        femnist(root=tmp_path)


def test_a_writer_in_two_files_is_refused(tmp_path):
    write_json(tmp_path)
    (tmp_path / "train" / "more.json").write_text(leaf({"f0000_14": [1]}))
    with pytest.raises(FileError, match="expected every writer once"):
        femnist(root=tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    write_json(tmp_path)
    (tmp_path / "train" / "more.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(FileError, match=r"more\.json is damaged"):
        femnist(root=tmp_path)


def test_hdf5_that_is_cut_off_or_wrong_is_named(tmp_path):
    write_hdf5(tmp_path)
    path = tmp_path / "fed_emnist_train.h5"
    whole = path.read_bytes()
    for end in (0, 100, len(whole) // 2):
        path.write_bytes(whole[:end])
        with pytest.raises(FileError, match=r"fed_emnist_train\.h5"):
            femnist(root=tmp_path)
    for wrong in ({"other": [1]}, {"examples/a/pixels": np.zeros((1, 28, 28), np.float32)}):
        with h5py.File(path, "w") as file:
            for name, value in wrong.items():
                file[name] = value
        with pytest.raises(FileError, match=r"fed_emnist_train\.h5"):
            femnist(root=tmp_path)
    for pixels, label in ((np.zeros((2, 28, 28)), [1]), (np.zeros((1, 14, 14)), [1])):
        with h5py.File(path, "w") as file:
            file["examples/a/pixels"] = pixels.astype(np.float32)
            file["examples/a/label"] = np.array(label, np.int32)
        with pytest.raises(FileError, match="expected 1 pictures"):
            femnist(root=tmp_path)


def test_a_missing_h5py_is_said(tmp_path, monkeypatch):
    write_hdf5(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingDependencyError, match=r"h5py: pip install 'polyurn\[datasets\]'"):
        femnist(root=tmp_path)


def test_without_files_the_error_names_them(tmp_path):
    with pytest.raises(FileError, match=r"fed_emnist_train\.h5.*LEAF.*into .*femnist"):
        femnist(root=tmp_path)
