"""Handwritten digits that scikit-learn carries: 1,797 images of 8 x 8 pixels, ten labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MissingDependencyError


@dataclass(frozen=True)
class Digits:
    """Features of shape (1797, 64), between 0 and 1, and labels of shape (1797,)."""

    features: NDArray[np.float64]
    labels: NDArray[np.int64]


def load_digits() -> Digits:
    """Read the digits from the installed scikit-learn; nothing is downloaded."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "demo", "the digits data") from error
    features, labels = datasets.load_digits(return_X_y=True)
    return Digits(features / 16.0, labels.astype(np.int64))
