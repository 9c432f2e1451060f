"""Tables of any length into a folder of shards, in constant memory: `pack_shards`.

Rows come client by client; a number of clients becomes a shard, in the background. Tables whose rows are
in another order are sorted first. After each shard the folder's log gets a line, so that a run that was
stopped goes on with the next shard. `shards.py` has the format of the folder.
"""

import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.answers import Threads
from polyurn.client.counting import Categories, category_names
from polyurn.client.layout import Columns, Layout, column_text
from polyurn.client.rows import pack
from polyurn.counts import client_sizes
from polyurn.errors import CountsError, FileError
from polyurn.storage.files import own_folder, refused
from polyurn.storage.long_rows import LongTables, RowBlock, by_client, find_files, open_tables
from polyurn.storage.shards import (
    LOG,
    PackingLine,
    Shard,
    ShardFolder,
    Step,
    Totals,
    check_shard,
    is_packed,
    open_shards,
    packing_log,
    total_of,
    write_shard,
)
from polyurn.storage.table_files import arrow, parquet_rows
from polyurn.typed.arguments import Json, checked
from polyurn.typed.declared import AtLeast, Between, Bools, Ints

# Clients of a shard: enough that the tables of a round cost little in comparison, few enough that a
# thread needs little memory.
CLIENTS_PER_SHARD = 2**18
_LARGEST = 2**31 - 1
_LEAST_MEMORY = 2**26  # DuckDB does not start with less
# The most rows that are held at once: the first number, or the second times the clients of a piece,
# whichever is larger.
_MOST_ROWS = 2**22
_ROWS_PER_CLIENT = 16
_SORTING = "sorting"  # the folder of rows that had to be sorted first


@dataclass(frozen=True)
class Packed:
    """How far packing has come; `total_rows` is how many rows there are, if the files say so."""

    n_rows: int
    total_rows: int | None
    n_clients: int
    n_shards: int


@checked
def pack_shards(
    tables: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    categories: Categories | None = None,
    client: str | None = None,
    category: str | Sequence[str] | None = None,
    count: str | None = None,
    cap: Annotated[int, Between(1, _LARGEST)] | None = None,
    drop_empty: bool = False,
    drop_missing: bool = False,
    clients_per_shard: Annotated[int, AtLeast(1)] = CLIENTS_PER_SHARD,
    memory: Annotated[int, AtLeast(_LEAST_MEMORY)] = 2**30,
    n_threads: Threads = 2,
    rng: Annotated[int, AtLeast(0)] = 0,
    provenance: Json | None = None,
    on_remark: Callable[[str], None] | None = None,
    on_progress: Callable[[Packed], None] | None = None,
) -> ShardFolder:
    """Pack tables of clients into a folder of shards, which a `ShardAggregator` plays.

    The rows of a client may stand in several files; counts of the same client and category are added.
    What is packed depends on the rows alone, not on their order or on the number of threads. The same
    call continues a run that was stopped.

    Parameters
    ----------
    tables : path or sequence of paths
        CSV, TSV or Parquet files, or folders of them: (client, category, count), or one row per point.
        Those that are sorted by client are packed as they are read, others are sorted first, on disk.
    folder : path
        It does not exist yet, is empty, or holds what a stopped run has left.
    categories : int, sequence of str, or Bins, optional
        As in `table_histograms`; without it, the tables are read twice.
    client, category, count : str, optional
        The columns, as in `table_histograms`.
    cap : int, optional
        Keep at most this many points of a client, drawn at random.
    drop_empty : bool
        Leave out clients without points, which are an error otherwise.
    drop_missing : bool
        Leave out rows in which a value is missing, which are an error otherwise.
    clients_per_shard : int
    memory : int
        Bytes that sorting may take.
    n_threads : int
    rng : int
        Seed for `cap`.
    provenance : mapping, optional
        How the folder came about; its log keeps it.
    on_remark, on_progress : callable, optional
        Called with what had to be guessed, and after each shard.

    Returns
    -------
    ShardFolder
        Its `totals` say how many clients, points and duplicate rows there were.

    Raises
    ------
    CountsError
        A row is not valid; the error names its file and line.
    FileError
        A file cannot be read or written, or the folder holds something else.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, polyurn as pu
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pu.write_histograms(np.array([[3, 1], [0, 2]]), f"{folder}/clients.csv")
    ...     pu.pack_shards(f"{folder}/clients.csv", f"{folder}/packed", categories=2).totals.n_points
    6
    """
    from polyurn import __version__

    given = [tables] if isinstance(tables, str | os.PathLike) else list(tables)
    files, folder = find_files(given), Path(folder)
    say, on_progress = on_remark or _nothing, on_progress or _nothing
    read = [[str(path), *_stamp(path)] for path in files]
    settings = {
        "columns": [client, category if isinstance(category, str | None) else list(category), count],
        "categories": repr(categories), "cap": cap, "drop_empty": drop_empty, "rng": rng,
        "clients_per_shard": clients_per_shard, "drop_missing": drop_missing,
    }  # fmt: skip
    if is_packed(folder):
        raise FileError(
            f"{folder} holds packed clients already; take an empty folder, or delete it"
        )
    found, remarks = open_tables(
        files, Columns(client, category, count), categories, drop_missing=drop_missing
    )
    for remark in remarks:
        say(remark)
    own_folder(folder, LOG)
    log = PackingLog(folder, read, settings)
    if log.shards:
        say(f"going on after {len(log.shards)} shards of {log.totals.n_clients:,} clients")
    job = _Job(folder, log, found, cap, drop_empty, clients_per_shard, memory, n_threads, rng)
    totals = _pack(job, on_progress, say)
    columns = found.layout
    category_column = None if columns.category is None else column_text(columns.category)
    whole = ShardFolder(
        folder, category_names(found.categories), totals, log.shards, columns.client, category_column,
        columns.count, {"polyurn": __version__, **(provenance or {})},
    )  # fmt: skip
    log.append(PackingLine(whole=whole))
    shutil.rmtree(folder / _SORTING, ignore_errors=True)
    return open_shards(folder)


