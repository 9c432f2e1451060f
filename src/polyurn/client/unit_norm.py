"""Vectors of norm at most 1 on a grid: the one gate that every client's private answer passes.

What a vector says is the business of whoever computes it; how many clients are added, and the noise, are
not known here.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.wire.grid import STEP

# Clipping aims this much below 1, so that rounding errors of the norm, at most d 2**-52 of it, do not
# matter up to a million numbers.
_MARGIN = 2.0**-30
_SMALLEST = 1e-300  # a norm to divide by, of a row of zeros


def unit_rows(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clients' vectors, clipped at norm 1 and cut off to multiples of 2**-28.

    The norm of every returned row is at most 1 in exact arithmetic. The norm in float64 is off by a
    relative (d + 2) 2**-53 at most; a row whose norm is above 1 - 2**-30 is scaled to 1 - 2**-30, with a
    few roundings more, and rows up to that length are left. Both are below 1 for d ≤ 2**20. Cutting off
    moves each number towards 0, by less than 2**-28, and lowers the norm: rounding adds nothing to the
    sensitivity. A row with NaN or an infinite number in it says nothing, and is 0.

    Parameters
    ----------
    vectors : float array of shape (n_clients, d)

    Returns
    -------
    float array of shape (n_clients, d)

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.25, 0.5], [np.nan, 1.0]])).round(6).tolist()
    [[0.6, 0.8], [0.25, 0.5], [0.0, 0.0]]
    """
    finite = np.asarray(np.isfinite(vectors).all(axis=1))
    rows = np.where(finite[:, None], vectors, 0.0)
    # Divided by the largest number first: the square of a large one need not be finite.
    largest = np.abs(rows).max(axis=1, initial=1.0)
    rows /= largest[:, None]
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    factors = np.minimum(largest, (1 - _MARGIN) / np.maximum(norms, _SMALLEST))
    return np.asarray(np.trunc(rows * (factors / STEP)[:, None]) * STEP)
