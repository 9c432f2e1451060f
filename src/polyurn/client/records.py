"""The records of clients: features and labels of every point, client after client.

Questions about style need records; for all others the labels are counted. Records never leave the
client: `answers.py` computes what is sent.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from polyurn.errors import ParameterError
from polyurn.model.style_coordinates import check_finite, feature_rows, label_codes
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Ints
from polyurn.wire import RecordColumn
from polyurn.wording import counted


@checked
@expected_as("Records", advice="make them of features, labels and clients")
class Records:
    """The points of clients with features and labels; never shown in a repr.

    Functions that answer queries accept records in place of counts: their labels are counted, and
    questions about style are answered as well.

    Parameters
    ----------
    features : array of shape (n_points, n_features)
        Finite; further axes, of images say, are flattened.
    labels : int array of shape (n_points,)
        0 to n_labels - 1.
    clients : array of shape (n_points,)
        The client of each point.
    n_labels : int, optional
        By default the largest label plus one; at least two.

    Examples
    --------
    >>> records = Records([[0.5], [1.5], [2.5]], [0, 1, 1], ["ann", "bob", "bob"])
    >>> records.ids.tolist(), records.counts.toarray().tolist()
    (['ann', 'bob'], [[1, 0], [0, 2]])
    """

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        clients: ArrayLike,
        *,
        n_labels: int | None = None,
    ) -> None:
        rows = feature_rows(features)
        check_finite(rows)
        codes = label_codes(labels, len(rows), n_labels=n_labels)
        whose = ids_of(clients, "clients")
        if len(whose) != len(rows) or not len(rows):
            raise ParameterError(
                f"expected a client for each of at least one point, got {len(whose)} for {len(rows)}"
            )
        ids, owner = np.unique(whose, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        self._features, self._labels = rows[order], codes[order]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(owner))])
        self.ids: NDArray[Any] = ids  # in order, shape (n_clients,)
        self.n_labels = max(2, int(codes.max()) + 1) if n_labels is None else n_labels

    @property
    def n_clients(self) -> int:
        return len(self.ids)

    @property
    def n_features(self) -> int:
        return int(self._features.shape[1])

    @property
    def sizes(self) -> Ints:
        """How many points each client has, shape (n_clients,)."""
        return np.diff(self._starts)

    @property
    def counts(self) -> sparse.csr_array:
        """How many points of each label each client has, shape (n_clients, n_labels)."""
        owner = np.repeat(np.arange(self.n_clients), self.sizes)
        return _tallied(owner, self._labels, (self.n_clients, self.n_labels))

    def of(self, members: NDArray[np.integer[Any]], features: slice = slice(None)) -> "Held":
        """The records of some clients, with some features or all."""
        starts, ends = self._starts[members], self._starts[np.asarray(members) + 1]
        points = [np.arange(start, end) for start, end in zip(starts, ends, strict=True)]
        some = np.concatenate(points) if points else np.empty(0, np.int64)
        return Held(self._features[:, features][some], self._labels[some], ends - starts)

    def binned(
        self, members: NDArray[np.integer[Any]], column: RecordColumn, *, with_labels: bool
    ) -> sparse.csr_array:
        """Some clients' histograms of a column's bins, or of label × bin, label after label."""
        if column.n_features != self.n_features:
            raise ParameterError(
                f"expected a column of {self.n_features} features, got one of {column.n_features}"
            )
        held = self.of(members, slice(column.index, column.index + 1))  # no copy of the others
        codes = np.searchsorted(column.edges, held.features[:, 0], side="right")
        if with_labels:
            codes += held.labels * column.n_bins
        n = column.n_bins * (self.n_labels if with_labels else 1)
        return _tallied(held.owner, codes, (len(members), n))

    def __repr__(self) -> str:
        clients, points = counted(self.n_clients, "client"), counted(len(self._labels), "point")
        return f"Records({clients}, {points})"


class Held:
    """The points of some clients, client after client."""

    def __init__(self, features: NDArray[Any], labels: Ints, sizes: Ints | Sequence[int]) -> None:
        self.features, self.labels, self.sizes = features, labels, np.asarray(sizes)

    @property
    def owner(self) -> Ints:
        """The position of each point's client, shape (n_points,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def _tallied(owner: Ints, codes: Ints, shape: tuple[int, int]) -> sparse.csr_array:
    """How many points of each code each client has."""
    counts = sparse.csr_array((np.ones(len(owner), np.int64), (owner, codes)), shape)
    counts.sum_duplicates()
    return counts
