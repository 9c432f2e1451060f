"""Queries and answers as bytes and back, equal to the last bit: what any transport carries.

    4 bytes magic | uint32 version | uint32 length of the header | header | float64 numbers

All little-endian, and nothing executable. The header is JSON: the fields of a query by name, queries and
models inside it as objects, and for each array its shape and the index of its first number among those
after the header. Size bins are written once in a message and are one object again afterwards, because a
client answers queries with the same bins together.

No kind of query is named here: each declares its fields with types and ranges, and a decoded query has
passed its own checks. docs/wire.md specifies the bytes. Who may ask is not decided here.
"""

import json
import math
import struct
from collections.abc import Callable, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from polyurn.errors import FileError, MessageError, NumbersError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins
from polyurn.typed.arguments import of_types
from polyurn.typed.declared import Between, Floats, is_given, marks_of
from polyurn.typed.json_form import Finite, read_value, shown
from polyurn.wire.query import LARGEST, Query, S, Statistics

VERSION = 2
QUERY, ANSWER = b"PUQU", b"PUAN"

# Parsed JSON takes up to 46 times its text (lists in lists): no small message takes more than 64 MB.
_MOST_HEADER_BYTES = 2**20
# A short header can ask a client for any number of numbers; the limit is 128 MB of them.
_MOST_ASKED = 2**24
# A search in parts of the clients nests five deep.
_DEEPEST = 8
_Whole = Annotated[int, Between(-1, 2**31 - 1)]
_HEAD = struct.Struct("<4sII")
_NAMES = {QUERY: "a query", ANSWER: "an answer"}
# The fields of both headers, and of an array.
_ASKED, _ANSWERED = dict.fromkeys(("query", "bins")).keys(), dict.fromkeys(("answer_to",)).keys()
_ARRAY = dict.fromkeys(("at", "shape")).keys()


def encode_query(query: Query[Any]) -> bytes:
    """A query as bytes.

    A `MessageError` if it is of no known kind, has a number that is not finite or beyond 1e150, or is a
    batch of so many queries that their header is larger than 1 MB.

    >>> from polyurn.model.sizes import SizeBins
    >>> from polyurn.wire import Survey
    >>> encode_query(Survey(2, SizeBins.exact(3), pairs=True))[12:116]
    b'{"query":{"kind":"survey","n_categories":2,"size_bins":0,"pairs":true},"bins":[{"edges":{"at":0,"shape":'
    """
    writer = _Writer()
    tree = writer.written(query)  # finds the bins
    bins = [writer.fields_of(one) for one in writer.bins.values()]
    return _seal(QUERY, {"query": tree, "bins": bins}, writer.arrays)


def decode_query(data: bytes) -> Query[Any]:
    """The query that `encode_query` wrote.

    An `InputError` if the bytes are damaged, of a later version, or a query that no client could answer.
    Reading allocates at most 64 MB beside the numbers of the message.

    >>> from polyurn.model.sizes import SizeBins
    >>> from polyurn.wire import Survey
    >>> decode_query(encode_query(Survey(2, SizeBins.exact(3), pairs=True)))
    Survey(n_categories=2, size_bins=SizeBins(n_bins=3, max_size=3), pairs=True)
    """
    header, numbers = _unseal(data, QUERY, _ASKED)
    try:
        query = _Reader(numbers).message(header)
    except FileError as error:  # raised by `read_value` of `typed/json_form.py`
        raise MessageError(str(error)) from error
    if query.n_numbers > _MOST_ASKED:
        raise MessageError(
            f"expected a query that asks for at most {_MOST_ASKED:,} numbers, got one that asks for "
            f"{query.n_numbers:,}; lower max_upload"
        )
    return query


def encode_statistics(statistics: Statistics, query: Query[Any]) -> bytes:
    """An answer to a query as bytes.

    An `InputError` if it is not as many finite numbers as the query asks for: of a client that has
    probability zero under the parameters it was asked about, say.

    >>> from polyurn.wire import Contrast
    >>> query = Contrast(2, 2)
    >>> encode_statistics(query.read([0.0] * query.n_numbers), query)[12:36]
    b'{"answer_to":"contrast"}'
    """
    vector = query.read(statistics.to_vector()).to_vector()
    return _seal(ANSWER, {"answer_to": _kind_of(query)}, [vector])


def decode_statistics(data: bytes, query: Query[S]) -> S:
    """The answer to a query that `encode_statistics` wrote.

    An `InputError` if the bytes are damaged, of a later version, or answer another query. The line never
    has a value of the answer in it.

    >>> from polyurn.wire import Contrast
    >>> query = Contrast(2, 2)
    >>> answer = query.read(range(18))
    >>> decode_statistics(encode_statistics(answer, query), query).pairs.tolist()
    [9.0, 10.0]
    """
    header, numbers = _unseal(data, ANSWER, _ANSWERED)
    if header["answer_to"] != query.kind:
        raise MessageError(
            f"expected an answer to a query of kind {query.kind}, "
            f"got one to {shown(header['answer_to'])}"
        )
    return query.read(numbers)


