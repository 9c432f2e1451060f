"""Bytes that are no longer what was written: bits turned, parts cut off, doubled or put in."""

import numpy as np

from fuzz.case import one_of

_FOREIGN = (b"\x00", b"\xff", b"\n", b'"', b",", b"\x1b[31m", b"\xef\xbb\xbf", b"9" * 50, b"{",
    b"]", b"\r", b"-", b"NaN", b"\xed\xa0\x80")  # fmt: skip


def mutated(data: bytes, *, rng: np.random.Generator) -> bytes:
    """The same bytes with one to three changes."""
    for _ in range(int(rng.integers(1, 4))):
        data = _changed(bytearray(data), rng)
    return data


def _changed(data: bytearray, rng: np.random.Generator) -> bytes:
    if not data:
        return one_of(rng, _FOREIGN)
    at, other = (int(place) for place in rng.integers(len(data), size=2))
    first, last = min(at, other), max(at, other)
    match int(rng.integers(7)):
        case 0:
            data[at] ^= 1 << int(rng.integers(8))
        case 1:
            data[at] = int(rng.integers(256))
        case 2:
            del data[at:]
        case 3:
            del data[first : min(last, first + 20)]
        case 4:
            data[at:at] = one_of(rng, _FOREIGN)
        case 5:
            data[at:at] = data[first : min(last, first + 200)]
        case _:
            data += data[first:last]
    return bytes(data)
