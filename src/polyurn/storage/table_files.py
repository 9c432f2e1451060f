"""CSV, TSV and Parquet files: any table is read, histograms are written one row per non-zero cell.

Arrow reads and writes them; it is imported when needed. `client/tables.py` says what a table means.
"""

import csv
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from polyurn.counts import check_counts
from polyurn.errors import CountsError, FileError, MissingDependencyError, ParameterError, RowError
from polyurn.memory import available_memory, check_memory
from polyurn.model.names import check_names
from polyurn.storage.files import AGAIN, check_regular, check_writable, write_whole
from polyurn.typed.arguments import Json, checked
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Ints

if TYPE_CHECKING:
    import pyarrow as pa

Rows: TypeAlias = "range | Ints"  # their indices in a file

DELIMITERS = {"csv": ",", "tsv": "\t"}
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the first bytes of such a file
_HEAD = 2**16  # bytes that hold the first line


@checked
def read_table(
    path: str | os.PathLike[str], *, on_remark: Callable[[str], None] | None = None
) -> "pa.Table":
    """Read a CSV or TSV (also .gz) or Parquet file as an Arrow table.

    Cells of CSV and TSV files stay text: "01" is not 1 and "NA" is a name. An empty cell without quotes
    is a missing value. Semicolons, tabs or bars between columns are recognised, and so is UTF-16 with a
    byte order mark.

    Parameters
    ----------
    path : path
    on_remark : function of a sentence, optional
        Called with what was recognised.

    Raises
    ------
    FileError
        The file cannot be read, or has another format.
    """
    path = Path(path)
    with _reading(path) as (pa, kind):
        _check_size(pa, path, kind)
        if kind == "parquet":
            table = pa.parquet.read_table(path)
            _ = table.column_names  # a name that is not UTF-8 would be an error later, elsewhere
            return table
        dialect = _dialect(pa, path, kind)
        if on_remark is not None and dialect.delimiter != DELIMITERS[kind]:
            on_remark(f"{path.name}: columns are separated by {_CALLED[dialect.delimiter]}")
        table = pa.csv.read_csv(path, *_text_options(pa, path, dialect))
        _refuse_second_header(pa, table, path)
        return table
    raise AssertionError("a table was read, or an error raised")


def table_batches(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    first_row: int = 0,
    n_rows: int = 2**20,
) -> Iterator[tuple[int, "pa.Table"]]:
    """The rows of a file, block by block: (the number of the first row, rows).

    The first is `first_row`, counted from 0; earlier row groups of a Parquet file are not read. A block
    has `n_rows` rows of a Parquet file, or as many rows of a text file as fit into a megabyte.
    """
    path = Path(path)
    with _reading(path) as (pa, kind):
        batches = (
            _parquet_batches(pa, path, columns, first_row, n_rows)
            if kind == "parquet"
            else _text_batches(pa, path, _dialect(pa, path, kind), columns)
        )
        for start, table in batches:
            if start + len(table) > first_row:
                skipped = max(first_row - start, 0)
                yield start + skipped, table.slice(skipped)


def parquet_rows(path: str | os.PathLike[str]) -> int | None:
    """The number of rows that a Parquet file states; None for a text file, which does not state it."""
    path = Path(path)
    with _reading(path) as (pa, kind):
        return int(pa.parquet.read_metadata(path).num_rows) if kind == "parquet" else None
    raise AssertionError("the file was read, or an error raised")


@contextmanager
def _reading(path: Path) -> Iterator[tuple[Any, str]]:
    """Arrow and the kind of a file; Arrow's errors become one line of ours."""
    pa, kind = arrow("reading tables"), table_kind(path)
    check_regular(path)
    try:
        yield pa, kind
    except (pa.ArrowInvalid, UnicodeError) as error:
        if "Empty CSV" in str(error):
            raise FileError(f"{path} is empty: expected a header and at least one row") from error
        raise FileError(f"{path} is not a readable {kind} file: {_reason(error, path)}") from None
    except pa.ArrowNotImplementedError as error:
        raise FileError(f"{path} holds what cannot be read: {str(error).splitlines()[0]}") from None
    except FileError:
        raise
    except OSError as error:
        reason = error.strerror or f"it is damaged; {AGAIN}"
        raise FileError(f"cannot read {path}: {reason}") from error


def _check_size(pa: Any, path: Path, kind: str) -> None:
    """Refuse a packed table that does not fit into memory, before it is read."""
    n_bytes, available = 0, available_memory() or math.inf
    if kind == "parquet":
        known = pa.parquet.read_metadata(path)
        n_bytes = known.num_rows * known.num_columns * 4  # a number, or a text's place
    elif path.stat().st_size * 1032 > available:  # gzip packs no more bytes than that into one
        with pa.input_stream(path) as unpacked:
            while n_bytes <= available and (piece := unpacked.read(2**20)):
                n_bytes += len(piece)
    check_memory(n_bytes, f"the rows of {path}", "take fewer, or `polyurn pack` them part by part")


