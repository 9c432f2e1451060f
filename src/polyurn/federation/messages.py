"""Every message of a federation as bytes: what a node is asked, what it replies, and secure sums.

A message declares its fields, and each field declares how it becomes bytes; one encoder and one strict
decoder walk them. A header (magic, version, kind, tag, node) comes before the fields. Numbers are
little-endian, ids are in increasing order, and nothing may be missing or left over. Signatures are not
verified here.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import RefusedError
from polyurn.typed.declared import marks_of

MAGIC, VERSION = b"PUFM", 1
STAGES = ("plain", "advertise", "share", "mask", "confirm", "reveal")
N_TAG_BYTES, N_KEY_BYTES, N_DIGEST_BYTES, N_SHARE_BYTES, N_SEAL_BYTES = 16, 32, 32, 66, 12 + 16
# For one neighbour: commitments to two shares, and both shares sealed.
N_COMMITTED_BYTES = 2 * N_DIGEST_BYTES
N_SEALED_BYTES = N_COMMITTED_BYTES + 2 * N_SHARE_BYTES + N_SEAL_BYTES
_HEADER = struct.Struct("<4sBB16sQ")
_MOST_SIGNATURE_BYTES = 256  # Ed25519 has 64, ECDSA on P-384 at most 104


# ------------------------------------------------------------------------- fields, and how they are read


class _Reader:
    """Reads bytes front to back; missing bytes and bytes left over are refused."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def n_left(self) -> int:
        return len(self._data) - self._at

    def take(self, n_bytes: int) -> bytes:
        start = self._at
        self._at += n_bytes
        if self._at > len(self._data):
            _refuse("it is too short")
        return self._data[start : self._at]

    def number(self, n_bytes: int = 4) -> int:
        return int.from_bytes(self.take(n_bytes), "little")


@dataclass(frozen=True)
class _As:
    """How a field is written and read."""

    write: Callable[[Any], bytes]
    read: Callable[[_Reader], Any]


def _refuse(why: str) -> NoReturn:
    raise RefusedError(f"a message that cannot be read: {why}")


def _number(n_bytes: int) -> _As:
    return _As(lambda value: value.to_bytes(n_bytes, "little"), lambda r: r.number(n_bytes))


def _exactly(n_bytes: int) -> _As:
    return _As(bytes, lambda reader: reader.take(n_bytes))


def _by_id(one: _As) -> _As:
    """A mapping from nodes' ids: all ids first, then their values."""

    def write(values: Mapping[int, Any]) -> bytes:
        nodes = sorted(values)
        return _IDS.write(nodes) + b"".join(one.write(values[node]) for node in nodes)

    return _As(write, lambda reader: {node: one.read(reader) for node in _IDS.read(reader)})


def _read_ids(reader: _Reader) -> tuple[int, ...]:
    n_ids = reader.number()
    found = struct.unpack(f"<{n_ids}Q", reader.take(8 * n_ids))
    if any(a >= b for a, b in pairwise(found)):
        _refuse("its ids are not in increasing order")
    return found


def _read_signature(reader: _Reader) -> bytes:
    n_bytes = reader.number(2)
    if not 1 <= n_bytes <= _MOST_SIGNATURE_BYTES:
        _refuse(f"a signature of {n_bytes} bytes")
    return reader.take(n_bytes)


def _read_words(reader: _Reader) -> NDArray[np.uint64]:
    words = np.frombuffer(reader.take(8 * reader.number()), dtype="<u8")
    return words.astype(np.uint64, copy=False)


_IDS = _As(lambda nodes: struct.pack(f"<I{len(nodes)}Q", len(nodes), *nodes), _read_ids)
_SIGNATURE = _As(lambda value: len(value).to_bytes(2, "little") + value, _read_signature)
_WORDS = _As(
    lambda words: len(words).to_bytes(4, "little") + words.astype("<u8", copy=False).tobytes(),
    _read_words,
)

