"""A folder of shards: clients' histograms as packed rows in files that are mapped into memory, not read.

`manifest.json` lists the shards, each with its size and checksum, and is written last: a folder that has
one is whole. A round packs nothing again. Client ids are not kept. One shard is `shard_file.py`; how a
folder is made is `packing.py`.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.rows import Rows
from polyurn.errors import FileError
from polyurn.storage.atomic import load_record, save_record
from polyurn.storage.shard_file import Identity, Shard, check_shard, map_shard
from polyurn.typed.records import Count, read_record, to_record

MANIFEST = "manifest.json"
UNFINISHED = "packing.jsonl"  # what `packing.py` keeps as long as there is no manifest
_KIND, _VERSION = "shards", 1


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over all clients of a folder, and what was done to their tables.

    Attributes
    ----------
    n_clients, n_points, n_rows : int
        Clients, points, and rows of the tables.
    min_size, max_size : int
        The fewest and the most points of a client.
    n_duplicates : int
        Rows whose client and category an earlier row had, and whose counts were added to it.
    n_empty, n_capped : int
        Clients that were left out, and clients of whom points were left out.
    """

    n_clients: Count
    n_points: Count
    n_rows: Count
    min_size: Count
    max_size: Count
    n_duplicates: Count = 0
    n_empty: Count = 0
    n_capped: Count = 0


@dataclass(frozen=True, kw_only=True)
class _Manifest:
    """`manifest.json`."""

    categories: tuple[str, ...]
    named: bool
    totals: Totals
    shards: tuple[Shard, ...]
    client: str | None = None
    category: str | None = None
    count: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ShardFolder:
    """A folder of shards, open to be read.

    Attributes
    ----------
    path : Path
    categories : tuple of str
    named : bool
        Whether the categories have names besides their numbers.
    totals : Totals
    shards : tuple of Shard
    client, category, count : str or None
        The columns of the tables that were packed.
    """

    path: Path
    categories: tuple[str, ...]
    named: bool
    totals: Totals
    shards: tuple[Shard, ...]
    client: str | None = None
    category: str | None = None
    count: str | None = None
    _seen: dict[str, Identity] = field(default_factory=dict)

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
        """A name for what is in the shards that others are not expected to have."""
        parts = (shard.checksum for shard in self.shards)
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def rows(self, i: int) -> Rows:
        """Shard i, mapped into memory.

        Raises
        ------
        FileError
            It is not the file that was there when the folder was opened.
        """
        shard = self.shards[i]
        return map_shard(self.path, shard, seen=self._seen[shard.name])

    def __repr__(self) -> str:
        return f"ShardFolder({str(self.path)!r}, {self.n_clients:,} clients)"


def is_shard_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a folder of shards, whole or not."""
    return os.path.isdir(path) and any(
        os.path.isfile(os.path.join(path, name)) for name in (MANIFEST, UNFINISHED)
    )


def open_shards(path: str | os.PathLike[str]) -> ShardFolder:
    """Open a folder that `pack_shards` wrote, and check that its files are those that were written.

    Sizes are compared always, checksums where a file's time is not the one that was noted, as after a
    copy.

    Raises
    ------
    FileError
        The folder is not whole, of another version, or a shard is missing, cut off or damaged.
    """
    path = Path(path)
    if not (path / MANIFEST).exists():
        if (path / UNFINISHED).exists():
            raise FileError(
                f"{path} was not packed to its end; repeat its `polyurn pack` to go on with it"
            )
        raise FileError(f"{path} holds no packed clients; make it with `polyurn pack`")
    record = load_record(path / MANIFEST, kind=_KIND, version=_VERSION)
    found = read_record(_Manifest, record, where=str(path / MANIFEST))
    seen = {shard.name: check_shard(path, shard) for shard in found.shards}
    return ShardFolder(
        path, found.categories, found.named, found.totals, found.shards,
        found.client, found.category, found.count, seen,
    )  # fmt: skip


def save_manifest(folder: ShardFolder, *, made: dict[str, Any] | None = None) -> None:
    """Write the manifest, which says that the folder is whole."""
    manifest = _Manifest(
        categories=folder.categories, named=folder.named, totals=folder.totals,
        shards=folder.shards, client=folder.client, category=folder.category, count=folder.count,
    )  # fmt: skip
    path = folder.path / MANIFEST
    save_record(to_record(manifest), path, kind=_KIND, version=_VERSION, made=made)


def total_of(parts: Iterable[Totals]) -> Totals:
    """The totals of several lots of clients together."""
    lots = list(parts)
    return Totals(
        n_clients=sum(t.n_clients for t in lots),
        n_points=sum(t.n_points for t in lots),
        n_rows=sum(t.n_rows for t in lots),
        min_size=min((t.min_size for t in lots if t.n_clients), default=0),
        max_size=max((t.max_size for t in lots), default=0),
        n_duplicates=sum(t.n_duplicates for t in lots),
        n_empty=sum(t.n_empty for t in lots),
        n_capped=sum(t.n_capped for t in lots),
    )


def draw_clients(
    folder: ShardFolder, n_clients: int, *, rng: int | np.random.Generator | None = None
) -> tuple["sparse.csr_array[Any]", NDArray[np.int64]]:
    """The histograms of some clients, drawn at random without replacement, and their positions.

    Parameters
    ----------
    folder : ShardFolder
    n_clients : int
    rng : int or numpy.random.Generator

    Returns
    -------
    counts : csr_array of shape (n_clients, n_categories)
    positions : int array of shape (n_clients,)
        Of the clients in the folder, in increasing order.
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
