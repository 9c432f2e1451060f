"""Floats as whole numbers modulo 2**64, scaled by their bounds, so that masked sums are exact.

Clips nothing: a number beyond its bound is an error at the client. Where bounds come from is `wire/`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import InputError, ParameterError

# A bound that is reached exactly may be passed by rounding, as answers are sums of floats.
ROUNDING = 1e-9
_SIGNED_BITS = 62  # one bit is the sign's, and one is left for the halves that are rounded up


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """The scale of each place of a vector, chosen so that a sum of `n_summands` cannot overflow.

    Place j is multiplied by 2**f with f = 62 - e - h, where bound_j (1 + 1e-9) < 2**e and n_summands ≤
    2**h. Then |Σ| ≤ 2**h (2**(62 - h) + 1/2) < 2**63 for any h ≤ 61. The sum is off by at most
    n_summands / 2**(f + 1), 4.4e-13 of the bound at 1,000 summands, before it is a float again.

    Parameters
    ----------
    bounds : float array of shape (n_numbers,)
        The largest |value| of one summand, place by place; not negative.
    n_summands : int
        The largest number of summands.

    Examples
    --------
    >>> scale = FixedPoint(np.array([1.0, 1000.0]), n_summands=3)
    >>> words = scale.encode([0.25, -3.5]) + scale.encode([0.5, 1.0])
    >>> words.dtype, scale.decode(words)
    (dtype('uint64'), array([ 0.75, -2.5 ]))
    """

    bounds: NDArray[np.float64]
    n_summands: int

    def __post_init__(self) -> None:
        bounds = np.asarray(self.bounds, dtype=np.float64)
        if bounds.ndim != 1 or not np.isfinite(bounds).all() or (bounds < 0).any():
            raise ParameterError(
                "expected bounds as one row of finite numbers, none of them negative"
            )
        if not 1 <= self.n_summands <= 2**32:
            raise ParameterError(f"expected 1 to 2**32 summands, got {self.n_summands}")
        object.__setattr__(self, "bounds", bounds)

    @property
    def exponents(self) -> NDArray[np.int32]:
        """The power of two that each place is multiplied by, which is exact; shape (n_numbers,)."""
        _, bits = np.frexp(self.bounds * (1 + ROUNDING))
        return np.asarray(_SIGNED_BITS - (self.n_summands - 1).bit_length() - bits, dtype=np.int32)

    def encode(self, values: ArrayLike) -> NDArray[np.uint64]:
        """One summand as words, of shape (n_numbers,).

        Raises
        ------
        InputError
            If a number is not finite or beyond its bound. The message holds no value.
        """
        vector = np.asarray(values, dtype=np.float64)
        if vector.shape != self.bounds.shape:
            raise InputError(f"expected {len(self.bounds)} numbers, got an array of {vector.shape}")
        if not np.isfinite(vector).all():
            raise InputError("numbers of the answer are not finite; nothing is sent")
        n_over = int((np.abs(vector) > self.bounds * (1 + ROUNDING)).sum())
        if n_over:
            raise InputError(f"{n_over} numbers of the answer exceed their bounds; nothing is sent")
        return np.rint(np.ldexp(vector, self.exponents)).astype(np.int64).view(np.uint64)

    def decode(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The sum that the added words stand for, of shape (n_numbers,)."""
        return np.ldexp(words.view(np.int64).astype(np.float64), -self.exponents)
