"""What a partition is: the points of every client in one flat array, and a report of how it came about.

A million clients are two arrays, not a million lists. How points are given is `partitioning.py`; files
are `partition_files.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, Literal, SupportsIndex, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import ParameterError, PartitionError

Shortfall: TypeAlias = Literal["reuse", "refuse", "resample"]


@dataclass(frozen=True, eq=False)
class PartitionReport:
    """What was asked for and what was given.

    Attributes
    ----------
    available, asked, given : int arrays of shape (n_categories,)
        Proxy points, points that the histograms ask for, and points that clients were given.
    n_used : int
        How many different proxy points some client holds.
    n_repeats : int
        How many times a client was given a point that it already holds, because it asks for more
        points of a category than there are.
    redrawn : int array of shape (n_redrawn,)
        Clients whose histogram is not the one that was asked for.
    cut : int
        How many points the last client of `cover` lacks.
    replace : bool
    shortfall : str
    """

    available: NDArray[np.int64] = field(repr=False)
    asked: NDArray[np.int64] = field(repr=False)
    given: NDArray[np.int64] = field(repr=False)
    n_used: int
    n_repeats: int
    redrawn: NDArray[np.int64] = field(repr=False)
    cut: int
    replace: bool
    shortfall: Shortfall

    @property
    def n_given(self) -> int:
        """How many points clients hold, a point that two of them hold counted twice."""
        return int(self.given.sum())

    @property
    def n_reused(self) -> int:
        """How many of them had been given before, to this client or to another."""
        return self.n_given - self.n_used

    @property
    def n_unused(self) -> int:
        """How many proxy points nobody holds."""
        return int(self.available.sum()) - self.n_used

    @property
    def exact(self) -> bool:
        """Whether every client has the histogram that was asked for."""
        return len(self.redrawn) == 0

    @property
    def shortage(self) -> NDArray[np.int64]:
        """How many points more were asked for than there are, shape (n_categories,)."""
        return np.asarray(np.maximum(self.asked - self.available, 0))


@dataclass(frozen=True, eq=False)
class Partition:
    """The proxy points of each client, in one flat array.

    Client i holds `indices[offsets[i]:offsets[i + 1]]`, in random order. The partition is a sequence
    of these arrays; a slice is a list of them.

    Attributes
    ----------
    offsets : int array of shape (n_clients + 1,)
    indices : int array of shape (n_given,)
        Positions in the labels.
    report : PartitionReport, or None
        None for a partition that was read from a file.
    """

    offsets: NDArray[np.int64] = field(repr=False)
    indices: NDArray[np.int64] = field(repr=False)
    report: PartitionReport | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, client: SupportsIndex) -> NDArray[np.int64]: ...
    @overload
    def __getitem__(self, client: slice) -> list[NDArray[np.int64]]: ...
    def __getitem__(
        self, client: SupportsIndex | slice
    ) -> NDArray[np.int64] | list[NDArray[np.int64]]:
        if isinstance(client, slice):
            return [self[i] for i in range(*client.indices(len(self)))]
        try:
            position = index(client)
        except TypeError:
            raise TypeError(f"expected a client's number or a slice, got {client!r}") from None
        if not -len(self) <= position < len(self):
            raise IndexError(f"expected a client from 0 to {len(self) - 1}, got {position}")
        position %= len(self)
        return self.indices[self.offsets[position] : self.offsets[position + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[client] for client in range(len(self)))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many points each client holds, shape (n_clients,)."""
        return np.diff(self.offsets)

    @property
    def clients(self) -> NDArray[np.int64]:
        """Whose each of `indices` is, shape (n_given,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def histograms(self, labels: ArrayLike, n_categories: int) -> NDArray[np.int64]:
        """The histogram of each client, counted from the points that it holds.

        Parameters
        ----------
        labels : int array of shape (n_points,)
        n_categories : int

        Returns
        -------
        int array of shape (n_clients, n_categories)
        """
        codes = check_labels(labels, n_categories)[self.indices]
        cells = np.bincount(self.clients * n_categories + codes, minlength=len(self) * n_categories)
        return cells.reshape(len(self), n_categories)

    def __repr__(self) -> str:
        return f"Partition(n_clients={len(self)}, n_points={len(self.indices)})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Partition)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.indices, other.indices)
        )

    __hash__ = None  # type: ignore[assignment]


def check_ids(clients: Sequence[Any] | NDArray[Any] | None, partition: Partition) -> NDArray[Any]:
    """The ids of a partition's clients, which differ also as text; 0, 1, ... if there are none.

    Raises
    ------
    ParameterError
        There are too few or too many, or two are the same: one of the two clients would be lost.
    """
    ids = np.arange(len(partition)) if clients is None else np.asarray(clients)
    n_different = len({str(client) for client in ids.tolist()})
    if not len(ids) == n_different == len(partition):
        raise ParameterError(
            f"expected {len(partition)} different client ids, got {len(ids)}, "
            f"{n_different} of them different as text"
        )
    return ids


def check_labels(labels: ArrayLike, n_categories: int) -> NDArray[np.int64]:
    """The same labels as whole numbers from 0 to `n_categories` - 1.

    Raises
    ------
    PartitionError
        They are not; the first that is not is named.
    """
    try:
        given = np.asarray(labels)
    except ValueError as error:  # a ragged list
        raise PartitionError(
            "expected labels of shape (n_points,), got lists of different lengths"
        ) from error
    if np.ma.is_masked(labels):
        hidden = np.flatnonzero(np.ma.getmaskarray(np.ma.asarray(labels)))
        raise PartitionError(
            f"{len(hidden)} labels are masked, the first at position {hidden[0]}; drop them first"
        )
    if given.ndim != 1:
        raise PartitionError(f"expected labels of shape (n_points,), got shape {given.shape}")
    if given.size and given.dtype.kind not in "iufb":
        raise PartitionError(
            f"expected labels as whole numbers, got dtype {given.dtype}; number the categories first"
        )
    # NaN fails the comparison too.
    bad = np.flatnonzero(~((given >= 0) & (given < n_categories)))
    if len(bad) == 0 and given.dtype.kind == "f":
        bad = np.flatnonzero(given != np.rint(given))
    if len(bad):
        raise PartitionError(
            f"expected labels from 0 to {n_categories - 1}, got {given[bad[0]]} at position {bad[0]}, "
            f"and {len(bad) - 1} more that are not"
        )
    return given.astype(np.int64, copy=False)
