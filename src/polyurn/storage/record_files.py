"""Records in a NumPy archive (.npz): arrays `features` and `labels`, and `clients` where there are some.

Records in tables are read by `tables.py`.
"""

import errno
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError
from polyurn.storage.files import AGAIN, open_regular

# What reading an archive with other bytes than were written can raise; a RuntimeError is a password.
_DAMAGE = (
    ValueError, EOFError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RecordArrays:
    """What an archive holds; never shown in a repr.

    Attributes
    ----------
    features : array of shape (n_points, ...)
    labels : array of shape (n_points,)
    clients : array of shape (n_points,), or None
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    clients: NDArray[Any] | None

    def __repr__(self) -> str:
        return f"RecordArrays(features{self.features.shape})"


def read_record_arrays(path: str | os.PathLike[str]) -> RecordArrays:
    """Read an archive; nothing in it is executed."""
    path = Path(path)
    with open_regular(path) as file:
        arrays = _arrays(file, path)
    missing = {"features", "labels"} - arrays.keys()
    if missing:
        raise FileError(
            f"{path}: expected arrays 'features' and 'labels', got {', '.join(sorted(arrays)) or 'none'}"
        )
    return RecordArrays(arrays["features"], arrays["labels"], arrays.get("clients"))


def _arrays(file: BinaryIO, path: Path) -> dict[str, NDArray[Any]]:
    try:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):  # one array alone, whatever the file is called
            raise _unreadable(path)
        return {name: archive[name] for name in archive.files}
    except _DAMAGE as error:
        raise _unreadable(path) from error
    except FileError:
        raise
    except OSError as error:
        if error.errno == errno.EINVAL:  # a place before the file's beginning
            raise _unreadable(path) from error
        raise FileError(f"cannot read {path}: {error.strerror or AGAIN}") from error


def _unreadable(path: Path) -> FileError:
    return FileError(f"{path} is not a readable .npz file of numbers and texts; {AGAIN}")
