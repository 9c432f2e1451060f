"""Ranges and shapes, declared once beside the type of a field: `Annotated[int, AtLeast(2)]`.

A dataclass calls `check_declared(self)` when it is made; whoever decodes one need check nothing again.
How a field becomes bytes stands there, too: codecs find it with `marks_of`.
"""

import math
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Protocol, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError

Floats: TypeAlias = NDArray[np.float64]


class Range(Protocol):
    """A range that is said beside a type; `text` completes "expected a number ..."."""

    @property
    def text(self) -> str: ...

    def fits(self, value: Any) -> bool:
        """Whether a value of the type is in the range."""


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
        return f"from {self.least:g} to {self.most:g}"

    def fits(self, value: Any) -> bool:
        return bool(self.least <= value <= self.most)  # NaN is not


class Shape:
    """An array with these axes; those of one name are equally long in all fields, and none is 0."""

    def __init__(self, *axes: str) -> None:
        self.axes = axes

    def check(self, name: str, value: Any, lengths: dict[str, int]) -> None:
        shape = np.shape(value)
        fits = len(shape) == len(self.axes) and all(
            n > 0 and lengths.setdefault(axis, n) == n
            for axis, n in zip(self.axes, shape, strict=True)
        )
        if not fits:
            raise ParameterError(
                f"expected {name} of shape ({', '.join(self.axes)}), got {shape} beside {lengths}"
            )


@cache
def ranges_of(annotation: Any) -> tuple[Any, list[Range]]:
    """A type without the ranges beside it, and these."""
    plain, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    ranges = [mark for mark in marks if hasattr(mark, "fits")]
    return (plain if ranges else annotation), ranges


def check_declared(value: Any) -> None:
    """Refuse a dataclass with a field out of the range or of another shape than is declared.

    Examples
    --------
    >>> @dataclass
    ... class Dice:
    ...     n_sides: Annotated[int, AtLeast(2)]
    >>> check_declared(Dice(1))
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: expected n_sides of at least 2, got 1
    """
    kind: Any = type(value)
    for name, range_ in marks_of(kind, "fits"):
        if not range_.fits(given := getattr(value, name)):
            raise ParameterError(f"expected {name} {range_.text}, got {given}")
    lengths: dict[str, int] = {}
    for name, shape in marks_of(kind, "axes"):
        shape.check(name, getattr(value, name), lengths)


@cache
def declared_axes(kind: Any) -> dict[str, tuple[str, ...]]:
    """The axes of each field that is an array; () of one that is a single number."""
    axes = {name: shape.axes for name, shape in marks_of(kind, "axes")}
    return {field.name: axes.get(field.name, ()) for field in fields(kind)}


@cache
def marks_of(kind: Any, attribute: str) -> list[tuple[str, Any]]:
    """What stands beside the types of a class's fields and has this attribute, with their names."""
    hints = get_type_hints(kind, include_extras=True)
    found = [(n, get_args(a)[1:]) for n, a in hints.items() if get_origin(a) is Annotated]
    return [(name, mark) for name, marks in found for mark in marks if hasattr(mark, attribute)]
