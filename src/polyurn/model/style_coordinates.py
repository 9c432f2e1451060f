"""The coordinates of points in which clients' styles are measured: z = W_l^(-1/2) (P'f - c_l).

The server makes a space of its proxy data (label means, the main directions of the residuals, whitening)
and sends it to clients; both use it, with the same bits on either side. Whose points they are, and what
their coordinates say about clients, is not known here.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import ParameterError
from polyurn.memory import check_memory
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import ShapedArrays, numbers
from polyurn.typed.declared import (
    Above,
    AtLeast,
    Between,
    Floats,
    Ints,
    Shape,
    check_declared,
)
from polyurn.wording import counted

# Numbers of a block of residuals: 64 MB of float64, however many points there are.
_BLOCK_NUMBERS = 8_000_000
# The radius is the distance within which this share of the proxy points lies.
_WITHIN_RADIUS = 0.99
# A direction with less of the residuals' variance than this is rounding, not variation.
_LEAST_VARIANCE = 1e-10


@checked
@expected_as("a StyleSpace", advice="make one of proxy data with style_space")
@dataclass(frozen=True, eq=False)
class StyleSpace(ShapedArrays):
    """Coordinates of points in which clients' styles are measured, the same bits everywhere.

    Parameters
    ----------
    centres : float array of shape (n_labels, n_directions)
        c_l = P'm_l: where the mean features m_l of each label lie along the directions.
    basis : float array of shape (n_features, n_directions)
        P: the directions of the features' residuals f - m_l that are looked at.
    whitening : float array of shape (n_labels, n_directions, n_directions)
        W_l^(-1/2): makes the proxy points of label l have covariance I.
    radius : float
        A point farther than this from 0 is moved to this distance: what one point can do is bounded.
    proxy_far_share : float
        The share of the proxy points that lie beyond the radius.

    Examples
    --------
    >>> space = StyleSpace([[1.0]], [[1.0], [0.0]], [[[0.5]]], radius=2.0)
    >>> space.coordinates([[3.0, 1.0], [9.0, 7.0]], [0, 0]).tolist()
    [[1.0], [2.0]]
    """

    centres: Annotated[Floats, Shape("n_labels", "n_directions")]
    basis: Annotated[Floats, Shape("n_features", "n_directions")]
    whitening: Annotated[Floats, Shape("n_labels", "n_directions", "n_directions")]
    radius: Annotated[float, Above(0)]
    proxy_far_share: Annotated[float, Between(0, 1)] = 0.0

    def __post_init__(self) -> None:
        self._check_arrays()
        check_declared(self)
        if not 1 <= self.n_directions <= self.n_features or self.n_labels == 0:
            raise ParameterError(
                "expected at least one label and one direction, and no more directions than features, "
                f"got {self.n_labels}, {self.n_directions} and {self.n_features}"
            )

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return len(self.centres)

    @property
    def n_features(self) -> int:
        """The number of features, d."""
        return len(self.basis)

    @property
    def n_directions(self) -> int:
        """The number of directions, m."""
        return int(self.basis.shape[1])

    def coordinates(
        self, features: ArrayLike, labels: ArrayLike, *, n_threads: Annotated[int, AtLeast(1)] = 1
    ) -> Floats:
        """The coordinates z of points, at most `radius` from 0.

        Parameters
        ----------
        features : array of shape (n_points, n_features)
            Further axes, of images say, are flattened.
        labels : int array of shape (n_points,)
            0 to n_labels - 1.
        n_threads : int
            The bits are the same with any number.

        Returns
        -------
        float array of shape (n_points, n_directions)
        """
        return self.located(features, labels, n_threads=n_threads)[0]

    def located(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        finite_only: bool = True,
        n_threads: Annotated[int, AtLeast(1)] = 1,
    ) -> tuple[Floats, Floats]:
        """The coordinates of points, and 1 for each that was beyond the radius, 0 for the others.

        Without `finite_only`, coordinates that are not finite are 0, and far: a client's answer may not
        be refused for what its points are.
        """
        from polyurn.model.model_kernels import whitened

        rows = feature_rows(features, n_features=self.n_features)
        codes = label_codes(labels, len(rows), n_labels=self.n_labels)
        out, far = np.empty((len(rows), self.n_directions)), np.zeros(len(rows))
        space = (self.centres, self.basis, self.whitening, self.radius)

        def locate(some: slice) -> int | None:
            bad = whitened(rows[some], codes[some], *space, out[some], far[some])
            return None if bad < 0 else some.start + bad

        ends = np.linspace(0, len(rows), n_threads + 1, dtype=int).tolist()
        with ThreadPoolExecutor(n_threads) as threads:
            run = map if n_threads == 1 else threads.map
            found = list(run(locate, map(slice, ends[:-1], ends[1:])))
        bad = next((point for point in found if point is not None), None)
        if bad is not None and finite_only:
            raise ParameterError(
                "expected features that are finite, got NaN or infinity (or numbers too large to "
                f"square) in point {bad}, counted from 0; drop such points"
            )
        return out, far

    def __repr__(self) -> str:
        shape = f"n_labels={self.n_labels}, n_features={self.n_features}"
        return f"StyleSpace({shape}, n_directions={self.n_directions}, radius={self.radius:.3g})"


@checked
def style_space(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    n_directions: int = 4,
    radius: float | None = None,
    n_labels: int | None = None,
) -> StyleSpace:
    """Make a style space of proxy points.

    Its directions are the principal components of the residuals f - m_l, of all labels together; in
    them the points of each label are whitened, so that the proxy points have mean 0 and covariance I.

    Parameters
    ----------
    features : array of shape (n_points, n_features)
        Pixels, columns or a frozen embedding; further axes are flattened.
    labels : int array of shape (n_points,)
        0 to n_labels - 1; every label has points.
    n_directions : int
        m: 4 to 8 served well. Clients send 5 + m + 3 m (m + 1) / 2 numbers.
    radius : float, optional
        Points farther from 0 are moved to this distance. By default 99 % of the proxy points lie within
        it.
    n_labels : int, optional
        By default the largest label and one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(3, size=900)
    >>> space = style_space(rng.normal(size=(900, 5)) + labels[:, None], labels, n_directions=2)
    >>> space
    StyleSpace(n_labels=3, n_features=5, n_directions=2, radius=2.98)
    """
    rows = feature_rows(features)
    codes = label_codes(labels, len(rows), n_labels=n_labels)
    per_label = _points_of_each(codes, n_labels)
    _check_settings(rows, n_directions)
    means = _label_means(rows, codes, per_label)
    basis = _main_directions(_covariance(rows, codes, means), n_directions)
    projected = np.concatenate([some @ basis for some in _residuals(rows, codes, means)])
    whitening = _whitening(projected, codes, per_label)
    centres = means @ basis
    whole = StyleSpace(centres, basis, whitening, radius=np.finfo(np.float64).max)
    distances = np.linalg.norm(whole.coordinates(rows, codes), axis=1)
    if radius is None:
        radius = float(np.quantile(distances, _WITHIN_RADIUS))
    return StyleSpace(
        centres, basis, whitening, radius, proxy_far_share=float((distances > radius).mean())
    )


def feature_rows(features: ArrayLike, *, n_features: int | None = None) -> NDArray[Any]:
    """Features as an array of numbers, one row for each point; further axes are flattened."""
    given = numbers(features, "features")
    if given.ndim < 2:
        raise ParameterError(
            f"expected features of shape (n_points, n_features), got shape {given.shape}"
        )
    rows = given.reshape(len(given), math.prod(given.shape[1:]))
    if n_features is not None and rows.shape[1] != n_features:
        raise ParameterError(
            f"expected points of {n_features} features, as in the style space, got {rows.shape[1]}"
        )
    return rows


def check_finite(rows: NDArray[Any]) -> None:
    """Refuse points with a feature that is not finite, by the position of the first."""
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ParameterError(
            "expected features that are finite, got NaN or infinity in point "
            f"{int(np.argmin(finite))}, counted from 0; drop such points"
        )


def label_codes(labels: ArrayLike, n_points: int | None, *, n_labels: int | None) -> Ints:
    """Labels as integers from 0, one for each point; below `n_labels`, if that is given."""
    given = numbers(labels, "labels")
    if given.shape != (given.size if n_points is None else n_points,):
        raise ParameterError(
            f"expected a label for each of {n_points or given.size} points, got shape {given.shape}"
        )
    if given.dtype.kind == "b" or (given != np.floor(given)).any():  # NaN is not
        raise ParameterError("expected labels as integers from 0")
    low, high = int(given.min(initial=0)), int(given.max(initial=0))
    if low < 0 or (n_labels is not None and high >= n_labels):
        last = "" if n_labels is None else f" to {n_labels - 1}"
        raise ParameterError(
            f"expected labels from 0{last}, got {low if low < 0 else high}; number labels as in the "
            "proxy data"
        )
    return given.astype(np.int64)


def _points_of_each(codes: Ints, n_labels: int | None) -> Ints:
    n = int(codes.max(initial=-1)) + 1 if n_labels is None else n_labels
    # More labels than points leave one empty; there is no need to count how many.
    per_label = np.bincount(codes, minlength=n) if 0 < n <= len(codes) else np.zeros(1, np.int64)
    if not per_label.all():
        empty = f"label {np.argmin(per_label)}" if n <= len(codes) else "some of them"
        raise ParameterError(
            f"expected proxy points of every label, got none of {empty}; number labels without "
            "gaps, and leave out those that the proxy data lack"
        )
    return per_label


def _check_settings(rows: NDArray[Any], n_directions: int) -> None:
    if not 1 <= n_directions <= rows.shape[1]:
        raise ParameterError(
            f"expected n_directions from 1 to {rows.shape[1]}, the features, got {n_directions}"
        )
    check_finite(rows)
    check_memory(
        8 * rows.shape[1] ** 2,
        f"the covariances of {rows.shape[1]:,} features",
        "take an embedding, or fewer columns",
    )


def _blocks(n_points: int, n_features: int) -> Iterator[slice]:
    step = max(1, _BLOCK_NUMBERS // max(n_features, 1))
    for start in range(0, n_points, step):
        yield slice(start, min(start + step, n_points))


def _label_means(rows: NDArray[Any], codes: Ints, per_label: Ints) -> Floats:
    sums = np.zeros((len(per_label), rows.shape[1]))
    for block in _blocks(*rows.shape):
        inside = codes[block]
        one_hot = scipy.sparse.csr_array(
            (np.ones(len(inside)), (inside, np.arange(len(inside)))),
            shape=(len(per_label), len(inside)),
        )
        sums += one_hot @ rows[block].astype(np.float64)
    return np.asarray(sums / per_label[:, None])


def _residuals(rows: NDArray[Any], codes: Ints, means: Floats) -> Iterator[Floats]:
    return (rows[block] - means[codes[block]] for block in _blocks(*rows.shape))


def _covariance(rows: NDArray[Any], codes: Ints, means: Floats) -> Floats:
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for residuals in _residuals(rows, codes, means):
        total += residuals.T @ residuals
    return total / len(rows)


def _main_directions(covariance: Floats, n_directions: int) -> Floats:
    d = len(covariance)
    values, vectors = scipy.linalg.eigh(covariance, subset_by_index=[d - n_directions, d - 1])
    if values[0] <= _LEAST_VARIANCE * max(np.trace(covariance), np.finfo(np.float64).tiny):
        n_vary = int((values > _LEAST_VARIANCE * np.trace(covariance)).sum())
        raise ParameterError(
            f"expected features that vary within labels in {counted(n_directions, 'direction')}, got "
            f"{n_vary}; take fewer directions"
        )
    basis = np.asarray(vectors[:, ::-1])
    # A direction has no sign of its own: its largest entry is positive, on every machine.
    return np.asarray(basis * np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(n_directions)]))


def _whitening(projected: Floats, codes: Ints, per_label: Ints) -> Floats:
    """W_l^(-1/2) of each label, shape (n_labels, m, m).

    W_l is estimated as if the label had m + 1 more points with the covariance of all labels together,
    the fewest of which a covariance has full rank: it matters for rare labels only.
    """
    prior = projected.shape[1] + 1.0
    pooled = projected.T @ projected / len(projected)
    order = np.argsort(codes, kind="stable")
    out = np.empty((len(per_label), *pooled.shape))
    for label, mine in enumerate(np.split(order, np.cumsum(per_label)[:-1])):
        own = projected[mine].T @ projected[mine]
        values, vectors = np.linalg.eigh((own + prior * pooled) / (len(mine) + prior))
        out[label] = (vectors / np.sqrt(values)) @ vectors.T
    return out