Number: TypeAlias = Annotated[int, _number(4)]
Digest: TypeAlias = Annotated[bytes, _exactly(N_DIGEST_BYTES)]
Key: TypeAlias = Annotated[bytes, _exactly(N_KEY_BYTES)]
Signature: TypeAlias = Annotated[bytes, _SIGNATURE]
Ids: TypeAlias = Annotated[tuple[int, ...], _IDS]
Text: TypeAlias = Annotated[
    bytes,
    _As(lambda text: len(text).to_bytes(4, "little") + text, lambda r: r.take(r.number())),
]
Rest: TypeAlias = Annotated[bytes, _As(bytes, lambda reader: reader.take(reader.n_left))]
Digests: TypeAlias = Annotated[dict[int, bytes], _by_id(_exactly(N_DIGEST_BYTES))]
Sealed: TypeAlias = Annotated[dict[int, bytes], _by_id(_exactly(N_SEALED_BYTES))]
Shares: TypeAlias = Annotated[dict[int, bytes], _by_id(_exactly(N_SHARE_BYTES))]
KeyPairs: TypeAlias = Annotated[dict[int, bytes], _by_id(_exactly(2 * N_KEY_BYTES))]
SharePairs: TypeAlias = Annotated[dict[int, bytes], _by_id(_exactly(2 * N_SHARE_BYTES))]
Signatures: TypeAlias = Annotated[dict[int, bytes], _by_id(_SIGNATURE)]
Byte: TypeAlias = Annotated[int, _number(1)]


def pack(value: Any) -> bytes:
    """The fields of a dataclass whose annotations are those above, as bytes."""
    kind: Any = type(value)
    return b"".join(how.write(getattr(value, name)) for name, how in marks_of(kind, "write"))


def unpack(kind: Any, data: bytes) -> Any:
    """The dataclass that `pack` wrote; `RefusedError` if something is missing or left over."""
    reader = _Reader(data)
    value = _read(kind, reader)
    if reader.n_left:
        _refuse(f"{reader.n_left} bytes are left over")
    return value


def _read(kind: Any, reader: _Reader) -> Any:
    return kind(**{name: how.read(reader) for name, how in marks_of(kind, "read")})


# ------------------------------------------------------------------------------------- all messages


@dataclass(frozen=True)
class Message:
    """One of the messages below, to or from one node."""

    KIND: ClassVar[int]

    def __init_subclass__(cls, kind: int) -> None:
        cls.KIND = kind

    @cached_property
    def packed(self) -> bytes:
        """What is the same in this message to every node: it is encoded once."""
        return pack(self)

    def encode(self, *, tag: bytes, node: int) -> bytes:
        """The message to or from `node`, with a tag of 16 bytes that identifies it."""
        return _HEADER.pack(MAGIC, VERSION, self.KIND, tag, node) + self.packed

    @classmethod
    def decode(cls, data: bytes, *, tag: bytes | None, node: int) -> Self:
        """The message in `data`; `RefusedError` if it is another kind, or of another round or node.

        It must have the tag `tag`, unless that is None. `node` is its sender or receiver, as known to
        the transport.
        """
        magic, version, kind, its_tag, its_node = _header(data)
        if magic != MAGIC:
            _refuse("it is not of a federation")
        if version != VERSION:
            _refuse(f"version {version}, expected {VERSION}")
        if kind != cls.KIND:
            _refuse(f"kind {kind}, expected {cls.KIND} ({cls.__name__})")
        if tag is not None and its_tag != tag:
            raise RefusedError("a message of another round", node)
        if its_node != node:
            raise RefusedError(f"a message of node {its_node} under the name of {node}", node)
        message: Self = unpack(cls, data[_HEADER.size :])
        return message


def tag_of(data: bytes) -> bytes:
    """The tag of a message: 16 bytes."""
    return bytes(_header(data)[3])


def _header(data: bytes) -> tuple[Any, ...]:
    if not isinstance(data, bytes) or len(data) < _HEADER.size:
        _refuse("it has no header")
    return _HEADER.unpack_from(data)


# ---------------------------------------------------------------------------- a question and its reply


class Refusal(IntEnum):
    """Why a node does not answer, from 1 on without gaps. No code depends on its clients' data."""

    def __new__(cls, code: int, text: str, lasts: bool = True) -> Self:
        member = int.__new__(cls, code)
        member._value_, member.text, member.lasts = code, text, lasts
        return member

    text: str  # the code in words, for logs and reports
    lasts: bool  # whether the same question would be refused again, because of policy or data

    UNREADABLE = 1, "it cannot read the question", False
    SECURE_ONLY = 2, "it answers in secure sums only"
    NOT_APPROVED = 3, "its owner does not allow this question"
    OTHER_SIZE = 4, "max_size is not the one that was declared to it"
    TOO_MANY_NUMBERS = 5, "the question has or asks for too many numbers"
    TOO_NARROW_PART = 6, "the part of the clients is too narrow"
    OTHER_CLIENTS = 7, "the number of clients of a node is not the one that was declared to it"
    OTHER_CATEGORIES = 8, "its clients have another number of categories"
    TOO_OFTEN = 9, "it was asked too often in a day"
    OFF_PROTOCOL = 10, "the secure sum does not keep to what it demands", False
    NO_ANSWER = 11, "its clients have no answer to the question", False
    FAILED = 12, "it failed", False
    PRIVATE_ONLY = 13, "it answers only with its own noise: --epsilon, or join with --allow-exact"
    BUDGET_SPENT = 14, "it would cost more privacy than most_epsilon in its policy.toml allows"
    TOO_LITTLE_NOISE = 15, "the question has less noise than it demands, or more than there is"
    NO_RECORDS = 16, "it has histograms only, and the question needs records"
    OTHER_FEATURES = 17, "its records have another number of features than the question"


