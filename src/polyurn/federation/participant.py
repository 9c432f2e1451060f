"""A node's side of one secure sum: advertise, share, mask, confirm, reveal; each once and in this order.

Every stage takes the server's message and returns the node's. A message that breaks the protocol raises
`RefusedError` and ends the participation: nothing is sent, then or later. Neither the transport nor the
meaning of the numbers is known here.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import InputError, ParameterError, RefusedError
from polyurn.federation import masking
from polyurn.federation.graph import FULL_UP_TO
from polyurn.federation.keys import Roster, Signer
from polyurn.federation.messages import (
    N_COMMITTED_BYTES,
    N_SHARE_BYTES,
    Advertisement,
    Byte,
    Confirmation,
    Confirmations,
    Digests,
    ForwardedShares,
    Ids,
    Invitation,
    KeyPairs,
    MaskedVector,
    Neighbourhood,
    Number,
    RevealedShares,
    SealedShares,
    SharePairs,
    Survivors,
    Text,
    pack,
    tag_of,
    unpack,
)


class Stage(IntEnum):
    """The next step of a participant."""

    ADVERTISE = 0
    SHARE = 1
    MASK = 2
    CONFIRM = 3
    REVEAL = 4
    OVER = 5


@dataclass(repr=False)
class _Memory:
    """A node's state between the stages of one round. All of it is secret."""

    stage: Byte = 0
    tag: Text = b""
    mask_private: Text = b""
    seal_private: Text = b""
    seed: Text = b""
    threshold: Number = 0
    quorum: Number = 0
    cohort: Digests = field(default_factory=dict)  # every node's digest of its keys
    keys: KeyPairs = field(default_factory=dict)  # mask and seal keys of the neighbourhood
    shares: SharePairs = field(default_factory=dict)  # that this node holds, its own among them
    survivors: Ids = ()


