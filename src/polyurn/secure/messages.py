"""The messages of a secure sum as bytes, and their strict decoding.

A header (magic, version, kind, tag of the round, node) and a body; numbers are little-endian, ids stand
in increasing order, nothing may be left over. Whether a message is believed is not decided here.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import RefusedError
from polyurn.secure.masks import N_KEY_BYTES, N_SEAL_BYTES
from polyurn.secure.shamir import N_SHARE_BYTES

MAGIC, VERSION = b"PUSS", 1
N_TAG_BYTES, N_DIGEST_BYTES = 16, 32
# For one neighbour: commitments to two shares, and both of them sealed.
N_COMMITTED_BYTES = 2 * N_DIGEST_BYTES
N_SEALED_BYTES = N_COMMITTED_BYTES + 2 * N_SHARE_BYTES + N_SEAL_BYTES
_HEADER = struct.Struct("<4sBB16sQ")
_MOST_SIGNATURE_BYTES = 256  # Ed25519 has 64, ECDSA on P-384 at most 104

T = TypeVar("T")


class _Reader:
    """Takes a body apart, front to back; what is missing or left over is refused."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, n_bytes: int) -> bytes:
        taken = self._data[self._at : self._at + n_bytes]
        if len(taken) < n_bytes:
            _refuse("it is too short")
        self._at += n_bytes
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def signature(self) -> bytes:
        n_bytes = int.from_bytes(self.take(2), "little")
        if not 1 <= n_bytes <= _MOST_SIGNATURE_BYTES:
            _refuse(f"a signature of {n_bytes} bytes")
        return self.take(n_bytes)

    def ids(self) -> tuple[int, ...]:
        n_ids = self.number()
        found = struct.unpack(f"<{n_ids}Q", self.take(8 * n_ids))
        if any(a >= b for a, b in pairwise(found)):
            _refuse("its ids are not in increasing order")
        return found

    def by_id(self, read: Callable[[], T]) -> dict[int, T]:
        return {node: read() for node in self.ids()}

    def end(self) -> None:
        if self._at != len(self._data):
            _refuse(f"{len(self._data) - self._at} bytes are left over")


def _refuse(why: str) -> NoReturn:
    raise RefusedError(f"a message that cannot be read: {why}")


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _signature(value: bytes) -> bytes:
    return len(value).to_bytes(2, "little") + value


def _ids(nodes: Sequence[int]) -> bytes:
    return _number(len(nodes)) + struct.pack(f"<{len(nodes)}Q", *nodes)


def _by_id(values: Mapping[int, T], write: Callable[[T], bytes]) -> bytes:
    nodes = sorted(values)
    return _ids(nodes) + b"".join(write(values[node]) for node in nodes)


@dataclass(frozen=True)
class Message(ABC):
    """One of the messages below, to or from one node."""

    KIND: ClassVar[int]

    def encode(self, *, tag: bytes, node: int) -> bytes:
        """The message of the round `tag` to or from `node`."""
        return _HEADER.pack(MAGIC, VERSION, self.KIND, tag, node) + self._body()

    @classmethod
    def decode(cls, data: bytes, *, tag: bytes | None, node: int) -> Self:
        """The message in `data`; `RefusedError` if it is another, or of another round or node.

        Parameters
        ----------
        data : bytes
        tag : bytes, optional
            Of the round; None takes the message of any.
        node : int
            Whom it is to or from, as the transport says.
        """
        if not isinstance(data, bytes) or len(data) < _HEADER.size:
            _refuse("it is no row of bytes with a header")
        magic, version, kind, its_tag, its_node = _HEADER.unpack_from(data)
        if magic != MAGIC:
            _refuse("it is none of a secure sum")
        if version != VERSION:
            _refuse(f"version {version}, expected {VERSION}")
        if kind != cls.KIND:
            _refuse(f"kind {kind}, expected {cls.KIND} ({cls.__name__})")
        if tag is not None and its_tag != tag:
            raise RefusedError("a message of another round", node)
        if its_node != node:
            raise RefusedError(f"a message of node {its_node} under the name of {node}", node)
        reader = _Reader(data[_HEADER.size :])
        message = cls._read(reader)
        reader.end()
        return message

    @abstractmethod
    def _body(self) -> bytes: ...

    @classmethod
    @abstractmethod
    def _read(cls, reader: _Reader) -> Self: ...


