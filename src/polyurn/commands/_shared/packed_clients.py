"""Folders of packed clients as the commands take them, in place of a table.

`fit`, `select` and `score` ask all clients of a folder; `compare` draws some of them, and that is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from polyurn.client.layout import UNSAID, Columns, column_text
from polyurn.commands._shared.client_tables import ClientTable, Declared, Reading, read_clients
from polyurn.errors import CountsError, ParameterError
from polyurn.storage.provenance import DataRecord
from polyurn.storage.shards import ShardFolder, draw_clients, is_shard_folder, open_shards
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.wire import Aggregator

# Clients that are scored together.
_TOGETHER = 65_536
# Clients of a folder that `compare` reads, at the most.
_COMPARED = 50_000


@dataclass(frozen=True, eq=False)
class PackedClients:
    """All clients of a folder of shards; what `ClientTable` is for a table."""

    folder: ShardFolder

    @property
    def shape(self) -> tuple[int, int]:
        """(n_clients, n_categories)."""
        return self.folder.n_clients, self.folder.n_categories

    @property
    def categories(self) -> tuple[str, ...]:
        return self.folder.categories

    @property
    def max_size(self) -> int:
        """The most points of a client."""
        return self.folder.totals.max_size

    @cached_property
    def digest(self) -> str:
        """A name for the histograms that others are not expected to have."""
        return self.folder.digest

    @property
    def record(self) -> DataRecord:
        """What was read, for the file that is made of it: names and three sums, no client."""
        n_clients, n_categories = self.shape
        return DataRecord(
            file=self.folder.path.name,
            n_clients=n_clients,
            n_categories=n_categories,
            n_points=self.folder.totals.n_points,
            client=self.folder.client,
            category=self.folder.category,
            count=self.folder.count,
        )

    def aggregator(
        self, *, seed: int, sampling: Any, threads: int, scheduler: str | None = None
    ) -> "Aggregator":
        """The clients, played in this process or on a cluster."""
        if scheduler is not None:
            from polyurn.aggregate.dask import connected

            return connected(scheduler, self.folder, rng=seed, sampling=sampling)
        from polyurn.aggregate.shards import ShardAggregator

        return ShardAggregator(self.folder, rng=seed, sampling=sampling, n_threads=threads)

    def blocks(self) -> Iterator["sparse.csr_array[Any]"]:
        """The histograms, some clients at a time."""
        for i, shard in enumerate(self.folder.shards):
            rows = self.folder.rows(i)
            for start in range(0, shard.n_clients, _TOGETHER):
                some = np.arange(start, min(start + _TOGETHER, shard.n_clients), dtype=np.uint32)
                yield rows.counts_of(some)


def read_all(
    path: Path, reading: Reading, declared: Declared = None
) -> "ClientTable | PackedClients":
    """The clients of a table, or of a folder of packed ones."""
    if not is_shard_folder(path):
        return read_clients(path, reading, declared)
    return PackedClients(_opened(path, reading, declared))


def clients_of(
    read: "ClientTable | PackedClients",
    seed: int,
    sampling: Any,
    threads: int,
    scheduler: str | None,
) -> "Aggregator":
    """The clients, played in this process, or on a cluster if they are packed.

    Raises
    ------
    ParameterError
        A table is to be played on a cluster.
    """
    if isinstance(read, PackedClients):
        return read.aggregator(seed=seed, sampling=sampling, threads=threads, scheduler=scheduler)
    if scheduler is not None:
        raise ParameterError("--scheduler has no effect with a table: pack it with `polyurn pack`")
    return read.aggregator(seed=seed, sampling=sampling, threads=threads)


def read_some(path: Path, reading: Reading, declared: Declared, *, seed: int) -> ClientTable:
    """The clients of a table; of a folder of packed ones some, drawn at random, and that is said."""
    if not is_shard_folder(path):
        return read_clients(path, reading, declared)
    folder = _opened(path, reading, declared)
    n = min(_COMPARED, folder.n_clients)
    counts, positions = draw_clients(folder, n, rng=seed)
    if n < folder.n_clients:
        some = f"{counted(n, 'client')} of {folder.n_clients:,}"
        reading.say(f"{path}: {some}, drawn at random, stand for all")
    columns = Columns(folder.client, folder.category, folder.count)
    return ClientTable(counts, positions, folder.categories, path, columns, named=False)


def _opened(path: Path, reading: Reading, declared: Declared) -> ShardFolder:
    """The folder, if its categories are those that are declared, and nothing is asked of a table."""
    asked = {"--client": reading.asked.client, "--count": reading.asked.count}
    if reading.asked.category is not None:
        asked["--category"] = column_text(reading.asked.category)
    given = [option for option, value in asked.items() if value is not None]
    if reading.asked is not UNSAID and given:
        raise ParameterError(f"{given[0]} has no effect with packed clients, {path}: leave it out")
    if reading.drop_empty:
        raise ParameterError(
            f"--drop-empty has no effect with packed clients, {path}: leave it out"
        )
    folder = open_shards(path)
    if isinstance(declared, int):
        same = declared == folder.n_categories
    else:
        same = declared is None or tuple(declared) == folder.categories
    if not same:
        n = declared if isinstance(declared, int) else len(declared or ())
        raise CountsError(
            f"{path}: expected the {n} declared categories, got packed clients of "
            f"{folder.n_categories} that are not the same; pack the tables with --categories"
        )
    if declared is None:
        reading.say(f"{counted(folder.n_categories, 'category')}, as {path} was packed")
    return folder
