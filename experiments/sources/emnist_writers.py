"""`femnist`: handwritten digits and letters by writer, 62 categories, as LEAF or TFF prepared them.

LEAF writes JSON files of some hundred writers each; TensorFlow Federated has two HDF5 files. Both
come with a split within each writer. LEAF's files are made by its own scripts from NIST's pictures;
TFF's can be downloaded.
"""

import os
import string
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.datasets.dataset import LabelledPoints
from polyurn.errors import FileError, MissingDependencyError
from polyurn.storage.files import write_whole
from sources.download import OnProgress, RemoteFile
from sources.leaf_json import user_data
from sources.local import Layout, Source, locate
from sources.packed import checked_labels, damage
from sources.split_dataset import SplitDataset

if TYPE_CHECKING:
    import h5py

# Label 10 is "A" and label 36 is "a", in both.
_CATEGORIES = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
_HDF5 = ("fed_emnist_train.h5", "fed_emnist_test.h5")

# One writer's id, pictures of shape (n, 28, 28) and labels.
_Writer: TypeAlias = tuple[str, NDArray[np.float32], NDArray[np.int64]]

_SOURCE = Source(
    "femnist",
    layouts=(
        Layout("hdf5", _HDF5, f"{_HDF5[0]} and {_HDF5[1]}"),
        Layout(
            "json",
            ("train/*.json", "test/*.json"),
            "the folders train and test with the JSON files that LEAF makes",
        ),
        Layout("json", ("data/train/*.json", "data/test/*.json"), "LEAF's folder data with both"),
        Layout("packed", ("fed_emnist.tar.bz2",), "fed_emnist.tar.bz2"),
    ),
    # The checksum that TFF itself used (tff.simulation.datasets.emnist.load_data, when it read HDF5).
    remote=(
        RemoteFile(
            "https://storage.googleapis.com/tff-datasets-public/fed_emnist.tar.bz2",
            "sha256:fe1ed5a502cea3a952eb105920bff8cffb32836b5173cb18a57a32c3606f3ea0",
        ),
    ),
)


def femnist(
    *,
    root: str | os.PathLike[str] | None = None,
    download: bool = False,
    on_progress: OnProgress | None = None,
) -> SplitDataset:
    """FEMNIST: features of shape (n, 28, 28), float32, 1 is the paper and 0 the ink.

    Parameters
    ----------
    root : path, optional
        The folder that holds fed_emnist_train.h5 and fed_emnist_test.h5, or LEAF's folders train and
        test; the same in a folder `femnist` under it. By default the folder that POLYURN_DATA names.
    download : bool
        Fetch TFF's files where there are none, and unpack them.
    on_progress : callable, optional
        Called with a `Progress` during a download.

    Raises
    ------
    FileError
        Files are missing, cut off or damaged.
    MissingDependencyError
        HDF5 files need h5py.
    """
    found = locate(_SOURCE, root=root, download=download, on_progress=on_progress)
    if found.layout == "json":
        train, test = (_records(_leaf(paths), paths[0].parent) for paths in found.paths)
    else:
        places = _unpack(*found.one_each()) if found.layout == "packed" else list(found.one_each())
        train, test = (_records(_tff(path), path) for path in places)
    return SplitDataset("femnist", _CATEGORIES, train, test=test)


def _records(writers: Iterable[_Writer], place: Path) -> LabelledPoints:
    """The writers' records one after the other, in the order of the files."""
    ids, pictures, labels = [], [], []
    for name, x, y in writers:
        ids.append(name)
        pictures.append(x)
        labels.append(y)
    if len(set(ids)) < len(ids):
        raise FileError(f"expected every writer once in {place}, got one twice")
    if not ids:
        raise FileError(f"expected writers with pictures in {place}, got none")
    clients = np.repeat(np.arange(len(ids)), [len(y) for y in labels])
    return LabelledPoints(np.concatenate(labels), _joined(pictures), clients, np.array(ids))


def _joined(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """One after the other, each let go once it is copied: all of FEMNIST is two gigabytes."""
    end = sum(len(part) for part in parts)
    joined = np.empty((end, 28, 28), np.float32)
    while parts:
        part = parts.pop()
        joined[end - len(part) : end] = part
        end -= len(part)
    return joined


def _tff(path: Path) -> Iterator[_Writer]:
    """examples/<writer>/pixels of shape (n, 28, 28) and examples/<writer>/label of shape (n,)."""
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError("h5py", "datasets", "reading FEMNIST from HDF5") from error
    with damage(path), h5py.File(path, "r") as file:
        for name, writer in file["examples"].items():
            yield _checked(name, _whole(writer, "pixels"), _whole(writer, "label"), path)


def _whole(writer: "h5py.Group", name: str) -> NDArray[Any]:
    return np.asarray(writer[name][()])


def _leaf(paths: Iterable[Path]) -> Iterator[_Writer]:
    """user_data/<writer>/x, lists of 784 numbers, and user_data/<writer>/y, the labels."""
    for path in paths:
        with damage(path):
            writers = user_data(path.read_text(encoding="utf-8"))
        for name, pictures, labels in writers:
            yield _checked(name, pictures, labels, path)


def _checked(name: str, pictures: NDArray[Any], labels: NDArray[Any], path: Path) -> _Writer:
    n = len(labels)
    if pictures.shape not in ((n, 28, 28), (n, 784)) or pictures.dtype != np.float32:
        raise FileError(
            f"expected {n} pictures of 28 x 28 numbers of a writer in {path}, "
            f"got shape {pictures.shape} of {pictures.dtype}"
        )
    if not np.isfinite(pictures).all():
        raise FileError(f"expected numbers as pixels in {path}, got NaN or infinity")
    return name, pictures.reshape(n, 28, 28), checked_labels(labels, len(_CATEGORIES), path)


def _unpack(archive_path: Path) -> list[Path]:
    """TFF's two files beside the archive that holds them."""
    places = [archive_path.with_name(name) for name in _HDF5]
    with damage(archive_path):
        try:
            with tarfile.open(archive_path, "r:bz2") as archive:
                for member in archive:
                    file = archive.extractfile(member) if Path(member.name).name in _HDF5 else None
                    if file is not None:
                        _write(file, archive_path.with_name(Path(member.name).name))
        except tarfile.TarError as error:
            raise FileError(f"{archive_path} is damaged or cut off: {error}") from error
    missing = [place.name for place in places if not place.exists()]
    if missing:
        raise FileError(f"{archive_path} is not TFF's archive: it lacks {', '.join(missing)}")
    return places


def _write(file: IO[bytes], place: Path) -> None:
    write_whole(place, lambda copy: copyfileobj(file, copy))