class PackingLog:
    """How far packing has come: the log of a folder that is being packed.

    `tables` and `settings` are what the shards depend on, as JSON values; the log keeps their checksums,
    and one with other checksums is refused. If the line of a step is damaged, or its shard is not the
    file that was written, this step and all later ones are done again.
    """

    def __init__(self, folder: Path, tables: list[Any], settings: dict[str, Any]) -> None:
        self._folder = folder
        self._log = packing_log(folder, {"tables": _digest(tables), "settings": _digest(settings)})
        self.is_sorted: tuple[int, int] | None = None
        self.steps: list[Step] = []
        self.totals = total_of([])
        for i, line in enumerate(self._log.read(until_damage=True)):
            try:
                if line.step and line.step.shard:
                    check_shard(folder, line.step.shard)
            except FileError:
                self._log.keep(i)
                break
            self._take(line)

    @property
    def shards(self) -> tuple[Shard, ...]:
        return tuple(step.shard for step in self.steps if step.shard is not None)

    @property
    def next_position(self) -> tuple[int, int]:
        """The file and the row where the rows that are in no shard begin."""
        return (self.steps[-1].next_file, self.steps[-1].next_row) if self.steps else (0, 0)

    def append(self, line: PackingLine) -> None:
        """Note one more shard, which is whole; that the rows are sorted; or that the folder is whole."""
        self._log.append(line)
        self._take(line)

    def restart(self) -> None:
        """Forget all shards, and delete them."""
        for shard in self.shards:
            (self._folder / shard.name).unlink(missing_ok=True)
        self.steps.clear()
        self.totals, self.is_sorted = total_of([]), None
        self._log.keep(0)

    def _take(self, line: PackingLine) -> None:
        self.is_sorted = line.sorted or self.is_sorted
        if line.step is not None:
            self.steps.append(line.step)
            self.totals = total_of([self.totals, line.step.totals])


class OutOfOrder(Exception):  # noqa: N818 - not an error: whoever cuts sorts first
    """A client comes before the one in the row above."""


