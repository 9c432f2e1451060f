"""Arguments of the public interface, checked once, against their annotations.

`@checked` stands on a function, or on a class for its constructor and public methods. Texts, numbers,
paths, callables, our own classes, and lists and mappings of those are checked here, with the ranges that
are declared beside their types. Arrays are checked by `counts.check_counts` and `typed/arrays.py`.
"""

import inspect
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from numbers import Integral, Real
from types import FunctionType, NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from polyurn.errors import ParameterError
from polyurn.typed.declared import Range, ranges_of
from polyurn.typed.json_form import Finite, shown

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# Written to a file unchanged.
Json: TypeAlias = Annotated[Mapping[str, Any], "what JSON can hold"]
_Seed: TypeAlias = Annotated[int, "a seed"]


def checked(function: F) -> F:
    """The same function or class, which raises a `ParameterError` for an argument of the wrong type.

    Numpy's numbers are passed on as Python's, and iterators as tuples. Missing and unknown arguments
    remain Python's `TypeError`.

    >>> @checked
    ... def draw(n_clients: int, *, rng: int | np.random.Generator | None = None) -> None: ...
    >>> draw(2.5)
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: expected n_clients as an integer, got 2.5
    """
    if not isinstance(function, type):
        return _checked(function)
    for name, member in list(vars(function).items()):
        if name != "__init__" and name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(function, name, _checked(member))
        elif isinstance(member, classmethod):
            setattr(function, name, classmethod(_checked(member.__func__)))
    return function


def of_types(kind: type[T], values: Mapping[str, Any]) -> T:
    """An object of a class from values whose types a reader has checked; skips `checked`."""
    value = kind.__new__(kind)
    constructor = kind.__init__
    getattr(constructor, "__wrapped__", constructor)(value, **values)
    return value


def expected_as(text: str, *, advice: str = "") -> Callable[[F], F]:
    """Declare a class's name in errors, and advice for the usual mistake."""

    def keep(kind: F) -> F:
        _CALLED[kind] = text, advice
        return kind

    return keep


