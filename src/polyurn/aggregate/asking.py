"""One stage of a round: messages go out in envelopes, and replies that are meant come back without.

Replies of an earlier round, in another's name, twice, or that cannot be read are refused and tallied.
What is in them is `plain_sum.py` and `secure_sum.py`.
"""

import secrets
from collections.abc import Iterator, Mapping

from polyurn.aggregate.exchange import Exchange
from polyurn.aggregate.tally import Tally
from polyurn.errors import MessageError
from polyurn.wire.node_messages import N_TAG_BYTES, Ask, Reply


class Asking:
    """One attempt at a sum, over an exchange.

    Parameters
    ----------
    exchange : Exchange
    tally : Tally
    timeout : float
        Seconds, for each stage.

    Attributes
    ----------
    accusers : dict of int to set of int
        For each node whose messages to others did not keep to the protocol: who says so.
    declined : set of int
        Nodes that would refuse the same question again.
    """

    def __init__(self, exchange: Exchange, tally: Tally, *, timeout: float) -> None:
        self._exchange, self.tally, self._timeout = exchange, tally, timeout
        self.accusers: dict[int, set[int]] = {}
        self.declined: set[int] = set()

    def ask(
        self,
        stage: str,
        messages: Mapping[int, bytes],
        *,
        query: bytes = b"",
        clients_per_node: int = 0,
    ) -> Iterator[tuple[int, bytes]]:
        """(node, answer) of those who answer, as they come.

        Parameters
        ----------
        stage : str
            One of `wire.node_messages.STAGES`.
        messages : mapping of int to bytes
            For each node a message of a secure sum; nothing in a plain one.
        query : bytes
        clients_per_node : int
        """
        # One for each node: who does not know another's tag cannot reply in its name.
        tags = {node: secrets.token_bytes(N_TAG_BYTES) for node in messages}
        asks = {
            node: Ask(tags[node], node, clients_per_node, query, body).encode()
            for node, body in messages.items()
        }
        self.tally.n_asks += 1
        self.tally.bytes_down += sum(map(len, asks.values()))
        heard: set[int] = set()
        answered: set[int] = set()
        for node, data in self._exchange.ask(stage, asks, timeout=self._timeout):
            if node not in asks:
                self.tally.alive(node)
                continue
            heard.add(node)
            body = self._opened(node, data, tags[node])
            if body is None:
                continue
            if node in answered:
                self.tally.refuse(node, "it answered twice")
                continue
            answered.add(node)
            yield node, body
        self.tally.silent(set(asks) - heard)

    def _opened(self, node: int, data: object, tag: bytes) -> bytes | None:
        """What is in a reply; None of one that is not used."""
        why, reply = "", None
        if not isinstance(data, bytes):
            why = f"a reply of type {type(data).__name__}"
        elif not data:
            why = "the transport says that it failed"
        else:
            self.tally.bytes_up += len(data)
            try:
                reply = Reply.decode(data)
            except MessageError:
                why = "a reply that cannot be read"
        if reply is not None:
            if reply.node != node:
                why = "a reply in another's name"
            elif reply.refusal is not None:
                why = reply.refusal.text
                if reply.refusal.lasts:
                    self.declined.add(node)
                if reply.suspect is not None:
                    self.accusers.setdefault(reply.suspect, set()).add(node)
            elif reply.tag != tag:
                why = "a reply to an earlier message"
            else:
                return reply.body
        self.tally.refuse(node, why)
        return None