@dataclass(frozen=True, eq=False)
class Piece:
    """All rows of some clients, and where the rows of the next begin."""

    is_new: Bools  # whether a row is the first of its client
    codes: NDArray[np.int32]
    counts: Ints
    next_file: int
    next_row: int


def pieces(blocks: Iterator[RowBlock], n_clients: int) -> Iterator[Piece]:
    """The rows of `n_clients` whole clients at a time; of fewer if these have very many rows."""
    held: list[tuple[RowBlock, Bools]] = []
    last: Any = None

    def cut(at: int) -> Piece:
        """Take away the first rows."""
        nonlocal held
        is_new = np.concatenate([new for _, new in held])[:at]
        codes = np.concatenate([block.codes for block, _ in held])[:at]
        counts = np.concatenate([block.counts for block, _ in held])[:at]
        left, before = [], 0
        for block, new in held:  # each with its file: the rows of a client may stand in several
            first, before = max(at - before, 0), before + len(block.codes)
            start = block.file, block.row(first)
            if first < len(block.codes):
                left.append((block.after(first), new[first:]))
        if left:
            start = left[0][0].file, left[0][0].row(0)
        held = left
        return Piece(is_new, codes, counts, *start)

    held_clients = held_rows = 0
    most_rows = max(_MOST_ROWS, _ROWS_PER_CLIENT * n_clients)
    for block in blocks:
        if len(block.codes) == 0:
            continue
        clients = arrow("reading tables").array(block.clients)
        is_new, last = _first_rows(clients, last), clients[-1].as_py()
        held.append((block, is_new))
        held_clients += int(is_new.sum())
        held_rows += len(is_new)
        while held_clients > n_clients or (held_rows > most_rows and held_clients > 1):
            begins = np.flatnonzero(np.concatenate([new for _, new in held]))
            # As many clients as fit, and at least one: the pieces do not depend on where blocks end.
            fit = max(1, int(np.searchsorted(begins, most_rows, side="right")) - 1)
            n_cut = min(n_clients, held_clients - 1, fit)
            at = int(begins[n_cut])
            yield cut(at)
            held_clients -= n_cut
            held_rows -= at
    if held:
        yield cut(held_rows)


def _first_rows(clients: Any, last: Any) -> Bools:
    """Which rows begin another client; clients, an Arrow array, must come in increasing order."""
    above, below = clients.slice(0, len(clients) - 1), clients.slice(1)
    first, compute = clients[0].as_py(), arrow("reading tables").compute
    if np.any(compute.less(below, above)) or (last is not None and first < last):
        raise OutOfOrder
    return np.concatenate([[first != last], compute.not_equal(below, above)])


@dataclass(frozen=True)
class _Job:
    folder: Path
    log: PackingLog
    tables: LongTables
    cap: int | None
    drop_empty: bool
    clients_per_shard: int
    memory: int
    n_threads: int
    rng: int


def _pack(job: _Job, on_progress: Callable[[Packed], None], say: Callable[[str], None]) -> Totals:
    """Write all missing shards; return the totals of all shards."""
    sorting = job.folder / _SORTING
    if job.log.is_sorted is not None and not (sorting / "rows.parquet").exists():
        job.log.restart()  # a folder that was whole has lost the end of its log
    if job.log.is_sorted is None:
        try:
            return _pack_in_order(job, job.tables, on_progress)
        except OutOfOrder:
            say("the rows are not in the order of clients: they are sorted first")
            job.log.restart()
        shutil.rmtree(sorting, ignore_errors=True)
        with refused(f"cannot write {sorting}"):
            sorting.mkdir()
        rows, distinct = by_client(
            job.tables, sorting / "rows.parquet", memory=job.memory, n_threads=job.n_threads
        )
        job.log.append(PackingLine(sorted=(rows, distinct)))
    assert job.log.is_sorted is not None
    n_rows, n_distinct = job.log.is_sorted
    in_order = LongTables(
        (sorting / "rows.parquet",),
        Layout("client", "category", "count", certain=True),
        len(category_names(job.tables.categories)),
    )
    totals = _pack_in_order(job, in_order, on_progress)
    has_counts = job.tables.layout.count is not None
    return replace(totals, n_rows=n_rows, n_duplicates=n_rows - n_distinct if has_counts else 0)


