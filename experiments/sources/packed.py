"""Bytes and arrays out of files that may be packed: gzip, npz, idx; damage is a `FileError`.

What the arrays mean is the sources' business.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError

# The third byte of an idx file says what its numbers are; big-endian.
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

# What readers of packed and nested formats raise when a file is not what it should be; RuntimeError
# is HDF5's, and JSON's when it is nested without end.
_DAMAGE = (EOFError, BadZipFile, zlib.error, ValueError, KeyError, struct.error, RuntimeError)


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Turn what damaged or missing files raise into one `FileError` that names the file."""
    try:
        yield
    except FileError:
        raise
    except _DAMAGE as error:
        raise FileError(f"{path} is damaged or cut off: {_line(error)}") from error
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or _line(error)}") from error


def unpacked(path: Path) -> bytes:
    """What stands in a file, unpacked where its name ends in .gz."""
    with damage(path):
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def read_idx(path: Path) -> NDArray[Any]:
    """The array of an idx file, as MNIST comes: type, shape, then big-endian numbers.

    Parameters
    ----------
    path : Path
        May end in .gz.
    """
    content = unpacked(path)
    with damage(path):
        zeros, kind, n_axes = struct.unpack_from(">HBB", content)
        if zeros != 0 or kind not in _IDX_TYPES:
            raise FileError(f"{path} is not an idx file: it starts with {content[:4].hex()}")
        shape = struct.unpack_from(f">{n_axes}I", content, 4)
        start = 4 + 4 * n_axes
        dtype = np.dtype(_IDX_TYPES[kind])
        expected = start + int(np.prod(shape, dtype=object)) * dtype.itemsize
        if len(content) != expected:
            raise FileError(
                f"{path} is damaged or cut off: expected {expected} bytes, got {len(content)}"
            )
        numbers = np.frombuffer(content, dtype, offset=start).reshape(shape)
        return numbers.astype(dtype.newbyteorder("="))


def read_npz(path: Path, names: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Arrays of an npz file; nothing is unpickled.

    Parameters
    ----------
    path : Path
    names : mapping
        The arrays to read, and how many axes each must have.
    """
    with damage(path), open(path, "rb") as file:
        if not is_zipfile(file):
            raise FileError(f"{path} is damaged or cut off: not an npz file")
        archive = np.load(file, allow_pickle=False)
        arrays = {name: np.asarray(archive[name]) for name in names}
    for name, n_axes in names.items():
        if arrays[name].ndim != n_axes:
            raise FileError(
                f"expected {n_axes} axes of {name} in {path}, got shape {arrays[name].shape}"
            )
    return arrays


def checked_labels(labels: NDArray[Any], n_categories: int, path: Path) -> NDArray[np.int64]:
    """Labels of a file as whole numbers, every one of them a category.

    Parameters
    ----------
    labels : int array of shape (n,)
    n_categories : int
    path : Path
        For the message.
    """
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise FileError(
            f"expected a list of whole numbers as labels in {path}, "
            f"got shape {labels.shape} of {labels.dtype}"
        )
    if len(labels) == 0:
        raise FileError(f"expected at least one label in {path}, got none")
    outside = np.flatnonzero((labels < 0) | (labels >= n_categories))
    if len(outside):
        raise FileError(
            f"expected labels from 0 to {n_categories - 1} in {path}, "
            f"got {labels[outside[0]]} at position {outside[0]}"
        )
    return labels.astype(np.int64)


def _line(error: Exception) -> str:
    """The first line of a message; numpy's offer to unpickle is not for us to pass on."""
    if "allow_pickle" in str(error):
        return "it holds pickled objects"
    return str(error).partition("\n")[0] or type(error).__name__
