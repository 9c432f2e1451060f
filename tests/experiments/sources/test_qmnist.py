"""MNIST's pictures with QMNIST's writers, whole and wrong."""

import gzip

import numpy as np
import pytest

from dataset_files import idx
from polyurn.datasets import Dataset
from polyurn.errors import FileError
from sources import mnist_by_writer

LABELS = {"train": [5, 0, 4, 1], "test": [7, 2]}
WRITERS = {"train": [39, 2100, 39, 7], "test": [526, 526]}
NAMES = {"train": "train", "test": "t10k"}


def files():
    """The six files of a small MNIST; QMNIST's test labels go on beyond MNIST's."""
    made = {}
    for split, labels in LABELS.items():
        images = np.arange(len(labels) * 784, dtype=np.uint8).reshape(-1, 28, 28)
        table = np.zeros((len(labels) + 3 * (split == "test"), 8), np.int32)
        table[: len(labels), 0], table[: len(labels), 2] = labels, WRITERS[split]
        made[f"{NAMES[split]}-images-idx3-ubyte"] = idx(images)
        made[f"{NAMES[split]}-labels-idx1-ubyte"] = idx(np.array(labels, np.uint8))
        made[f"qmnist-{split}-labels-idx2-int"] = idx(table)
    return made


def write(folder, made, packed=()):
    for name, content in made.items():
        if name in packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


@pytest.mark.parametrize("packed", [(), tuple(files()), ("train-labels-idx1-ubyte",)])
def test_pictures_and_writers_are_brought_together(tmp_path, packed):
    write(tmp_path, files(), packed)
    dataset = mnist_by_writer(root=tmp_path)
    assert dataset.train.labels.tolist() == LABELS["train"]
    assert dataset.train.client_ids.tolist() == ["0007", "0039", "2100"]
    assert dataset.train.clients.tolist() == [1, 2, 1, 0]
    assert dataset.test.labels.tolist() == LABELS["test"]
    assert dataset.test.client_ids.tolist() == ["0526"]
    assert dataset.train.features.dtype == np.uint8
    assert dataset.train.features.flags.writeable  # torch warns of what is not
    assert dataset.train.features[1, 0, :3].tolist() == [784 % 256, 785 % 256, 786 % 256]
    assert Dataset("test", dataset.categories, dataset.test).histograms().tolist() == [
        [0, 0, 1, 0, 0, 0, 0, 1, 0, 0]
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train-images-idx3-ubyte", b"PNG\r\n\x1a\n", "not an idx file: it starts with 504e470d"),
        ("train-images-idx3-ubyte", idx(np.zeros((3, 28, 28), np.uint8)), "3 pictures, 4 labels"),
        ("train-images-idx3-ubyte", idx(np.zeros((4, 20, 20), np.uint8)), "pictures of 28 x 28"),
        ("train-images-idx3-ubyte", idx(np.zeros((4, 28, 28), np.int32)), "pictures of 28 x 28"),
        ("qmnist-train-labels-idx2-int", idx(np.zeros((4, 8), np.int32)), "their digits differ"),
        ("qmnist-train-labels-idx2-int", idx(np.zeros((2, 8), np.int32)), "their digits differ"),
        ("qmnist-train-labels-idx2-int", idx(np.zeros((4, 3), np.int32)), "expected 8 columns"),
        ("t10k-labels-idx1-ubyte", idx(np.zeros((2, 1), np.uint8)), "list of whole numbers"),
        ("t10k-labels-idx1-ubyte", idx(np.zeros(0, np.uint8)), "at least one label"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, name, content, message):
    write(tmp_path, files() | {name: content})
    with pytest.raises(FileError, match=message):
        mnist_by_writer(root=tmp_path)


def test_a_label_that_is_no_digit_is_refused(tmp_path):
    made = files()
    table = np.zeros((4, 8), np.int32)
    table[:, 0] = 11
    made["train-labels-idx1-ubyte"] = idx(np.full(4, 11, np.uint8))
    made["qmnist-train-labels-idx2-int"] = idx(table)
    write(tmp_path, made)
    with pytest.raises(FileError, match="got 11 at position 0"):
        mnist_by_writer(root=tmp_path)


def test_arrays_are_read_and_wrong_ones_refused(tmp_path):
    arrays = {
        "train_x": np.zeros((3, 28, 28), np.uint8),
        "train_y": np.array([1, 2, 3], np.uint8),
        "train_client": np.array([12, 7, 12], np.int16),
        "test_x": np.zeros((1, 28, 28), np.uint8),
        "test_y": np.array([9], np.uint8),
        "test_client": np.array([500], np.int16),
    }
    np.savez(tmp_path / "images.npz", **arrays)
    assert mnist_by_writer(root=tmp_path).train.client_ids.tolist() == ["0007", "0012"]
    del arrays["test_client"]
    np.savez(tmp_path / "images.npz", **arrays)
    with pytest.raises(FileError, match="test_client"):
        mnist_by_writer(root=tmp_path)


def test_without_files_the_error_names_them(tmp_path):
    with pytest.raises(FileError, match=r"qmnist-train-labels.* .*mnist_by_writer"):
        mnist_by_writer(root=tmp_path)


@pytest.mark.parametrize("end", [0, 5, 30, -5])
def test_a_packed_file_that_was_cut_off_is_refused(tmp_path, end):
    write(tmp_path, files(), packed=files())
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(FileError, match=r"train-images-idx3-ubyte\.gz"):
        mnist_by_writer(root=tmp_path)
