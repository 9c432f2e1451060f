"""How messages reach nodes: the interface of a transport, and nodes played in this process.

An exchange carries bytes and does not interpret them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol


class Exchange(Protocol):
    """Carries a message to each of some nodes, and brings back their replies."""

    def nodes(self) -> Collection[int]:
        """Ids of the nodes that are connected now."""

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterable[tuple[int, bytes]]:
        """Send messages to nodes, and yield (node, reply) as soon as each reply arrives.

        It ends when all nodes have replied, or after `timeout` seconds. If the transport knows that a
        node failed, its reply is empty bytes, at once. A late reply to an earlier message is yielded as
        a sign of life, but only of a node that is not asked now. `node` is the id that the transport
        has authenticated, not the one in the bytes.
        """


class InProcessExchange:
    """Plays every node in this process.

    A node is a function of (stage, message) that returns its reply, such as `Node.answer`, or None if it
    does not reply.

    >>> exchange = InProcessExchange({3: lambda stage, message: message[::-1], 5: lambda *_: None})
    >>> dict(exchange.ask("plain", {3: b"abc", 5: b"abc"}, timeout=60.0))
    {3: b'cba'}
    """

    def __init__(self, nodes: Mapping[int, Callable[[str, bytes], bytes | None]]) -> None:
        self._nodes = dict(nodes)

    def nodes(self) -> list[int]:
        """Ids of all nodes."""
        return list(self._nodes)

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterator[tuple[int, bytes]]:
        """The replies of the nodes that reply, without waiting for the others."""
        for node, message in messages.items():
            reply = self._nodes[node](stage, message)
            if reply is not None:
                yield node, reply
