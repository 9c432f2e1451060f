"""What is trained on: examples with labels, and which of them each client holds.

Arrays only. How clients came by their points is `partitioning.py`; nothing is trained here.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Examples:
    """Points to train on and points to test on.

    Parameters
    ----------
    features : array or tensor of shape (n_points, ...)
        Numbers with a fraction are cast to the model's type when training starts; integers
        (tokens, say) stay as they are.
    labels : array or tensor of shape (n_points, ...)
        Integers are class labels; numbers with a fraction are targets.
    test_features, test_labels : the same, of n_test points

    Examples
    --------
    >>> data = Examples(np.zeros((4, 2)), [0, 1, 1, 0], np.zeros((2, 2)), [0, 1])
    >>> data
    Examples(4 points of shape (2,), 2 test points)
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    test_features: NDArray[Any]
    test_labels: NDArray[Any]

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        test_features: ArrayLike,
        test_labels: ArrayLike,
    ) -> None:
        given = {
            "features": features,
            "labels": labels,
            "test_features": test_features,
            "test_labels": test_labels,
        }
        for name, values in given.items():
            array = np.ascontiguousarray(values)
            if array.dtype.kind not in "biuf" or array.ndim < 1 or len(array) == 0:
                raise ParameterError(f"expected {name} as a non-empty array of numbers")
            object.__setattr__(self, name, array)
        for part in ("", "test_"):
            n, m = len(getattr(self, f"{part}features")), len(getattr(self, f"{part}labels"))
            if n != m:
                raise ParameterError(f"got {n} {part}features and {m} {part}labels")
        if self.features.shape[1:] != self.test_features.shape[1:]:
            raise ParameterError(
                f"points have shape {self.features.shape[1:]}, "
                f"but test points {self.test_features.shape[1:]}"
            )

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return (
            f"Examples({len(self)} points of shape {self.features.shape[1:]}, "
            f"{len(self.test_features)} test points)"
        )

    def fingerprint(self) -> str:
        """A text that changes whenever a number does."""
        return _digest(self.features, self.labels, self.test_features, self.test_labels)


class Clients(Protocol):
    """What a partition must offer: how many clients there are, and each one's points."""

    def __len__(self) -> int: ...

    def __getitem__(self, client: int, /) -> Any:
        """The indices of a client's points."""
        ...


Population = Clients | Sequence[ArrayLike] | Callable[[int], Any]
"""Clients, or a function of the seed that draws them anew for each."""


@dataclass(frozen=True, eq=False)
class Holdings:
    """Which points each client holds, as two flat arrays.

    Attributes
    ----------
    indices : int array of shape (n_held,)
    offsets : int array of shape (n_clients + 1,)
        Client i holds indices[offsets[i]:offsets[i + 1]].
    """

    indices: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, client: int) -> NDArray[np.int64]:
        return self.indices[self.offsets[client] : self.offsets[client + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def fingerprint(self) -> str:
        """A text that changes whenever a client does."""
        return _digest(self.indices, self.offsets)


def holdings(clients: Population, *, n_points: int, seed: int, name: str = "clients") -> Holdings:
    """The clients that a population has under a seed, checked.

    Parameters
    ----------
    clients : a partition, a list of index arrays, or a function of the seed that returns one
    n_points : int
        Indices are below it.
    seed : int
        Passed on if `clients` is a function.
    name : str
        Used in error messages.

    Examples
    --------
    >>> holdings([[0, 2], [1]], n_points=3, seed=0).sizes
    array([2, 1])
    """
    if callable(clients) and not hasattr(clients, "__getitem__"):
        clients = clients(seed)
    try:
        points = [np.asarray(clients[i]) for i in range(len(clients))]  # type: ignore[arg-type,index]
    except (TypeError, ValueError, KeyError) as error:
        raise ParameterError(
            f"expected {name} as a partition or a list of index arrays, got {type(clients)}"
        ) from error
    if not points:
        raise ParameterError(f"{name} has no client")
    for i, held in enumerate(points):
        if held.ndim != 1 or len(held) == 0:
            raise ParameterError(f"{name}: client {i} holds no points; drop empty clients first")
        if held.dtype.kind not in "iu" or held.min() < 0 or held.max() >= n_points:
            raise ParameterError(
                f"{name}: client {i} has points that are not integers from 0 to {n_points - 1}"
            )
    offsets = np.concatenate([[0], np.cumsum([len(held) for held in points])])
    return Holdings(np.concatenate(points).astype(np.int64), offsets.astype(np.int64))


def _digest(*arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