class Participant:
    """One node in one round, with its id in the roster, its long-lived key and the public keys of all
    nodes.

    It takes part in no sum over fewer than `fewest` nodes of its neighbourhood, itself included; 2 or
    more. The server and `fewest` - 1 colluding nodes know the last node's numbers. Thresholds and
    quorums have to be larger than the share `majority`, at least 0.5: with (1 + c) / 2 no share c of
    colluding nodes can get both secrets of a node from the others. In a round of more than 100 nodes, it
    takes part only with `neighbours` neighbours or more; up to 100, all are its neighbours. Otherwise a
    server could cut a round into many small sums. `matter` is a digest of what is being summed; the
    signatures of nodes that have another are refused.

    The five messages of a node are in docs/secure-sums.md, and `SecureSum` has the server's.
    """

    def __init__(
        self,
        node: int,
        *,
        signer: Signer,
        roster: Roster,
        fewest: int = 3,
        majority: float = 0.5,
        neighbours: int = 2,
        matter: bytes = b"",
    ) -> None:
        if fewest < 2 or not 0.5 <= majority < 1:
            raise ParameterError("expected fewest as 2 or more, and majority from 0.5 up to 1")
        self._node, self._signer, self._roster = node, signer, roster
        self._fewest, self._majority, self._neighbours = fewest, majority, neighbours
        self._matter = masking.checked_matter(matter)
        self._memory = _Memory()

    @property
    def stage(self) -> Stage:
        """What comes next."""
        return Stage(self._memory.stage)

    @property
    def is_over(self) -> bool:
        """Whether its part is over: the round has ended, or something in it was refused."""
        return self.stage is Stage.OVER

    def advertise(self, invitation: bytes) -> bytes:
        """Public keys of this round, signed."""
        with self._turn(Stage.ADVERTISE):
            tag = tag_of(invitation)
            Invitation.decode(invitation, tag=tag, node=self._node)
            m = self._memory
            m.tag, m.seed = tag, os.urandom(32)
            m.mask_private, m.seal_private = masking.private_key(), masking.private_key()
            keys = self._my_keys()
            statement = masking.keys_statement(tag, self._node, b"".join(keys), self._matter)
            signature = self._signer.sign(statement)
            return Advertisement(*keys, signature=signature).encode(tag=tag, node=self._node)

    def share(self, neighbourhood: bytes) -> bytes:
        """Shares of the seed and of the mask key, sealed for each neighbour."""
        with self._turn(Stage.SHARE):
            m = self._memory
            message = Neighbourhood.decode(neighbourhood, tag=m.tag, node=self._node)
            self._check_neighbourhood(message)
            m.threshold, m.quorum = message.threshold, message.quorum
            m.cohort = dict(message.cohort)
            m.keys = {peer: ad.mask_key + ad.seal_key for peer, ad in message.neighbours.items()}
            index = {peer: i for i, peer in enumerate(sorted(m.cohort), start=1)}
            indices = [index[peer] for peer in m.keys]
            seeds = masking.split(m.seed, threshold=m.threshold, indices=indices)
            keys = masking.split(m.mask_private, threshold=m.threshold, indices=indices)
            shares = dict(zip(m.keys, map(bytes.__add__, seeds, keys), strict=True))
            m.shares = {self._node: shares.pop(self._node)}
            pair, about = masking.KeyPair(m.seal_private, m.tag), self._about()
            sealed = {
                peer: self._commitments(self._node, peer, both)
                + masking.seal(self._seal_key(pair, self._node, peer), both, about=about)
                for peer, both in shares.items()
            }
            return SealedShares(sealed).encode(tag=m.tag, node=self._node)

    def mask(
        self, forwarded: bytes, values: ArrayLike, *, bounds: ArrayLike, digits: int | None = None
    ) -> bytes:
        """The node's numbers, scaled by their bounds and hidden by its own mask and one per neighbour.

        `forwarded` is the server's message; `values` and `bounds`, of shape (n_numbers,), are this
        node's summand, and the largest |value| that it may have. A value that is not finite or beyond
        its bound is an `InputError`, and nothing is sent. Each number keeps `digits` binary digits after
        the point; by default as many as there is room for.
        """
        with self._turn(Stage.MASK):
            m = self._memory
            message = ForwardedShares.decode(forwarded, tag=m.tag, node=self._node)
            scale = masking.FixedPoint(
                np.asarray(bounds, dtype=np.float64), n_summands=len(m.cohort)
            )
            if message.bounds != masking.bounds_digest(scale.bounds):
                raise RefusedError("the server has other bounds than this node")
            if digits is not None and (scale.exponents < digits).any():
                raise RefusedError(f"no room for {digits} binary digits after the point")
            self._open(message.sealed)
            words = masking.Words(scale.encode(values))
            words.add_mask(masking.seed_mask(m.tag, self._node, m.seed))
            pair = masking.KeyPair(m.mask_private, m.tag)
            for peer in message.sealed:
                low, high = sorted((self._node, peer))
                key = self._agreed(pair, peer, b"mask", low, high)
                (words.add_mask if self._node == low else words.subtract_mask)(key)
            return MaskedVector(words.values).encode(tag=m.tag, node=self._node)

    def confirm(self, survivors: bytes) -> bytes:
        """Sign the survivors that the server named; the node signs no other set."""
        with self._turn(Stage.CONFIRM):
            m = self._memory
            nodes = Survivors.decode(survivors, tag=m.tag, node=self._node).nodes
            near = {self._node, *m.keys} & set(nodes)
            if self._node not in near or not set(nodes) <= set(m.cohort):
                raise RefusedError("survivors without this node, or who never were in the round")
            if not near <= set(m.shares):
                raise RefusedError("a survivor whose shares never arrived here")
            if len(near) < max(m.threshold, self._fewest) or len(nodes) < m.quorum:
                raise RefusedError(
                    f"a sum over {len(near)} of the neighbourhood and {len(nodes)} in all, where "
                    f"{max(m.threshold, self._fewest)} and {m.quorum} are needed"
                )
            m.survivors = nodes
            signature = self._signer.sign(self._survivors_statement())
            return Confirmation(signature).encode(tag=m.tag, node=self._node)

    def reveal(self, confirmations: bytes) -> bytes:
        """One of the two shares that it holds of each node: of the seed of a survivor, else of the key.

        The survivors, which this node and a quorum of the cohort have signed, decide which one. No
        message can ask for the other.
        """
        with self._turn(Stage.REVEAL):
            m = self._memory
            signatures = Confirmations.decode(confirmations, tag=m.tag, node=self._node).signatures
            if len(signatures) < m.quorum or not set(signatures) <= set(m.survivors):
                raise RefusedError(f"{len(signatures)} survivors confirm, {m.quorum} are needed")
            statement = self._survivors_statement()
            for peer, signature in signatures.items():
                self._roster.verify(peer, statement, signature)
            alive = set(m.survivors)
            shares = {
                owner: both[:N_SHARE_BYTES] if owner in alive else both[N_SHARE_BYTES:]
                for owner, both in m.shares.items()
            }
            reply = RevealedShares(shares).encode(tag=m.tag, node=self._node)
            self._memory = _Memory(tag=m.tag)  # nothing remains that could be revealed
            return reply

    def save(self) -> bytes:
        """The node's state of the round, for a later process of the same node; secret."""
        return pack(self._memory)

    def load(self, saved: bytes) -> None:
        """Resume from a saved state, which may be used once: forget it afterwards."""
        try:
            self._memory = unpack(_Memory, saved)
            Stage(self._memory.stage)
        except (RefusedError, ValueError) as error:
            raise InputError("the saved state of a secure sum is damaged") from error

    def __repr__(self) -> str:
        return f"Participant({self._node}, stage={self.stage.name})"

    @contextmanager
    def _turn(self, stage: Stage) -> Iterator[None]:
        """Run one stage, in its turn and once; any error ends the participation."""
        if self.stage is not stage:
            raise RefusedError(
                f"{stage.name.lower()} out of turn: next is {self.stage.name.lower()}"
            )
        self._memory.stage = Stage.OVER
        yield  # after an error the stage stays "over"
        self._memory.stage = stage + 1

    def _check_neighbourhood(self, message: Neighbourhood) -> None:
        near, cohort = message.neighbours, message.cohort
        for node in cohort:
            if node not in self._roster:
                raise RefusedError(f"node {node} is not in the roster", node)
        mine = near.get(self._node)
        if mine is None or mine.keys != b"".join(self._my_keys()):
            raise RefusedError("keys under this node's name that are not its own", self._node)
        n_near = self._neighbours + 1 if len(cohort) > FULL_UP_TO else len(cohort)
        if len(near) < max(n_near, self._fewest):
            raise RefusedError(
                f"{len(near)} in the neighbourhood, {max(n_near, self._fewest)} are needed, of "
                f"{len(cohort)} nodes"
            )
        for what, number, of in (
            ("threshold", message.threshold, len(near)),
            ("quorum", message.quorum, len(cohort)),
        ):
            if not self._majority * of < number <= of:
                raise RefusedError(f"a {what} of {number} of {of}: not the majority that is needed")
        for node, ad in near.items():
            if cohort.get(node) != masking.keys_digest(node, ad.keys):
                raise RefusedError(f"node {node} has other keys in the cohort", node)
            if node != self._node:
                tag = self._memory.tag
                statement = masking.keys_statement(tag, node, ad.keys, self._matter)
                self._roster.verify(node, statement, ad.signature)

    def _open(self, sealed: Mapping[int, bytes]) -> None:
        """Keep the shares that neighbours sealed for this node."""
        m = self._memory
        if not set(sealed) <= set(m.keys) - {self._node}:
            raise RefusedError("shares of a node that is not a neighbour")
        if len(sealed) + 1 < max(m.threshold, self._fewest):
            raise RefusedError(f"{len(sealed) + 1} of the neighbourhood are left: too few")
        pair, about = masking.KeyPair(m.seal_private, m.tag), self._about()
        for peer, row in sealed.items():
            committed, text = row[:N_COMMITTED_BYTES], row[N_COMMITTED_BYTES:]
            try:
                both = masking.unseal(self._seal_key(pair, peer, self._node), text, about=about)
            except RefusedError as error:
                raise RefusedError(f"the shares of node {peer} do not open", peer) from error
            if committed != self._commitments(peer, self._node, both):
                raise RefusedError(f"node {peer} committed itself to other shares", peer)
            m.shares[peer] = both

    def _seal_key(self, pair: masking.KeyPair, sender: int, recipient: int) -> bytes:
        other = recipient if sender == self._node else sender
        return self._agreed(pair, other, b"seal", sender, recipient)

    def _agreed(
        self, pair: masking.KeyPair, peer: int, purpose: bytes, first: int, second: int
    ) -> bytes:
        mask_key, seal_key = self._memory.keys[peer][:32], self._memory.keys[peer][32:]
        try:
            return pair.agreed(mask_key if purpose == b"mask" else seal_key, purpose, first, second)
        except RefusedError as error:
            raise RefusedError(f"node {peer} has {error}", peer) from error

    def _commitments(self, owner: int, holder: int, both: bytes) -> bytes:
        shares = both[:N_SHARE_BYTES], both[N_SHARE_BYTES:]
        return b"".join(
            masking.share_commitment(self._memory.tag, owner, holder, one) for one in shares
        )

    def _about(self) -> bytes:
        return masking.cohort_digest(self._memory.tag, self._memory.cohort)

    def _my_keys(self) -> tuple[bytes, bytes, bytes]:
        m = self._memory
        commitment = masking.seed_commitment(m.tag, self._node, m.seed)
        return masking.public_key(m.mask_private), masking.public_key(m.seal_private), commitment

    def _survivors_statement(self) -> bytes:
        m = self._memory
        return masking.survivors_statement(m.tag, self._about(), m.survivors, self._matter)
