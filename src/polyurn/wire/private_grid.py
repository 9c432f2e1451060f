"""The fixed-point grid of private answers: multiples of 2**-28, on which float64 sums are exact.

A private answer is a vector of norm at most 1 whose numbers lie on the grid. The sum of up to 2**25 of
them has at most 53 bits, so that float64 adds them without any rounding, in whatever order: two sums
that differ in one client differ by that client's vector, and noise that lies on the grid too covers
exactly that. `unit_rows` is the one gate that every client's private answer passes.
"""

import numpy as np

from polyurn.errors import InputError
from polyurn.typed.declared import Floats, Ints

DIGITS = 28  # binary ones, after the point
STEP = 2.0**-DIGITS
MOST_CLIENTS = 2**25

# Clipping aims this much below 1, so that rounding errors of the norm, at most d 2**-52 of it, do not
# matter up to a million numbers.
_MARGIN = 2.0**-30
_SMALLEST = 1e-300  # a norm to divide by, of a row of zeros


def steps(vector: Floats) -> Ints:
    """A sum of private answers in steps of the grid, which is exact, shape (n,).

    A number that is not on the grid, not finite, or beyond the largest sum is an `InputError`, without
    its value.

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


def unit_rows(vectors: Floats) -> Floats:
    """Clients' vectors, clipped at norm 1 and cut off to multiples of 2**-28.

    The norm of every returned row is at most 1 in exact arithmetic. The norm in float64 is off by a
    relative (d + 2) 2**-53 at most; a row whose norm is above 1 - 2**-30 is scaled to 1 - 2**-30, with a
    few roundings more, and rows up to that length are left. Both are below 1 for d ≤ 2**20. Cutting off
    moves each number towards 0, by less than 2**-28, and lowers the norm: rounding adds nothing to the
    sensitivity. A row with NaN or an infinite number in it says nothing, and is 0. What a row becomes
    does not depend on the others. Both have the shape (n_clients, d).

    >>> unit_rows(np.array([[3.0, 4.0], [0.25, 0.5], [np.nan, 1.0]])).round(6).tolist()
    [[0.6, 0.8], [0.25, 0.5], [0.0, 0.0]]
    """
    from polyurn.model.model_kernels import row_norms

    finite = np.asarray(np.isfinite(vectors).all(axis=1))
    rows = np.where(finite[:, None], vectors, 0.0)
    # Divided by the largest number first: the square of a large one need not be finite.
    largest = np.abs(rows).max(axis=1, initial=1.0)
    rows /= largest[:, None]
    norms = row_norms(rows)
    factors = np.minimum(largest, (1 - _MARGIN) / np.maximum(norms, _SMALLEST))
    return np.asarray(np.trunc(rows * (factors / STEP)[:, None]) * STEP)
