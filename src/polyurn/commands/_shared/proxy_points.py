"""Proxy points as `polyurn report` takes them: features as a style has them, and their labels.

Points of a table are pictures if their height and width are said; arrays have a shape of their own.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.record_tables import number_columns, table_features_of
from polyurn.client.tables import category_codes
from polyurn.commands._shared.client_tables import naming
from polyurn.errors import ParameterError
from polyurn.model.style import Style
from polyurn.storage.models import Saved
from polyurn.storage.record_files import read_record_arrays
from polyurn.storage.tables import read_table


def read_proxy_points(
    path: Path | None,
    style: Saved[Style] | None,
    *,
    label: str | None,
    features: str | None,
    shape: str | None,
) -> tuple[NDArray[Any], NDArray[Any]] | tuple[None, None]:
    """The features of all points, shape (n_points, ...), and their labels, if a file is named.

    Parameters
    ----------
    path : Path, optional
        CSV, Parquet or .npz; with a style only.
    style : Saved, optional
        Whose columns are read where none are named.
    label, features : str, optional
        Columns of a table; features with commas between, or one with lists.
    shape : str, optional
        Of a point: "28,28".
    """
    if path is None:
        return None, None
    if style is None:
        raise ParameterError("--proxy has no effect without a style file: add one, or leave it out")
    if path.suffix == ".npz":
        if label is not None or features is not None:
            raise ParameterError(
                "--label and --features have no effect with .npz files, whose arrays are called "
                "features and labels: leave them out"
            )
        arrays = read_record_arrays(path)
        return _shaped(arrays.features, shape), arrays.labels
    points, column = read_table(path), label or "label"
    with naming(path):
        codes = category_codes(
            points, style.categories or style.model.space.n_labels, category=column
        )
        named = None if features is None else [name.strip() for name in features.split(",")]
        names = named or style.features or number_columns(points, leave_out=(column, "client"))
        return _shaped(table_features_of(points, names), shape), codes


def _shaped(features: NDArray[Any], shape: str | None) -> NDArray[np.generic]:
    if shape is None:
        return features
    parts = shape.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ParameterError(f"expected --shape as whole numbers, 28,28 say, got {shape!r}")
    lengths = tuple(int(part) for part in parts)
    n_features = math.prod(features.shape[1:])
    if math.prod(lengths) != n_features:
        raise ParameterError(
            f"expected --shape of {n_features} numbers, the features of a point, got {shape!r}"
        )
    return features.reshape(len(features), *lengths)