def _pack_in_order(job: _Job, tables: LongTables, on_progress: Callable[[Packed], None]) -> Totals:
    """Pack tables whose rows are in the order of clients."""
    lengths = [parquet_rows(path) for path in tables.files]
    total_rows = None if None in lengths else sum(filter(None, lengths))
    has_counts = tables.layout.count is not None
    n_categories = len(category_names(tables.categories))
    waiting: deque[Future[Step]] = deque()
    log = job.log

    def keep_first() -> None:
        log.append(PackingLine(step=waiting.popleft().result()))
        done = log.totals
        on_progress(Packed(done.n_rows, total_rows, done.n_clients, len(log.shards)))

    with ThreadPoolExecutor(job.n_threads) as workers:
        try:
            file, row = log.next_position
            found = pieces(tables.blocks(file=file, row=row), job.clients_per_shard)
            for number, piece in enumerate(found, start=len(log.steps)):
                waiting.append(
                    workers.submit(_write_piece, job, piece, number, n_categories, has_counts)
                )
                if len(waiting) > job.n_threads:
                    keep_first()
            while waiting:
                keep_first()
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
    if log.totals.n_clients == 0:
        raise CountsError("expected at least one client with points, got none")
    return log.totals


def _write_piece(job: _Job, piece: Piece, number: int, n_categories: int, has_counts: bool) -> Step:
    """Write a piece as a shard; return its step for the log."""
    owner = np.cumsum(piece.is_new, dtype=np.int32) - np.int32(1)
    shape = (int(owner[-1]) + 1, n_categories)
    cells = sparse.coo_array((piece.counts, (owner, piece.codes)), shape=shape).tocsr()
    n_rows = len(owner)
    n_duplicates = n_rows - cells.nnz if has_counts else 0
    cells.eliminate_zeros()
    if cells.data.max(initial=0) > _LARGEST:
        raise CountsError(
            f"a client's count of {cells.data.max()} is beyond the largest supported, {_LARGEST}"
        )
    sizes = client_sizes(cells)
    n_empty = int((sizes == 0).sum())
    if n_empty and not job.drop_empty:
        raise CountsError(
            f"{n_empty} of {len(sizes)} clients hold no points; leave them out (drop_empty=True, or "
            "--drop-empty on the command line)"
        )
    cells, sizes = cells[sizes > 0], sizes[sizes > 0]
    n_capped = 0
    if job.cap is not None:
        n_capped = int((sizes > job.cap).sum())
        cells = _capped(cells, sizes, job.cap, np.random.default_rng([job.rng, number]))
        sizes = np.minimum(sizes, job.cap)
    totals = Totals(
        n_clients=len(sizes), n_points=int(sizes.sum()), n_rows=n_rows,
        min_size=int(sizes.min(initial=_LARGEST)), max_size=int(sizes.max(initial=0)),
        n_duplicates=n_duplicates, n_empty=n_empty, n_capped=n_capped,
    )  # fmt: skip
    shard = None
    if len(sizes):
        try:
            shard = write_shard(job.folder, f"shard-{number:06d}.rows", pack(cells))
        except FileError as error:
            raise FileError(
                f"{error}; the shards before it are kept: repeat the command, or the call, when there "
                "is space for more"
            ) from error
    return Step(totals=totals, next_file=piece.next_file, next_row=piece.next_row, shard=shard)


def _capped(
    cells: "sparse.csr_array[Any]", sizes: Ints, cap: int, rng: np.random.Generator
) -> "sparse.csr_array[Any]":
    """At most `cap` points of each client, drawn at random."""
    for i in np.flatnonzero(sizes > cap):
        mine = slice(cells.indptr[i], cells.indptr[i + 1])
        cells.data[mine] = rng.multivariate_hypergeometric(
            cells.data[mine], cap, method="marginals"
        )
    cells.eliminate_zeros()
    return cells


def _digest(described: Any) -> str:
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    with refused(f"cannot read {path}"):
        known = os.stat(path)
    return known.st_size, known.st_mtime_ns


def _nothing(_: object) -> None: ...
