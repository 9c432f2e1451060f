"""A folder of shards: clients' histograms as packed rows in files that are mapped into memory, not read.

The log of a folder, `shards.jsonl`, has a line for each shard, with its size and checksum. Packing
writes the last line when it ends; a folder without that line is not whole. A shard is a short head and
the fields of `client.rows.Rows`, little-endian, at multiples of 64 bytes. A round packs nothing again.
Client ids are not kept. `packing.py` makes a folder.
"""

import hashlib
import json
import mmap
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.rows import Rows
from polyurn.errors import FileError
from polyurn.storage.files import AGAIN, refused, write_whole
from polyurn.storage.json_log import JsonLog
from polyurn.typed.declared import Ints, Seed
from polyurn.typed.json_form import UNKEPT, Count

LOG = "shards.jsonl"

_MAGIC = b"polyurn.rows.1\n\0"
# Arrays begin at multiples of a cache line.
_ALIGNED = 64
_ARRAYS = {
    "cells": ("<u2", "<u4"), "starts": ("<i8",), "category": ("<i8",), "count": ("<i8",),
    "size_index": ("<u4",), "size_values": ("<i8",),
}  # fmt: skip
_LONGEST_HEAD = 2**12  # bytes
_blake2b = partial(hashlib.blake2b, digest_size=16)


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One file of a folder, with its BLAKE2b checksum.

    `modified` is in nanoseconds since 1970; if the file has another time, the checksum decides. `seen`
    are the size, the modification time and the inode number of the file that was checked.
    """

    name: str
    n_clients: Count
    n_bytes: Count
    modified: int
    checksum: str
    seen: tuple[int, int, int] | None = field(default=None, metadata=UNKEPT)


def write_shard(folder: Path, name: str, rows: Rows) -> Shard:
    """Write packed rows as a shard, whole or not at all."""
    arrays = {}
    for array, kinds in _ARRAYS.items():  # little-endian, and cells as wide as they are
        values = getattr(rows, array)
        arrays[array] = np.ascontiguousarray(
            values, kinds[-(array == "cells" and values.itemsize == 4)]
        )
    head: dict[str, Any] = {"n_categories": rows.n_categories, "width": rows.width, "arrays": {}}
    at = _LONGEST_HEAD
    for array, values in arrays.items():
        head["arrays"][array] = [values.dtype.str, at, len(values)]
        at += -(-values.nbytes // _ALIGNED) * _ALIGNED
    text = json.dumps(head).encode()
    checksum = _blake2b()
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


def check_shard(folder: Path, shard: Shard) -> Shard:
    """Check that a shard is the file that was written; return it with what was `seen`."""
    path = folder / shard.name
    if os.path.basename(shard.name) != shard.name:
        raise FileError(f"the log of {folder} is damaged: expected names of files; {AGAIN}")
    with refused(f"cannot read {path}"):
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
    return replace(shard, seen=_seen(known))


def map_shard(folder: Path, shard: Shard) -> Rows:
    """Map a shard into memory; a `FileError` if it is no longer the file that was checked.

    Unused pages take no memory.
    """
    path = folder / shard.name
    with refused(f"cannot read {path}"), open(path, "rb") as file:
        if _seen(os.fstat(file.fileno())) != shard.seen:
            raise FileError(
                f"{path} changed while it was used; restore it and repeat, or pack the tables again"
            )
        # Private and writable: the kernels are compiled for arrays that can be written.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return _read_rows(mapped, path, shard)


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, _blake2b).hexdigest()


def _seen(known: os.stat_result) -> tuple[int, int, int]:
    return known.st_size, known.st_mtime_ns, known.st_ino


def _read_rows(mapped: mmap.mmap, path: Path, shard: Shard) -> Rows:
    """The rows of a shard; the values in its arrays are trusted, as its checksum was right."""
    start = len(_MAGIC) + 4
    try:
        if mapped[: len(_MAGIC)] != _MAGIC:
            raise ValueError("expected the first bytes of a shard")
        n = int.from_bytes(mapped[len(_MAGIC) : start], "little")
        head = json.loads(mapped[start : start + n])
        arrays: Any = {name: _array(mapped, name, *head["arrays"][name]) for name in _ARRAYS}
        rows = Rows(width=int(head["width"]), n_categories=int(head["n_categories"]), **arrays)
        if rows.n_clients != shard.n_clients:
            raise ValueError("expected as many clients as the log says")
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


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over all clients of a folder, and what was done to their tables.

    A client has `min_size` to `max_size` points. `n_duplicates` are rows whose client and category an
    earlier row had, and whose counts were added to it; `n_empty` clients were left out, and the cap took
    points from `n_capped`.
    """

    n_clients: Count
    n_points: Count
    n_rows: Count
    min_size: Count
    max_size: Count
    n_duplicates: Count = 0
    n_empty: Count = 0
    n_capped: Count = 0


