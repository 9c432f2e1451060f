"""How messages reach the nodes of a Flower federation: bytes in one record each, over its Grid.

Flower's own helper sleeps for three seconds between looks, so replies are looked for here. What is in
the messages, and who is asked, is `aggregate/`.
"""

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from polyurn.errors import MissingDependencyError

try:
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.supercore.inflatable.inflatable_utils import pull_objects
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a federation") from error

if TYPE_CHECKING:
    from flwr.serverapp import Grid

# What every message of ours is called in Flower, and the one record in it.
MESSAGE_TYPE, RECORD = "query.polyurn", "polyurn"
_UPLOADED_WITHIN = 10.0  # seconds from when a reply is announced until all of it is there
_GRACE = 5.0  # seconds that a message outlives the wait for its reply
# Seconds between two looks for replies: a part of the wait so far.
_SOONEST, _LATEST, _PART = 0.1, 1.0, 0.2


class FlowerExchange:
    """Carries messages to the nodes of a Flower federation.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        As a `ServerApp` gets it.
    numbers : mapping of int to int
        For each of Flower's node ids, the number that the node has in the roster. Others are not asked.
    """

    def __init__(self, grid: "Grid", numbers: Mapping[int, int]) -> None:
        self._grid = grid
        self._numbers = dict(numbers)
        self._ids = {number: node_id for node_id, number in self._numbers.items()}
        # A node that is killed after it has announced a reply holds all others up, in Flower for three
        # minutes; Grid has no setting for that.
        pull_objects.__kwdefaults__ = {
            **(pull_objects.__kwdefaults__ or {}),
            "max_time": _UPLOADED_WITHIN,
        }
        self._open: dict[str, int] = {}  # messages without a reply so far, and whom they are for

    def nodes(self) -> list[int]:
        """The numbers of the nodes that are connected now."""
        there = self._grid.get_node_ids()
        return sorted(self._numbers[node_id] for node_id in there if node_id in self._numbers)

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterator[tuple[int, Any]]:
        """(node, reply) as replies come; late ones of nodes that are not asked now, too."""
        late = {key: node for key, node in self._open.items() if node not in messages}
        self._open = dict(late)
        sent = [self._message(stage, node, body, timeout) for node, body in messages.items()]
        # A message that Flower could not take has no id.
        keys = list(self._grid.push_messages(sent)) or [""] * len(sent)
        waiting = {}
        for node, key in zip(messages, keys, strict=True):
            if key:
                waiting[key] = node
            else:
                yield node, b""
        self._open |= waiting
        begin = time.monotonic()  # what the sending took is not the nodes' time
        while waiting:
            waited = time.monotonic() - begin
            is_last_look = waited >= timeout
            for reply in self._grid.pull_messages([*waiting, *late]):
                key = reply.metadata.reply_to_message_id
                # The SuperLink replies for a node that is gone: the message says which, not the sender.
                self._open.pop(key, None)
                if key in waiting:
                    yield waiting.pop(key), reply_bytes(reply)
                elif key in late:
                    node = late.pop(key)
                    if not reply.has_error():
                        yield node, reply_bytes(reply)
            if is_last_look:
                return
            if waiting:
                time.sleep(min(max(_SOONEST, _PART * waited), _LATEST))

    def _message(self, stage: str, node: int, body: bytes, timeout: float) -> Message:
        content = RecordDict({RECORD: ConfigRecord({"stage": stage, "message": body})})
        return Message(
            content, dst_node_id=self._ids[node], message_type=MESSAGE_TYPE, ttl=timeout + _GRACE
        )


def reply_bytes(reply: Message) -> Any:
    """What a node replied: bytes, nothing of one that failed, and whatever else it sent instead.

    The text of a failure is not looked at: it may be anything.
    """
    if reply.has_error():
        return b""
    record = reply.content.get(RECORD)
    return record.get("reply") if isinstance(record, ConfigRecord) else None


def answered(message: Message, answer: Any) -> Message:
    """The reply to a message, as Flower carries it.

    Parameters
    ----------
    message : flwr.app.Message
    answer : function of (stage, bytes) that returns bytes
        `Node.answer`, which refuses what is no message of ours with a code.
    """
    record = message.content.get(RECORD)
    said = record if isinstance(record, ConfigRecord) else {}
    stage, body = said.get("stage"), said.get("message")
    reply = answer(
        stage if isinstance(stage, str) else "", body if isinstance(body, bytes) else b""
    )
    return Message(RecordDict({RECORD: ConfigRecord({"reply": reply})}), reply_to=message)
