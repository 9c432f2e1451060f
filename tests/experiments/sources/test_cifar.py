"""CIFAR-10 in each of its forms, written byte by byte, whole, cut off and wrong."""

import io
import pickle
import tarfile

import numpy as np
import pytest
from sources.cifar_pickles import read_pickle

from dataset_files import BATCHES, python_batch
from polyurn.errors import FileError
from sources import cifar10


def binary_batch(pixels, labels):
    return b"".join(bytes([y]) + row.tobytes() for row, y in zip(pixels, labels, strict=True))


WRITERS = {
    "cifar-10-batches-py": ("", python_batch),
    "cifar-10-batches-bin": (".bin", binary_batch),
}


def write(folder, batches, kind):
    suffix, writer = WRITERS[kind]
    (folder / kind).mkdir(parents=True)
    for name, (pixels, labels) in batches.items():
        (folder / kind / f"{name}{suffix}").write_bytes(writer(pixels, labels))


def pack(folder, kind, archive):
    with tarfile.open(folder / archive, "w:gz") as tar:
        tar.add(folder / kind, kind)
    for path in (folder / kind).iterdir():
        path.unlink()
    (folder / kind).rmdir()


def check(dataset, batches):
    for records, names in ((dataset.train, BATCHES[:5]), (dataset.test, BATCHES[5:])):
        assert records.labels.tolist() == [y for name in names for y in batches[name][1]]
        pixels = np.concatenate([batches[name][0] for name in names])
        # The file has 1,024 bytes of red, then green, then blue, each row by row.
        for colour in range(3):
            plane = pixels[:, 1024 * colour : 1024 * (colour + 1)]
            assert (records.features[..., colour].reshape(-1, 1024) == plane).all()
    assert dataset.categories[6] == "frog"


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("below", ["", "cifar10"])
def test_both_versions_are_read_as_they_are_unpacked(tmp_path, batches, kind, below):
    write(tmp_path / below, batches, kind)
    check(cifar10(root=tmp_path), batches)


@pytest.mark.parametrize(
    ("kind", "archive"),
    [
        ("cifar-10-batches-py", "cifar-10-python.tar.gz"),
        ("cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
    ],
)
def test_both_versions_are_read_as_they_come(tmp_path, batches, kind, archive):
    write(tmp_path, batches, kind)
    pack(tmp_path, kind, archive)
    check(cifar10(root=tmp_path), batches)
    check(cifar10(root=tmp_path / archive), batches)
    whole = (tmp_path / archive).read_bytes()
    for end in (0, 10, len(whole) // 2, len(whole) - 9):
        (tmp_path / archive).write_bytes(whole[:end])
        with pytest.raises(FileError, match=r"tar\.gz"):
            cifar10(root=tmp_path)


def test_an_archive_without_a_batch_is_refused(tmp_path, batches):
    del batches["data_batch_4"]
    write(tmp_path, batches, "cifar-10-batches-py")
    pack(tmp_path, "cifar-10-batches-py", "cifar-10-python.tar.gz")
    with pytest.raises(FileError, match="it lacks data_batch_4"):
        cifar10(root=tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        b"cos\nsystem\n(S'touch owned'\ntR.",
        b'cbuiltins\neval\n(S\'open("owned", "w")\'\ntR.',
        b'c__builtin__\nexec\n(S\'open("owned", "w")\'\ntR.',
        b"cnumpy\nload\n(S'owned'\ntR.",
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x0btouch owned\x85R.",
    ],
)
def test_a_pickle_that_asks_for_anything_else_is_refused(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match="which no batch needs"):
        read_pickle(call, "it")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps([1, 2], protocol=2), "expected a dictionary"),
        (pickle.dumps({"data": 1}, protocol=2), "expected data and labels"),
        (python_batch(np.zeros((2, 3071), np.uint8), [1, 2]), "expected 3072 pixels"),
        (python_batch(np.zeros((2, 3072), np.uint8), [1]), "expected 3072 pixels for each of 1"),
        (python_batch(np.zeros((2, 3072), np.uint8), [1, 10]), "labels from 0 to 9"),
    ],
)
def test_a_wrong_python_batch_is_named(tmp_path, batches, content, message):
    write(tmp_path, batches, "cifar-10-batches-py")
    (tmp_path / "cifar-10-batches-py" / "data_batch_2").write_bytes(content)
    with pytest.raises(FileError, match=message) as raised:
        cifar10(root=tmp_path)
    assert "data_batch_2" in str(raised.value)


def test_a_wrong_binary_batch_is_named(tmp_path, batches):
    write(tmp_path, batches, "cifar-10-batches-bin")
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    whole = path.read_bytes()
    for content, message in [
        (whole[:-1], "expected a multiple of 3073 bytes, got 9218"),
        (whole[:-3073], "was cut off: it holds 2 pictures, another 3"),
        (b"", "at least one label"),
        (b"\x0a" + whole[1:], "labels from 0 to 9 .* got 10 at position 0"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=message) as raised:
            cifar10(root=tmp_path)
        assert "data_batch_3.bin" in str(raised.value)


def test_arrays_are_read_and_damaged_ones_named(tmp_path):
    arrays = {
        "train_x": np.zeros((4, 32, 32, 3), np.uint8),
        "train_y": np.array([0, 1, 2, 9], np.uint8),
        "test_x": np.ones((2, 32, 32, 3), np.uint8),
        "test_y": np.array([3, 3], np.uint8),
    }
    path = tmp_path / "images.npz"
    np.savez(path, **arrays)
    assert cifar10(root=tmp_path).train.labels.tolist() == [0, 1, 2, 9]
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(FileError, match="damaged or cut off"):
        cifar10(root=tmp_path)
    for name, wrong, message in [
        ("train_y", np.array([0, 1, 2, 11]), "got 11 at position 3"),
        ("train_y", np.array([0.5, 1, 2, 3]), "whole numbers"),
        ("train_x", np.zeros((4, 3072), np.uint8), "expected 4 axes of train_x"),
        ("test_x", np.array([{}, {}], dtype=object), "pickled"),
        ("test_x", np.zeros((1, 32, 32, 3), np.uint8), "pictures of 32 x 32"),
        ("test_x", np.zeros((2, 28, 28, 1), np.uint8), "pictures of 32 x 32"),
    ]:
        np.savez(path, **arrays | {name: wrong})
        with pytest.raises(FileError, match=message):
            cifar10(root=tmp_path)
    file = io.BytesIO()
    np.save(file, arrays["train_x"])
    path.write_bytes(file.getvalue())
    with pytest.raises(FileError, match="not an npz"):
        cifar10(root=tmp_path)


def test_without_files_the_error_names_them(tmp_path):
    with pytest.raises(FileError, match=r"cifar-10-python\.tar\.gz.*download=True"):
        cifar10(root=tmp_path)
