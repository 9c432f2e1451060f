"""The style space that a federation is asked in: of proxy points with its categories, or from a file.

What does not suit the federation is said with the name of the file. Nobody is asked here.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyurn.client.histogram import category_names
from polyurn.client.record_tables import table_features_of
from polyurn.client.tables import known_codes
from polyurn.commands._shared.client_tables import naming
from polyurn.commands._shared.options import DIRECTIONS
from polyurn.commands._shared.record_tables import proxy_columns
from polyurn.errors import CountsError, FileError, ParameterError, RowError
from polyurn.federation.folder import Federation
from polyurn.model.style_coordinates import StyleSpace, feature_rows, label_codes, style_space
from polyurn.storage.models import load_saved
from polyurn.storage.record_files import read_record_arrays
from polyurn.storage.tables import read_table
from polyurn.wording.numbers import counted

_SHOWN = 4  # categories that the proxy points lack, by their names


class NamedSpace(NamedTuple):
    """A style space, and the columns that its features are, if each is one."""

    space: StyleSpace
    features: tuple[str, ...] | None


class _Points(NamedTuple):
    """Proxy points: features of shape (n_points, n_features), the categories' numbers, and columns."""

    features: NDArray[Any]
    labels: NDArray[np.int64]
    columns: tuple[str, ...] | None


def saved_space(path: Path, federation: Federation) -> NamedSpace:
    """The style space of a file, if it has as many labels as the federation has categories."""
    space = load_saved(path, StyleSpace).model
    if space.n_labels != federation.n_categories:
        raise FileError(
            f"{path}: expected a space of {counted(federation.n_categories, 'label')}, the federation's "
            f"categories, got {space.n_labels}"
        )
    return NamedSpace(space, _declared_columns(space.n_features, federation, path))


def proxy_space(
    path: Path,
    federation: Federation,
    *,
    label: str | None,
    features: Sequence[str] | None,
    directions: int | None,
    radius: float | None,
    say: Callable[[str], None],
) -> NamedSpace:
    """The style space of proxy points whose labels are the federation's categories.

    Parameters
    ----------
    path : Path
        CSV, Parquet or .npz; in an archive, labels are numbers of categories.
    federation : Federation
    label, features : str, sequence of str, optional
        Columns of a table.
    directions, radius : int, float, optional
        As in `style_space`.
    say : function of a sentence
    """
    if path.suffix == ".npz":
        points = _of_archive(path, federation)
    else:
        points = _of_table(path, federation, label or "label", features, say)
    _check_every_category(points.labels, federation, path)
    n_directions = min(DIRECTIONS, points.features.shape[1]) if directions is None else directions
    try:
        space = style_space(
            points.features, points.labels, n_directions=n_directions, radius=radius,
            n_labels=federation.n_categories,
        )  # fmt: skip
    except ParameterError as error:
        raise CountsError(f"{path}: {error}") from None
    return NamedSpace(space, points.columns)


def _of_archive(path: Path, federation: Federation) -> _Points:
    arrays = read_record_arrays(path)
    try:
        rows = feature_rows(arrays.features)
        codes = label_codes(arrays.labels, len(rows), n_labels=federation.n_categories)
    except ParameterError as error:
        raise CountsError(f"{path}: {error}") from None
    return _Points(rows, codes, _declared_columns(rows.shape[1], federation, path))


def _declared_columns(
    n_features: int, federation: Federation, path: Path
) -> tuple[str, ...] | None:
    """What the features of an array are called, if they were declared and are as many."""
    declared = federation.features
    if declared is None or len(declared) == 1 < n_features:  # it is a column of lists
        return None
    if len(declared) != n_features:
        raise FileError(
            f"{path}: expected {counted(len(declared), 'feature')}, as the federation has declared, got "
            f"{n_features}"
        )
    return declared


def _of_table(
    path: Path,
    federation: Federation,
    label: str,
    features: Sequence[str] | None,
    say: Callable[[str], None],
) -> _Points:
    table = read_table(path, on_remark=say)
    with naming(path):
        codes = known_codes(table, federation.declared, category=label)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            raise RowError(
                f"column {label!r}: {len(unknown):,} of {len(codes):,} values are none of the "
                "federation's categories, the first",
                int(unknown[0]),
                "; leave these rows out, or take the column with the categories (--label)",
            )
        features = features or federation.features
        if features is None:
            features = proxy_columns(table, path, leave_out=(label, "client"), say=say)
        federation.check_features(features)
        values = table_features_of(table, features)
    return _Points(values, codes, tuple(features) if len(features) == values.shape[1] else None)


def _check_every_category(codes: NDArray[np.int64], federation: Federation, path: Path) -> None:
    """The style of a label that the server has no points of cannot be measured."""
    names = category_names(federation.declared)
    lacking = [names[k] for k in np.setdiff1d(np.arange(federation.n_categories), codes)]
    if lacking:
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        raise CountsError(
            f"{path}: expected points of each of the federation's {len(names)} categories, got none of "
            f"{', '.join(lacking[:_SHOWN])}{more}"
        )
