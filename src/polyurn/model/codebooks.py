"""A codebook: each point's label and its nearest style centre as one category, the same bits everywhere.

The server makes a book of its proxy data, by k-means inside each label, and sends it to clients; both
use it. Histograms over its codes are fitted as any others are. No client is known here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import check_names
from polyurn.errors import ParameterError
from polyurn.memory import check_memory
from polyurn.model.k_means import k_means
from polyurn.model.mdm import MDM
from polyurn.model.populations import GivenLabels, Population
from polyurn.model.style_coordinates import feature_rows, label_codes
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import ShapedArrays, finite_array, numbers
from polyurn.typed.declared import Floats, Shape
from polyurn.wording.numbers import counted

# Larger features are damage: the sum of their squares would not be finite.
_LARGEST = 1e150
# Distances (points x centres) that are added up at once: 512 kB, which stay in a core's own cache.
_BLOCK_DISTANCES = 2**16


@checked
@expected_as("a Codebook", advice="make one of proxy data with codebook")
@dataclass(frozen=True, eq=False)
class Codebook(ShapedArrays):
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

    centres: Annotated[Floats, Shape("n_centres", "n_features")]
    n_styles: NDArray[np.int64]
    reach: Annotated[Floats, Shape("n_labels")]

    def __post_init__(self) -> None:
        given = numbers(self.n_styles, "n_styles")
        if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) == 0 or given.min() < 0:
            raise ParameterError("expected n_styles as integers of at least 0, one for each label")
        self._freeze({"n_styles": given.astype(np.int64)})
        n_centres = len(finite_array(self.centres, "centres"))  # 0, too
        self._check_arrays(n_labels=len(given), n_centres=n_centres)
        check_features(self.centres)
        n_centres, n_features = self.centres.shape
        if n_features == 0:
            raise ParameterError(f"expected at least one feature, got {self.centres.shape}")
        if n_centres + self.n_labels < 2:
            raise ParameterError("expected at least two categories, got one label without a style")
        if sum(given.tolist()) != n_centres:
            raise ParameterError(
                f"expected n_styles that sum to {n_centres}, the number of centres, got "
                f"{sum(given.tolist())}"
            )
        if (self.reach < 0).any():
            raise ParameterError(f"expected a reach of at least 0, got {self.reach.min()}")

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


def nearest(
    rows: NDArray[Any], mine: NDArray[np.int64], centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The first nearest centre of the points `mine`, and its squared distance; infinity without centres.

    Squares are added feature by feature, in float64, by operations on single elements only: each is
    rounded once as IEEE 754 says, and nothing that depends on the machine (a matrix product, a fused
    multiply-add, the order of a sum) decides which centre is nearest.
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
