"""A message as bytes: a magic word, a version, a JSON header and float64 numbers; nothing executable.

    4 bytes magic | uint32 version | uint32 length of the header | header | float64 numbers

All little-endian; docs/wire.md specifies it. Everything about the bytes themselves is checked here,
before anything is allocated that is larger than they are. What a header means is `codec.py`.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MessageError, NumbersError
from polyurn.typed.records import shown

VERSION = 1
QUERY, ANSWER = b"PUQU", b"PUAN"

# The square of a larger number need not be finite, and no parameter is near it.
LARGEST = 1e150
# Parsed JSON takes up to 46 times its text (lists in lists): no small message takes more than 64 MB.
MOST_HEADER_BYTES = 2**20

_HEAD = struct.Struct("<4sII")
_NAMES = {QUERY: "a query", ANSWER: "an answer"}


def seal(magic: bytes, header: dict[str, Any], arrays: Sequence[NDArray[np.float64]]) -> bytes:
    """The message with this header, to which the number of numbers is added.

    Parameters
    ----------
    magic : bytes
        `QUERY` or `ANSWER`.
    header : dict
        As JSON can hold it.
    arrays : sequence of float arrays
        One after the other, each in C order.

    Examples
    --------
    >>> message = seal(QUERY, {"query": None}, [np.array([0.5])])
    >>> message[:4], message[12:40], len(message)
    (b'PUQU', b'{"query":null,"n_numbers":1}', 48)
    """
    numbers = np.concatenate([np.ravel(array) for array in arrays]) if arrays else np.empty(0)
    _check_numbers(numbers, _NAMES[magic])
    text = json.dumps({**header, "n_numbers": len(numbers)}, separators=(",", ":")).encode("ascii")
    # Spaces put the numbers at a multiple of eight bytes.
    text += b" " * (-(_HEAD.size + len(text)) % 8)
    if len(text) > MOST_HEADER_BYTES:
        raise MessageError(
            f"expected a header of at most {MOST_HEADER_BYTES:,} bytes, got {len(text):,}; "
            "ask fewer queries in one batch"
        )
    return _HEAD.pack(magic, VERSION, len(text)) + text + numbers.astype("<f8").tobytes()


def unseal(data: bytes, magic: bytes) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """The header and the numbers of a message; the array is read-only.

    Raises
    ------
    MessageError
        Anything about the bytes that is not as docs/wire.md has it.

    Examples
    --------
    >>> header, numbers = unseal(seal(QUERY, {"query": None}, [np.array([0.5])]), QUERY)
    >>> header, numbers.tolist()
    ({'query': None, 'n_numbers': 1}, [0.5])
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
    if length > MOST_HEADER_BYTES or start > len(data):
        raise MessageError(
            f"expected a header of at most {min(MOST_HEADER_BYTES, len(data) - _HEAD.size):,} bytes, "
            f"got one of {length:,}; send the message again"
        )
    header = _parsed(data[_HEAD.size : start])
    n_numbers = header.get("n_numbers")
    if type(n_numbers) is not int or 8 * n_numbers != len(data) - start:
        raise MessageError(
            f"expected {shown(n_numbers)} numbers of 8 bytes after the header of {what}, "
            f"got {len(data) - start:,} bytes; send it again"
        )
    numbers = np.frombuffer(data, "<f8", offset=start).astype(np.float64)
    _check_numbers(numbers, what)
    numbers.flags.writeable = False
    return header, numbers


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused
        )
    except MessageError:
        raise
    except (ValueError, RecursionError) as error:  # broken UTF-8 and JSON are ValueErrors
        raise MessageError("expected a header of JSON, got other text; send it again") from error
    if not isinstance(header, dict):
        raise MessageError(f"expected an object as the header, got {shown(header)}")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MessageError("expected each field of a header once, got one of them twice")
    return found


def _refused(constant: str) -> None:
    raise MessageError(f"expected finite numbers in a header, got {constant}")


def _check_numbers(numbers: NDArray[np.float64], what: str) -> None:
    if not (np.abs(numbers) <= LARGEST).all():  # NaN is not
        raise NumbersError(
            f"expected {what} of numbers from {-LARGEST:g} to {LARGEST:g}, got a larger one, an "
            "infinite one or NaN"
        )
