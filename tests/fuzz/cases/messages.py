"""Queries and answers as bytes, with other bytes, another header or other numbers than were written."""

import functools
import json
import struct

import numpy as np

import wire_cases
from damage import damaged
from fuzz.case import Case, one_of
from fuzz.mutations import mutated
from polyurn import answer
from polyurn.errors import InputError
from polyurn.wire import check_answer, decode_query, decode_statistics

_ODD = (0.0, -0.0, -1.0, 5e-324, 1e-160, 1e-150, 0.5, 2.0, 1e15, 1e150, 1e300, np.inf, np.nan)
_MOST_NUMBERS = 10_000


def cases(rng: np.random.Generator) -> Case:
    """A message that is decoded, and answered if it is a query that can be."""
    name = one_of(rng, [*wire_cases.QUERIES])
    query, said = _messages()[name]
    if rng.random() < 0.2:
        data, asked = fuzzed(said, rng=rng), wire_cases.QUERIES[name]
        return Case(
            call=lambda: decode_statistics(data, asked), title=f"answer to {name} {data.hex()}"
        )
    data = fuzzed(query, rng=rng)
    return Case(call=lambda: _answered(data), title=f"{name} {data.hex()}")


def fuzzed(message: bytes, *, rng: np.random.Generator) -> bytes:
    """The same message with changed bytes, a changed header or a changed number, or bytes at random."""
    head, header, numbers = _parts(message)
    match int(rng.integers(7)):
        case 0:
            return _joined(head, rng.bytes(int(rng.integers(200))), b"")
        case 1 | 2:
            return mutated(message, rng=rng)
        case 3 | 4:
            text = json.dumps(damaged(json.loads(header), rng=rng)).encode()
            return _joined(head, text, numbers)
        case _ if numbers:
            at = 8 * int(rng.integers(len(numbers) // 8))
            (old,) = struct.unpack_from("<d", numbers, at)
            new = one_of(rng, (*_ODD, -old, 2 * old, old * (1 + 1e-12), old, old))
            return _joined(head, header, numbers[:at] + struct.pack("<d", new) + numbers[at + 8 :])
        case _:
            return message


@functools.cache
def _messages() -> dict[str, tuple[bytes, bytes]]:
    vectors = {name: wire_cases.kept(name) for name in wire_cases.QUERIES}
    return {name: (vector.query, vector.answer) for name, vector in vectors.items()}


def _parts(message: bytes) -> tuple[bytes, bytes, bytes]:
    (length,) = struct.unpack_from("<I", message, 8)
    return message[:8], message[12 : 12 + length], message[12 + length :]


def _joined(head: bytes, header: bytes, numbers: bytes) -> bytes:
    return head + struct.pack("<I", len(header)) + header + numbers


def _answered(data: bytes) -> None:
    """A query that was let through is no danger to a client, whatever has become of its parameters."""
    query = decode_query(data)
    if query.n_categories != len(wire_cases.CLIENT) or query.n_numbers > _MOST_NUMBERS:
        return
    try:
        said = answer(query, wire_cases.HELD, buckets=np.array([wire_cases.BUCKET]), rng=0)
    except InputError:  # sizes that are too small for this client, say
        return
    if np.isfinite(said.to_vector()).all():
        check_answer(query, said)
