"""What is trained on: examples with labels, some of them to test on.

Arrays only. Which of them each client holds is a `Partition`; nothing is trained here.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import ParameterError
from polyurn.partitioning.result import Partition
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import numbers
from polyurn.wording import counted

# More classes than this are no classes.
_MOST_CLASSES = 1_000_000


@checked
@expected_as("Examples", advice="make them: Examples(features, labels, test_features, test_labels)")
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
        names = ("features", "labels", "test_features", "test_labels")
        given = (features, labels, test_features, test_labels)
        for name, values in zip(names, given, strict=True):
            array = np.ascontiguousarray(numbers(values, name))
            if np.ndim(values) < 1 or len(array) == 0:
                raise ParameterError(f"expected {name} as a non-empty array of numbers")
            if array.dtype.itemsize > 8:  # torch has none
                raise ParameterError(
                    f"expected {name} as float64 or smaller, got {array.dtype}; convert them to float64"
                )
            object.__setattr__(self, name, array)
        for part in ("", "test_"):
            n, m = len(getattr(self, f"{part}features")), len(getattr(self, f"{part}labels"))
            if n != m:
                raise ParameterError(
                    f"expected a label for each point, got {n} {part}features and {m} {part}labels"
                )
        if self.features.shape[1:] != self.test_features.shape[1:]:
            raise ParameterError(
                f"expected test points of the same shape as the others, {self.features.shape[1:]}, "
                f"got {self.test_features.shape[1:]}"
            )

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return (
            f"Examples({counted(len(self), 'point')} of shape {self.features.shape[1:]}, "
            f"{len(self.test_features)} test points)"
        )

    def fingerprint(self) -> str:
        """A text that changes whenever a number does."""
        return fingerprint(self.features, self.labels, self.test_features, self.test_labels)


def check_clients(clients: object, *, n_points: int, name: str = "clients") -> Partition:
    """The same clients; a `ParameterError` if they are no partition of `n_points` points."""
    if not isinstance(clients, Partition):
        raise ParameterError(
            f"expected {name} as a Partition, got {type(clients).__name__}; make one with "
            "partition, Partition.by_owner or Partition.from_lists"
        )
    last = int(clients.indices.max())
    if last >= n_points:
        raise ParameterError(
            f"{name}: a client holds point {last}, but the data have {counted(n_points, 'point')}; "
            "expected a partition of these data"
        )
    return clients


def class_labels(labels: ArrayLike, name: str, *, n_classes: int = _MOST_CLASSES) -> NDArray[Any]:
    """The same labels (n_points,); a `ParameterError` if one is no integer from 0 to n_classes - 1."""
    given = numbers(labels, name)
    if given.ndim != 1:
        raise ParameterError(f"expected {name} of shape (n_points,), got shape {given.shape}")
    below = np.float64(n_classes)  # a plain number would be cast to float16, which may be too small
    bad = np.flatnonzero(~((given >= 0) & (given < below) & (given == np.rint(given))))
    if len(bad):
        raise ParameterError(
            f"expected {name} as classes 0, 1, ... below {n_classes}, got {given[bad[0]]} at position "
            f"{bad[0]}, and {len(bad) - 1} more that are not"
        )
    if given.dtype.kind == "f":
        raise ParameterError(f"expected {name} as integers, got {given.dtype}; convert them to int")
    return given


def fingerprint(*arrays: NDArray[Any]) -> str:
    """A text that changes whenever a number does."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
