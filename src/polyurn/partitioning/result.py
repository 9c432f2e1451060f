"""What a partition is: the points of every client in one flat array, and a report of how it came about.

It is the only form of "who holds what": a million clients are two arrays, not a million lists. How
points are given to simulated clients is `assign.py`; files are `storage/partitions.py`.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import check_texts
from polyurn.errors import ParameterError, PartitionError
from polyurn.memory import check_memory
from polyurn.model.names import Labels, Match, Side, positions
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import ids_of, numbers, plain_array
from polyurn.typed.declared import Floats, Ints, Seed
from polyurn.typed.plotted import Plotted, data_frame
from polyurn.wording import aligned, counted

# How many clients and labels may find fewer points of their style than they ask for.
POORLY_SERVED = 0.05
# What to do instead where clients should not share rows.
DISJOINT = (
    "--cover, or --no-replace --shortfall refuse (Python: polyurn.cover, or replace=False, "
    "shortfall='refuse')"
)


@dataclass(frozen=True, eq=False)
class StyleReport:
    """How well proxy data could serve the styles that clients were drawn with.

    The effective sample size of a client and label is (Σ w)² / Σ w² over the label's proxy points, where
    w is how much more frequent a point is in the client's style than in the proxy data: so many points
    the client chooses from, in effect. It is computed for a sample of clients and labels; `served` is
    the share of these for which it is at least the points that they ask for. Of the style's
    `n_directions`, those in which clients differ least are left out until that is 19 of 20.
    `effective_median` and `effective_low`, of shape (n_labels,), are the median and the 5 % quantile of
    the effective sample sizes; NaN for a label that nobody asks for.
    """

    n_directions: int
    n_directions_used: int
    effective_median: Floats = field(repr=False)
    effective_low: Floats = field(repr=False)
    served: float

    def to_json(self) -> dict[str, Any]:
        """The report as JSON has it; null for a label that nobody asks for."""
        names = ("n_directions", "n_directions_used", "served")
        return {name: getattr(self, name) for name in names} | {
            name: [None if np.isnan(n) else round(float(n), 1) for n in getattr(self, name)]
            for name in ("effective_median", "effective_low")
        }

    @property
    def remark(self) -> str | None:
        """What the proxy data could not do, in one line; None if they could do it all."""
        if self.served < 1 - POORLY_SERVED:
            return (
                f"{1 - self.served:.0%} of clients and labels find fewer proxy points of their style "
                "than they ask for, even along one direction; use more proxy data, or smaller clients"
            )
        if self.n_directions_used < self.n_directions:
            return (
                f"the proxy data serve {self.n_directions_used} of the style's {self.n_directions} "
                f"directions: along more, over {POORLY_SERVED:.0%} of clients and labels would find "
                "fewer points than they ask for; use more proxy data, or smaller clients"
            )
        return None


@dataclass(frozen=True, eq=False)
class PartitionReport:
    """What was asked for and what was given.

    `available`, `asked`, `given` and `repeats` have shape (n_categories,): proxy points, points that the
    histograms ask for, points that clients were given, and how many times a client was given a point
    that it already holds, because it asks for more than there are. Some client holds `n_used` different
    points, and several hold `n_shared` of them. `redrawn`, of shape (n_redrawn,), are the clients whose
    histogram is not the one that was asked for, and `cut` is how many points the last client of `cover`
    lacks. Without names in `categories`, they are called by their numbers.
    """

    available: Ints = field(repr=False)
    asked: Ints = field(repr=False)
    given: Ints = field(repr=False)
    n_used: int
    n_shared: int
    repeats: Ints = field(repr=False)
    redrawn: Ints = field(repr=False)
    cut: int
    style: StyleReport | None = None
    categories: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def n_given(self) -> int:
        """How many points clients hold, a point that two of them hold counted twice."""
        return int(self.given.sum())

    @property
    def n_repeats(self) -> int:
        """How many times a client was given a point that it already holds."""
        return int(self.repeats.sum())

    @property
    def exact(self) -> bool:
        """Whether every client has the histogram that was asked for."""
        return len(self.redrawn) == 0

    def sentences(self) -> list[str]:
        """What a person wants to know about a partition."""
        n_rows, n = int(self.available.sum()), self.n_given
        sentences = [f"{counted(n, 'point')} given: {self.n_used:,} different rows of {n_rows:,}"]
        if n > n_rows:
            sentences[0] += f"; caution: {n / n_rows:,.1f} times as many points as rows"
        if self.n_shared:
            shared = counted(self.n_shared, "row is", "rows are")
            sentences[0] += f"; {shared} in more than one client"
            sentences.append(f"for clients that share no row: {DISJOINT}")
        if self.n_repeats:
            most = int(self.repeats.argmax())
            sentences.append(
                f"{self.n_repeats:,} times a client was given a point that it already holds, "
                f"{self.repeats[most]:,} of them of category "
                f"{self.categories[most] if self.categories else most}"
            )
        if len(self.redrawn):
            sentences.append(
                f"{counted(len(self.redrawn), 'client')} drawn again, because a category was used up"
            )
        if self.cut:
            sentences.append(
                f"the last client holds {counted(self.cut, 'point')} fewer than it asked for"
            )
        if self.style is not None:
            sentences.append(
                f"styles along {counted(self.style.n_directions_used, 'direction')}; "
                f"{self.style.served:.0%} of clients and labels find as many points of their style, "
                "in effect, as they ask for"
            )
            if self.style.remark is not None:
                sentences.append(self.style.remark)
        return sentences

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        counts = ("n_given", "n_used", "n_shared", "n_repeats", "cut")
        arrays = ("available", "asked", "given")
        return {
            **{name: getattr(self, name) for name in (*counts, "exact")},
            **{name: getattr(self, name).tolist() for name in arrays},
            "n_redrawn": len(self.redrawn),
            "style": None if self.style is None else self.style.to_json(),
        }


@checked
@expected_as(
    "a Partition", advice="make one with partition, Partition.by_owner or Partition.from_lists"
)
@dataclass(frozen=True, eq=False)
class Partition(Plotted):
    """Which points each client holds, in one flat array.

    Client i holds `indices[offsets[i]:offsets[i + 1]]`, at least one point. The partition is a sequence
    of these arrays; a slice is a list of them. Of simulated clients the points are in random order.

    Parameters
    ----------
    offsets : int array of shape (n_clients + 1,)
    indices : int array of shape (n_held,)
        Positions in the labels.
    report : PartitionReport, optional
        How simulated clients came by their points.
    ids : array of shape (n_clients,), optional
        What the clients are called; their numbers if None.
    test : Partition, optional
        The points that clients are tested on, which are not among `indices`: see `with_test`. Its
        `ids` are those of the clients that have some.

    Examples
    --------
    >>> parts = Partition.by_owner(["ann", "bob", "ann"])
    >>> [mine.tolist() for mine in parts], parts.ids.tolist()
    ([[0, 2], [1]], ['ann', 'bob'])
    """

    offsets: Ints = field(repr=False)
    indices: Ints = field(repr=False)
    report: PartitionReport | None = None
    ids: NDArray[Any] | None = field(default=None, repr=False)
    test: "Partition | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("offsets", "indices"):
            given = numbers(getattr(self, name), name)
            if given.ndim != 1 or given.dtype.kind not in "iu":
                raise ParameterError(f"expected {name} as a list of whole numbers")
            object.__setattr__(self, name, given.astype(np.int64, copy=False))
        if len(self) < 1:
            raise ParameterError("expected at least one client, got none")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.indices):
            raise ParameterError(f"expected offsets from 0 to {len(self.indices)}")
        empty = np.flatnonzero(self.sizes < 1)
        if len(empty):
            raise ParameterError(f"client {empty[0]} holds no points; drop empty clients first")
        if self.indices.min() < 0:
            raise ParameterError("expected indices of at least 0")
        if self.ids is not None:
            object.__setattr__(self, "ids", ids_of(self.ids, "ids"))
            if self.ids.shape != (len(self),):
                raise ParameterError(
                    f"expected {counted(len(self), 'id')}, got shape {self.ids.shape}"
                )

    @classmethod
    def by_owner(cls, owners: ArrayLike) -> "Partition":
        """The partition in which each different owner holds its points, in their order.

        Parameters
        ----------
        owners : array of shape (n_points,)
            The id of whoever holds each point: numbers or texts.

        Returns
        -------
        Partition
            Clients in the sorted order of their ids, which are `ids`.
        """
        given = ids_of(owners, "owners")
        ids, which = np.unique(given, return_inverse=True)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(which))])
        return cls(offsets, np.argsort(which, kind="stable"), ids=ids)

    @classmethod
    def from_lists(cls, points: Iterable[ArrayLike]) -> "Partition":
        """The partition in which client i holds the points of the i-th list.

        Examples
        --------
        >>> Partition.from_lists([[0, 2], [1]]).sizes.tolist()
        [2, 1]
        """
        lists = [np.empty(0, np.int64)]
        for client, points_held in enumerate(points):
            held = numbers(points_held, f"client {client}")
            if held.ndim != 1 or (held.dtype.kind not in "iu" and len(held)):
                raise ParameterError(f"expected client {client} as a list of whole numbers")
            lists.append(held.astype(np.int64, copy=False))
        return cls(np.cumsum([len(held) for held in lists]), np.concatenate(lists))

    def check_points(self, n_points: int) -> None:
        """Refuse a dataset of so many points, if a client holds one that is not there."""
        last = int(self.indices.max(initial=-1))
        if last >= n_points:
            raise ParameterError(
                f"the partition holds point {last}, but the dataset has {n_points}; pass the "
                "dataset whose labels were partitioned"
            )

    def _check_one_each(self, given: NDArray[Any], what: str) -> None:
        n_points = int(self.indices.max(initial=-1)) + 1
        if given.ndim != 1 or len(given) < n_points:
            raise ParameterError(
                f"expected a {what} for each of {n_points} points, got shape {given.shape}"
            )

    def renumbered(self, positions: ArrayLike) -> "Partition":
        """The same clients, where point i is point `positions[i]`, of shape (n_points,), of other data.

        Examples
        --------
        >>> Partition.from_lists([[0, 2], [1]]).renumbered([10, 11, 12]).indices.tolist()
        [10, 12, 11]
        """
        given = numbers(positions, "positions")
        self._check_one_each(given, "position")
        test = None if self.test is None else self.test.renumbered(given)
        return replace(self, indices=given[self.indices], test=test)

    def with_test(self, share: float, labels: ArrayLike, *, rng: Seed = None) -> "Partition":
        """The same clients, each with a share of its points set aside as `test`.

        A client of two points or more keeps at least one, and is tested on at least one; a client of
        one point is not tested. Its categories are shared out as evenly as their counts allow. Where
        clients share points, a warning says how many test points are trained on.

        Parameters
        ----------
        share : float
            Above 0 and below 1.
        labels : array of shape (n_points,)
            The category of each point.
        rng : int or numpy.random.Generator, optional

        Examples
        --------
        >>> parts = Partition.from_lists([range(10), [10], [11, 12]])
        >>> split = parts.with_test(0.2, [0] * 5 + [1] * 8, rng=0)
        >>> split.sizes.tolist(), split.test.sizes.tolist(), split.test.ids.tolist()
        ([8, 1, 1], [2, 1], [0, 2])
        """
        if not 0 < share < 1:
            raise ParameterError(f"expected a share of points above 0 and below 1, got {share}")
        given = plain_array(labels, "labels")
        self._check_one_each(given, "label")
        rng, owner, sizes = np.random.default_rng(rng), self.clients, self.sizes
        codes = np.unique(given, return_inverse=True)[1][self.indices]
        # In the order of clients and their categories, every so many-th point is a test point.
        order = np.lexsort((rng.random(len(owner)), codes, owner))
        n_test = np.clip(np.rint(share * sizes).astype(np.int64), 1, np.maximum(sizes - 1, 0))
        n_test[sizes < 2] = 0
        position = np.arange(len(owner)) - np.repeat(self.offsets[:-1], sizes)
        start = np.repeat(np.floor(rng.random(len(self)) * sizes).astype(np.int64), sizes)
        each, n = np.repeat(n_test, sizes), np.repeat(sizes, sizes)
        tested = np.zeros(len(owner), bool)
        tested[order] = ((position + 1) * each + start) // n > (position * each + start) // n
        ids = np.arange(len(self)) if self.ids is None else self.ids
        test = None
        if tested.any():
            some = np.flatnonzero(n_test)
            offsets = np.concatenate([[0], np.cumsum(n_test[some])])
            test = Partition(offsets, self.indices[tested], ids=ids[some])
            points = np.unique(test.indices)
            if n_trained := int(np.isin(points, self.indices[~tested]).sum()):
                warnings.warn(
                    f"{n_trained:,} of {counted(len(points), 'different test row')} are rows that "
                    f"clients train on, too; for test rows that nobody trains on: {DISJOINT}",
                    stacklevel=3,  # `checked` stands between
                )
        offsets = np.concatenate([[0], np.cumsum(sizes - n_test)])
        return replace(self, offsets=offsets, indices=self.indices[~tested], test=test)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, client: SupportsIndex) -> Ints: ...
    @overload
    def __getitem__(self, client: slice) -> list[Ints]: ...
    def __getitem__(self, client: SupportsIndex | slice) -> Ints | list[Ints]:
        try:
            chosen = range(len(self))[client]
        except TypeError:
            raise TypeError(f"expected a client's number or a slice, got {client!r}") from None
        except IndexError:
            raise IndexError(f"expected a client from 0 to {len(self) - 1}, got {client}") from None
        if isinstance(chosen, range):
            return [self[i] for i in chosen]
        return self.indices[self.offsets[chosen] : self.offsets[chosen + 1]]

    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        # Clients of equal size would pass for a table of histograms.
        raise ParameterError(
            "expected a table, got a Partition; its histograms are "
            "partition.histograms(labels, n_categories)"
        )

    def __iter__(self) -> Iterator[Ints]:
        return (self[client] for client in range(len(self)))

    @property
    def sizes(self) -> Ints:
        """How many points each client holds, shape (n_clients,)."""
        return np.diff(self.offsets)

    @property
    def clients(self) -> Ints:
        """Whose each of `indices` is, shape (n_held,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def histograms(self, labels: ArrayLike, n_categories: int) -> Ints:
        """The histogram of each client, counted from the points that it holds.

        Parameters
        ----------
        labels : int array of shape (n_points,)
        n_categories : int

        Returns
        -------
        int array of shape (n_clients, n_categories)
        """
        what = f"the histograms of {len(self)} clients in {n_categories} categories"
        check_memory(16 * len(self) * max(n_categories, 0), what, "take fewer categories")
        codes = check_labels(labels, n_categories)
        self._check_one_each(codes, "label")
        codes = codes[self.indices]
        cells = np.bincount(self.clients * n_categories + codes, minlength=len(self) * n_categories)
        return cells.reshape(len(self), n_categories)

    def __repr__(self) -> str:
        return f"Partition(n_clients={len(self)}, n_points={len(self.indices)})"

    def __str__(self) -> str:
        least, middle, most = np.quantile(self.sizes, (0, 0.5, 1))
        rows = [
            ("clients", f"{len(self):,}"),
            ("points", f"{len(self.indices):,}"),
            ("points of a client", f"{least:,.0f} to {most:,.0f}, half at most {middle:,.0f}"),
        ]
        sentences = [] if self.report is None else self.report.sentences()
        return "\n".join([*aligned(rows, left=[0, 1]), *sentences])

    def to_pandas(self) -> Any:
        """A data frame with a row for each point: the position of its client, and its own."""
        return data_frame({"client": self.clients.tolist(), "row": self.indices.tolist()})

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Partition)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.indices, other.indices)
            and self.test == other.test
        )

    __hash__ = None  # type: ignore[assignment]


