"""Arrays of numbers from outside: one check for lists, arrays, and columns of pandas and polars.

Callers check shapes and ranges, and what the numbers mean; `counts.check_counts` checks histograms.
"""

import math
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import InputError, ParameterError
from polyurn.typed.arguments import got
from polyurn.typed.declared import Floats, axes_of, check_shapes


def numbers(
    values: object, what: str, *, error: type[InputError] = ParameterError, advice: str = ""
) -> NDArray[Any]:
    """The same numbers as an array of integers, floats or truth values in this machine's byte order.

    Pandas' nullable columns are taken too, if no value is missing. `what` is their name in an error, and
    `advice` what to do about values that are not numbers.

    >>> numbers(np.array([1, 2], dtype=">i4"), "sizes").dtype.isnative
    True
    >>> numbers(["a"], "sizes")
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: expected sizes as numbers, got texts
    """
    given = plain_array(values, what, error=error)
    if given.dtype.kind not in "biuf":
        kind = {"U": "texts", "S": "bytes", "M": "dates"}.get(given.dtype.kind)
        arrived = kind or (got(values) if given.ndim == 0 else "something else, or missing values")
        raise error(f"expected {what} as numbers, got {arrived}{advice and '; ' + advice}")
    return given.astype(given.dtype.newbyteorder("="), copy=False)


def floats(values: object, what: str) -> Floats:
    """The same numbers as a new array of float64."""
    return np.array(numbers(values, what), dtype=np.float64)


def finite_array(values: object, what: str) -> Floats:
    """The same numbers as a new contiguous array of float64 with an axis or more, all of them finite."""
    given = floats(values, what)
    if given.ndim == 0 or not np.isfinite(given).all():
        raise ParameterError(f"expected {what} as an array of finite numbers")
    return np.ascontiguousarray(given)


def symmetric(lower: Floats) -> Floats:
    """The symmetric matrix of a lower triangle, row after row, of shape (n * (n + 1) / 2,).

    >>> symmetric(np.array([1.0, 2.0, 3.0])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    n = math.isqrt(2 * lower.size)
    square = np.zeros((n, n))
    square[np.tri(n, dtype=bool)] = lower
    return square + np.tril(square, -1).T


def plain_array(
    values: object, what: str, *, error: type[InputError] = ParameterError
) -> NDArray[Any]:
    """The same values as an array, of numbers or texts; other lengths or masks are an `InputError`."""
    if np.ma.is_masked(values):
        hidden = np.argwhere(np.ma.getmaskarray(np.ma.asarray(values)))
        index = tuple(hidden[0].tolist()) if hidden.shape[1] > 1 else int(hidden[0][0])
        raise error(
            f"expected {what} without a mask, got {len(hidden)} masked, the first at position "
            f"{index}; fill or drop them"
        )
    try:
        given = np.asarray(values)
        # Columns that can miss values come as objects; numpy finds their type from the values.
        return np.array(given.tolist()) if given.dtype.kind == "O" else given
    except InputError:  # our own message is more precise
        raise
    except (ValueError, TypeError, RuntimeError) as failed:
        raise error(f"expected {what} as an array, got lists of different lengths") from failed


def ids_of(values: object, what: str, *, error: type[InputError] = ParameterError) -> NDArray[Any]:
    """Ids as an array of numbers or of texts, shape (n,), none of them missing.

    >>> ids_of(["ann", "bob"], "owners").tolist()
    ['ann', 'bob']
    >>> ids_of([1.0, np.nan], "owners")
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: expected owners without missing values, got NaN at position 1
    """
    given = plain_array(values, what, error=error)
    if given.ndim != 1:
        raise error(f"expected {what} as a list, one for each, got shape {given.shape}")
    if given.dtype.kind == "f" and np.isnan(given).any():
        index = int(np.isnan(given).argmax())
        raise error(f"expected {what} without missing values, got NaN at position {index}")
    # numpy would turn all other values into texts, NaN too.
    listed: Any = given if isinstance(values, np.ndarray) and values.dtype.kind != "O" else values
    other = next((i for i, one in enumerate(listed) if not isinstance(one, str)), None)
    if given.dtype.kind == "O" or (given.dtype.kind == "U" and other is not None):
        raise error(
            f"expected {what} as numbers or as texts, got a mixture, or a missing value, at "
            f"position {other or 0}"
        )
    return given


class FrozenArrays:
    """A frozen value whose arrays are read-only, also those of a pickle or a deep copy of it."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def _freeze(self, values: dict[str, Any]) -> None:
        """Set the fields, in a constructor; arrays become read-only."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)


class EqualArrays(FrozenArrays):
    """A frozen dataclass of arrays and plain values that equals another one if all its fields do."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        kind: Any = type(self)
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(kind))

    __hash__ = None  # type: ignore[assignment]


class ShapedArrays(EqualArrays):
    """A frozen dataclass of copied, finite arrays, checked by their `Shape`; None is skipped."""

    def __post_init__(self) -> None:
        self._check_arrays()

    def _check_arrays(self, **lengths: int) -> None:
        """Check the arrays; `lengths` are axes whose length is known."""
        kind: Any = type(self)
        given = {name: getattr(self, name) for name in axes_of(kind)}
        arrays = {n: finite_array(value, n) for n, value in given.items() if value is not None}
        check_shapes({name: array.shape for name, array in arrays.items()}, kind, **lengths)
        self._freeze(arrays)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)
