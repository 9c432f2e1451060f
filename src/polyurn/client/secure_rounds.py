"""A node's secure sums, stage by stage: what it remembers of those that are open, and whom it trusts.

All that is secret is in `Participant`; between two stages it is kept as bytes, each of them used once.
What is summed, and whether the owner agrees, is `node.py`.
"""

from collections.abc import MutableMapping

import numpy as np
from numpy.typing import NDArray

from polyurn.client.node_policy import NodePolicy
from polyurn.errors import RefusedError
from polyurn.secure.messages import tag_of
from polyurn.secure.participant import Participant, Stage
from polyurn.secure.roster import BoundSigner, Roster, Signer
from polyurn.wire import Noised, decode_query
from polyurn.wire.node_messages import Ask, question_digest

# A server that begins rounds and ends none does not fill a node's memory.
MOST_OPEN = 4


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

    def begin(self, ask: Ask) -> bytes:
        """The signed keys for a new round about the question in `ask`."""
        name = self.name(ask)
        if name in self._memory:
            raise RefusedError("an invitation to a round that has begun")
        signer, roster = self._about(ask)
        participant = Participant(
            self._node, signer=signer, roster=roster,
            fewest=self._fewest(ask), majority=self._policy.majority,
        )  # fmt: skip
        said = participant.advertise(ask.body)
        while len(self._memory) >= MOST_OPEN:
            del self._memory[next(iter(self._memory))]  # the oldest
        self._keep(name, ask, participant)
        return said

    def name(self, ask: Ask) -> str:
        """What the round that a message belongs to is called: its tag, as text."""
        return tag_of(ask.body).hex()

    def question(self, ask: Ask) -> Ask:
        """The message that began the round which `ask` goes on with."""
        return Ask.decode(self._kept(ask))

    def go_on(self, stage: str, ask: Ask) -> bytes:
        """The reply of "share", "confirm" or "reveal"."""
        begun, participant = self._taken(ask)
        try:
            said: bytes = getattr(participant, stage)(ask.body)
            return said
        finally:
            self._keep(self.name(ask), begun, participant)

    def mask(
        self,
        ask: Ask,
        values: NDArray[np.float64],
        *,
        bounds: NDArray[np.float64],
        digits: int | None = None,
    ) -> bytes:
        """The reply of "mask": the node's numbers behind its masks; both of shape (n_numbers,)."""
        begun, participant = self._taken(ask)
        try:
            return participant.mask(ask.body, values, bounds=bounds, digits=digits)
        finally:
            self._keep(self.name(ask), begun, participant)

    def forget(self, ask: Ask) -> None:
        """Takes no further part in a round."""
        self._memory.pop(self.name(ask), None)

    def _kept(self, ask: Ask) -> bytes:
        kept = self._memory.get(self.name(ask))
        if kept is None:
            raise RefusedError("a round that this node is not in")
        return kept

    def _taken(self, ask: Ask) -> tuple[Ask, Participant]:
        """The round so far; nobody else has it any more."""
        begun = Ask.decode(self._kept(ask))
        self.forget(ask)
        signer, roster = self._about(begun)
        participant = Participant.resume(
            begun.body, self._node, signer=signer, roster=roster,
            fewest=self._fewest(begun), majority=self._policy.majority,
        )  # fmt: skip
        return begun, participant

    def _keep(self, name: str, begun: Ask, participant: Participant) -> None:
        if participant.stage is not Stage.OVER:
            state = participant.save()
            kept = Ask(begun.tag, self._node, begun.clients_per_node, begun.query, state)
            self._memory[name] = kept.encode()

    def _about(self, ask: Ask) -> tuple[Signer, Roster]:
        digest = question_digest(ask.query, ask.clients_per_node)
        return BoundSigner(self._signer, digest), self._roster.about(digest)

    def _fewest(self, ask: Ask) -> int:
        """The smallest sum that it takes part in: the owner's, or one with enough shares of noise.

        Counted in the node's neighbourhood. On a ring, a server that lies can have the sums of several
        parts in one round; the part that a node is in has all survivors of its neighbourhood.
        """
        match decode_query(ask.query):
            case Noised(trust="distributed", n_reporters=n_reporters):
                return max(self._policy.fewest, n_reporters)
            case _:
                return self._policy.fewest
