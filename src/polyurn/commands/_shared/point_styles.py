"""A style file and the proxy points' features, as commands that give clients points take them.

How a style was learned is `polyurn style`'s.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.record_tables import table_features_of
from polyurn.commands._shared.client_tables import naming
from polyurn.commands._shared.record_tables import ARCHIVE_FEATURES, check_n_features, is_archive
from polyurn.errors import ParameterError
from polyurn.model.style import Style
from polyurn.storage.models import load_saved
from polyurn.wording.names import differing


def read_point_styles(
    path: Path, columns: str | None, points: Any, where: Path, categories: Sequence[str]
) -> tuple[Style, NDArray[np.float64]]:
    """The style of a file, and the features of all proxy points, shape (n_points, n_features).

    Parameters
    ----------
    path : Path
        A style file.
    columns : str, optional
        Columns of numbers with commas between, or one with lists; those that the file names by default.
    points : pyarrow.Table
        The proxy points.
    where : Path
        Where the proxy points stand.
    categories : sequence of str
        Of the clients; they have to be the style's labels, in the same order.
    """
    saved = load_saved(path, Style)
    if saved.categories is not None and tuple(saved.categories) != tuple(categories):
        raise ParameterError(
            f"expected clients with the labels of {path}, {differing(saved.categories, categories)}; "
            "measure the style with the same labels (style --categories)"
        )
    names = style_columns(path, columns, where)
    with naming(where):
        features = table_features_of(points, names)
    check_n_features(features.shape[1], where, saved.model.space.n_features, path)
    return saved.model, features


def style_columns(path: Path, columns: str | None, where: Path) -> Sequence[str]:
    """The columns of a table in which a style is measured: those of the option, or of its file.

    An archive has one, of lists.
    """
    if is_archive(where):
        if columns is not None:
            raise ParameterError(
                f"--features has no effect with {where}, whose array is called features: leave it out"
            )
        return [ARCHIVE_FEATURES]
    if columns is not None:
        return [name.strip() for name in columns.split(",")]
    names = load_saved(path, Style).features
    if names is None:
        raise ParameterError(
            f"expected --features, columns of {where}: {path} does not say what its features are called"
        )
    return names