class _Writer:
    """Writes a value as JSON, and collects its arrays and its size bins."""

    def __init__(self) -> None:
        self.arrays: list[Floats] = []
        self.bins: dict[int, SizeBins] = {}  # by their identities
        self._n_numbers = 0

    def written(self, value: Any) -> Any:
        match value:
            case SizeBins():
                self.bins.setdefault(id(value), value)
                return list(self.bins).index(id(value))
            case Query():
                return {"kind": _kind_of(value), **self.fields_of(value)}
            case np.ndarray():
                self.arrays.append(value.astype(np.float64, copy=False))
                self._n_numbers += value.size
                return {"at": self._n_numbers - value.size, "shape": list(value.shape)}
            case tuple():
                return [self.written(one) for one in value]
            case np.generic():
                return value.item()
        return self.fields_of(value) if is_dataclass(value) else value

    def fields_of(self, value: Any) -> dict[str, Any]:
        kind: Any = type(value)
        absent = {one.name for one in fields(kind) if not is_given(value, one)}
        given = (name for name in _readings(kind) if name not in absent)
        return {name: self.written(getattr(value, name)) for name in given}


class _Reader:
    """Reads values of declared types from the JSON of a header and the numbers after it."""

    def __init__(self, numbers: Floats) -> None:
        self._numbers, self._depth = numbers, 0
        self._taken: list[tuple[int, int]] = []
        self._bins: list[SizeBins] = []

    def message(self, header: dict[str, Any]) -> Query[Any]:
        bins = _list(header["bins"], "bins")
        self._bins = [self.fields_of(SizeBins, b, f"bins[{i}]") for i, b in enumerate(bins)]
        query = self.query(header["query"], "query")
        end = 0
        for start, stop in sorted(self._taken):
            if start != end:
                raise MessageError(
                    f"expected an array that begins at number {end:,}, got one at {start:,}: each "
                    "number belongs to one array"
                )
            end = stop
        if end != (n := len(self._numbers)):
            raise MessageError(f"expected {end:,} numbers after the header, got {n:,}")
        return query

    def query(self, document: Any, where: str) -> Query[Any]:
        kind = document.pop("kind", None) if isinstance(document, dict) else None
        found = Query.KINDS.get(kind) if isinstance(kind, str) else None
        if found is None:
            raise MessageError(
                f"{where}: expected a query of a known kind, got {shown(kind)}; upgrade polyurn if "
                "it is new"
            )
        self._depth += 1
        if self._depth > _DEEPEST:
            raise MessageError(f"expected queries nested at most {_DEEPEST} deep, got more")
        query: Query[Any] = self.fields_of(found, document, where)
        self._depth -= 1
        return query

    def fields_of(self, kind: Any, document: Any, where: str) -> Any:
        optional = {one.name for one in fields(kind) if one.metadata.get("if_given")}
        left_out = optional - document.keys() if isinstance(document, dict) else set()
        readings = {n: read for n, read in _readings(kind).items() if n not in left_out}
        _check_fields(document, readings.keys(), where)
        values = {n: read(self, document[n], f"{where}.{n}") for n, read in readings.items()}
        for name, mark in marks_of(kind, "check_received"):
            mark.check_received(values[name])
        found = of_types(kind, values)
        if kind is MDM and not np.array_equal(found.weights, values["weights"]):
            raise MessageError(f"{where}: expected components in order of decreasing weight")
        return found

    def size_bins(self, index: Any, where: str) -> SizeBins:
        n = len(self._bins)
        if type(index) is not int or not 0 <= index < n:
            raise MessageError(f"{where}: expected an index below {n}, got {shown(index)}")
        return self._bins[index]

    def array(self, document: Any, where: str) -> Floats:
        _check_fields(document, _ARRAY, where)
        start, shape = document["at"], _list(document["shape"], where)
        if not all(type(n) is int and n >= 0 for n in (start, *shape)):
            text = f"{where}: expected whole numbers of at least 0, got {shown(document)}"
            raise MessageError(text)
        stop = start + math.prod(shape)
        if stop > len(self._numbers):
            raise MessageError(
                f"{where}: expected {stop - start:,} numbers from number {start:,} on, got a message "
                f"of {len(self._numbers):,}; send it again"
            )
        if stop > start:
            self._taken.append((start, stop))
        return self._numbers[start:stop].reshape(shape)


@cache
def _readings(kind: Any) -> dict[str, Callable[[_Reader, Any, str], Any]]:
    """How each field that is sent is read; cached, so that annotations are walked once."""
    hints = get_type_hints(kind)
    sent = (field.name for field in fields(kind) if field.metadata.get("sent", True))
    return {name: _reading(hints[name]) for name in sent}


