"""`folktables`: person records of the American Community Survey, by Public Use Microdata Area.

The Census Bureau's person files of any year (CSV as it publishes them, or Parquet), as the folktables
package and the paper use them. One client is one PUMA. Household files are not read. The Bureau gives
no checksums, so that nothing is downloaded.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyurn.client.bins import Bins
from polyurn.datasets.dataset import Dataset, LabelledPoints
from polyurn.errors import FileError, ParameterError
from sources.columns import MISSING, ColumnArrays, column_names, read_columns
from sources.download import OnProgress
from sources.local import Layout, Source, locate

Feature: TypeAlias = Literal["race", "income", "high_income"]
People: TypeAlias = Literal["all", "workers"]
_T = TypeVar("_T", bound=np.generic)
_Numbers: TypeAlias = Mapping[str, NDArray[np.int32]]

# RAC1P from 1 to 9; the survey's data dictionary has longer words for the fifth.
_RACES = (
    "White alone", "Black or African American alone", "American Indian alone",
    "Alaska Native alone", "American Indian and/or Alaska Native, tribe not specified or other",
    "Asian alone", "Native Hawaiian and Other Pacific Islander alone", "Some Other Race alone",
    "Two or More Races",
)  # fmt: skip
# 40 bins of 5,000 dollars and one for 200,000 and more (the paper's); losses are in the first.
_INCOMES = Bins([-np.inf, *np.arange(5_000, 200_001, 5_000), np.inf])
_HIGH_INCOME = 50_000  # dollars, the threshold of folktables' ACSIncome


@dataclass(frozen=True)
class _Column:
    """A column of the survey and how it becomes features."""

    name: str
    largest: int
    one_hot: bool  # or one number, divided by the largest


_COLUMNS = (
    _Column("AGEP", 99, one_hot=False),
    _Column("WKHP", 99, one_hot=False),
    _Column("SCHL", 24, one_hot=False),
    _Column("SEX", 2, one_hot=True),
    _Column("MAR", 5, one_hot=True),
    _Column("COW", 9, one_hot=True),
    _Column("ESR", 6, one_hot=True),
    _Column("HISP", 24, one_hot=False),
    _Column("RAC1P", 9, one_hot=True),
)

_SOURCE = Source(
    "folktables",
    layouts=(
        Layout(
            "csv",
            ("psam_p*.csv",),
            "psam_pSS.csv of one state or several (in csv_pSS.zip from "
            "https://www2.census.gov/programs-surveys/acs/data/pums/YEAR/1-Year/)",
        ),
        Layout("csv", ("ss[0-9][0-9]p*.csv",), "ssYYpSS.csv (before 2017)"),
        Layout("zip", ("csv_p*.zip",), "csv_pSS.zip as it comes"),
        Layout("parquet", ("persons.parquet",), "persons.parquet"),
        Layout("parquet", ("p*_*.parquet",), "p_SS.parquet"),
    ),
    also_in=("acs2024_persons",),
)


def folktables(
    *,
    root: str | os.PathLike[str] | None = None,
    download: bool = False,
    on_progress: OnProgress | None = None,
    feature: Feature = "race",
    people: People = "all",
) -> Dataset:
    """Census records by PUMA, with race or income as their label.

    Features, float32 from 0 to 1, where the files have all the columns (else None): AGEP / 99,
    WKHP / 99, SCHL / 24 (0 where these do not apply); a column for each value of SEX, MAR, COW, ESR
    and RAC1P, 1 where it is that one; and 1 for any Hispanic origin. Race is not a feature when it is
    the label; income never is.

    Parameters
    ----------
    root : path, optional
        The folder that holds the person files of one year, or one such file; the same in a folder
        `folktables` under it. By default the folder that POLYURN_DATA names.
    download, on_progress
        As for every source; the Census Bureau gives no checksums, so that nothing is downloaded.
    feature : "race", "income" or "high_income"
        RAC1P in 9 categories; PINCP in 41 bins of 5,000 dollars, as in the paper, not adjusted by
        ADJINC; or whether PINCP is above 50,000 dollars.
    people : "all" or "workers"
        Everybody of whom the feature is known (income: from age 15), or folktables' ACSIncome
        selection: AGEP > 16, PINCP > 100, WKHP > 0 and, where there is such a column, PWGTP >= 1.
        With "workers" the rows are the same for every feature.

    Raises
    ------
    FileError
        Files are missing, cut off or damaged, or lack a column.
    """
    if feature not in ("race", "income", "high_income"):
        raise ParameterError(f'expected "race", "income" or "high_income", got {feature!r}')
    if people not in ("all", "workers"):
        raise ParameterError(f'expected the people "all" or "workers", got {people!r}')
    found = locate(_SOURCE, root=root, download=download, on_progress=on_progress)
    parts = [_part(path, feature, people) for path in found.paths[0]]
    areas = _joined([part.areas for part in parts])
    if len(areas) == 0:
        raise FileError(f"expected people with a known {feature} in {found.folder}, got none")
    encodings = [part.features for part in parts if part.features is not None]
    ids, clients = np.unique(areas, return_inverse=True)
    records = LabelledPoints(
        _joined([part.labels for part in parts]),
        _joined(encodings) if len(encodings) == len(parts) else None,
        clients.astype(np.int64),
        np.array([f"{area // 100_000:02d}-{area % 100_000:05d}" for area in ids.tolist()]),
    )
    names = () if records.features is None else _feature_names(feature)
    return Dataset(f"folktables {feature}", _categories(feature), records, feature_names=names)


def _joined(arrays: list[NDArray[_T]]) -> NDArray[_T]:
    """One after the other; a single one is not copied, which may be half a gigabyte."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


