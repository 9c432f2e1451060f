"""Frozen dataclasses as JSON documents and back: every field is checked once, against its annotation.

A document has the fields of a dataclass, arrays among them; further checks belong to its constructor. No
file is read or written here.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from numbers import Real
from reprlib import Repr
from types import NoneType, UnionType
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
from numpy.typing import NDArray

from polyurn.errors import FileError, InputError
from polyurn.typed.declared import AtLeast, is_given, ranges_of

Value = TypeVar("Value")

# A plain float may be NaN (null in a document) or infinite (a text); these may not.
Finite: TypeAlias = Annotated[float, "finite"]
Count: TypeAlias = Annotated[int, AtLeast(0)]

# Metadata of a field that is not written to documents: the reader gives its value, or it is None.
UNKEPT = {"kept": False}

# Larger numbers are damage: their squares would not be finite.
_LARGEST = 1e150
_MOST_BITS = 2_000
_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}
# Longer arrays than the first are compressed where possible; none may be longer than the second.
_WORTH_IT, _LONGEST = 16, 2**28


def to_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass for JSON, in their order: NaN is null, and infinities are texts.

    >>> from polyurn.comparison.estimates import Estimate
    >>> to_json(Estimate(0.5, -math.inf, math.nan))
    {'value': 0.5, 'low': '-Infinity', 'high': None}
    """
    document: dict[str, Any] = _for_json(value)
    return document


def from_json(
    kind: type[Value],
    document: object,
    *,
    where: str = "",
    parsed: Mapping[str, object] | None = None,
) -> Value:
    """The dataclass that `to_json` wrote; unknown fields of the document are ignored.

    The dataclass consists of texts, numbers, truth values, arrays, tuples, sequences and mappings of
    those, and other such dataclasses. `parsed` are fields that the caller has read already. A field that
    is missing or not of its type is a `FileError`, which names it after `where`.

    >>> from polyurn.comparison.estimates import Estimate
    >>> from_json(Estimate, {"value": 0.5, "low": None, "high": "Infinity"})
    Estimate(value=0.5, low=nan, high=inf)
    >>> from_json(Estimate, {"value": "half", "low": None, "high": None}, where="rows[0].auc")
    Traceback (most recent call last):
    ...
    polyurn.errors.FileError: rows[0].auc.value: expected a number, got 'half'
    """
    if not isinstance(document, Mapping):
        raise _unexpected(where or "the document", "an object", document)
    values = dict(parsed or {})
    annotated: Any = kind
    for name, (is_kept, has_default, inner) in _fields_of(annotated).items():
        path = f"{where}.{name}" if where else name
        if name in values:
            continue
        if name in document and is_kept:
            values[name] = read_value(inner, document[name], path)
        elif not has_default and not is_kept:
            values[name] = None
        elif not has_default:
            raise FileError(f"{path}: expected {_expected(inner)}, got nothing")
    try:
        return kind(**values)
    except InputError as error:
        raise FileError(f"{where}: {error}" if where else str(error)) from error


def read_value(kind: Any, value: Any, where: str) -> Any:
    """A value of the annotated kind, as in `from_json`."""
    plain, _ = ranges_of(kind)
    if is_dataclass(plain):
        return from_json(plain, value, where=where)  # type: ignore[arg-type]
    inner = get_args(plain)
    match get_origin(plain):
        case origin if origin in (Union, UnionType):
            return None if value is None else read_value(_something(plain), value, where)
        case origin if origin is tuple and inner[-1] is not ...:
            if not isinstance(value, list | tuple) or len(value) != len(inner):
                raise _unexpected(where, _expected(kind), value)
            pairs = enumerate(zip(inner, value, strict=True))
            return tuple(read_value(one, v, f"{where}[{i}]") for i, (one, v) in pairs)
        case origin if origin in (tuple, Sequence) and isinstance(value, list | tuple):
            values = [read_value(inner[0], v, f"{where}[{i}]") for i, v in enumerate(value)]
            return tuple(values) if origin is tuple else values
        case origin if origin in (dict, Mapping) and isinstance(value, Mapping):
            return {
                _key(inner[0], key, where): read_value(inner[1], v, f"{where}[{shown(key)}]")
                for key, v in value.items()
            }
        case origin if origin is np.ndarray:
            return _array(value, where)
    return _read_plain(kind, value, where)


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    """A text, a truth value, a number in its range, or one of the texts of a `Literal`."""
    plain, ranges = ranges_of(kind)
    if get_origin(plain) is Literal:
        if value in get_args(plain):
            return value
    elif plain in _PLAIN and _PLAIN[plain][1](value):
        found = value
        if plain in (float, Finite):
            found = math.nan if value is None else float(_INFINITIES.get(value, value))
        if all(one.fits(found) for one in ranges):
            return found
    raise _unexpected(where, _expected(kind), value)


def shown(value: object) -> str:
    """A value from outside, on one short line, however long or deep it is."""
    return " ".join(_REPR.repr(value).split())


def is_finite(value: Any) -> bool:
    """Whether it is a number of Python's whose square is finite too."""
    return isinstance(value, int | float) and is_number(value) and abs(value) <= _LARGEST


