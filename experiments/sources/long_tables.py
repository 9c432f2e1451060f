"""`histogram_table`: client histograms that somebody else counted, with the names of the categories.

A long table (client, category, count) as Parquet or CSV, and beside it, where there is one,
`classes.csv` (category, label). Such a source has no records, so that it is no `Dataset`.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from polyurn.client.counting import Histograms
from polyurn.client.tables import observed_categories, table_histograms
from polyurn.errors import FileError
from polyurn.storage.table_files import read_table
from sources.columns import MISSING, read_columns


def histogram_table(path: str | os.PathLike[str]) -> Histograms:
    """The histograms of a long table.

    Parameters
    ----------
    path : path
        A table with the columns client, category and count; or the folder in which it is called
        histograms.parquet or histograms.csv. Where classes.csv stands beside it, categories are
        numbers, and classes.csv says how many there are and what they are called.

    Returns
    -------
    Histograms

    Raises
    ------
    FileError
        A file is missing or damaged, or classes.csv does not number the categories 0, 1, ...
    CountsError
        The table is not one of histograms.
    """
    place = _table(Path(path))
    table = read_table(place)
    classes = place.with_name("classes.csv")
    if not classes.exists():
        return table_histograms(table, categories=observed_categories(table), count="count")
    names = _names(classes)
    made = table_histograms(table, categories=len(names), count="count")
    return replace(made, categories=names)


def _table(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in ("histograms.parquet", "histograms.csv"):
        if (path / name).exists():
            return path / name
    raise FileError(f"found no histograms in {path}; put histograms.parquet into it")


def _names(path: Path) -> tuple[str, ...]:
    table = read_columns(path, numbers=("category",), texts=("label",))
    numbers, (which, labels) = table.numbers["category"], table.texts["label"]
    if (np.sort(numbers) != np.arange(len(numbers))).any() or (which == MISSING).any():
        raise FileError(f"expected the categories 0, 1, ... once each, with a label, in {path}")
    names = tuple(labels[which[np.argsort(numbers)]].tolist())
    if len(set(names)) < len(names):
        raise FileError(f"expected labels that differ in {path}")
    return names
