"""A node's secure sums, stage by stage: what it remembers of those that are open, and whom it trusts.

All that is secret is in `Participant`; between two stages it is kept as bytes, each of them used once.
What is summed, and whether the owner agrees, is `node.py`.
"""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from polyurn.client.node_policy import NodePolicy
from polyurn.errors import RefusedError
from polyurn.secure.messages import tag_of
from polyurn.secure.participant import Participant, Stage
from polyurn.secure.roster import BoundSigner, Roster, Signer
from polyurn.wire import Noised, Query, decode_query
from polyurn.wire.node_messages import Ask, question_digest

# A server that begins rounds and ends none does not fill a node's memory.
MOST_OPEN = 4


@dataclass(frozen=True)
class OpenRound:
    """A round that goes on: what was asked when it began, and the node's part in it."""

    begun: Ask
    query: Query[Any]
    participant: Participant


class SecureRounds:
    """The rounds that one node takes part in.

    Parameters
    ----------
    node : int
    signer : Signer
        The node's long-lived key.
    roster : Roster
    policy : NodePolicy
    memory : mutable mapping of str to bytes
        What is kept from stage to stage: a `dict`, or what a transport keeps for a process of the node
        that comes later. It is secret, and should not outlive the node.
    """

    def __init__(
        self,
        node: int,
        *,
        signer: Signer,
        roster: Roster,
        policy: NodePolicy,
        memory: MutableMapping[str, bytes],
    ) -> None:
        self._node, self._signer, self._roster = node, signer, roster
        self._policy, self._memory = policy, memory

    def begin(self, ask: Ask, query: Query[Any]) -> bytes:
        """The signed keys for a new round about the question in `ask`."""
        name = self.name(ask)
        if name in self._memory:
            raise RefusedError("an invitation to a round that has begun")
        participant = Participant(self._node, **self._terms(ask, query))
        reply = participant.advertise(ask.body)
        while len(self._memory) >= MOST_OPEN:
            del self._memory[next(iter(self._memory))]  # the oldest
        self._keep(name, ask, participant)
        return reply

    def name(self, ask: Ask) -> str:
        """What the round that a message belongs to is called: its tag, as text."""
        return tag_of(ask.body).hex()

    @contextmanager
    def opened(self, ask: Ask) -> Iterator[OpenRound]:
        """The round that a message goes on with; nobody else has it meanwhile."""
        name = self.name(ask)
        kept = self._memory.pop(name, None)
        if kept is None:
            raise RefusedError("a round that this node is not in")
        begun = Ask.decode(kept)
        query = decode_query(begun.query)
        participant = Participant.resume(begun.body, self._node, **self._terms(begun, query))
        try:
            yield OpenRound(begun, query, participant)
        finally:
            self._keep(name, begun, participant)

    def forget(self, ask: Ask) -> None:
        """Takes no further part in a round."""
        self._memory.pop(self.name(ask), None)

    def _keep(self, name: str, begun: Ask, participant: Participant) -> None:
        if participant.stage is not Stage.OVER:
            state = participant.save()
            kept = Ask(begun.tag, self._node, begun.clients_per_node, begun.query, state)
            self._memory[name] = kept.encode()

    def _terms(self, ask: Ask, query: Query[Any]) -> dict[str, Any]:
        """With whom, and in which sums, it takes part.

        The smallest sum is the owner's, or one with enough shares of noise: counted in the node's
        neighbourhood. On a ring, a server that lies can have the sums of several parts in one round; the
        part that a node is in has all survivors of its neighbourhood.
        """
        digest = question_digest(ask.query, ask.clients_per_node)
        fewest = self._policy.fewest
        if isinstance(query, Noised) and query.trust == "distributed":
            fewest = max(fewest, query.n_reporters)
        return {
            "signer": BoundSigner(self._signer, digest),
            "roster": self._roster.about(digest),
            "fewest": fewest,
            "majority": self._policy.majority,
        }
