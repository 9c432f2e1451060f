"""A codebook made of proxy data: k-means inside each label, and how far points are from centres.

The server runs this on points of its own. No client's data come here, and nothing is sent.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import ParameterError
from polyurn.memory import check_memory
from polyurn.model.codebooks import Codebook, check_features, nearest, points_by_label
from polyurn.model.k_means import k_means
from polyurn.model.style_coordinates import feature_rows, label_codes
from polyurn.typed.arguments import checked
from polyurn.wording.numbers import counted


@checked
def codebook(
    features: ArrayLike,
    labels: ArrayLike,
    n_styles: int = 16,
    *,
    n_labels: int | None = None,
    coverage: float = 0.99,
    rng: int | np.random.Generator | None = None,
) -> Codebook:
    """Make a codebook of proxy points: label × style, and "other" for what they lack.

    The styles of a label are the clusters of its points by k-means, the largest first. Features count as
    they are: scale or project them first if some should not count more than others.

    Parameters
    ----------
    features : array of shape (n_points, n_features)
        Pixels, columns, an embedding, or the coordinates of a `StyleSpace`; further axes are flattened.
    labels : int array of shape (n_points,)
        0 to n_labels - 1.
    n_styles : int
        Styles of each label, at most: a label with fewer different points has fewer, and one without
        points has none.
    n_labels : int, optional
        By default the largest label and one.
    coverage : float
        The share of a label's proxy points, 0 to 1, that have a style: a point is "other" if it is
        farther from its nearest centre than these are from theirs. Fewer than 1 / (1 - coverage) points
        all have one.
    rng : int or numpy.random.Generator

    Returns
    -------
    Codebook

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(2, size=400)
    >>> slanted = rng.choice([-3.0, 3.0], size=400)
    >>> features = rng.normal(size=(400, 2)) + np.column_stack([labels, slanted])
    >>> book = codebook(features, labels, n_styles=2, rng=0)
    >>> book.categories[:3], book.n_categories
    (('0 × style 0', '0 × style 1', '0 × other'), 6)
    >>> [round(float(y), 1) for y in sorted(book.centres[:2, 1])]
    [-3.0, 3.0]
    """
    rows = feature_rows(features)
    check_features(rows)
    codes = label_codes(labels, len(rows), n_labels=n_labels)
    n_all = int(codes.max(initial=-1)) + 1 if n_labels is None else n_labels
    _check_settings(rows, n_all, n_styles, coverage)
    rng = np.random.default_rng(rng)
    n_of_label, reach = np.zeros(n_all, np.int64), np.zeros(n_all)
    centres = []
    for label, mine in points_by_label(codes):
        found = _clusters(rows[mine].astype(np.float64), n_styles, rng.spawn(1)[0])
        _, squared = nearest(rows, mine, found)
        # A distance of the pool itself, not one between two: rounding cannot put its point outside.
        reach[label] = np.quantile(squared, coverage, method="inverted_cdf")
        n_of_label[label] = len(found)
        centres.append(found)
    return Codebook(np.concatenate(centres), n_of_label, reach)


def _clusters(
    points: NDArray[np.float64], n_styles: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The centres of clusters that have points, those of most points first."""
    n_groups = min(n_styles, len(points))
    centres, joined = k_means(points, n_groups, rng)
    sizes = np.bincount(joined, minlength=n_groups)
    order = np.argsort(-sizes, kind="stable")
    return centres[order[: np.count_nonzero(sizes)]]


def _check_settings(rows: NDArray[Any], n_labels: int, n_styles: int, coverage: float) -> None:
    if rows.size == 0:
        raise ParameterError(f"expected proxy points with features, got shape {rows.shape}")
    if n_labels < 1 or n_styles < 1:
        raise ParameterError(
            f"expected at least one label and n_styles of at least 1, got {n_labels} and {n_styles}"
        )
    if not 0 < coverage <= 1:
        raise ParameterError(f"expected a coverage above 0 and at most 1, got {coverage}")
    check_memory(16 * n_labels, counted(n_labels, "label"), "number labels without gaps")
