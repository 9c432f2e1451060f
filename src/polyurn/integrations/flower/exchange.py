"""How messages reach the nodes of a Flower federation: bytes in one record each, over its Grid.

Flower's own helper sleeps for three seconds between looks, so replies are looked for here. What is in
the messages, and who is asked, is `aggregate/`.
"""

import math
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from polyurn.errors import MissingDependencyError

try:
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.common.constant import ErrorCode
    from flwr.supercore.inflatable.inflatable_utils import pull_objects
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a federation") from error

if TYPE_CHECKING:
    from flwr.serverapp import Grid

# What every message of ours is called in Flower, and the one record in it.
MESSAGE_TYPE, RECORD = "query.polyurn", "polyurn"
_GRACE = 5.0  # seconds that a message outlives the wait for its reply
# Seconds between two looks for replies: a part of the wait so far.
_SOONEST, _LATEST, _PART = 0.2, 1.0, 0.05
# A message is announced before its parts have arrived. Seconds between two looks for those, and how long
# they are waited for, at least and at most: 50,000 numbers take 2 s at 1.6 Mbit/s, and all others wait.
FIRST_BACKOFF, LAST_BACKOFF = 0.05, 1.0
_LEAST_FOR_PARTS, _MOST_FOR_PARTS = 0.5, 2.0


class Parts:
    """How Flower's Grid waits for the parts of a reply that it meets half-way: in place of its own way.

    It takes replies one after the other, waits a second before it looks again, which was most of a round
    with eight nodes, and waits three minutes for the parts of a node that died meanwhile. It has no
    setting for either.
    """

    def __init__(self) -> None:
        self.deadline = math.inf

    def pull(self, object_ids: list[str], pull_object_fn: Any) -> dict[str, bytes]:
        """What `flwr.supercore.inflatable.inflatable_utils.pull_objects` does."""
        left = self.deadline - time.monotonic()
        return pull_objects(
            object_ids, pull_object_fn, initial_backoff=FIRST_BACKOFF, backoff_cap=LAST_BACKOFF,
            max_time=min(max(left, _LEAST_FOR_PARTS), _MOST_FOR_PARTS),
        )  # fmt: skip


# One for the process, which has one Grid.
PARTS = Parts()


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
        from flwr.superlink.grid import http_grid

        http_grid.pull_objects = PARTS.pull  # type: ignore[assignment, attr-defined]
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
        PARTS.deadline = time.monotonic() + timeout
        begin = time.monotonic()  # what the sending took is not the nodes' time
        while waiting:
            waited = time.monotonic() - begin
            is_last_look = waited >= timeout
            for reply in self._grid.pull_messages([*waiting, *late]):
                key = reply.metadata.reply_to_message_id
                # The SuperLink replies for a node that is gone: the message says which, not the sender.
                self._open.pop(key, None)
                if reply.has_error() and reply.error.code == ErrorCode.MESSAGE_UNAVAILABLE:
                    waiting.pop(key, None)  # it fell silent half-way
                    late.pop(key, None)
                elif key in waiting:
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
