"""`mnist_by_writer`: the pictures of MNIST, with the writers that QMNIST found out for them.

MNIST's idx files and the label files of QMNIST (Yadav and Bottou 2019), whose first rows are MNIST's in
the same order; or both together as arrays in an npz file. Writers of train and test differ.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.datasets.dataset import LabelledPoints
from polyurn.errors import FileError
from sources.download import OnProgress, RemoteFile
from sources.local import Layout, Source, locate
from sources.packed import checked_labels, read_idx, read_npz
from sources.split_dataset import SplitDataset

_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_QMNIST = "https://raw.githubusercontent.com/facebookresearch/qmnist/master"
_DIGIT, _WRITER, _N_COLUMNS = 0, 2, 8  # of QMNIST's labels

_SOURCE = Source(
    "mnist_by_writer",
    layouts=(
        Layout(
            "idx",
            (
                "train-images?idx3-ubyte*", "train-labels?idx1-ubyte*",
                "qmnist-train-labels?idx2-int*",
                "t10k-images?idx3-ubyte*", "t10k-labels?idx1-ubyte*",
                "qmnist-test-labels?idx2-int*",
            ),
            "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
            "t10k-labels-idx1-ubyte of MNIST with qmnist-train-labels-idx2-int and "
            "qmnist-test-labels-idx2-int of QMNIST (each plain or .gz)",
        ),
        Layout(
            "arrays",
            ("images.npz",),
            "images.npz (train_x, train_y, train_client, test_x, test_y, test_client)",
        ),
    ),
    # The sums of MNIST are those of TensorFlow Datasets (mnist/checksums.tsv); those of QMNIST stand in
    # torchvision (datasets/mnist.py), which has MD5 only.
    remote=(
        RemoteFile(
            f"{_MNIST}/train-images-idx3-ubyte.gz",
            "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        RemoteFile(
            f"{_MNIST}/train-labels-idx1-ubyte.gz",
            "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        RemoteFile(
            f"{_MNIST}/t10k-images-idx3-ubyte.gz",
            "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        RemoteFile(
            f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
            "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        RemoteFile(
            f"{_QMNIST}/qmnist-train-labels-idx2-int.gz", "md5:0058f8dd561b90ffdd0f734c6a30e5e4"
        ),
        RemoteFile(
            f"{_QMNIST}/qmnist-test-labels-idx2-int.gz", "md5:5b5b05890a5e13444e108efe57b788aa"
        ),
    ),
    also_in=("nist_digits_by_writer",),
)  # fmt: skip


def mnist_by_writer(
    *,
    root: str | os.PathLike[str] | None = None,
    download: bool = False,
    on_progress: OnProgress | None = None,
) -> SplitDataset:
    """MNIST by writer: features of shape (n, 28, 28), uint8, ink bright; clients are writers.

    Parameters
    ----------
    root : path, optional
        The folder that holds MNIST's idx files and QMNIST's label files, or images.npz; the same in
        a folder `mnist_by_writer` under it; or that one file. By default the folder that
        POLYURN_DATA names.
    download : bool
        Fetch the six files (12 MB and the labels) where there are none.
    on_progress : callable, optional
        Called with a `Progress` during a download.

    Raises
    ------
    FileError
        Files are missing, cut off or damaged, or do not belong together.
    """
    found = locate(_SOURCE, root=root, download=download, on_progress=on_progress)
    if found.layout == "arrays":
        train, test = _from_arrays(*found.one_each())
    else:
        paths = found.one_each()
        train, test = _from_idx(*paths[:3]), _from_idx(*paths[3:])
    return SplitDataset("mnist_by_writer", tuple("0123456789"), train, test=test)


def _from_arrays(path: Path) -> tuple[LabelledPoints, LabelledPoints]:
    axes = {
        f"{split}_{name}": n
        for split in ("train", "test")
        for name, n in (("x", 3), ("y", 1), ("client", 1))
    }
    arrays = read_npz(path, axes)
    train, test = (
        _records(arrays[f"{split}_x"], arrays[f"{split}_y"], arrays[f"{split}_client"], path)
        for split in ("train", "test")
    )
    return train, test


def _from_idx(images_path: Path, labels_path: Path, writers_path: Path) -> LabelledPoints:
    images, table = read_idx(images_path), read_idx(writers_path)
    labels = checked_labels(read_idx(labels_path), 10, labels_path)
    if table.ndim != 2 or table.shape[1] != _N_COLUMNS:
        raise FileError(
            f"expected {_N_COLUMNS} columns of labels in {writers_path}, got shape {table.shape}"
        )
    table = table[: len(labels)]  # QMNIST goes on, with 50,000 test digits that MNIST left out
    if len(table) < len(labels) or (table[:, _DIGIT] != labels).any():
        raise FileError(f"{writers_path} does not belong to {labels_path}: their digits differ")
    return _records(images, labels, table[:, _WRITER], images_path)


def _records(
    images: NDArray[Any], labels: NDArray[Any], writers: NDArray[Any], path: Path
) -> LabelledPoints:
    if images.dtype != np.uint8 or not images.ndim == 3 or images.shape[1:] != (28, 28):
        raise FileError(
            f"expected pictures of 28 x 28 bytes in {path}, "
            f"got shape {images.shape} of {images.dtype}"
        )
    if not len(images) == len(labels) == len(writers):
        raise FileError(
            f"{path} does not belong to its labels: {len(images)} pictures, {len(labels)} labels "
            f"and {len(writers)} writers"
        )
    ids, clients = np.unique(writers, return_inverse=True)
    names = np.char.zfill(ids.astype(str), 4)  # as the writers of NIST's forms are numbered
    return LabelledPoints(checked_labels(labels, 10, path), images, clients.astype(np.int64), names)
