"""The coordinates of points in which clients' styles are measured: z = W_l^(-1/2) (P'f - c_l).

The server makes a space of its proxy data (`proxy_space.py`) and sends it to clients; here it is used,
with the same bits on either side. Whose points they are, and what their coordinates say about clients,
is not known here.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import ParameterError
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import EqualArrays, finite_array, numbers


@checked
@expected_as("a StyleSpace", advice="make one of proxy data with style_space")
@dataclass(frozen=True, eq=False, init=False)
class StyleSpace(EqualArrays):
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
    pool_far_share : float
        The share of the proxy points that lie beyond the radius.

    Examples
    --------
    >>> space = StyleSpace([[1.0]], [[1.0], [0.0]], [[[0.5]]], radius=2.0)
    >>> space.coordinates([[3.0, 1.0], [9.0, 7.0]], [0, 0]).tolist()
    [[1.0], [2.0]]
    """

    centres: NDArray[np.float64]
    basis: NDArray[np.float64]
    whitening: NDArray[np.float64]
    radius: float
    pool_far_share: float

    def __init__(
        self,
        centres: ArrayLike,
        basis: ArrayLike,
        whitening: ArrayLike,
        radius: float,
        pool_far_share: float = 0.0,
    ) -> None:
        arrays = {
            "centres": finite_array(centres, "centres"),
            "basis": finite_array(basis, "basis"),
            "whitening": finite_array(whitening, "whitening"),
        }
        _check_space(*arrays.values())
        if not 0 < radius < math.inf:
            raise ParameterError(f"expected a finite radius above 0, got {radius}")
        if not 0 <= pool_far_share <= 1:
            raise ParameterError(f"expected pool_far_share from 0 to 1, got {pool_far_share}")
        self._freeze(arrays | {"radius": radius, "pool_far_share": pool_far_share})

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
        self, features: ArrayLike, labels: ArrayLike, *, n_threads: int = 1
    ) -> NDArray[np.float64]:
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
        n_threads: int = 1,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The coordinates of points, and 1 for each that was beyond the radius, 0 for the others.

        Without `finite_only`, coordinates that are not finite are 0, and far: a client's answer may not
        be refused for what its points are.
        """
        from polyurn.model.style_kernels import whitened

        if n_threads < 1:
            raise ParameterError(f"expected n_threads of at least 1, got {n_threads}")
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


def label_codes(labels: ArrayLike, n_points: int, *, n_labels: int | None) -> NDArray[np.int64]:
    """Labels as integers from 0, one for each point; below `n_labels`, if that is given."""
    given = numbers(labels, "labels")
    if given.shape != (n_points,):
        raise ParameterError(
            f"expected a label for each of {n_points} points, got shape {given.shape}"
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


def _check_space(
    centres: NDArray[np.float64], basis: NDArray[np.float64], whitening: NDArray[np.float64]
) -> None:
    n_labels, n_features, m = len(centres), len(basis), basis.shape[-1]
    if centres.shape != (n_labels, m) or basis.ndim != 2 or not 1 <= m <= n_features:
        raise ParameterError(
            "expected centres of shape (n_labels, n_directions) and a basis of shape (n_features, "
            f"n_directions), got {centres.shape} and {basis.shape}"
        )
    if whitening.shape != (n_labels, m, m) or n_labels == 0:
        raise ParameterError(
            f"expected whitening of shape {(n_labels, m, m)} for at least one label, got "
            f"{whitening.shape}"
        )
