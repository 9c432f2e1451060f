"""The style space that a federation is asked in: of proxy points with its categories, or from a file.

An error about a file that does not fit the federation names the file. No node is asked here.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polyurn.client.counting import category_names
from polyurn.errors import CountsError, FileError, ParameterError
from polyurn.federation.folder import Federation
from polyurn.model.style_coordinates import StyleSpace, style_space
from polyurn.sources.clients import Say
from polyurn.sources.points import PointFile
from polyurn.storage.models import load_saved
from polyurn.typed.declared import Ints
from polyurn.wording import counted, listed

_SHOWN = 4  # categories that the proxy points lack, by their names


def saved_space(path: Path, federation: Federation) -> tuple[StyleSpace, tuple[str, ...] | None]:
    """The style space of a file, if it fits the federation, and the columns of its features."""
    space = load_saved(path, StyleSpace).model
    if space.n_labels != federation.n_categories:
        raise FileError(
            f"{path}: expected a space of {counted(federation.n_categories, 'label')}, the federation's "
            f"categories, got {space.n_labels}"
        )
    return space, _declared_columns(space.n_features, federation, path)


def proxy_space(
    path: Path,
    federation: Federation,
    *,
    label: str | None,
    features: Sequence[str] | None,
    n_directions: int | None,
    most_directions: int,
    radius: float | None,
    say: Say,
) -> tuple[StyleSpace, tuple[str, ...] | None]:
    """The style space of proxy points whose labels are the federation's categories, and its columns.

    Without `n_directions` there is one per feature, and at most `most_directions`.
    """
    file = PointFile.read(path, say)
    file.refuse_names({"--category": label, "--features": features})
    column = label or "label"
    codes = file.codes(
        federation.declared,
        column,
        lacks="the federation has no category",
        advice=f"take the federation's {counted(federation.n_categories, 'category')}, "
        "in an archive as numbers from 0",
    )
    _check_every_category(codes, federation, path)
    columns: tuple[str, ...] | None
    if file.array is None:
        columns = file.feature_columns(
            features or federation.features, leave_out=(column, "client"), say=say
        )
        federation.check_features(columns or ())
        rows = file.features(columns)
        columns = columns if columns and len(columns) == rows.shape[1] else None
    else:
        rows = file.features(None)
        columns = _declared_columns(rows.shape[1], federation, path)
    try:
        space = style_space(
            rows, codes, n_labels=federation.n_categories, radius=radius,
            n_directions=n_directions or min(most_directions, rows.shape[1]),
        )  # fmt: skip
    except ParameterError as error:
        raise CountsError(f"{path}: {error}") from None
    return space, columns


def _declared_columns(
    n_features: int, federation: Federation, path: Path
) -> tuple[str, ...] | None:
    """The declared names of an array's features; a different number of them is an error."""
    declared = federation.features
    if declared is None or len(declared) == 1 < n_features:  # it is a column of lists
        return None
    if len(declared) != n_features:
        raise FileError(
            f"{path}: expected {counted(len(declared), 'feature')}, as the federation has declared, got "
            f"{n_features}"
        )
    return declared


def _check_every_category(codes: Ints, federation: Federation, path: Path) -> None:
    """Refuse proxy data without points of some label: its style could not be measured."""
    names = category_names(federation.declared)
    lacking = [names[k] for k in np.setdiff1d(np.arange(federation.n_categories), codes)]
    if lacking:
        raise CountsError(
            f"{path}: expected points of each of the federation's {len(names)} categories, got none of "
            f"{listed(lacking, _SHOWN)}"
        )
