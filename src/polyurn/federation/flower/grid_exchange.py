"""How messages reach the nodes of a Flower federation: bytes in one record each, over its Grid.

Flower's own helper polls every three seconds, so replies are polled for here. `aggregator.py` makes the
messages and chooses the nodes.
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

# Flower's name of our messages, and of the one record in each.
MESSAGE_TYPE, RECORD = "query.polyurn", "polyurn"
_GRACE = 5.0  # seconds that a message outlives the wait for its reply
# Seconds between two polls for replies: a fraction of the wait so far.
_SOONEST, _LATEST, _PART = 0.2, 1.0, 0.05
# A message is announced before its parts have arrived. Seconds between two polls for the parts, and the
# shortest and longest wait for them: 50,000 numbers take 2 s at 1.6 Mbit/s, and all others wait.
FIRST_BACKOFF, LAST_BACKOFF = 0.05, 1.0
_LEAST_FOR_PARTS, _MOST_FOR_PARTS = 0.5, 2.0


@contextmanager
def _parts_within(seconds: float) -> Iterator[None]:
    """In this context, Flower's Grid waits this long for the parts of a reply that arrives in parts.

    The Grid takes replies one after the other and polls once a second, which was most of a round with
    eight nodes. It waits three minutes for the parts of a node that died meanwhile. It has no setting
    for either, and no method that could be overridden.
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
        self._open: dict[str, int] = {}  # messages without a reply so far, and their nodes

    def nodes(self) -> list[int]:
        """The numbers of the nodes that are connected now."""
        there = self._grid.get_node_ids()
        return sorted(self._numbers[node_id] for node_id in there if node_id in self._numbers)

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterator[tuple[int, Any]]:
        """(node, reply) as replies arrive, with late replies of nodes that are not asked now."""
        late = {key: node for key, node in self._open.items() if node not in messages}
        self._open = dict(late)
        sent = [self._message(stage, node, body, timeout) for node, body in messages.items()]
        # A message that Flower did not accept has no id.
        keys = list(self._grid.push_messages(sent)) or [""] * len(sent)
        waiting = {}
        for node, key in zip(messages, keys, strict=True):
            if key:
                waiting[key] = node
            else:
                yield node, b""
        self._open |= waiting
        begin = time.monotonic()  # the time for sending is not the nodes'
        while waiting:
            waited = time.monotonic() - begin
            is_last_look = waited >= timeout
            with _parts_within(min(max(timeout - waited, _LEAST_FOR_PARTS), _MOST_FOR_PARTS)):
                replies = list(self._grid.pull_messages([*waiting, *late]))
            for reply in replies:
                key = reply.metadata.reply_to_message_id
                # The SuperLink replies for a node that is gone: the message names it, not the sender.
                self._open.pop(key, None)
                if reply.has_error() and reply.error.code == ErrorCode.MESSAGE_UNAVAILABLE:
                    waiting.pop(key, None)  # some parts of it never arrived
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
    """The bytes of a node's reply; empty if the node failed, whose error text may be anything."""
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
