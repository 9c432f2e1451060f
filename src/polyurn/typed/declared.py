"""Ranges and shapes, declared once beside the type of a field: `Annotated[int, AtLeast(2)]`.

A dataclass calls `check_declared(self)` in its constructor, so decoders need not check again. Codecs
find marks about the bytes of a field with `marks_of`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import Field, dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Seed: TypeAlias = int | np.random.Generator | None  # None: fresh entropy

# Metadata of a field that never crosses the wire: the receiver has its default.
UNSENT = {"sent": False}
# Metadata of an optional field which documents and messages leave out where it is None.
IF_GIVEN = {"if_given": True}


def is_given(value: object, field: "Field[Any]") -> bool:
    """Whether documents and messages have this field of the value."""
    return not field.metadata.get("if_given") or getattr(value, field.name) is not None


@dataclass(frozen=True)
class AtLeast:
    """A whole number from `least` on."""

    least: int

    @property
    def text(self) -> str:
        return f"of at least {self.least}"

    def fits(self, value: Any) -> bool:
        return bool(int(value) == value and value >= self.least)


@dataclass(frozen=True)
class Above:
    """A finite number above `least`, or several."""

    least: float

    @property
    def text(self) -> str:
        return f"above {self.least:g} and finite"

    def fits(self, value: Any) -> bool:
        several = value if isinstance(value, tuple) else (value,)
        return all(self.least < one < math.inf for one in several)  # NaN is not


@dataclass(frozen=True)
class Between:
    """A number from `least` to `most`."""

    least: float
    most: float

    @property
    def text(self) -> str:
        if self.most == math.inf:
            return f"of at least {self.least:g}"
        return f"from {self.least:.15g} to {self.most:.15g}"

    def fits(self, value: Any) -> bool:
        return bool(self.least <= value <= self.most)  # NaN is not


# What is declared beside a type; `text` completes "expected a number ...".
Range: TypeAlias = AtLeast | Above | Between


class Shape:
    """An array with these axes; axes of one name have the same length in all fields, and not 0."""

    def __init__(self, *axes: str) -> None:
        self.axes = axes


@cache
def ranges_of(annotation: Any) -> tuple[Any, list[Range]]:
    """A type without its marks, and the ranges among them; a text mark makes a type of its own."""
    plain, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if any(isinstance(mark, str) for mark in marks):
        return annotation, []
    return plain, [mark for mark in marks if isinstance(mark, Range)]


def check_declared(value: Any) -> None:
    """Refuse a dataclass with a field outside its declared range or of another shape.

    >>> @dataclass
    ... class Plan:
    ...     n_folds: Annotated[int, AtLeast(2)]
    >>> check_declared(Plan(1))
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: expected n_folds of at least 2, got 1
    """
    kind: Any = type(value)
    for name, range_ in marks_of(kind, "fits"):
        given = getattr(value, name)
        if given is not None and not range_.fits(given):
            raise ParameterError(f"expected {name} {range_.text}, got {given}")
    if arrays := axes_of(kind):
        check_shapes({name: np.shape(getattr(value, name)) for name in arrays}, kind)


def check_shapes(given: Mapping[str, tuple[int, ...]], kind: Any, **lengths: int) -> None:
    """Refuse arrays of a class that do not have the declared axes; some lengths may be known.

    The length of another axis is the one that most arrays have; in a tie, the first array's.
    """
    shapes = [(name, axes) for name, axes in axes_of(kind).items() if name in given]
    known = dict(lengths)
    if all(_fits(given[name], axes, known) for name, axes in shapes):
        return
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for name, axes in shapes:
        if len(given[name]) == len(axes):
            for axis, n in set(zip(axes, given[name], strict=True)):
                found[axis][n] += 1
    known = {axis: counts.most_common(1)[0][0] for axis, counts in found.items()} | lengths
    for name, axes in shapes:
        if not _fits(given[name], axes, known):
            shape = ", ".join(str(known.get(axis) or axis) for axis in axes)
            raise ParameterError(f"expected {name} of shape ({shape}), got {given[name]}")


def _fits(shape: tuple[int, ...], axes: tuple[str, ...], lengths: dict[str, int]) -> bool:
    """Whether a shape has these axes; lengths of new axes are added to `lengths`, and are not 0."""
    return len(shape) == len(axes) and all(
        lengths.setdefault(axis, n or -1) == n for axis, n in zip(axes, shape, strict=True)
    )


@cache
def axes_of(kind: Any) -> dict[str, tuple[str, ...]]:
    """The axes of each field that is an array, or an array or None."""
    return {name: mark.axes for name, mark in marks_of(kind, "axes")}


@cache
def marks_of(kind: Any, attribute: str) -> list[tuple[str, Any]]:
    """The marks beside the types of a class's fields that have this attribute, with field names."""
    found = []
    for name, annotation in get_type_hints(kind, include_extras=True).items():
        is_union = get_origin(annotation) in (Union, UnionType)
        for one in get_args(annotation) if is_union else (annotation,):
            marks = get_args(one)[1:] if get_origin(one) is Annotated else ()
            found += [(name, mark) for mark in marks if hasattr(mark, attribute)]
    return found
