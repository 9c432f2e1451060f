"""Rows of long tables, block by block: the client, the category and the count of each row.

Every row is checked as `client/tables.py` checks it, and a bad one is an error that names its file and
line. `by_client` sorts rows by client with DuckDB, which works on disk if memory is too small.
`packing.py` uses the rows.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.columns import check_missing, without_missing
from polyurn.client.counting import Categories
from polyurn.client.layout import Columns, Layout
from polyurn.client.tables import (
    categories_shown,
    layout_histograms,
    layout_rows,
    observed_codes,
    table_layout,
)
from polyurn.errors import CountsError, FileError, MissingDependencyError
from polyurn.storage.table_files import Rows, arrow, naming, table_batches
from polyurn.typed.declared import Ints

if TYPE_CHECKING:
    import pyarrow as pa

_SUFFIXES = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
# The engine's own limit is a share of what a process may take: Python and Arrow need some too.
_SHARE_OF_ENGINE = 0.7
_INTERRUPTED = "Query interrupted"


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows of one file: clients (int64, or Arrow texts), codes and counts, of shape (n_rows,).

    `file` and `rows` are indices, from 0: of the file among all, and of each row in it.
    """

    clients: Any
    codes: NDArray[np.int32]
    counts: Ints
    file: int
    rows: Rows

    def row(self, i: int) -> int:
        """The index in the file of row `i`, or of the row after the last."""
        return int(self.rows[i]) if i < len(self.rows) else int(self.rows[-1]) + 1

    def after(self, i: int) -> "RowBlock":
        """The rows from `i` on, without their clients."""
        return replace(
            self, clients=None, codes=self.codes[i:], counts=self.counts[i:], rows=self.rows[i:]
        )


@dataclass(frozen=True)
class LongTables:
    """Files whose columns have the same names and meanings."""

    files: tuple[Path, ...]
    layout: Layout
    categories: Categories
    drop_missing: bool = False

    def blocks(self, *, file: int = 0, row: int = 0) -> Iterator[RowBlock]:
        """The rows of all files, beginning with row `row` of file `file`."""
        is_text: bool | None = None
        for i in range(file, len(self.files)):
            path, first = self.files[i], row if i == file else 0
            for rows, table in _whole_rows(path, self.layout.read, self.drop_missing, first):
                with naming(path, rows):
                    ids, codes, counts = layout_rows(table, self.layout, self.categories)
                    clients = _comparable(ids)
                    if is_text not in (None, not isinstance(clients, np.ndarray)):
                        raise CountsError(
                            "expected clients as texts or as whole numbers in all files, got both"
                        )
                is_text = not isinstance(clients, np.ndarray)
                yield RowBlock(clients, codes.astype(np.int32), counts, i, rows)


def find_files(tables: Sequence[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """The files that paths stand for: a folder stands for its tables, in the order of their names."""
    found: list[Path] = []
    for path in map(Path, tables):
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES))
        if not inside:
            raise FileError(f"expected .parquet, .csv or .tsv files in {path}, got none")
        found += inside
    if not found:
        raise FileError("expected at least one table to pack, got none")
    twice = [path for path, n in Counter(found).items() if n > 1]
    if twice:
        raise FileError(f"expected each table once, got {twice[0]} twice")
    return tuple(found)


def open_tables(
    files: tuple[Path, ...],
    asked: Columns,
    declared: Categories | None,
    *,
    drop_missing: bool = False,
) -> tuple[LongTables, tuple[str, ...]]:
    """The files with the meaning of their columns, by the first rows of the first file; and remarks.

    If no categories are declared, all rows are read to find them; and to count those that are left out.
    """
    start, head = next(table_batches(files[0]), (0, None))
    if head is None:
        raise CountsError(f"{files[0]}: expected at least one row, got an empty table")
    here = range(start, start + len(head))
    with naming(files[0], here):
        layout = table_layout(head, asked, declared=declared)
        if layout.category is None:
            raise CountsError("expected one row per point or with a count, got one row per client")
    remarks = layout.remarks
    if declared is None:
        declared = _categories(files, layout, drop_missing)
        n = declared if isinstance(declared, int) else len(declared)
        remarks = (*remarks, f"{n} categories, from the tables; declare them with --categories")
    for _, some in islice(_whole_rows(files[0], layout.read, drop_missing), 1):
        with naming(files[0], here):
            layout_histograms(some, layout, declared)  # refuses what may be a column of counts
    if drop_missing:
        n_rows, n_kept = _whole_of(files, layout.read)
        left_out = f"left out {n_rows - n_kept:,} of {n_rows:,} rows, with missing values"
        remarks = (*remarks, left_out)
    return LongTables(files, layout, declared, drop_missing), remarks


