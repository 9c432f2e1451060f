"""What every source gives: labelled records, by client where the source knows the clients.

A `Dataset` is the federation as whoever simulates it has it at hand: all records in one place. What
a live client would do with its own records is `client/`. No file is read here.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.client.counting import tally
from polyurn.errors import CountsError, InputError, ParameterError

Split: TypeAlias = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class LabelledPoints:
    """Labelled records, one row each.

    Attributes
    ----------
    labels : int array of shape (n_records,)
        The category of each record.
    features : array of shape (n_records, ...), or None
        What a model would be trained on, as the source has it.
    clients : int array of shape (n_records,), or None
        Whose record it is: a position in `client_ids`. None where the source has no clients.
    client_ids : str array of shape (n_clients,), or None
        Every client holds at least one record.

    Examples
    --------
    >>> ids = np.array(["a", "b"])
    >>> LabelledPoints(labels=np.array([0, 1, 1]), clients=np.array([0, 1, 0]), client_ids=ids)
    LabelledPoints(n_records=3, n_clients=2)
    """

    labels: NDArray[np.int64]
    features: NDArray[Any] | None = None
    clients: NDArray[np.int64] | None = None
    client_ids: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        n = len(self.labels)
        if n == 0:
            raise CountsError("expected at least one record, got none")
        for name, column in (("features", self.features), ("clients", self.clients)):
            if column is not None and len(column) != n:
                raise CountsError(f"expected {name} for {n} labels, got {len(column)}")
        if (self.clients is None) != (self.client_ids is None):
            raise CountsError("expected clients and client_ids together, got one of them")
        if self.clients is not None:
            self._check_clients()

    def _check_clients(self) -> None:
        assert self.clients is not None
        if self.clients.min() < 0 or self.clients.max() >= self.n_clients:
            raise CountsError(f"expected clients from 0 to {self.n_clients - 1}, got others")
        n_seen = np.count_nonzero(np.bincount(self.clients, minlength=self.n_clients))
        if n_seen < self.n_clients:
            raise CountsError(
                f"{self.n_clients - n_seen} of {self.n_clients} client_ids have no record"
            )

    def __repr__(self) -> str:
        return f"LabelledPoints(n_records={self.n_records}, n_clients={self.n_clients})"

    @property
    def n_records(self) -> int:
        return len(self.labels)

    @property
    def n_clients(self) -> int:
        """0 where the source has no clients."""
        return 0 if self.client_ids is None else len(self.client_ids)

    def take(self, rows: NDArray[np.integer[Any]]) -> "LabelledPoints":
        """The records at `rows`, positions of shape (n_kept,); clients that are left without any are
        dropped.

        Examples
        --------
        >>> ids = np.array(["a", "b"])
        >>> all_three = LabelledPoints(np.array([0, 1, 1]), None, np.array([0, 1, 0]), ids)
        >>> all_three.take(np.array([0, 2])).client_ids.tolist()
        ['a']
        """
        features = None if self.features is None else self.features[rows]
        if self.clients is None or self.client_ids is None:
            return LabelledPoints(self.labels[rows], features)
        kept, clients = np.unique(self.clients[rows], return_inverse=True)
        return LabelledPoints(self.labels[rows], features, clients, self.client_ids[kept])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A source's records.

    Attributes
    ----------
    name : str
    categories : tuple of str
        The name of each category.
    train : LabelledPoints
        Everything, where the source has no split of its own.
    test : LabelledPoints, or None
        The source's own split. `hold_out` makes one where there is none.
    feature_names : tuple of str
        The columns of a table of features; empty for pictures.

    Examples
    --------
    >>> records = LabelledPoints(np.array([0, 1, 1]), None, np.array([0, 1, 0]), np.array(["a", "b"]))
    >>> Dataset("mine", ("no", "yes"), records).histograms().tolist()
    [[1, 1], [0, 1]]
    """

    name: str
    categories: tuple[str, ...] = field(repr=False)
    train: LabelledPoints
    test: LabelledPoints | None = None
    feature_names: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for records in (self.train, self.test):
            if records is not None:
                outside = (records.labels < 0) | (records.labels >= self.n_categories)
                if outside.any():
                    raise CountsError(
                        f"{outside.sum()} of {records.n_records} labels of {self.name} are not "
                        f"from 0 to {self.n_categories - 1}"
                    )

    @property
    def n_categories(self) -> int:
        return len(self.categories)

    def records(self, split: Split = "train") -> LabelledPoints:
        """The records of one split; an `InputError` if the dataset has no such split."""
        if split == "train":
            return self.train
        if split != "test":
            raise ParameterError(f'expected the split "train" or "test", got {split!r}')
        if self.test is None:
            raise InputError(
                f"{self.name} has no test records of its own; make some with hold_out(0.2, rng=0)"
            )
        return self.test

    def histograms(self, split: Split = "train") -> NDArray[np.int64]:
        """The histogram of every client of a split, in the order of its `client_ids`.

        Parameters
        ----------
        split : "train" or "test"

        Returns
        -------
        int array of shape (n_clients, n_categories)

        Raises
        ------
        InputError
            The source has no clients, or no such split.
        """
        records = self.records(split)
        if records.clients is None or records.client_ids is None:
            raise InputError(
                f"{self.name} has no clients of its own, so that there are no histograms; "
                "give its records to simulated clients"
            )
        found = tally(
            records.clients,
            records.labels,
            np.ones(records.n_records, np.int64),
            clients=records.client_ids,
            categories=self.categories,
        )
        return np.asarray(found.counts.toarray(), dtype=np.int64)

    def hold_out(self, share: float, *, rng: int | np.random.Generator) -> "Dataset":
        """The same dataset with a share of its train records, between 0 and 1, as test records.

        Whole clients are held out; where there are no clients, records are.

        Examples
        --------
        >>> split = Dataset("mine", ("no", "yes"), LabelledPoints(np.array([0, 1] * 5)))
        >>> split = split.hold_out(0.2, rng=0)
        >>> split.train.n_records, split.test.n_records
        (8, 2)
        """
        if self.test is not None:
            raise InputError(f"{self.name} has test records of its own: nothing to hold out")
        n = self.train.n_clients or self.train.n_records
        n_held = round(share * n)
        if not 0 < n_held < n:
            raise ParameterError(
                f"expected a share that leaves both parts something of {n}, got {share}"
            )
        chosen = np.zeros(n, dtype=bool)
        chosen[np.random.default_rng(rng).choice(n, size=n_held, replace=False)] = True
        held = chosen if self.train.clients is None else chosen[self.train.clients]
        train, test = (self.train.take(np.flatnonzero(part)) for part in (~held, held))
        return replace(self, train=train, test=test)
