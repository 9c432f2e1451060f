"""CIFAR-10 in each of its forms, written byte by byte, whole, cut off and wrong."""

import io
import pickle
import struct
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.datasets import cifar10
from polyurn.datasets.cifar_pickles import read_pickle
from polyurn.errors import FileError

BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def text(value):
    return b"U" + bytes([len(value)]) + value


def array_of_bytes(pixels, code=b"u1"):
    """An array as Python 2 and the numpy of 2009 pickled it."""
    n, width = pixels.shape
    return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
        + (b"K" + bytes([n]) + b"M" + struct.pack("<H", width) + b"\x86")
        + (b"cnumpy\ndtype\n" + text(code) + b"K\x00K\x01\x87R")
        + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + (b"\x89T" + struct.pack("<i", pixels.size) + pixels.tobytes() + b"tb")
    )


def python_batch(pixels, labels):
    return (
        b"\x80\x02}("
        + (text(b"batch_label") + text(b"training batch 1 of 5"))
        + (text(b"labels") + b"](" + b"".join(b"K" + bytes([y]) for y in labels) + b"e")
        + (text(b"data") + array_of_bytes(pixels))
        + (text(b"filenames") + b"](" + b"".join(text(b"a.png") for _ in labels) + b"e")
        + b"u."
    )


def binary_batch(pixels, labels):
    return b"".join(bytes([y]) + row.tobytes() for row, y in zip(pixels, labels, strict=True))


WRITERS = {
    "cifar-10-batches-py": ("", python_batch),
    "cifar-10-batches-bin": (".bin", binary_batch),
}


@pytest.fixture
def batches():
    rng = np.random.default_rng(0)
    return {
        name: (rng.integers(0, 256, (3, 3072), dtype=np.uint8), rng.integers(0, 10, 3).tolist())
        for name in BATCHES
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


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_batches_that_a_later_python_wrote_are_read(batches, protocol):
    pixels, labels = batches["test_batch"]
    content = pickle.dumps({b"data": pixels, b"labels": labels}, protocol=protocol)
    batch = read_pickle(content, "it")
    assert batch[b"labels"] == labels
    assert (batch[b"data"] == pixels).all()


@given(st.data())
def test_a_pickle_that_was_cut_off_is_refused(data):
    whole = python_batch(np.zeros((2, 3072), np.uint8), [3, 4])
    with pytest.raises(FileError, match="it is not a batch"):
        read_pickle(whole[: data.draw(st.integers(0, len(whole) - 1))], "it")


@given(st.binary(max_size=60), st.integers(0, 300))
def test_damage_anywhere_ends_in_a_file_error_or_in_nothing_but_data(junk, at):
    whole = python_batch(np.zeros((2, 3072), np.uint8), [3, 4])
    try:
        batch = read_pickle(whole[:at] + junk + whole[at + len(junk) :], "it")
    except FileError:
        return
    assert all(
        isinstance(v, bytes | list | np.ndarray | int | type(None) | str) for v in batch.values()
    )


def test_a_pickle_that_would_fill_the_memory_is_refused():
    with pytest.raises(FileError, match="it speaks of 4294967295 objects"):
        read_pickle(b"\x80\x02}r\xff\xff\xff\xff.", "it")


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


@pytest.mark.parametrize("code", [b"O8", b"f8", b"V9"])
def test_an_array_of_anything_but_bytes_is_refused(code):
    content = (
        b"\x80\x02}" + text(b"data") + array_of_bytes(np.zeros((1, 8), np.uint8), code) + b"s."
    )
    with pytest.raises(FileError, match="not of bytes"):
        read_pickle(content, "it")


def test_a_pickle_cannot_change_what_the_reader_does(batches):
    for name in (
        b"cnumpy.core.multiarray\n_reconstruct\n",
        b"cnumpy\ndtype\n",
        b"cnumpy\nndarray\n",
    ):
        with pytest.raises(FileError):
            read_pickle(b"\x80\x02" + name + b"N}U\x08__call__K\x01s\x86b.", "it")
    pixels, labels = batches["test_batch"]
    assert (read_pickle(python_batch(pixels, labels), "it")[b"data"] == pixels).all()


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
    with pytest.raises(FileError, match=r"cifar-10-python\.tar\.gz.*into .*cifar10.*download=True"):
        cifar10(root=tmp_path)