def got(value: object) -> str:
    """What arrived: a plain value itself, of others the type, as they may hold clients' data."""
    if value is None or isinstance(value, str | bytes | int | float | complex | np.generic):
        return shown(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    return f"{name} of shape {shape}" if isinstance(shape, tuple) else name


def check_options(
    name: str, kind: Callable[..., Any], given: Iterable[str], *, ours: Collection[str] = ()
) -> None:
    """Refuse keyword arguments that a class of another library does not have; `ours` are passed by us.

    >>> from fractions import Fraction
    >>> check_options("Fraction", Fraction, ["speed"], ours=["numerator"])
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: Fraction has no option 'speed'; expected one of denominator
    """
    names = inspect.signature(kind).parameters
    known = [one for one in names if one not in ours and not one.startswith("_")]
    for option in given:
        if option not in known:
            expected = f"one of {', '.join(known)}" if known else "none"
            raise ParameterError(f"{name} has no option {shown(option)}; expected {expected}")


class _UnfitError(Exception):
    """A value is not of the expected type; the text says what arrived."""


@dataclass(frozen=True)
class _Kind:
    """A type of arguments: its name in an error, the check, which returns the value, and advice."""

    expected: str
    take: Callable[[Any], Any]
    advice: str = ""


# The name of a class in errors, and advice: see `expected_as`.
_CALLED: dict[Any, tuple[str, str]] = {}


def _checked(function: F) -> F:
    names = list(inspect.signature(function).parameters)

    @cache
    def kinds() -> dict[str, _Kind]:
        # At the first call: an annotation may name a class that is defined further down.
        annotations = {n: a for n, a in function.__annotations__.items() if n in names}
        holder: Any = SimpleNamespace(__annotations__=annotations)
        hints = get_type_hints(holder, function.__globals__, include_extras=True)
        return {n: kind for n, a in hints.items() if (kind := _kind(a)) is not None}

    def take(name: str, value: Any) -> Any:
        kind = kinds().get(name)
        if kind is None:
            return value
        try:
            return kind.take(value)
        except _UnfitError as error:
            advice = f"; {kind.advice}" if kind.advice else ""
            raise ParameterError(
                f"expected {name} as {kind.expected}, got {error}{advice}"
            ) from None

    @wraps(function)
    def taking(*args: Any, **kwargs: Any) -> Any:
        listed = [take(name, value) for name, value in zip(names, args, strict=False)]
        named = {name: take(name, value) for name, value in kwargs.items()}
        return function(*listed, *args[len(names) :], **named)

    return taking  # type: ignore[return-value]


@cache
def _kind(annotation: Any) -> _Kind | None:
    """How values of this annotation are checked; None if they are checked elsewhere."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _ranged(*ranges_of(annotation))
    if origin in (Union, UnionType):
        return _union(inner)
    if origin is Literal:
        return _if(_listed(map(repr, inner)), lambda v: isinstance(v, str) and v in inner)
    if origin is tuple:
        return _list(inner[0], convert=tuple) if inner[-1] is ... else _list(*inner)
    if origin is Sequence:
        return _list(inner[0])
    if origin is Iterable:
        return _list(inner[0], convert=tuple, also=(Iterator, set, frozenset, _Views))
    if origin in (Mapping, dict):
        return _mapping(*inner)
    kind = origin or annotation
    if kind in _PLAIN:  # Callable[...], os.PathLike[...] and np.ndarray[...] of anything
        return _PLAIN[kind]
    if kind is np.random.Generator:
        return _instance(kind)
    # ArrayLike and such: arrays are checked elsewhere.
    is_class = isinstance(kind, type) and kind is not object
    return _instance(kind) if is_class and kind.__module__.split(".")[0] != "numpy" else None


def _ranged(plain: Any, ranges: list[Range]) -> _Kind | None:
    """A value of a type, in the ranges that are declared beside it."""
    kind = _kind(plain)
    if kind is None or not ranges:
        return kind

    def take(value: Any) -> Any:
        taken = kind.take(value)
        if not all(one.fits(taken) for one in ranges):
            raise _UnfitError(got(value))
        return taken

    return _Kind(" ".join([kind.expected, *(one.text for one in ranges)]), take)


def _union(members: tuple[Any, ...]) -> _Kind | None:
    origins = [get_origin(member) or member for member in members]
    if np.random.Generator in origins:  # an integer beside it is a seed
        members = tuple(_Seed if member is int else member for member in members)
    if os.PathLike in origins:
        members = tuple(member for member in members if member is not str)
    known = [kind for member in members if (kind := _kind(member)) is not None]
    if len(known) < len(members):
        return None

    def take(value: Any) -> Any:
        reasons = []
        for kind in known:
            try:
                return kind.take(value)
            except _UnfitError as error:
                reasons.append(str(error))
        raise _UnfitError(max(reasons, key=len))  # the longest names the wrong value inside

    advice = next((kind.advice for kind in known if kind.advice), "")
    return _Kind(_listed(kind.expected for kind in known), take, advice)


def _list(
    *inner: Any, convert: Callable[[Any], Any] = lambda values: values, also: tuple[type, ...] = ()
) -> _Kind:
    """A list, a tuple, an array or a column, or another iterable of the types in `also`.

    All values are of one type, or there is one value for each of several types.
    """
    kinds = [_kind(one) for one in inner]
    n = len(kinds)

    def take(value: Any) -> Any:
        if not (_is_list(value) or isinstance(value, also)) or (n > 1 and len(value) != n):
            raise _UnfitError(got(value))
        values = convert(value)
        for i, one in enumerate(values if any(kinds) else ()):
            _take_inside(kinds[i % n], one, f"at position {i}")
        return values

    return _Kind("a list" if n == 1 else f"{n} values", take)


def _mapping(of_keys: Any, of_values: Any) -> _Kind:
    key_kind, value_kind = _kind(of_keys), _kind(of_values)

    def take(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _UnfitError(got(value))
        for key, one in value.items():
            _take_inside(key_kind, key, "as a name")
            _take_inside(value_kind, one, f"under {shown(key)}")
        return value

    return _Kind("a mapping", take)


def _take_inside(kind: _Kind | None, value: Any, where: str) -> None:
    try:
        if kind is not None:
            kind.take(value)
    except _UnfitError as error:
        raise _UnfitError(f"{error} {where}, in place of {kind.expected}") from None  # type: ignore[union-attr]


def _instance(kind: type) -> _Kind:
    """An object of a class, or with the methods of a protocol."""
    name = kind.__name__
    called, advice = _CALLED.get(kind, (f"{'an' if name[0] in 'AEIO' else 'a'} {name}", ""))
    if not getattr(kind, "_is_protocol", False):
        return _if(called, lambda value: isinstance(value, kind), advice)
    needed = [
        member
        for member, value in vars(kind).items()
        if isinstance(value, FunctionType | property) and member not in _OF_EVERY_PROTOCOL
    ]

    def has_all(value: Any) -> bool:
        # Classes have the methods too, and data frames have an `aggregate` and a `sample`.
        is_other = isinstance(value, type) or hasattr(value, "__array__")
        return not is_other and all(hasattr(value, member) for member in needed)

    return _if(called, has_all, advice)


def _if(expected: str, fits: Callable[[Any], bool], advice: str = "") -> _Kind:
    def take(value: Any) -> Any:
        if not fits(value):
            raise _UnfitError(got(value))
        return value

    return _Kind(expected, take, advice)


def _listed(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last


def _is_list(value: Any) -> bool:
    is_indexed = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    is_other = isinstance(value, str | bytes | Mapping | type)
    return is_indexed and not is_other and getattr(value, "ndim", 1) == 1


def _is_array(value: Any) -> bool:
    """Whether it can become an array; its numbers are checked where they are used."""
    has_all = all(hasattr(value, name) for name in ("__array__", "__len__"))
    return has_all or isinstance(value, list | tuple)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _UnfitError(got(value))
    return int(value)


def _seed(value: Any) -> Any:
    """An integer of at least 0, or several, as numpy takes them."""
    if isinstance(value, list | tuple) and value:
        return [_seed(one) for one in value]
    if _integer(value) < 0:
        raise _UnfitError(got(value))
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _UnfitError(got(value))
    try:
        return float(value)
    except OverflowError:
        raise _UnfitError(got(value)) from None


def _truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise _UnfitError(got(value))
    return bool(value)


def _path(value: Any) -> Any:
    if not isinstance(value, str | os.PathLike):
        raise _UnfitError(got(value))
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise _UnfitError(got(text))
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise _UnfitError(f"{text!a}, which no file can be called") from None
    return value


def _json(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _UnfitError(got(value))
    try:
        json.dumps(dict(value), allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise _UnfitError(f"something else in it: {error}") from None
    return value


_OF_EVERY_PROTOCOL = {"__init__", "__subclasshook__"}
_Views: type = type({}.values())
_PLAIN: dict[Any, _Kind | None] = {
    Any: None,
    bool: _Kind("True or False", _truth),
    int: _Kind("an integer", _integer),
    _Seed: _Kind("a seed of at least 0", _seed),
    float: _Kind("a number", _number),
    Finite: _Kind("a number", _number),
    Json: _Kind("a mapping that JSON can hold", _json),
    str: _if("a text", lambda value: isinstance(value, str)),
    NoneType: _if("None", lambda value: value is None),
    os.PathLike: _Kind("a path", _path),
    Callable: _if("a function", callable),
    np.ndarray: _if("an array", _is_array),
}
