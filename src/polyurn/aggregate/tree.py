"""Sums in a tree whose shape depends on the number of summands alone, so that their bits do.

Neighbours are added in groups, the sums of groups in groups again. It does not matter who adds, or when.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

# Summands of a group: one level serves 16 shards, two serve 256.
FAN_IN = 16


def add_group(vectors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum of a group, from the left to the right."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total


def tree_sum(vectors: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum of vectors that come one after the other; few of them are held at once.

    Parameters
    ----------
    vectors : iterable of float arrays of shape (n,)
        At least one.

    Examples
    --------
    >>> tree_sum(np.full(1, float(i)) for i in range(40)).tolist()
    [780.0]
    """
    levels: list[list[NDArray[np.float64]]] = [[]]
    for vector in vectors:
        _put(levels, 0, vector)
    for level in range(len(levels)):  # groups at the end are smaller
        if levels[level] and (level + 1 < len(levels) or len(levels[level]) > 1):
            group, levels[level] = levels[level], []
            if level + 1 == len(levels):
                return add_group(group)
            _put(levels, level + 1, add_group(group))
    (last,) = levels[-1]
    return last


def _put(levels: list[list[NDArray[np.float64]]], level: int, vector: NDArray[np.float64]) -> None:
    """Put a vector into a level; a full group goes one level up as its sum."""
    if level == len(levels):
        levels.append([])
    levels[level].append(vector)
    if len(levels[level]) == FAN_IN:
        group, levels[level] = levels[level], []
        _put(levels, level + 1, add_group(group))