def is_number(value: Any) -> bool:
    """Whether it is a finite number, which a float can hold, and not True or False."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and bool(abs(value) <= sys.float_info.max)  # NaN is not


@cache
def _fields_of(kind: Any) -> dict[str, tuple[bool, bool, Any]]:
    """For each field: whether documents have it, whether it has a default, and its annotation."""
    kinds = get_type_hints(kind, include_extras=True)
    nothing = (MISSING, MISSING)
    return {
        field.name: (
            field.metadata.get("kept", True),
            (field.default, field.default_factory) != nothing,
            kinds[field.name],
        )
        for field in fields(kind)
    }


def _key(kind: Any, key: str, where: str) -> int | str:
    """The name of an entry, which JSON only has as a text."""
    if kind is str:
        return key
    if not (key.isascii() and key.isdecimal() and len(key) < 12):
        raise _unexpected(where, "whole numbers as names", key)
    return int(key)


def _array(value: Any, where: str) -> NDArray[Any]:
    """The array that `_array_json` wrote, of finite numbers; the dataclass checks its shape."""
    try:
        match value:
            case {"first": int(first), "length": int(length)} if 0 <= length <= _LONGEST:
                return np.arange(first, first + length)
            case {"shape": list(shape), "most": most, "at": list(at), "values": list(values)}:
                if min(shape) < 0 or math.prod(shape) > _LONGEST or not is_finite(most):
                    raise ValueError("too long")
                flat = np.full(math.prod(shape), most)
                flat[np.array(at, np.int64)] = _array(values, where)
                return flat.reshape(shape)
            case list():
                array = np.array(value)
                if array.size == 0 or (
                    array.dtype.kind in "iuf" and is_finite(float(np.abs(array).max()))
                ):
                    return array
    except (ValueError, TypeError, IndexError, OverflowError):  # lists of different lengths, say
        pass
    raise _unexpected(where, "an array of finite numbers", value)


def _array_json(array: NDArray[Any]) -> Any:
    """Lists of numbers; shorter if an array counts up, or most of its numbers are the same."""
    if array.size == 0:  # lists of nothing have no shape
        return {"shape": list(array.shape), "most": 0.0, "at": [], "values": []}
    if array.size > _WORTH_IT:
        if array.ndim == 1 and array.dtype.kind == "i" and (np.diff(array) == 1).all():
            return {"first": int(array[0]), "length": len(array)}
        flat = array.ravel()
        most = np.sort(flat)[flat.size // 2]
        at = np.flatnonzero(flat != most)
        if 4 * len(at) < flat.size:
            shape, values = list(array.shape), flat[at].tolist()
            return {"shape": shape, "most": most.item(), "at": at.tolist(), "values": values}
    return array.tolist()


def _expected(kind: Any) -> str:
    """What a value of this kind is called in an error."""
    plain, ranges = ranges_of(kind)
    if plain in _PLAIN:
        return " ".join([_PLAIN[plain][0], *(one.text for one in ranges)])
    match get_origin(plain):
        case origin if origin in (Union, UnionType):
            return f"{_expected(_something(plain))} or null"
        case origin if origin is tuple and get_args(plain)[-1] is not ...:
            return f"a list of {len(get_args(plain))}"
        case origin if origin in (tuple, Sequence):
            return "a list"
        case origin if origin is np.ndarray:
            return "an array of finite numbers"
        case origin if origin is Literal:
            return " or ".join(map(repr, get_args(plain)))
    return "an object"


def _something(kind: Any) -> Any:
    """The other type of an optional one."""
    (one,) = (one for one in get_args(kind) if one is not NoneType)
    return one


def _is_number(value: object) -> bool:
    return value is None or is_finite(value) or (isinstance(value, str) and value in _INFINITIES)


_PLAIN: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    Any: ("something", lambda _: True),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    str: ("a text", lambda value: isinstance(value, str)),
    int: ("an integer", lambda value: isinstance(value, int) and is_finite(value)),
    float: ("a number", _is_number),
    Finite: ("a finite number", is_finite),
}


def _unexpected(where: str, expected: str, value: object) -> FileError:
    return FileError(f"{where}: expected {expected}, got {shown(value)}")


class _Short(Repr):
    def repr_int(self, value: int, level: int) -> str:
        if value.bit_length() > _MOST_BITS:  # Python does not write so many digits
            return f"an integer of {value.bit_length()} bits"
        return super().repr_int(value, level)


_REPR = _Short()
_REPR.maxstring = _REPR.maxother = 80
_REPR.maxlevel = 3


def _for_json(value: Any) -> Any:
    if is_dataclass(value):
        kept = (field for field in fields(value) if field.metadata.get("kept", True))
        given = {one.name: getattr(value, one.name) for one in kept if is_given(value, one)}
        return {name: _for_json(inner) for name, inner in given.items()}
    if isinstance(value, np.ndarray):
        return _array_json(value)
    if isinstance(value, Mapping):
        return {str(key): _for_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(inner) for inner in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
