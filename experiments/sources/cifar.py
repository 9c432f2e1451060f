"""`cifar10`: 60,000 pictures of ten things (Krizhevsky 2009), from any of the forms they come in.

The original python or binary batches, unpacked or not, or arrays in an npz file. The pictures have no
clients. Pickles are read by `cifar_pickles.py`.
"""

import gzip
import os
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.datasets.dataset import LabelledPoints
from polyurn.errors import FileError
from sources.cifar_pickles import read_pickle
from sources.download import OnProgress, RemoteFile
from sources.local import Layout, Source, locate
from sources.packed import checked_labels, damage, read_npz, unpacked
from sources.split_dataset import SplitDataset

_CATEGORIES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_SHAPE = (3, 32, 32)  # colour, row, column, as the batches have them
_N_PIXELS = 3 * 32 * 32
_BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")

# Pixels of shape (n, 3072) and labels of shape (n,).
_Batch: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]

_SOURCE = Source(
    "cifar10",
    layouts=(
        Layout(
            "python",
            tuple(f"cifar-10-batches-py/{name}" for name in _BATCHES),
            "the folder cifar-10-batches-py",
        ),
        Layout(
            "binary",
            tuple(f"cifar-10-batches-bin/{name}.bin" for name in _BATCHES),
            "cifar-10-batches-bin",
        ),
        Layout("packed python", ("cifar-10-python.tar.gz",), "cifar-10-python.tar.gz"),
        Layout("packed binary", ("cifar-10-binary.tar.gz",), "cifar-10-binary.tar.gz"),
        Layout("arrays", ("images.npz",), "images.npz (train_x, train_y, test_x, test_y)"),
        Layout("arrays", ("images_lossless.npz",), "images_lossless.npz"),
    ),
    # The checksum that Keras has for the same file (keras/datasets/cifar10.py).
    remote=(
        RemoteFile(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        ),
    ),
)


def cifar10(
    *,
    root: str | os.PathLike[str] | None = None,
    download: bool = False,
    on_progress: OnProgress | None = None,
) -> SplitDataset:
    """CIFAR-10: features of shape (n, 32, 32, 3), uint8, red, green and blue last.

    Parameters
    ----------
    root : path, optional
        The folder that holds cifar-10-batches-py/, cifar-10-batches-bin/, either as the .tar.gz
        that it comes in, or images.npz; the same in a folder `cifar10` under it; or the one file.
        By default the folder that POLYURN_DATA names.
    download : bool
        Fetch the python version (170 MB) where there is none.
    on_progress : callable, optional
        Called with a `Progress` during a download.

    Raises
    ------
    FileError
        Files are missing, cut off or damaged.
    """
    found = locate(_SOURCE, root=root, download=download, on_progress=on_progress)
    if found.layout == "arrays":
        train, test = _from_arrays(*found.one_each())
    else:
        packed = found.layout.startswith("packed")
        batches = _unpacked_batches(*found.one_each()) if packed else _batches(found.one_each())
        train, test = _split(batches, _pickled if "python" in found.layout else _binary)
    return SplitDataset("cifar10", _CATEGORIES, train, test=test)


def _from_arrays(path: Path) -> tuple[LabelledPoints, LabelledPoints]:
    axes = {"train_x": 4, "train_y": 1, "test_x": 4, "test_y": 1}
    arrays = read_npz(path, axes)
    for split in ("train", "test"):
        images = arrays[f"{split}_x"]
        shape = (len(arrays[f"{split}_y"]), 32, 32, 3)
        if images.shape != shape or images.dtype != np.uint8:
            raise FileError(
                f"expected pictures of 32 x 32 x 3 bytes for {shape[0]} labels in {path}, "
                f"got shape {images.shape} of {images.dtype}"
            )
    train, test = (
        LabelledPoints(checked_labels(arrays[f"{split}_y"], 10, path), arrays[f"{split}_x"])
        for split in ("train", "test")
    )
    return train, test


def _batches(paths: Iterable[Path]) -> Iterable[tuple[str, bytes]]:
    return ((str(path), unpacked(path)) for path in paths)


def _unpacked_batches(path: Path) -> Iterable[tuple[str, bytes]]:
    """Name and content of the six batches in an archive, in the order of `_BATCHES`."""
    contents: dict[str, bytes] = {}
    with damage(path):
        try:
            with gzip.open(path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
                for member in archive:
                    stem = Path(member.name).name.removesuffix(".bin")
                    file = archive.extractfile(member) if stem in _BATCHES else None
                    if file is not None:
                        contents[stem] = file.read()
                while stream.read(1 << 20):  # the checksum stands at the end
                    pass
        except tarfile.TarError as error:
            raise FileError(f"{path} is damaged or cut off: {error}") from error
    missing = [name for name in _BATCHES if name not in contents]
    if missing:
        raise FileError(f"{path} is not an archive of CIFAR-10: it lacks {', '.join(missing)}")
    return [(f"{path}:{name}", contents[name]) for name in _BATCHES]


def _split(
    batches: Iterable[tuple[str, bytes]], read: Callable[[bytes, str], _Batch]
) -> tuple[LabelledPoints, LabelledPoints]:
    """Five batches to train on and one to test on; all hold the same number of pictures."""
    names, parts = [], []
    for name, content in batches:
        names.append(name)
        parts.append(read(content, name))
    sizes = [len(labels) for _, labels in parts]
    if len(set(sizes)) > 1:
        short = names[int(np.argmin(sizes))]
        raise FileError(
            f"{short} was cut off: it holds {min(sizes)} pictures, another {max(sizes)}"
        )
    return _records(parts[:5]), _records(parts[5:])


def _records(parts: list[_Batch]) -> LabelledPoints:
    pixels = np.concatenate([pixels for pixels, _ in parts])
    labels = np.concatenate([labels for _, labels in parts])
    return LabelledPoints(
        labels, np.ascontiguousarray(pixels.reshape(-1, *_SHAPE).transpose(0, 2, 3, 1))
    )


def _pickled(content: bytes, name: str) -> _Batch:
    batch = read_pickle(content, name)
    pixels, labels = batch.get(b"data"), batch.get(b"labels")
    if not isinstance(pixels, np.ndarray) or not isinstance(labels, list):
        raise FileError(f"{name} is not a batch of CIFAR-10: expected data and labels in it")
    return _batch(pixels, _whole_numbers(labels, name), name)


def _whole_numbers(labels: list[Any], name: str) -> NDArray[np.int64]:
    if not all(type(label) is int and 0 <= label < 10 for label in labels):
        raise FileError(f"expected labels from 0 to 9 in {name}, got others")
    return np.array(labels, dtype=np.int64)


def _binary(content: bytes, name: str) -> _Batch:
    """One byte of label, then 3,072 of pixels, for every picture."""
    width = 1 + _N_PIXELS
    if len(content) % width:
        raise FileError(
            f"{name} is damaged or cut off: expected a multiple of {width} bytes, "
            f"got {len(content)}"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, width)
    return _batch(rows[:, 1:], checked_labels(rows[:, 0], 10, Path(name)), name)


def _batch(pixels: NDArray[np.uint8], labels: NDArray[np.int64], name: str) -> _Batch:
    if len(labels) == 0 or pixels.shape != (len(labels), _N_PIXELS):
        raise FileError(
            f"{name} is damaged: expected {_N_PIXELS} pixels for each of {len(labels)} labels, "
            f"got shape {pixels.shape}"
        )
    return pixels, labels
