"""How messages reach the nodes of a Flower federation: bytes in one record each, over its Grid.

Only Flower's documented API is used, so that any SuperLink and SuperNodes will do, and its simulation.
A node proves with its signing key which one of the roster it is. `learning_app.py` is the server's side,
`node_app.py` the nodes'.
"""

import secrets
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from polyurn.errors import MissingDependencyError, RefusedError

try:
    from flwr.app import ConfigRecord, Message, RecordDict
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a federation") from error

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from polyurn.federation.keys import Roster

# Flower's name of our messages, the one record in each, and the stage that asks a node who it is.
MESSAGE_TYPE, RECORD, WHO = "query.polyurn", "polyurn", "who"
_GRACE = 5.0  # seconds that a message outlives the wait for its reply
_WHO_WITHIN = 60.0  # seconds until a node that did not say who it is, is asked again
# Seconds between two polls for replies: a fraction of the wait so far.
_SOONEST, _LATEST, _PART = 0.2, 1.0, 0.05


class GridExchange:
    """Carries messages to the nodes of a Flower federation, over its public Grid, as a `ServerApp` gets
    it.

    The roster has the nodes' public keys. A node of Flower's that does not prove to be one of them is
    not asked.
    """

    def __init__(self, grid: "Grid", roster: "Roster") -> None:
        self._grid, self._roster = grid, roster
        self._ids: dict[int, int] = {}  # Flower's ids of the nodes that are known
        self._open: dict[str, int] = {}  # messages without a reply so far, and their nodes
        self._who: dict[str, tuple[int, bytes]] = {}  # questions who a node is
        self._asked_at: dict[int, float] = {}

    def nodes(self) -> list[int]:
        """The numbers of the nodes that are connected now and have said who they are."""
        there = set(self._grid.get_node_ids())
        self._introduce(there)
        return sorted(number for number, flower_id in self._ids.items() if flower_id in there)

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterator[tuple[int, Any]]:
        """(node, reply) as replies arrive, with late replies of nodes that are not asked now."""
        late = {key: node for key, node in self._open.items() if node not in messages}
        bodies = {self._ids[node]: body for node, body in messages.items()}
        keys = self._push(stage, bodies, ttl=timeout + _GRACE)
        waiting = {}
        for node, key in zip(messages, keys, strict=True):
            if key:
                waiting[key] = node
            else:  # Flower did not accept the message
                yield node, b""
        self._open = late | waiting
        begin = time.monotonic()  # the time for sending is not the nodes'
        while waiting:
            waited = time.monotonic() - begin
            is_last_look = waited >= timeout
            for key, reply in self._pull([*waiting, *late]):
                self._open.pop(key, None)
                if key in waiting:
                    yield waiting.pop(key), _field(reply, "reply") if reply else b""
                elif key in late:
                    node = late.pop(key)
                    if reply:
                        yield node, _field(reply, "reply")
            if is_last_look:
                return
            if waiting:
                time.sleep(min(max(_SOONEST, _PART * waited), _LATEST))

    def _introduce(self, there: set[int]) -> None:
        """Ask new nodes who they are, and take in what they have said; nobody waits."""
        for key, reply in self._pull(list(self._who)):
            flower_id, nonce = self._who.pop(key)
            number, signature = (reply and _field(reply, name) for name in ("node", "signature"))
            if isinstance(number, int) and isinstance(signature, bytes):
                try:
                    self._roster.verify(number, claim(nonce, flower_id), signature)
                except RefusedError:
                    continue
                self._ids[number] = flower_id  # the last proof counts: a node may have begun anew
        now, known = time.monotonic(), set(self._ids.values())
        nonces = {
            flower_id: secrets.token_bytes(32)
            for flower_id in sorted(there - known)
            if now - self._asked_at.get(flower_id, -_WHO_WITHIN) >= _WHO_WITHIN
        }
        self._asked_at |= dict.fromkeys(nonces, now)
        for key, asked in zip(
            self._push(WHO, nonces, ttl=_WHO_WITHIN), nonces.items(), strict=True
        ):
            if key:
                self._who[key] = asked

    def _push(self, stage: str, bodies: Mapping[int, bytes], *, ttl: float) -> list[str]:
        """Send messages to nodes by Flower's ids; the key of one that is not accepted is empty."""
        if not bodies:
            return []
        sent = [
            Message(
                RecordDict({RECORD: ConfigRecord({"stage": stage, "message": body})}),
                dst_node_id=flower_id, message_type=MESSAGE_TYPE, ttl=ttl,
            )
            for flower_id, body in bodies.items()
        ]  # fmt: skip
        return [key or "" for key in self._grid.push_messages(sent)] or [""] * len(sent)

    def _pull(self, keys: list[str]) -> Iterator[tuple[str, Message | None]]:
        """Replies that have arrived, by the messages that they reply to; None where a node failed.

        Flower replies for a node that is gone: the message names it, not the sender.
        """
        for reply in self._grid.pull_messages(keys) if keys else ():
            yield reply.metadata.reply_to_message_id, None if reply.has_error() else reply


def claim(nonce: bytes, flower_id: int) -> bytes:
    """What a node signs to say that Flower's node of this id is its own."""
    return b"polyurn node of Flower" + nonce + flower_id.to_bytes(8, "little")


def asked_in(message: Message) -> tuple[str, bytes]:
    """The stage and the body of a message; empty where they are not there."""
    stage, body = _field(message, "stage"), _field(message, "message")
    return stage if isinstance(stage, str) else "", body if isinstance(body, bytes) else b""


def reply_to(message: Message, fields: Mapping[str, int | bytes]) -> Message:
    """A node's reply, as Flower carries it."""
    return Message(RecordDict({RECORD: ConfigRecord(dict(fields))}), reply_to=message)


def _field(message: Message, name: str) -> Any:
    record = message.content.get(RECORD)
    return record.get(name) if isinstance(record, ConfigRecord) else None