def _reading(declared: Any) -> Callable[[_Reader, Any, str], Any]:
    """How a value of a declared type is read; its range is checked by the class of the field."""
    kind = get_origin(declared) or declared
    if kind is UnionType:
        something = next(one for one in get_args(declared) if one is not NoneType)
        return _reading(something) if is_dataclass(something) else _plain(declared)
    if kind is tuple:
        inner = _reading(get_args(declared)[0])
        return lambda reader, value, where: tuple(
            inner(reader, one, f"{where}[{i}]") for i, one in enumerate(_list(value, where))
        )
    if kind is np.ndarray:
        return _Reader.array
    if kind is SizeBins:
        return _Reader.size_bins
    if isinstance(kind, type) and issubclass(kind, Query):
        return _Reader.query
    if is_dataclass(kind):
        return lambda reader, value, where: reader.fields_of(kind, value, where)
    return _plain({float: Finite, Literal: str, int: _Whole}.get(kind, kind))


def _plain(kind: Any) -> Callable[[_Reader, Any, str], Any]:
    """How texts, whole numbers, finite ones and truth values are read."""
    return lambda _, value, where: read_value(kind, value, where)


def _kind_of(query: Query[Any]) -> str:
    """The name of a query's kind; a subclass that declares none cannot be sent."""
    if Query.KINDS.get(query.kind) is not type(query):
        raise MessageError(f"expected a query of polyurn.wire, got {type(query).__name__}")
    return query.kind


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise MessageError(f"{where}: expected a list, got {shown(value)}")
    return value


def _check_fields(document: Any, names: Set[str], where: str) -> None:
    if not isinstance(document, dict) or document.keys() != names:
        arrived = sorted(document) if isinstance(document, dict) else document
        raise MessageError(f"{where}: expected {', '.join(names)}, got {shown(arrived)}")


# ------------------------------------------------------------------------------------------- the bytes


def _seal(magic: bytes, header: dict[str, Any], arrays: Sequence[Floats]) -> bytes:
    numbers = np.concatenate([np.ravel(array) for array in arrays]) if arrays else np.empty(0)
    _check_numbers(numbers, _NAMES[magic])
    try:
        text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    except ValueError as error:
        raise NumbersError("expected a query of finite numbers, got other ones") from error
    # Spaces put the numbers at a multiple of eight bytes.
    text += b" " * (-(_HEAD.size + len(text)) % 8)
    if len(text) > _MOST_HEADER_BYTES:
        raise MessageError(
            f"expected a header of at most {_MOST_HEADER_BYTES:,} bytes, got {len(text):,}; "
            "ask fewer queries in one batch"
        )
    return _HEAD.pack(magic, VERSION, len(text)) + text + numbers.astype("<f8").tobytes()


def _unseal(data: bytes, magic: bytes, names: Set[str]) -> tuple[dict[str, Any], Floats]:
    """The header and the numbers of a message; the array is read-only.

    Everything about the bytes is checked before anything is allocated that is larger than they are.
    """
    what = _NAMES[magic]
    if not isinstance(data, bytes | bytearray | memoryview):
        raise MessageError(f"expected {what} as bytes, got {type(data).__name__}")
    data = bytes(data)
    if len(data) < _HEAD.size:
        raise MessageError(f"expected {what} of at least {_HEAD.size} bytes, got {len(data)}")
    found, version, length = _HEAD.unpack_from(data)
    if found != magic:
        raise MessageError(f"expected {what}, which begins with {magic!r}, got {found!r}")
    if version != VERSION:
        todo = "upgrade polyurn" if version > VERSION else "send it again"
        raise MessageError(f"expected {what} of version {VERSION}, got {version}; {todo}")
    start = _HEAD.size + length
    if length > _MOST_HEADER_BYTES or start > len(data) or (len(data) - start) % 8:
        raise MessageError(
            f"expected {what} with a header of at most {_MOST_HEADER_BYTES:,} bytes and numbers of 8 "
            f"bytes, got a header of {length:,} in {len(data):,} bytes; send it again"
        )
    header = _parsed(data[_HEAD.size : start])
    _check_fields(header, names, "the header")
    numbers = np.frombuffer(data, "<f8", offset=start).astype(np.float64)
    _check_numbers(numbers, what)
    numbers.flags.writeable = False
    return header, numbers


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused)
    except MessageError:
        raise
    except (ValueError, RecursionError) as error:  # broken UTF-8 and JSON are ValueErrors
        raise MessageError("expected a header of JSON, got other text; send it again") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MessageError("expected each field of a header once, got one of them twice")
    return found


def _refused(constant: str) -> None:
    raise MessageError(f"expected finite numbers in a header, got {constant}")


def _check_numbers(numbers: Floats, what: str) -> None:
    if not (np.abs(numbers) <= LARGEST).all():  # NaN is not
        raise NumbersError(
            f"expected {what} of numbers from {-LARGEST:g} to {LARGEST:g}, got a larger one, an "
            "infinite one or NaN"
        )