def check_ids(clients: Sequence[Any] | NDArray[Any] | None, partition: Partition) -> NDArray[Any]:
    """The ids of a partition's clients, these or its own, all different as text; else 0, 1, ..."""
    own = np.arange(len(partition)) if partition.ids is None else partition.ids
    ids = own if clients is None else ids_of(clients, "client ids")
    n_different = len({str(client) for client in ids.tolist()})
    if not len(ids) == n_different == len(partition):
        raise ParameterError(
            f"expected {len(partition)} different client ids, got {len(ids)}, "
            f"{n_different} of them different as text"
        )
    check_texts(map(str, ids.tolist()), "client ids")
    return ids


def check_labels(labels: ArrayLike | Labels, categories: Side, match: Match | None = None) -> Ints:
    """The position of each label among the categories, by name; whole numbers are names too.

    A label that is not among them is a `PartitionError` or `CountsError` with its name, or those of both
    sides.
    """
    if isinstance(labels, Labels):
        return positions(labels.categories, categories, match)[labels.labels]
    given = plain_array(labels, "labels", error=PartitionError)
    if given.dtype.kind == "O":
        given = ids_of(given, "labels", error=PartitionError)  # which says where one is missing
    if given.ndim != 1:
        raise PartitionError(f"expected labels of shape (n_points,), got shape {given.shape}")
    by_name = given.dtype.kind == "U" or not isinstance(categories, int) or match is not None
    if by_name and given.dtype.kind in "biufU":
        shown, which = np.unique(given, return_inverse=True)
        whole = shown.dtype.kind in "bf" and (shown == np.rint(shown)).all()
        texts = (shown.astype(np.int64) if whole else shown).astype(str).tolist()
        return positions(texts, categories, match)[which]
    given = numbers(given, "labels", error=PartitionError)
    n_categories = categories if isinstance(categories, int) else len(categories)
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