def _read_refusal(reader: _Reader) -> Refusal | None:
    code = reader.number(1)
    if code > len(Refusal):
        _refuse(f"{code} is not a code of a refusal")
    return Refusal(code) if code else None  # type: ignore[call-arg]


def _read_suspect(reader: _Reader) -> int | None:
    nodes = _read_ids(reader)
    if len(nodes) > 1:
        _refuse("it blames more than one node")
    return nodes[0] if nodes else None


@dataclass(frozen=True)
class Ask(Message, kind=11):
    """Server to node. Its tag is random, and another one in every message to every node.

    `clients_per_node` is the declared largest number of clients of a node, and `query` is as
    `encode_query` has it; 0 and empty in later stages of a secure sum, whose message is `body`.
    """

    clients_per_node: Number = 0
    query: Text = b""
    body: Rest = b""

    @property
    def digest(self) -> bytes:
        """What all nodes of a secure sum sign together with their keys: the question that all answer.

        Without it, a dishonest server could put another question, whose answer is 0, to all nodes but
        one, and the sum would be that node's answer.
        """
        declared = self.clients_per_node.to_bytes(4, "little")
        return sha256(b"polyurn question" + declared + self.query).digest()


@dataclass(frozen=True)
class Reply(Message, kind=12):
    """Node to server: an answer or a refusal, with the tag of the message that it replies to.

    `body` is an answer as `encode_statistics` has it, or a message of a secure sum; empty in a refusal.
    The text of an error is never sent. `suspect` is the node whose message to this one, carried by the
    server, broke the protocol.
    """

    refusal: Annotated[Refusal | None, _As(lambda why: bytes([why or 0]), _read_refusal)] = None
    suspect: Annotated[
        int | None, _As(lambda node: _IDS.write([] if node is None else [node]), _read_suspect)
    ] = None
    body: Rest = b""


# ------------------------------------------------------------------------------------- a secure sum


@dataclass(frozen=True)
class Invitation(Message, kind=1):
    """Server to node: a round begins."""


@dataclass(frozen=True)
class Advertisement(Message, kind=2):
    """Node to server, which forwards it to the neighbours: its signed public keys of this round."""

    mask_key: Key
    seal_key: Key
    commitment: Digest
    signature: Signature

    @property
    def keys(self) -> bytes:
        """What is signed and agreed on: both keys and the commitment to the seed; 96 bytes."""
        return self.mask_key + self.seal_key + self.commitment


@dataclass(frozen=True)
class Neighbourhood(Message, kind=3):
    """Server to node: digests of all nodes that advertised; the keys of its neighbourhood and itself."""

    threshold: Number
    quorum: Number
    cohort: Digests
    neighbours: Annotated[
        dict[int, Advertisement],
        _by_id(_As(lambda ad: ad.packed, lambda r: _read(Advertisement, r))),
    ]


@dataclass(frozen=True)
class SealedShares(Message, kind=4):
    """Node to server: for each neighbour sealed shares of both secrets, with commitments to them."""

    sealed: Sealed


@dataclass(frozen=True)
class ForwardedShares(Message, kind=5):
    """Server to node: the shares that its neighbours sealed for it, and the digest of the bounds."""

    bounds: Digest
    sealed: Sealed


@dataclass(frozen=True)
class MaskedVector(Message, kind=6):
    """Node to server: its numbers behind all its masks."""

    words: Annotated[NDArray[np.uint64], _WORDS] = field(repr=False)


@dataclass(frozen=True)
class Survivors(Message, kind=7):
    """Server to node: all nodes whose masked vectors arrived."""

    nodes: Ids


@dataclass(frozen=True)
class Confirmation(Message, kind=8):
    """Node to server: its signature under the survivors that the server named."""

    signature: Signature


@dataclass(frozen=True)
class Confirmations(Message, kind=9):
    """Server to node: a quorum of survivors' signatures."""

    signatures: Signatures


@dataclass(frozen=True)
class RevealedShares(Message, kind=10):
    """Node to server: one share of each neighbour, its seed's if it survived, else its mask key's."""

    shares: Shares = field(repr=False)
