"""Points and their codes, as commands with a codebook read and write them.

An encoded table has the clients, if there are any, the labels, and a column of codes. What a code is, is
`model/codebooks.py`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.columns import as_arrow, plain_column
from polyurn.client.layout import find_column
from polyurn.client.record_tables import table_features_of
from polyurn.client.tables import category_codes
from polyurn.commands._shared.client_tables import naming
from polyurn.commands._shared.record_tables import (
    Say,
    archive_arrays,
    check_labels,
    check_n_features,
    is_archive,
    label_column,
    refuse_columns,
)
from polyurn.errors import CountsError, FileError, ParameterError
from polyurn.model.codebooks import Codebook
from polyurn.storage.models import Saved, codes_of, load_saved
from polyurn.storage.tables import read_table, table_with_names
from polyurn.typed.arrays import ids_of

CODE = "code"  # the column of codes


@dataclass(frozen=True, eq=False)
class Encoded:
    """Encoded points.

    Attributes
    ----------
    table : pyarrow.Table
        One row per point, in their order: the client, if there is one, the label and the code's name.
    is_other : bool array of shape (n_points,)
        Which of them the pool lacks.
    """

    table: Any
    is_other: NDArray[np.bool_]


def encode_file(
    book: Path,
    path: Path,
    *,
    label: str | None,
    client: str | None,
    features: Sequence[str] | None,
    say: Say,
) -> Encoded:
    """The points of a table or an archive, encoded; what the options do not name stands in the book."""
    saved = load_saved(book, Codebook)
    if is_archive(path):
        refuse_columns(label, client, features)
        columns, points, labels = _of_archive(path, saved)
    else:
        columns, points, labels = _of_table(path, saved, book, label, client, features, say)
    check_n_features(points.shape[1], path, saved.model.n_features, book)
    try:
        codes = saved.model.encode(points, labels)
    except ParameterError as error:  # numbers that cannot be squared
        raise CountsError(f"{path}: {error}") from None
    table = table_with_names(columns, CODE, codes_of(saved), codes)
    return Encoded(table, saved.model.is_other[codes])


def _of_table(
    path: Path,
    saved: Saved[Codebook],
    book: Path,
    label: str | None,
    client: str | None,
    features: Sequence[str] | None,
    say: Say,
) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.int64]]:
    """The columns to keep, the features, and the labels as the book numbers them."""
    names = features or saved.features
    if names is None:
        raise ParameterError(
            f"expected --features, columns of {path}: {book} does not say what they are called"
        )
    table = as_arrow(read_table(path, on_remark=say))
    with naming(path):
        label = label_column(table, label)
        if client is not None:
            client = find_column(table.column_names, client, option="--client")
        elif "client" in table.column_names:
            client = "client"
    kept = [label] if client is None else [client, label]
    if CODE in kept:
        raise ParameterError(
            f"{path}: the column of codes will be called {CODE!r}; rename the one that is there"
        )
    known = saved.categories or saved.model.n_labels
    with naming(path):
        columns = {name: plain_column(table, name) for name in kept}
        check_labels(table, known, label, f"{book} has no style")
        labels = category_codes(table, known, category=label)
        return columns, table_features_of(table, names), labels


def _of_archive(
    path: Path, saved: Saved[Codebook]
) -> tuple[dict[str, Any], NDArray[Any], NDArray[np.int64]]:
    if saved.categories is not None:
        raise FileError(
            f"expected a table, whose labels have names as in the codebook, got {path.name!r}"
        )
    held, points = archive_arrays(path, saved.model.n_labels)
    whose = {} if held.clients is None else {"client": ids_of(held.clients, "clients")}
    if any(len(ids) != len(points.labels) for ids in whose.values()):
        raise CountsError(f"{path}: expected a client for each of {len(points.labels):,} points")
    return {**whose, "label": points.labels}, points.features, points.labels