@dataclass(frozen=True, eq=False, repr=False)
class ShardFolder:
    """A folder of shards, open to be read; the last line of its log keeps all but `path` and `shards`.

    `client`, `category` and `count` are the columns of the tables that were packed.
    """

    path: Path = field(metadata=UNKEPT)
    categories: tuple[str, ...]
    totals: Totals
    shards: tuple[Shard, ...] = field(metadata=UNKEPT)
    client: str | None = None
    category: str | None = None
    count: str | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_clients(self) -> int:
        return self.totals.n_clients

    @property
    def n_categories(self) -> int:
        return len(self.categories)

    @property
    def n_bytes(self) -> int:
        return sum(shard.n_bytes for shard in self.shards)

    @property
    def digest(self) -> str:
        """A checksum of all shards."""
        parts = (shard.checksum for shard in self.shards)
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def rows(self, i: int) -> Rows:
        """Shard i, mapped into memory."""
        return map_shard(self.path, self.shards[i])

    def __repr__(self) -> str:
        return f"ShardFolder({str(self.path)!r}, {self.n_clients:,} clients)"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One more shard, or none if no client of the rows was left; and where the next rows begin."""

    totals: Totals
    next_file: Count
    next_row: Count
    shard: Shard | None = None


@dataclass(frozen=True, kw_only=True)
class PackingLine:
    """A step of packing; or that the rows were sorted; or, as the last line, that the folder is whole.

    `sorted` has the number of rows and the number of different pairs (client, category).
    """

    step: Step | None = None
    sorted: tuple[Count, Count] | None = None
    whole: ShardFolder | None = None


def packing_log(folder: Path, head: Mapping[str, Any] | None = None) -> JsonLog[PackingLine]:
    """The log of a folder; with `head`, it is begun if it is not there."""
    return JsonLog(
        folder / LOG, PackingLine, kind="shards", name="the log of packed clients", head=head,
        advice="repeat its `polyurn pack`, or take a copy that is whole", begin=head is not None,
        instead="repeat its command, or take an empty folder", mode=0o666,
    )  # fmt: skip


def is_shard_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder of shards, whole or not."""
    return os.path.isfile(os.path.join(path, LOG))


def is_packed(folder: Path) -> bool:
    """Whether a folder was packed to its end."""
    return any(line.whole for line in _lines(folder, until_damage=True))


def open_shards(path: str | os.PathLike[str]) -> ShardFolder:
    """Open a folder that `pack_shards` wrote, and check that its files are those that were written.

    Sizes are always compared, checksums only if a file has another time, as a copy has.
    """
    path = Path(path)
    if not is_shard_folder(path):
        raise FileError(f"{path} holds no packed clients; make it with `polyurn pack`")
    lines = _lines(path)
    whole = lines[-1].whole if lines else None
    if whole is None:
        raise FileError(
            f"{path} was not packed to its end; repeat its `polyurn pack` to go on with it"
        )
    shards = (line.step.shard for line in lines if line.step and line.step.shard)
    return replace(whole, path=path, shards=tuple(check_shard(path, shard) for shard in shards))


def _lines(folder: Path, *, until_damage: bool = False) -> list[PackingLine]:
    """The lines of a folder's log; none if nothing was written to it."""
    path = folder / LOG
    if not path.exists() or path.stat().st_size == 0:  # empty after a disk was full
        return []
    return packing_log(folder).read(until_damage=until_damage)


def total_of(parts: Iterable[Totals]) -> Totals:
    """The totals of several groups of clients together."""
    totals = [vars(part) for part in parts]
    sums = {one.name: sum(t[one.name] for t in totals) for one in fields(Totals)}
    least = min((t["min_size"] for t in totals if t["n_clients"]), default=0)
    most = max((t["max_size"] for t in totals), default=0)
    return Totals(**{**sums, "min_size": least, "max_size": most})


def draw_clients(
    folder: ShardFolder, n_clients: int, *, rng: Seed = None
) -> tuple["sparse.csr_array[Any]", Ints]:
    """The histograms of some clients, drawn at random without replacement, and their positions.

    A csr_array of shape (n_clients, n_categories), and an int array in increasing order.
    """
    drawn = np.random.default_rng(rng).choice(folder.n_clients, size=n_clients, replace=False)
    drawn.sort()
    starts = np.concatenate([[0], np.cumsum([shard.n_clients for shard in folder.shards])])
    cuts = np.searchsorted(drawn, starts)
    parts = [
        folder.rows(i).counts_of((drawn[cuts[i] : cuts[i + 1]] - starts[i]).astype(np.uint32))
        for i in range(len(folder.shards))
        if cuts[i] < cuts[i + 1]
    ]
    return sparse.csr_array(sparse.vstack(parts)), drawn