def tag_of(data: bytes) -> bytes:
    """The tag of the round that a message says it belongs to; 16 bytes."""
    if not isinstance(data, bytes) or len(data) < _HEADER.size:
        _refuse("it is no row of bytes with a header")
    return bytes(_HEADER.unpack_from(data)[3])


@dataclass(frozen=True)
class Invitation(Message):
    """Server to node: a round begins."""

    KIND = 1

    def _body(self) -> bytes:
        return b""

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        return cls()


@dataclass(frozen=True)
class Advertisement(Message):
    """Node to server, and on to its neighbours: its public keys of this round, signed."""

    KIND = 2
    mask_key: bytes
    seal_key: bytes
    commitment: bytes
    signature: bytes

    @property
    def keys(self) -> bytes:
        """What is signed and agreed on: both keys and the commitment to the seed; 96 bytes."""
        return self.mask_key + self.seal_key + self.commitment

    def _body(self) -> bytes:
        return self.keys + _signature(self.signature)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        mask_key, seal_key, commitment = (reader.take(N_KEY_BYTES) for _ in range(3))
        return cls(mask_key, seal_key, commitment, reader.signature())


@dataclass(frozen=True)
class Neighbourhood(Message):
    """Server to node: digests of all that advertised, and the keys of its neighbourhood with its own."""

    KIND = 3
    threshold: int
    quorum: int
    cohort: Mapping[int, bytes]
    neighbours: Mapping[int, Advertisement]

    def _body(self) -> bytes:
        numbers = _number(self.threshold) + _number(self.quorum)
        return numbers + _by_id(self.cohort, bytes) + _by_id(self.neighbours, Advertisement._body)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        threshold, quorum = reader.number(), reader.number()
        cohort = reader.by_id(lambda: reader.take(N_DIGEST_BYTES))
        neighbours = reader.by_id(lambda: Advertisement._read(reader))
        return cls(threshold, quorum, cohort, neighbours)


@dataclass(frozen=True)
class SealedShares(Message):
    """Node to server: for each neighbour, shares of both secrets that only it can open, committed to."""

    KIND = 4
    sealed: Mapping[int, bytes]

    def _body(self) -> bytes:
        return _by_id(self.sealed, bytes)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        return cls(reader.by_id(lambda: reader.take(N_SEALED_BYTES)))


@dataclass(frozen=True)
class ForwardedShares(Message):
    """Server to node: what its neighbours sealed for it, and the digest of the bounds."""

    KIND = 5
    bounds: bytes
    sealed: Mapping[int, bytes]

    def _body(self) -> bytes:
        return self.bounds + _by_id(self.sealed, bytes)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        bounds = reader.take(N_DIGEST_BYTES)
        return cls(bounds, reader.by_id(lambda: reader.take(N_SEALED_BYTES)))


@dataclass(frozen=True)
class MaskedVector(Message):
    """Node to server: its numbers behind all its masks."""

    KIND = 6
    words: NDArray[np.uint64] = field(repr=False)

    def _body(self) -> bytes:
        return _number(len(self.words)) + self.words.astype("<u8", copy=False).tobytes()

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        words = np.frombuffer(reader.take(8 * reader.number()), dtype="<u8")
        return cls(words.astype(np.uint64, copy=False))


@dataclass(frozen=True)
class Survivors(Message):
    """Server to node: everybody whose masked vector arrived."""

    KIND = 7
    nodes: tuple[int, ...]

    def _body(self) -> bytes:
        return _ids(self.nodes)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        return cls(reader.ids())


@dataclass(frozen=True)
class Confirmation(Message):
    """Node to server: its signature under the survivors that it was shown."""

    KIND = 8
    signature: bytes

    def _body(self) -> bytes:
        return _signature(self.signature)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        return cls(reader.signature())


@dataclass(frozen=True)
class Confirmations(Message):
    """Server to node: a quorum of survivors' signatures."""

    KIND = 9
    signatures: Mapping[int, bytes]

    def _body(self) -> bytes:
        return _by_id(self.signatures, _signature)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        return cls(reader.by_id(reader.signature))


@dataclass(frozen=True)
class RevealedShares(Message):
    """Node to server: one share of each neighbour, its seed's if it survived, else its mask key's."""

    KIND = 10
    shares: Mapping[int, bytes] = field(repr=False)

    def _body(self) -> bytes:
        return _by_id(self.shares, bytes)

    @classmethod
    def _read(cls, reader: _Reader) -> Self:
        return cls(reader.by_id(lambda: reader.take(N_SHARE_BYTES)))
