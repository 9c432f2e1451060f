"""How messages reach nodes: two methods that any transport can have, and nodes played in this process.

An exchange carries bytes. It knows neither what is in them nor what becomes of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol


class Exchange(Protocol):
    """Whoever can carry a message to each of some nodes, and bring back what they reply."""

    def nodes(self) -> Collection[int]:
        """Ids of the nodes that could be asked now, as the transport knows them."""

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterable[tuple[int, bytes]]:
        """Put messages to nodes, and give (node, reply) as replies come, each at once.

        It ends when everybody has replied, or after `timeout` seconds. A node of which the transport
        knows that it failed replies with no bytes: nobody has to wait for it. A late reply to an earlier
        message is given if its node is not asked now, as a sign of life, and dropped if it is: a node
        that gives no reply to this message is one that was waited for. Whose reply it is, is what the
        transport has authenticated, not what the bytes say.
        """


class InProcessExchange:
    """Plays every node in this process.

    Parameters
    ----------
    nodes : mapping of int to function
        A node is a function of (stage, message) that returns its reply, `Node.answer` for one; None is
        a node that does not reply, for whose sake a transport would wait until the timeout.

    Attributes
    ----------
    n_timeouts : int
        How many times a transport would have waited until the timeout.
    asked : list of (str, tuple of int)
        The stage and the nodes of every call of `ask`.

    Examples
    --------
    >>> exchange = InProcessExchange({3: lambda stage, message: message[::-1], 5: lambda *_: None})
    >>> dict(exchange.ask("plain", {3: b"abc", 5: b"abc"}, timeout=60.0)), exchange.n_timeouts
    ({3: b'cba'}, 1)
    """

    def __init__(self, nodes: Mapping[int, Callable[[str, bytes], bytes | None]]) -> None:
        self._nodes = dict(nodes)
        self.n_timeouts = 0
        self.asked: list[tuple[str, tuple[int, ...]]] = []

    def nodes(self) -> list[int]:
        """Ids of all nodes."""
        return list(self._nodes)

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterator[tuple[int, bytes]]:
        """The replies of those who reply; nobody sleeps."""
        self.asked.append((stage, tuple(messages)))
        waits = False
        for node, message in messages.items():
            reply = self._nodes[node](stage, message)
            if reply is None:
                waits = True
            else:
                yield node, reply
        self.n_timeouts += waits