def row_location(path: str | os.PathLike[str], row: int) -> str:
    """Where a user finds row `row`, counted from 0: by its line in a text file, else by its number."""
    path = Path(path)
    if path.suffix == ".npz" or (kind := table_kind(path)) == "parquet":
        return f"row {row}, counted from 0"
    pa = arrow("reading tables")
    dialect = _dialect(pa, path, kind)
    with (
        pa.input_stream(path) as unpacked,
        io.TextIOWrapper(unpacked, dialect.encoding, errors="replace", newline="") as text,
    ):
        try:
            return f"line {_line(csv.reader(text, delimiter=dialect.delimiter), row)}"
        except csv.Error:  # a cell that is too long for it
            return f"row {row}, counted from 0"


@contextmanager
def naming(path: Path, rows: "Rows | None" = None) -> Iterator[None]:
    """Add the name of the file and the line to an error in a table, of which these rows were taken."""
    try:
        yield
    except RowError as error:
        row = error.row if rows is None else int(rows[error.row])
        raise CountsError(f"{path}: {error.at(row_location(path, row))}") from None
    except CountsError as error:
        raise CountsError(f"{path}: {error}") from None


@checked
def write_histograms(
    counts: object,
    path: str | os.PathLike[str],
    *,
    clients: Sequence[Any] | None = None,
    categories: Sequence[str] | None = None,
    provenance: Json | None = None,
) -> None:
    """Write histograms as a long table (client, category, count), Parquet or CSV by the suffix.

    Parameters
    ----------
    counts : int array or csr_array of shape (n_clients, n_categories)
    path : path ending in .parquet, .csv, .csv.gz, .tsv or .tsv.gz
    clients : sequence of length n_clients, optional
        Client ids; 0, 1, ... by default.
    categories : sequence of str, optional
        Category names; their numbers by default.
    provenance : mapping, optional
        How it came about; kept in a Parquet file's metadata. CSV cannot keep it.
    """
    write_table(
        long_table(counts, clients=clients, categories=categories), path, provenance=provenance
    )


def csv_text(
    counts: object, *, clients: Sequence[Any] | None = None, categories: Sequence[str] | None = None
) -> bytes:
    """What `write_histograms` writes to a .csv file."""
    pa = arrow("writing tables")
    stream = pa.BufferOutputStream()
    pa.csv.write_csv(long_table(counts, clients=clients, categories=categories), stream)
    return bytes(stream.getvalue())


def long_table(
    counts: object, *, clients: Sequence[Any] | None = None, categories: Sequence[str] | None = None
) -> "pa.Table":
    """Histograms as an Arrow table with one row per non-zero cell."""
    pa = arrow("writing tables")
    rows = sparse.csr_array(check_counts(counts, allow_empty=True))
    known = np.arange(rows.shape[0]) if clients is None else ids_of(clients, "client ids")
    if len(known) != rows.shape[0]:
        raise ParameterError(f"expected {rows.shape[0]} client ids, got {len(known)}")
    labels = check_names(categories, rows.shape[1])
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    ids = pa.array(known).take(pa.array(owner))
    codes = pa.array(rows.indices.astype(np.int32))
    names = codes if labels is None else pa.array(labels).take(codes)
    return pa.table({"client": ids, "category": names, "count": rows.data.astype(np.int64)})


def write_table(
    table: "pa.Table", path: str | os.PathLike[str], *, provenance: Mapping[str, Any] | None = None
) -> None:
    """Write an Arrow table in the format of the suffix, whole or not at all.

    A Parquet file keeps `provenance` in its metadata; CSV cannot keep it.
    """
    from polyurn import __version__

    path = Path(path)
    pa = arrow("writing tables")
    kind = table_kind(path)

    def write(file: IO[bytes]) -> None:
        if kind == "parquet":
            note = json.dumps({"polyurn": __version__, **(provenance or {})})
            pa.parquet.write_table(table.replace_schema_metadata({"polyurn": note}), file)
            return
        packing = "gzip" if path.suffix == ".gz" else None
        with pa.output_stream(file, compression=packing) as stream:
            pa.csv.write_csv(table, stream, pa.csv.WriteOptions(delimiter=DELIMITERS[kind]))

    write_whole(path, write)


def check_table_writable(path: str | os.PathLike[str]) -> None:
    """`check_writable` for `write_table`, which goes by the suffix."""
    table_kind(Path(path))
    check_writable(path)


