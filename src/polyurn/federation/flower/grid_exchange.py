"""How messages reach the nodes of a Flower federation: bytes in one record each, over its Grid.

Flower's own helper sleeps for three seconds between looks, so replies are looked for here. What is in
the messages, and who is asked, is `aggregator.py`.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from polyurn.errors import MissingDependencyError

try:
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.common.constant import ErrorCode
    from flwr.superlink.grid import http_grid
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


@contextmanager
def _parts_within(seconds: float) -> Iterator[None]:
    """While it lasts, Flower's Grid waits so long for the parts of a reply that it meets half-way.

    It takes replies one after the other, waits a second before it looks again, which was most of a round
    with eight nodes, and waits three minutes for the parts of a node that died meanwhile. It has no
    setting for either, and no method that could be overridden.
    """
    before = http_grid.pull_objects  # type: ignore[attr-defined]
    http_grid.pull_objects = partial(  # type: ignore[attr-defined]
        before, initial_backoff=FIRST_BACKOFF, backoff_cap=LAST_BACKOFF, max_time=seconds
    )
    try:
        yield
    finally:
        http_grid.pull_objects = before  # type: ignore[attr-defined]


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
            with _parts_within(min(max(timeout - waited, _LEAST_FOR_PARTS), _MOST_FOR_PARTS)):
                replies = list(self._grid.pull_messages([*waiting, *late]))
            for reply in replies:
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
    """What a node replied, whatever it is; nothing of one that failed, whose text may be anything."""
    if reply.has_error():
        return b""
    record = reply.content.get(RECORD)
    return record.get("reply") if isinstance(record, ConfigRecord) else None


def answered(message: Message, answer: Any) -> Message:
    """The reply to a message, as Flower carries it; `answer` is `Node.answer`, which takes any bytes."""
    record = message.content.get(RECORD)
    fields = record if isinstance(record, ConfigRecord) else {}
    stage, body = fields.get("stage"), fields.get("message")
    reply = answer(
        stage if isinstance(stage, str) else "", body if isinstance(body, bytes) else b""
    )
    return Message(RecordDict({RECORD: ConfigRecord({"reply": reply})}), reply_to=message)
