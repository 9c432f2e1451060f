"""One shard on disk: packed rows as the kernels want them, behind a short head, mapped and not read.

The fields of `client.rows.Rows` stand one after the other, little-endian, at multiples of 64 bytes.
Which shards there are is `shards.py`.
"""

import hashlib
import json
import mmap
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.client.rows import Rows
from polyurn.errors import FileError
from polyurn.storage.atomic import AGAIN, write_whole
from polyurn.typed.records import Count

# What the file system says about a file: its bytes, its time and its number.
Identity: TypeAlias = tuple[int, int, int]

_MAGIC = b"polyurn.rows.1\n\0"
# Arrays begin at multiples of a cache line.
_ALIGNED = 64
_ARRAYS = {
    "cells": ("<u2", "<u4"), "starts": ("<i8",), "category": ("<i8",), "count": ("<i8",),
    "size_index": ("<u4",), "size_values": ("<i8",),
}  # fmt: skip
_LONGEST_HEAD = 2**12  # bytes
_PIECE = 2**20  # bytes that are hashed at once


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One file of a folder.

    Attributes
    ----------
    name : str
    n_clients, n_bytes : int
    modified : int
        Nanoseconds since 1970; where the file system says another time, the checksum decides.
    checksum : str
        BLAKE2b of the file.
    """

    name: str
    n_clients: Count
    n_bytes: Count
    modified: int
    checksum: str


def write_shard(folder: Path, name: str, rows: Rows) -> Shard:
    """Write packed rows as a shard, whole or not at all.

    Raises
    ------
    FileError
        The disk is full, say.
    """
    arrays = {
        array: np.ascontiguousarray(getattr(rows, array), dtype=_stored_type(rows, array))
        for array in _ARRAYS
    }
    head: dict[str, Any] = {"n_categories": rows.n_categories, "width": rows.width, "arrays": {}}
    at = _LONGEST_HEAD
    for array, values in arrays.items():
        head["arrays"][array] = [values.dtype.str, at, len(values)]
        at += -(-values.nbytes // _ALIGNED) * _ALIGNED
    text = json.dumps(head).encode()
    checksum = hashlib.blake2b(digest_size=16)
    first = _MAGIC + len(text).to_bytes(4, "little") + text
    pieces: list[Any] = [first + bytes(_LONGEST_HEAD - len(first))]
    for values in arrays.values():
        pieces += [values.data, bytes(-values.nbytes % _ALIGNED)]

    def write(file: IO[bytes]) -> None:
        for piece in pieces:
            checksum.update(piece)
            file.write(piece)

    write_whole(folder / name, write)
    known = os.stat(folder / name)
    return Shard(
        name=name, n_clients=rows.n_clients, n_bytes=known.st_size, modified=known.st_mtime_ns,
        checksum=checksum.hexdigest(),
    )  # fmt: skip


def check_shard(folder: Path, shard: Shard) -> Identity:
    """What the file system says about a shard, if it is the one that was written.

    Raises
    ------
    FileError
        It is missing, cut off or another one.
    """
    path = folder / shard.name
    if os.path.basename(shard.name) != shard.name:
        raise FileError(f"the manifest of {folder} is damaged: expected names of files; {AGAIN}")
    try:
        known = os.stat(path)
        if not stat.S_ISREG(known.st_mode):
            raise FileError(f"cannot read {path}: expected a file")
        if known.st_size != shard.n_bytes:
            raise FileError(
                f"{path} is cut off or damaged: expected {shard.n_bytes:,} bytes, got "
                f"{known.st_size:,}; pack the tables again, or take a copy that is whole"
            )
        if known.st_mtime_ns != shard.modified and _checksum(path) != shard.checksum:
            raise FileError(
                f"{path} is not the file that was packed: its checksum is another one; pack the tables "
                "again, or take a copy that is whole"
            )
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    return _identity(known)


def is_unchanged(folder: Path, shard: Shard) -> bool:
    """Whether a shard is there as it was written."""
    try:
        check_shard(folder, shard)
    except FileError:
        return False
    return True


def map_shard(folder: Path, shard: Shard, *, seen: Identity) -> Rows:
    """A shard, mapped into memory; pages that are not used need none of it.

    Raises
    ------
    FileError
        It is not the file that was seen before.
    """
    path = folder / shard.name
    try:
        with open(path, "rb") as file:
            if _identity(os.fstat(file.fileno())) != seen:
                raise FileError(_changed(path))
            # Private and writable: the kernels are compiled for arrays that can be written.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    return _read_rows(mapped, path, shard)


def check_unchanged(folder: Path, shard: Shard, seen: Identity) -> None:
    """Raise a `FileError` if a shard is not the file any more that was seen before."""
    path = folder / shard.name
    try:
        now = _identity(os.stat(path))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    if now != seen:
        raise FileError(_changed(path))


def _checksum(path: Path) -> str:
    checksum = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            checksum.update(piece)
    return checksum.hexdigest()


def _changed(path: Path) -> str:
    return f"{path} changed while it was used; bring it back and repeat, or pack the tables again"


def _identity(known: os.stat_result) -> Identity:
    return known.st_size, known.st_mtime_ns, known.st_ino


def _stored_type(rows: Rows, array: str) -> str:
    """Little-endian, and cells as wide as they are."""
    kinds = _ARRAYS[array]
    return kinds[-1] if array == "cells" and rows.cells.dtype.itemsize == 4 else kinds[0]


def _read_rows(mapped: mmap.mmap, path: Path, shard: Shard) -> Rows:
    """The rows of a shard; what stands in the arrays is trusted, as the checksum was right."""
    try:
        if mapped[: len(_MAGIC)] != _MAGIC:
            raise ValueError("expected the first bytes of a shard")
        n = int.from_bytes(mapped[len(_MAGIC) : len(_MAGIC) + 4], "little")
        head = json.loads(mapped[len(_MAGIC) + 4 : len(_MAGIC) + 4 + n])
        arrays: dict[str, Any] = {
            name: _array(mapped, name, *head["arrays"][name]) for name in _ARRAYS
        }
        rows = Rows(width=int(head["width"]), n_categories=int(head["n_categories"]), **arrays)
        if rows.n_clients != shard.n_clients:
            raise ValueError("expected as many clients as the manifest says")
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} is not a shard, or damaged: {error}; {AGAIN}") from None
    return rows


def _array(
    mapped: mmap.mmap, name: str, kind: object = None, start: object = None, length: object = None
) -> NDArray[Any]:
    if kind not in _ARRAYS[name] or not isinstance(start, int) or not isinstance(length, int):
        raise ValueError(f"expected an array of {_ARRAYS[name][0]} for {name}")
    if length == 0:
        return np.empty(0, dtype=str(kind))
    return np.frombuffer(mapped, dtype=str(kind), count=length, offset=start)
