"""A codebook: each point's label and its nearest style centre as one category, the same bits everywhere.

The server makes a book of its proxy data (`pool_styles.py`) and sends it to clients; here it is used, on
either side. Histograms over its codes are fitted as any others are. No client is known here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import check_names
from polyurn.errors import ParameterError
from polyurn.model.given_labels import GivenLabels
from polyurn.model.mdm import MDM
from polyurn.model.population import Population
from polyurn.model.style_coordinates import feature_rows, label_codes
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import EqualArrays, finite_array, numbers

# Larger features are damage: the sum of their squares would not be finite.
_LARGEST = 1e150
# Distances (points x centres) that are added up at once: 512 kB, which stay in a core's own cache.
_BLOCK_DISTANCES = 2**16


@checked
@expected_as("a Codebook", advice="make one of proxy data with codebook")
@dataclass(frozen=True, eq=False, init=False)
class Codebook(EqualArrays):
    """Categories of points: a label and a style, or a label and "other" for what the pool lacks.

    Categories are in order of their labels; a label's styles come first, its "other" last.

    Parameters
    ----------
    centres : float array of shape (n_centres, n_features)
        The styles of label 0, then those of label 1, and so on.
    n_styles : int array of shape (n_labels,)
        How many of the centres each label has. A label without any has "other" only.
    reach : float array of shape (n_labels,)
        The largest squared distance to its nearest centre at which a point has that centre's style.

    Examples
    --------
    >>> book = Codebook([[0.0], [4.0], [9.0]], n_styles=[2, 1], reach=[1.0, 4.0])
    >>> book.categories
    ('0 × style 0', '0 × style 1', '0 × other', '1 × style 0', '1 × other')
    >>> book.encode([[0.5], [3.0], [2.0], [2.0]], [0, 0, 0, 1]).tolist()
    [0, 1, 2, 4]
    """

    centres: NDArray[np.float64]
    n_styles: NDArray[np.int64]
    reach: NDArray[np.float64]

    def __init__(self, centres: ArrayLike, n_styles: ArrayLike, reach: ArrayLike) -> None:
        places, reached = finite_array(centres, "centres"), finite_array(reach, "reach")
        of_labels = _whole(n_styles)
        _check_book(places, of_labels, reached)
        self._freeze({"centres": places, "n_styles": of_labels, "reach": reached})

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return len(self.n_styles)

    @property
    def n_features(self) -> int:
        """The number of features, d."""
        return int(self.centres.shape[1])

    @property
    def n_categories(self) -> int:
        """The number of categories, C: the styles of all labels, and an "other" for each label."""
        return len(self.centres) + self.n_labels

    @property
    def label_of(self) -> NDArray[np.int64]:
        """The label of each category, shape (n_categories,)."""
        return np.repeat(np.arange(self.n_labels), self.n_styles + 1)

    @property
    def is_other(self) -> NDArray[np.bool_]:
        """Whether a category is an "other", shape (n_categories,)."""
        others = np.zeros(self.n_categories, bool)
        others[np.cumsum(self.n_styles + 1) - 1] = True
        return others

    @property
    def categories(self) -> tuple[str, ...]:
        """The name of each category, "3 × style 7" or "3 × other"."""
        return self.named([str(label) for label in range(self.n_labels)])

    def named(self, labels: Sequence[str]) -> tuple[str, ...]:
        """The name of each category, where labels have names: "apple × style 7" or "apple × other".

        Parameters
        ----------
        labels : sequence of str
            The name of each label; all different.

        Examples
        --------
        >>> Codebook([[0.0]], n_styles=[1, 0], reach=[1.0, 0.0]).named(["apple", "pear"])
        ('apple × style 0', 'apple × other', 'pear × other')
        """
        names = check_names(labels, self.n_labels) or ()
        styles = ([*(f"style {s}" for s in range(n_styles)), "other"] for n_styles in self.n_styles)
        return tuple(
            f"{label} × {one}" for label, mine in zip(names, styles, strict=True) for one in mine
        )

    def encode(self, features: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
        """The category of each point.

        A point has the style of its label's nearest centre (the first of them, if several are as near),
        and is "other" beyond the label's reach. The same features give the same codes on every
        machine, however many points are encoded at a time.

        Parameters
        ----------
        features : array of shape (n_points, n_features)
            Further axes, of images say, are flattened.
        labels : int array of shape (n_points,)
            0 to n_labels - 1.

        Returns
        -------
        int array of shape (n_points,)
            0 to n_categories - 1.
        """
        rows = feature_rows(features)
        if rows.shape[1] != self.n_features:
            raise ParameterError(
                f"expected points of {self.n_features} features, as in the codebook, got "
                f"{rows.shape[1]}"
            )
        check_features(rows)
        of_points = label_codes(labels, len(rows), n_labels=self.n_labels)
        codes = np.empty(len(rows), np.int64)
        last = np.cumsum(self.n_styles + 1) - 1
        ends = np.cumsum(self.n_styles)
        for label, mine in points_by_label(of_points):
            n_styles, end = int(self.n_styles[label]), int(ends[label])
            which, squared = nearest(rows, mine, self.centres[end - n_styles : end])
            has_style = squared <= self.reach[label]
            codes[mine] = np.where(has_style, last[label] - n_styles + which, last[label])
        return codes

    def given_labels(
        self, mdm: MDM, labels: Population, codes: ArrayLike | None = None
    ) -> GivenLabels:
        """Clients with the label totals of one population, and styles of a mixture given those.

        Parameters
        ----------
        mdm : MDM
            Over the categories of this book: fitted to clients' histograms of codes.
        labels : Population
            Over labels: their own fit, say.
        codes : int array of shape (n_points,), optional
            The codes of the proxy points: no client is then drawn with a category that they lack.

        Returns
        -------
        GivenLabels
            A population over the categories of this book.
        """
        return GivenLabels(mdm, labels, self.label_of, codes)

    def __repr__(self) -> str:
        shape = f"n_labels={self.n_labels}, n_features={self.n_features}"
        return f"Codebook({shape}, n_categories={self.n_categories})"


def nearest(
    rows: NDArray[Any], mine: NDArray[np.int64], centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest centre of some points, and its squared distance; infinity without centres.

    Squares are added feature by feature, in float64, by operations on single elements only: each is
    rounded once as IEEE 754 says, and nothing that depends on the machine (a matrix product, a fused
    multiply-add, the order of a sum) decides which centre is nearest.

    Parameters
    ----------
    rows : array of shape (n_points, n_features)
    mine : int array of shape (n,)
        Which of the points.
    centres : float array of shape (n_centres, n_features)

    Returns
    -------
    which : int array of shape (n,)
        The first of the centres that are nearest.
    squared : float array of shape (n,)
    """
    which, squared = np.zeros(len(mine), np.int64), np.full(len(mine), np.inf)
    if len(centres) == 0:
        return which, squared
    step = max(1, _BLOCK_DISTANCES // len(centres))
    for start in range(0, len(mine), step):
        block = slice(start, start + step)
        columns = np.ascontiguousarray(rows[mine[block]].T, dtype=np.float64)
        distances = np.zeros((len(centres), columns.shape[1]))
        square = np.empty_like(distances)
        for column, of_centres in zip(columns, centres.T, strict=True):
            np.subtract(column, of_centres[:, None], out=square)
            np.multiply(square, square, out=square)
            np.add(distances, square, out=distances)
        which[block] = distances.argmin(axis=0)
        squared[block] = distances.min(axis=0)
    return which, squared


def points_by_label(labels: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each label that occurs, with the positions of its points in their order."""
    order = np.argsort(labels, kind="stable")
    present, starts = np.unique(labels[order], return_index=True)
    yield from zip(present.tolist(), np.split(order, starts[1:]), strict=True)


def check_features(rows: NDArray[Any]) -> None:
    """Raise a `ParameterError` unless the features are numbers whose squares can be added."""
    if rows.dtype.kind != "f":
        return
    largest = min(_LARGEST, float(np.finfo(rows.dtype).max))
    sound = (np.abs(rows) <= largest).all(axis=1)  # NaN is not
    if not sound.all():
        raise ParameterError(
            "expected features that are finite, got NaN or infinity (or numbers too large to square) "
            f"in point {int(np.argmin(sound))}, counted from 0; drop such points"
        )


def _whole(n_styles: ArrayLike) -> NDArray[np.int64]:
    given = numbers(n_styles, "n_styles")
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) == 0 or given.min() < 0:
        raise ParameterError("expected n_styles as integers of at least 0, one for each label")
    return given.astype(np.int64)


def _check_book(
    centres: NDArray[np.float64], n_styles: NDArray[np.int64], reach: NDArray[np.float64]
) -> None:
    if centres.ndim != 2 or centres.shape[1] == 0:
        raise ParameterError(
            f"expected centres of shape (n_centres, n_features), got {centres.shape}"
        )
    check_features(centres)
    if sum(n_styles.tolist()) != len(centres):
        raise ParameterError(
            f"expected n_styles that sum to {len(centres)}, the number of centres, got "
            f"{sum(n_styles.tolist())}"
        )
    if reach.shape != n_styles.shape or (reach < 0).any():
        raise ParameterError(
            f"expected a reach of at least 0 for each of {len(n_styles)} labels, got shape "
            f"{reach.shape}"
        )
    if len(centres) + len(n_styles) < 2:
        raise ParameterError("expected at least two categories, got one label without a style")