@dataclass(frozen=True)
class _Part:
    """One file: state and PUMA as one number, labels, and features where it has the columns."""

    areas: NDArray[np.int32]
    labels: NDArray[np.int64]
    features: NDArray[np.float32] | None


def _part(path: Path, feature: Feature, people: People) -> _Part:
    names = set(column_names(path))
    encoded = _encoded(feature) if {c.name for c in _COLUMNS} <= names else ()
    label = "RAC1P" if feature == "race" else "PINCP"
    chosen_by = ("AGEP", "PINCP", "WKHP", *({"PWGTP"} & names)) if people == "workers" else ()
    numbers = {label, *chosen_by, *(column.name for column in encoded)}
    whose = _area_columns(names, path)
    if whose == ("client",):
        table = read_columns(path, numbers=sorted(numbers), texts=whose)
    else:
        table = read_columns(path, numbers=sorted({*numbers, *whose}))
    known = np.not_equal(table.numbers[label], MISSING)
    kept = np.flatnonzero(known & _workers(table.numbers) if people == "workers" else known)
    return _Part(
        _areas(table, whose, path)[kept],
        _labels(table.numbers[label][kept], feature, path),
        _features(table.numbers, encoded, kept, path) if encoded else None,
    )


def _area_columns(names: set[str], path: Path) -> tuple[str, ...]:
    """The columns that say where somebody lives: since 2023 the state is called STATE."""
    for columns in (("client",), ("ST", "PUMA"), ("STATE", "PUMA")):
        if names.issuperset(columns):
            return columns
    raise FileError(
        f"expected columns ST (or STATE) and PUMA in {path}; is it a person file of one vintage of "
        "PUMAs, not a household file or one that spans two?"
    )


def _areas(table: ColumnArrays, whose: tuple[str, ...], path: Path) -> NDArray[np.int32]:
    """State and PUMA as one number, SSPPPPP."""
    if whose == ("client",):
        codes, values = table.texts["client"]
        try:
            pairs = [value.split("-") for value in values.tolist()]
            areas = np.array([int(state) * 100_000 + int(puma) for state, puma in pairs], np.int32)
        except ValueError as error:
            raise FileError(f"expected clients such as 06-00101 in {path}, got others") from error
        if (codes == MISSING).any():
            raise FileError(f"expected a client in every row of {path}")
        located: NDArray[np.int32] = areas[codes]
        return located
    state, puma = (table.numbers[name] for name in whose)
    if ((state < 0) | (state > 99) | (puma < 0) | (puma > 99_999)).any():
        raise FileError(f"expected a state and a PUMA in every row of {path}")
    return np.add(state * 100_000, puma, dtype=np.int32)


def _workers(numbers: _Numbers) -> NDArray[np.bool_]:
    """The selection that folktables calls `adult_filter`; what is missing is below every bound."""
    bounds = {"AGEP": 16, "PINCP": 100, "WKHP": 0, "PWGTP": 0}
    above = [numbers[name] > bound for name, bound in bounds.items() if name in numbers]
    return np.asarray(np.all(above, axis=0))


def _labels(values: NDArray[np.int32], feature: Feature, path: Path) -> NDArray[np.int64]:
    if feature == "income":
        return _INCOMES.locate(values)
    if feature == "high_income":
        return (values > _HIGH_INCOME).astype(np.int64)
    if ((values < 1) | (values > len(_RACES))).any():
        raise FileError(f"expected RAC1P from 1 to {len(_RACES)} in {path}, got others")
    return values.astype(np.int64) - 1


def _categories(feature: Feature) -> tuple[str, ...]:
    if feature == "race":
        return _RACES
    if feature == "income":
        inner = (f"{low}-{low + 4_999}" for low in range(5_000, 200_000, 5_000))
        return ("below 5000 (losses included)", *inner, "200000 and more")
    return (f"up to {_HIGH_INCOME}", f"above {_HIGH_INCOME}")


def _encoded(feature: Feature) -> tuple[_Column, ...]:
    return tuple(c for c in _COLUMNS if not (feature == "race" and c.name == "RAC1P"))


def _feature_names(feature: Feature) -> tuple[str, ...]:
    return tuple(
        name
        for column in _encoded(feature)
        for name in (
            [f"{column.name}={j}" for j in range(1, column.largest + 1)]
            if column.one_hot
            else [column.name]
        )
    )


def _features(
    numbers: _Numbers, encoded: tuple[_Column, ...], kept: NDArray[np.int64], path: Path
) -> NDArray[np.float32]:
    widths = [column.largest if column.one_hot else 1 for column in encoded]
    features = np.zeros((len(kept), sum(widths)), np.float32)
    at = 0
    for column, width in zip(encoded, widths, strict=True):
        values = numbers[column.name][kept]
        values = np.where(values == MISSING, 0, values)
        if ((values < 0) | (values > column.largest)).any():
            raise FileError(f"expected {column.name} of at most {column.largest} in {path}")
        if column.name == "HISP":  # 1 is none; the others are origins
            features[:, at] = values > 1
        elif column.one_hot:
            rows = np.flatnonzero(values)
            features[rows, at + values[rows] - 1] = 1.0
        else:
            features[:, at] = values / np.float32(column.largest)
        at += width
    return features