def by_client(tables: LongTables, path: Path, *, memory: int, n_threads: int) -> tuple[int, int]:
    """Write the rows of all files to one Parquet file, in the order of clients, each category once.

    Its columns are `client`, `category` (the code) and `count`. Temporary files beside it hold what does
    not fit into `memory` bytes. Returns the number of rows, and the number of different pairs (client,
    category).
    """
    try:
        import duckdb
    except ImportError as error:
        purpose = "packing tables that are not sorted by client"
        raise MissingDependencyError("duckdb", "shards", purpose) from error
    pa = arrow("reading tables")
    n_rows = 0
    stopped: list[BaseException] = []

    def batches(blocks: Iterator[RowBlock]) -> Iterator[Any]:
        nonlocal n_rows
        try:
            for block in blocks:
                n_rows += len(block.codes)
                yield pa.record_batch([pa.array(block.clients), block.codes, block.counts], schema)
        except BaseException as error:  # the engine would wrap it in one of its own
            stopped.append(error)
            raise

    blocks = tables.blocks()
    first = next(blocks)
    kind = pa.int64() if isinstance(first.clients, np.ndarray) else pa.large_string()
    schema = pa.schema({"client": kind, "category": pa.int32(), "count": pa.int64()})
    reader = pa.RecordBatchReader.from_batches(schema, batches(chain([first], blocks)))
    settings: dict[str, Any] = {
        "memory_limit": f"{int(memory * _SHARE_OF_ENGINE)}B",
        "temp_directory": str(path.parent / "engine"),
        "threads": n_threads,
        "preserve_insertion_order": False,
    }
    try:
        with duckdb.connect(config=settings) as engine:
            engine.execute("SET enable_progress_bar = false")
            engine.register("blocks", reader)
            engine.execute(
                "COPY (SELECT client, category, sum(count)::BIGINT AS count FROM blocks "
                "GROUP BY client, category ORDER BY client) "
                f"TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)"
            )
    except (duckdb.Error, RuntimeError) as error:
        if stopped:
            raise stopped[0] from None
        if _INTERRUPTED in str(error):  # what the engine makes of Ctrl-C
            raise KeyboardInterrupt from None
        if not isinstance(error, duckdb.Error):
            raise
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"cannot sort the rows in {path.parent}: {why}") from None
    return n_rows, int(pa.parquet.read_metadata(path).num_rows)


def _comparable(ids: "pa.ChunkedArray") -> Any:
    """Ids that can be compared with their neighbours: int64 numbers, or texts."""
    pa = arrow("reading tables")
    kind = ids.type.value_type if pa.types.is_dictionary(ids.type) else ids.type
    if not pa.types.is_integer(kind):
        return ids.cast(pa.large_string()).combine_chunks()
    try:
        return ids.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise CountsError("expected numbers of clients below 2**63, or texts") from None


def _categories(
    files: tuple[Path, ...], layout: Layout, drop_missing: bool
) -> int | tuple[str, ...]:
    """The categories that occur in any row of any file."""
    assert layout.category is not None
    values: set[str] = set()
    for path in files:
        for rows, table in _whole_rows(path, layout.read, drop_missing):
            with naming(path, rows):
                values.update(str(value) for value in observed_codes(table, layout.category)[0])
    return categories_shown(values, category=layout.category)


def _whole_of(files: tuple[Path, ...], names: Sequence[str]) -> tuple[int, int]:
    """How many rows there are, and in how many no value is missing."""
    n_rows = n_whole = 0
    for path in files:
        for _, table in table_batches(path, columns=list(names)):
            n_rows += len(table)
            n_whole += len(without_missing(table, names)[1])
    return n_rows, n_whole


def _whole_rows(
    path: Path, names: Sequence[str], drop_missing: bool, first_row: int = 0
) -> Iterator[tuple[Rows, Any]]:
    """The rows of a file that lack no value in these columns, batch by batch, and where they are.

    A missing value is an error unless such rows are to be left out.
    """
    with _columns_of(path, names):
        for start, table in table_batches(path, columns=list(names), first_row=first_row):
            rows: Rows = range(start, start + len(table))
            if drop_missing:
                table, kept = without_missing(table, names)  # noqa: PLW2901
                rows = start + kept
            with naming(path, rows):
                check_missing(table, names)
            if len(table):
                yield rows, table


@contextmanager
def _columns_of(path: Path, names: Sequence[str]) -> Iterator[None]:
    """Report a column that the first file has and this one lacks."""
    try:
        yield
    except KeyError:
        raise CountsError(
            f"{path}: expected the columns {', '.join(names)}, as in the first file"
        ) from None
