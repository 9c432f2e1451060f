"""The fixed-point grid of private answers: multiples of 2**-28, on which float64 sums are exact.

A private answer is a vector of norm at most 1 whose numbers lie on the grid. The sum of up to 2**25 of
them has at most 53 bits, so that float64 adds them without any rounding, in whatever order: two sums
that differ in one client differ by that client's vector, and noise that lies on the grid too covers
exactly that. How a client puts its vector there is `client/unit_norm.py`.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import InputError

DIGITS = 28  # binary ones, after the point
STEP = 2.0**-DIGITS
MOST_CLIENTS = 2**25


def steps(vector: NDArray[np.float64]) -> NDArray[np.int64]:
    """A sum of private answers in steps of the grid, which is exact.

    Parameters
    ----------
    vector : float array of shape (n,)

    Raises
    ------
    InputError
        A number is not on the grid, not finite, or beyond the largest sum. No value is in the message.

    Examples
    --------
    >>> steps(np.array([0.5, -(2.0**-28)]))
    array([134217728,        -1])
    """
    if not (np.abs(vector) <= MOST_CLIENTS).all():  # NaN is not
        raise InputError(f"expected a private sum of at most {MOST_CLIENTS:,} clients, got more")
    scaled = vector / STEP
    whole = np.rint(scaled)
    if (whole != scaled).any():
        raise InputError(
            "expected a private sum on the grid of 2**-28: each client's vector passes unit_rows "
            "before it is added"
        )
    return whole.astype(np.int64)
