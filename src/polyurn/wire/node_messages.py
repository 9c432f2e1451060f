"""What a node is asked and what it replies: an envelope around queries, answers and secure sums.

A node holds one client or many. Every message has a tag, which a reply repeats, and the node's id, so
that a reply of an earlier round or of another node is refused. A node that does not answer says so with
a code of one byte: no text of its errors crosses. Who is asked, and what a node agrees to, is not
decided here.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from typing import Self

from polyurn.errors import MessageError

STAGES = ("plain", "advertise", "share", "mask", "confirm", "reveal")
N_TAG_BYTES = 16

_VERSION = 1
_ASK, _REPLY = b"PUNA", b"PUNR"
_ASK_HEAD = struct.Struct("<4sI16sQII")
_REPLY_HEAD = struct.Struct("<4sI16sQB")
_SUSPECT = struct.Struct("<Q")


def question_digest(query: bytes, clients_per_node: int) -> bytes:
    """What all nodes of a secure sum sign with their keys, so that all of them answer the same question.

    Without it a server that lies could put another question, to which the answer is 0, to all nodes but
    one, and the sum would be that one's answer.

    Parameters
    ----------
    query : bytes
        As `encode_query` has it.
    clients_per_node : int

    Returns
    -------
    bytes
        32 of them.
    """
    return sha256(b"polyurn question" + clients_per_node.to_bytes(4, "little") + query).digest()


class Refusal(IntEnum):
    """Why a node does not answer: a code, and what it says in logs and reports.

    Whatever depends on its clients' data is one code, `NO_ANSWER`.
    """

    UNREADABLE = 1, "it cannot read the question"
    SECURE_ONLY = 2, "it answers in secure sums only"
    NOT_SECURE = 3, "it has no key for secure sums"
    TOO_LARGE_SIZE = 4, "max_size is above its limit"
    TOO_MANY_NUMBERS = 5, "the question asks for too many numbers"
    TOO_NARROW_PART = 6, "the part of the clients is too narrow"
    TOO_MANY_CLIENTS = 7, "it holds more clients than were declared"
    OTHER_CATEGORIES = 8, "its clients have another number of categories"
    TOO_OFTEN = 9, "it was asked too often in a day"
    OFF_PROTOCOL = 10, "the secure sum does not keep to what it demands"
    NO_ANSWER = 11, "its clients have no answer to the question"
    FAILED = 12, "it failed"
    PRIVATE_ONLY = 13, "it answers with its own noise only"
    BUDGET_SPENT = 14, "the question would cost more privacy than its owner allows"
    TOO_LITTLE_NOISE = 15, "the question has less noise than it demands"
    NO_RECORDS = 16, "it has histograms only, and the question about style needs records"
    OTHER_FEATURES = 17, "its records have another number of features than the style space"

    text: str

    def __new__(cls, code: int, text: str = "") -> Self:
        refusal = int.__new__(cls, code)
        refusal._value_, refusal.text = code, text
        return refusal

    @property
    def lasts(self) -> bool:
        """Whether the same question would be refused again: it is the owner's policy, or what it has."""
        return self not in _PASSING


# What may have gone wrong on the way, or in this very round.
_PASSING = (Refusal.UNREADABLE, Refusal.OFF_PROTOCOL, Refusal.NO_ANSWER, Refusal.FAILED)


@dataclass(frozen=True)
class Ask:
    """Server to node.

    Attributes
    ----------
    tag : bytes
        16 random ones, fresh in every message to a node.
    node : int
        Whom it is for.
    clients_per_node : int
        The declared largest number of clients of a node; 0 in later stages of a secure sum.
    query : bytes
        As `encode_query` has it; empty in later stages of a secure sum.
    body : bytes
        A message of a secure sum; empty in a plain one.

    Examples
    --------
    >>> ask = Ask(bytes(16), 7, 1, b"query", b"")
    >>> Ask.decode(ask.encode()) == ask
    True
    """

    tag: bytes
    node: int
    clients_per_node: int
    query: bytes
    body: bytes

    def encode(self) -> bytes:
        """The message as bytes."""
        head = _ASK_HEAD.pack(
            _ASK, _VERSION, self.tag, self.node, self.clients_per_node, len(self.query)
        )
        return head + self.query + self.body

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The message that `encode` wrote; `MessageError` if it is none."""
        _check_head(data, _ASK_HEAD, _ASK, "a question to a node")
        _, _, tag, node, clients_per_node, n_query = _ASK_HEAD.unpack_from(data)
        rest = data[_ASK_HEAD.size :]
        if n_query > len(rest):
            raise MessageError(f"expected a query of {n_query} bytes, got {len(rest)}")
        return cls(tag, node, clients_per_node, rest[:n_query], rest[n_query:])


@dataclass(frozen=True)
class Reply:
    """Node to server: an answer, or a refusal.

    Attributes
    ----------
    tag, node
        Those of the message that is answered.
    body : bytes
        An answer as `encode_statistics` has it, or a message of a secure sum; empty in a refusal.
    refusal : Refusal, optional
    suspect : int, optional
        The node whose message to this one, carried by the server, did not keep to the protocol.

    Examples
    --------
    >>> reply = Reply(bytes(16), 7, refusal=Refusal.SECURE_ONLY)
    >>> Reply.decode(reply.encode()).refusal.text
    'it answers in secure sums only'
    """

    tag: bytes
    node: int
    body: bytes = b""
    refusal: Refusal | None = None
    suspect: int | None = None

    def encode(self) -> bytes:
        """The message as bytes."""
        body = self.body if self.suspect is None else _SUSPECT.pack(self.suspect)
        return (
            _REPLY_HEAD.pack(_REPLY, _VERSION, self.tag, self.node, int(self.refusal or 0)) + body
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The message that `encode` wrote; `MessageError` if it is none."""
        _check_head(data, _REPLY_HEAD, _REPLY, "a node's reply")
        _, _, tag, node, code = _REPLY_HEAD.unpack_from(data)
        body = data[_REPLY_HEAD.size :]
        if not code:
            return cls(tag, node, body)
        if code not in tuple(Refusal) or len(body) not in (0, _SUSPECT.size):
            raise MessageError(f"expected a code of a refusal and at most one node, got {code}")
        suspect = _SUSPECT.unpack(body)[0] if body else None
        return cls(tag, node, b"", Refusal(code), suspect)


def _check_head(data: bytes, head: struct.Struct, magic: bytes, what: str) -> None:
    if not isinstance(data, bytes):
        raise MessageError(f"expected {what} as bytes, got {type(data).__name__}")
    if len(data) < head.size or data[:4] != magic:
        raise MessageError(f"expected {what} of at least {head.size} bytes, got something else")
    version = int.from_bytes(data[4:8], "little")
    if version != _VERSION:
        raise MessageError(f"expected {what} of version {_VERSION}, got {version}")