def arrow(purpose: str) -> Any:
    """The pyarrow package, or an error that names the extra to install and its purpose."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", purpose) from error
    return pa


def is_table(path: Path) -> bool:
    """Whether a path is the name of a table."""
    return path.suffix in (".csv", ".tsv", ".gz", ".parquet")


def table_kind(path: Path) -> str:
    """The format that the suffix stands for: "parquet", "csv" or "tsv"."""
    kinds = {".parquet": "parquet", ".csv": "csv", ".tsv": "tsv"}
    packed = path.suffix == ".gz"
    kind = kinds.get(path.with_suffix("").suffix if packed else path.suffix)
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:  # Arrow opens files by names that are UTF-8
        raise FileError(f"cannot use {path.name!a}: its name is not UTF-8; rename it") from error
    if kind is None and os.path.isdir(path):  # pathlib raises for a name that is too long
        raise FileError(
            f"expected a .parquet, .csv or .tsv file, got the folder {path.name!r}; packed clients have "
            "no columns: give the table that was packed; `polyurn pack` makes of a folder of tables one "
            "that fit, describe, score and compare read"
        )
    if kind is None or (packed and kind == "parquet"):
        raise FileError(
            f"expected a .parquet, .csv or .tsv file, got {path.name!r}; save it as one of them"
        )
    return kind


def _line(records: Any, row: int) -> int:
    """The line on which a row begins, counted from 1; empty lines are not rows."""
    after, n_read = 0, -2  # the header is not a row
    for cells in records:
        n_read += bool(cells)
        if n_read == row:
            break
        after = records.line_num
    return int(after) + 1


class _Dialect(NamedTuple):
    delimiter: str  # between columns
    encoding: str


def _dialect(pa: Any, path: Path, kind: str) -> _Dialect:
    """The dialect of a text file: that of its suffix, unless its first line can only be of another."""
    with pa.input_stream(path) as file:
        start = file.read(_HEAD)
    if start.startswith(b"PAR1"):
        raise pa.ArrowInvalid("it is a Parquet file; let its name end in .parquet")
    if b"\0" in start and not start.startswith(_UTF_16):
        raise pa.ArrowInvalid("it holds zero bytes, as UTF-16 does; save it as UTF-8")
    encoding = "utf-16" if start.startswith(_UTF_16) else "utf-8-sig"
    header = start.decode(encoding, errors="replace").partition("\n")[0]
    usual = DELIMITERS[kind]
    others = [mark for mark in _CALLED if mark != usual and mark in header]
    delimiter = others[0] if usual not in header and len(others) == 1 else usual
    return _Dialect(delimiter, encoding)


def _parquet_batches(
    pa: Any, path: Path, columns: Sequence[str] | None, first_row: int, n_rows: int
) -> Iterator[tuple[int, "pa.Table"]]:
    with pa.parquet.ParquetFile(path) as file:
        meta = file.metadata
        lengths = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        first = int(np.searchsorted(starts, first_row, side="right")) - 1
        start = int(starts[first])
        groups = range(first, meta.num_row_groups)
        for batch in file.iter_batches(n_rows, row_groups=groups, columns=columns):
            yield start, pa.Table.from_batches([batch])
            start += len(batch)


def _text_batches(
    pa: Any, path: Path, dialect: _Dialect, columns: Sequence[str] | None
) -> Iterator[tuple[int, "pa.Table"]]:
    start = 0
    with pa.csv.open_csv(path, *_text_options(pa, path, dialect)) as file:
        for batch in file:
            table = pa.Table.from_batches([batch])
            _refuse_second_header(pa, table, path, start)
            yield start, table if columns is None else table.select(columns)
            start += len(batch)


def _text_options(pa: Any, path: Path, dialect: _Dialect) -> tuple[Any, Any, Any]:
    """Arrow's options for a text file: every cell stays text."""
    # Errors name the row only with one thread.
    read = pa.csv.ReadOptions(use_threads=False, encoding=dialect.encoding.removesuffix("-sig"))
    parse = pa.csv.ParseOptions(delimiter=dialect.delimiter)
    with pa.csv.open_csv(path, read, parse) as first_rows:
        names = first_rows.schema.names
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return read, parse, convert


def _refuse_second_header(pa: Any, table: "pa.Table", path: Path, first_row: int = 0) -> None:
    """Refuse a row that repeats the header, as in files that were joined."""
    same = np.ones(len(table), bool)
    for i, name in enumerate(table.column_names):
        same &= np.asarray(pa.compute.equal(table.column(i), pa.scalar(name)).fill_null(False))
        if not same.any():
            return
    where = row_location(path, first_row + int(np.argmax(same)))
    raise FileError(f"{path}: {where} is the header once more; delete it")


def _reason(error: ValueError, path: Path) -> str:
    """What is wrong with a table, without the text of the row, which is a client's."""
    text = str(error)
    if isinstance(error, UnicodeError) or "UTF8" in text:
        return "expected UTF-8; save it as UTF-8"
    if path.suffix == ".parquet":
        return f"{text.splitlines()[0]}; {AGAIN}"
    ragged = re.search("Row #([0-9]+): (Expected [0-9]+ columns, got [0-9]+)", text)
    if ragged is None:
        return text.splitlines()[0]
    number, what = ragged.groups()  # counts the header, from 1
    where = row_location(path, int(number) - 2)
    return f"{what.lower()} in {where}; put quotes around texts that hold the separator"
