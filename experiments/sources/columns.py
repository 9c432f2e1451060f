"""Columns of whole numbers, and of texts with few different values, of a CSV or Parquet table."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError, MissingDependencyError

if TYPE_CHECKING:
    import pyarrow as pa

# Where a whole number is missing. The data that we read have no such value.
MISSING = np.iinfo(np.int32).min

# Cut off, damaged, packed in a way that is not supported, or locked.
_BAD_ZIP = (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class ColumnArrays:
    """Columns of a table of n_rows rows.

    `numbers` are int32 arrays of shape (n_rows,), `MISSING` where there is none. `texts` are pairs:
    which value each row has, likewise, and the values in increasing order.
    """

    numbers: Mapping[str, NDArray[np.int32]]
    texts: Mapping[str, tuple[NDArray[np.int32], NDArray[np.str_]]]


def column_names(path: Path) -> tuple[str, ...]:
    """The names of a table's columns."""
    pa = _pyarrow()
    with _readable(pa, path):
        if path.suffix == ".parquet":
            return tuple(pa.parquet.read_schema(path).names)
        with _opened(path) as file, pa.csv.open_csv(file) as first_rows:
            return tuple(first_rows.schema.names)


def read_columns(
    path: Path,
    *,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    missing: Sequence[str] = ("",),
) -> ColumnArrays:
    """Columns of whole numbers, and of texts with few different values, of a table.

    `path` ends in .parquet, .csv, .csv.gz or .zip, the latter with one CSV file in it; `missing` are the
    texts that stand in a CSV file where there is nothing.
    """
    pa = _pyarrow()
    lacking = sorted({*numbers, *texts} - set(column_names(path)))
    if lacking:
        raise FileError(f"expected a column {lacking[0]} in {path}: there is none")
    with _readable(pa, path):
        table = _read(pa, path, numbers, texts, missing)
    return ColumnArrays(
        {name: _whole_numbers(table[name], name, path) for name in numbers},
        {name: _coded(pa, table[name]) for name in texts},
    )


def _read(
    pa: Any, path: Path, numbers: Sequence[str], texts: Sequence[str], missing: Sequence[str]
) -> "pa.Table":
    wanted = [*numbers, *texts]
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path, columns=wanted)
    types = {name: pa.int32() for name in numbers} | {
        name: pa.dictionary(pa.int32(), pa.string()) for name in texts
    }
    convert = pa.csv.ConvertOptions(
        include_columns=wanted,
        column_types=types,
        null_values=list(missing),
        strings_can_be_null=True,
    )
    with _opened(path) as file:
        return pa.csv.read_csv(file, convert_options=convert)


def _whole_numbers(column: "pa.ChunkedArray", name: str, path: Path) -> NDArray[np.int32]:
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.int32()).fill_null(int(MISSING)).to_numpy())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FileError(f"expected whole numbers in column {name} of {path}") from error


def _coded(pa: Any, column: "pa.ChunkedArray") -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    coded = column.unify_dictionaries().combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.chunk(0)
    values = np.array(coded.dictionary.to_pylist(), dtype=str)
    order = np.argsort(values)
    rank = np.full(len(values) + 1, MISSING, np.int32)  # the last is that of -1, no value
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[np.asarray(coded.indices.fill_null(-1))], values[order]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file to read a CSV from; pyarrow unpacks .gz by itself."""
    if path.suffix != ".zip":
        yield path
        return
    with ZipFile(path) as archive:
        tables = [name for name in archive.namelist() if name.lower().endswith(".csv")]
        if len(tables) != 1:
            raise FileError(f"expected one CSV file in {path}, got {len(tables)}; unpack it")
        with archive.open(tables[0]) as file:
            yield file


@contextmanager
def _readable(pa: Any, path: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError, *_BAD_ZIP) as error:
        reason = str(error).partition("\n")[0]
        raise FileError(f"{path} is not a readable table, or was cut off: {reason}") from error
    except OSError as error:
        raise FileError(
            f"cannot read {path}: {error.strerror or str(error).partition(chr(10))[0]}"
        ) from error


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", "reading tables") from error
    return pa
