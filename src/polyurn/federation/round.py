"""The server's side of one secure sum: five messages to nodes, and what they answer, as bytes.

Every stage takes {node: reply} of the nodes that answered. A node that did not answer, or broke the
protocol, has dropped out; `SecureSum.refused` has the reasons. No transport or clock is known here.
"""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import InputError, LostRoundError, RefusedError
from polyurn.federation import masking
from polyurn.federation.graph import Graph, choose_graph, neighbourhoods
from polyurn.federation.keys import Roster
from polyurn.federation.messages import (
    N_DIGEST_BYTES,
    N_TAG_BYTES,
    Advertisement,
    Confirmation,
    Confirmations,
    ForwardedShares,
    Invitation,
    MaskedVector,
    Message,
    Neighbourhood,
    RevealedShares,
    SealedShares,
    Survivors,
)
from polyurn.typed.declared import Floats, Seed

M = TypeVar("M", bound=Message)


class SecureSum:
    """One sum over `nodes`, those who are asked.

    `bounds`, of shape (n_numbers,), are the largest |value| of a node's summand; the nodes have the
    same. `dropout` and `colluding` are declared shares of nodes: see `choose_graph`. The round is given
    up if its sum would be over fewer than `fewest` nodes; once numbers have arrived, the graph decides
    how many nodes have to stay. `rng` draws the order of the ring, by default from fresh entropy;
    secrets never come from it. `matter` is as in `Participant`.

    `graph` is known once nodes have advertised, and `summed`, the nodes whose numbers are in the sum,
    once they have sent them; `refused` are nodes whose messages were refused, and why.

    >>> from polyurn.federation.participant import Participant
    >>> from polyurn.federation.keys import SigningKey
    >>> keys = {node: SigningKey.generate() for node in (3, 5, 8)}
    >>> roster = Roster({node: key.public for node, key in keys.items()})
    >>> nodes = {n: Participant(n, signer=key, roster=roster) for n, key in keys.items()}
    >>> bounds = np.array([1.0, 10.0])
    >>> round_ = SecureSum(keys, roster=roster, bounds=bounds, dropout=0.0)
    >>> ask = round_.invite()
    >>> ask = round_.advertised({n: nodes[n].advertise(m) for n, m in ask.items()})
    >>> ask = round_.shared({n: nodes[n].share(m) for n, m in ask.items()})
    >>> ask = round_.masked({n: nodes[n].mask(m, [0.5, n], bounds=bounds) for n, m in ask.items()})
    >>> ask = round_.confirmed({n: nodes[n].confirm(m) for n, m in ask.items()})
    >>> round_.revealed({n: nodes[n].reveal(m) for n, m in ask.items()})
    array([ 1.5, 16. ])
    """

    graph: Graph

    def __init__(
        self,
        nodes: Collection[int],
        *,
        roster: Roster,
        bounds: ArrayLike,
        dropout: float,
        colluding: float = 0.2,
        fewest: int = 3,
        rng: Seed = None,
        matter: bytes = b"",
    ) -> None:
        self._matter = masking.checked_matter(matter)
        self._nodes, self._roster = sorted(set(nodes)), roster
        if strangers := [node for node in self._nodes if node not in roster]:
            raise InputError(f"expected nodes of the roster, got {strangers[0]}")
        self._bounds = np.asarray(bounds, dtype=np.float64)
        self._shares, self._fewest, self._rng = (dropout, colluding), fewest, rng
        choose_graph(max(2, len(self._nodes)), dropout=dropout, colluding=colluding)  # checks both
        self._tag = secrets.token_bytes(N_TAG_BYTES)
        self._next, self._asked = "invite", set(self._nodes)
        self.refused: dict[int, str] = {}
        self.summed: tuple[int, ...] = ()
        self._false: set[int] = set()  # nodes that revealed false shares

    def invite(self) -> dict[int, bytes]:
        """The first message to each node."""
        self._turn("invite")
        return self._messages(dict.fromkeys(self._nodes, Invitation()), then="advertised")

    def advertised(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take signed keys; send each node those of its neighbourhood."""
        self._turn("advertised")
        self._ads = self._accepted(
            Advertisement, replies, self._check_keys, needed=max(2, self._fewest)
        )
        self.graph = choose_graph(
            len(self._ads), dropout=self._shares[0], colluding=self._shares[1]
        )
        self._near = neighbourhoods(list(self._ads), self.graph.n_neighbours, rng=self._rng)
        self._place = {node: i for i, node in enumerate(self._ads, start=1)}
        self._cohort = {node: masking.keys_digest(node, ad.keys) for node, ad in self._ads.items()}
        return self._messages(
            {
                node: Neighbourhood(
                    self.graph.threshold,
                    self.graph.quorum,
                    self._cohort,
                    {peer: self._ads[peer] for peer in self._near[node] | {node}},
                )
                for node in self._ads
            },
            then="shared",
        )

    def shared(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take sealed shares; send each node those that are sealed for it."""
        self._turn("shared")
        needed = max(self.graph.quorum, self._fewest)
        sealed = self._accepted(SealedShares, replies, self._check_recipients, needed=needed)
        self._sharing, self._sealed = set(sealed), sealed
        digest = masking.bounds_digest(self._bounds)
        return self._messages(
            {
                node: ForwardedShares(
                    digest,
                    {peer: sealed[peer].sealed[node] for peer in self._near[node] & set(sealed)},
                )
                for node in sealed
            },
            then="masked",
        )

    def masked(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take masked numbers and add them; send each node the list of nodes that sent theirs."""
        self._turn("masked")
        needed = max(self.graph.quorum, self._fewest)
        vectors = self._accepted(MaskedVector, replies, self._check_length, needed=needed)
        self.summed = tuple(vectors)
        self._total = np.zeros(len(self._bounds), dtype=np.uint64)
        for vector in vectors.values():
            self._total += vector.words
        return self._messages(dict.fromkeys(vectors, Survivors(self.summed)), then="confirmed")

    def confirmed(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take signatures under the survivors; send each node a quorum of them."""
        self._turn("confirmed")
        cohort = masking.cohort_digest(self._tag, self._cohort)
        statement = masking.survivors_statement(self._tag, cohort, self.summed, self._matter)

        def check(node: int, message: Confirmation) -> None:
            self._roster.verify(node, statement, message.signature)

        confirmed = self._accepted(Confirmation, replies, check, needed=self.graph.quorum)
        quorum = dict(list(confirmed.items())[: self.graph.quorum])
        message = Confirmations({node: one.signature for node, one in quorum.items()})
        return self._messages(dict.fromkeys(confirmed, message), then="revealed")

    def revealed(self, replies: Mapping[int, bytes]) -> Floats:
        """Take shares of secrets, subtract the masks, and return the sum, of shape (n_numbers,).

        If a secret cannot be recovered, there is no sum: never a wrong one.
        """
        self._turn("revealed")
        shares = self._accepted(
            RevealedShares, replies, self._check_owners, needed=self.graph.threshold
        )
        held: dict[int, dict[int, bytes]] = {owner: {} for owner in self._sharing}
        for holder, message in shares.items():
            for owner, share in message.shares.items():
                held[owner][holder] = share
        total, alive = masking.Words(self._total), set(self.summed)
        for node in self.summed:
            seed = self._recovered(node, held[node], self._is_seed)
            total.subtract_mask(masking.seed_mask(self._tag, node, seed))
        for node in self._sharing - alive:
            if left := self._near[node] & alive:
                pair = masking.KeyPair(
                    self._recovered(node, held[node], self._is_mask_key), self._tag
                )
                self._take_away_pairs(total, node, left, pair)
        return masking.FixedPoint(self._bounds, n_summands=len(self._ads)).decode(total.values)

    def _take_away_pairs(
        self, total: masking.Words, gone: int, left: Collection[int], pair: masking.KeyPair
    ) -> None:
        """The masks that survivors share with a node whose numbers never arrived."""
        for node in left:
            low, high = sorted((gone, node))
            key = pair.agreed(self._ads[node].mask_key, b"mask", low, high)
            (total.subtract_mask if node == low else total.add_mask)(key)

    def _recovered(
        self, owner: int, held: Mapping[int, bytes], is_right: Callable[[int, bytes], bool]
    ) -> bytes:
        """A node's secret from the shares of its neighbours, compared with what it advertised.

        If it does not fit, each share is compared with its owner's commitment, which its holder accepted
        when it opened the share. Holders that revealed another share are named and not used again. If
        the secret still does not fit, its owner has dealt false shares.
        """
        holders = [holder for holder in sorted(held) if holder not in self._false]
        secret = self._combined(owner, holders, held)
        if is_right(owner, secret):
            return secret
        others = [holder for holder in holders if holder != owner]
        for holder in others:
            if not self._is_committed(owner, holder, held[holder]):
                self.refused[holder] = "it revealed a false share"
                self._false.add(holder)
        own = [owner] if owner in holders else []  # without a commitment: the last resort
        true = [holder for holder in others if holder not in self._false] + own
        secret = self._combined(owner, true, held)
        if is_right(owner, secret):
            return secret
        raise LostRoundError(f"the shares of node {owner}'s secret do not fit together", owner)

    def _combined(self, owner: int, holders: Sequence[int], held: Mapping[int, bytes]) -> bytes:
        threshold = self.graph.threshold
        if len(holders) < threshold:
            raise LostRoundError(
                f"{len(holders)} shares of node {owner}'s secret, {threshold} are needed",
                min(self._false, default=None),  # not its owner, which is not to blame
            )
        try:
            return masking.combine(
                {self._place[holder]: held[holder] for holder in holders[:threshold]}
            )
        except RefusedError:
            return bytes(32)  # which fits no commitment

    def _is_committed(self, owner: int, holder: int, share: bytes) -> bool:
        row = self._sealed[owner].sealed[holder]
        at = 0 if owner in self.summed else N_DIGEST_BYTES
        committed = row[at : at + N_DIGEST_BYTES]
        return committed == masking.share_commitment(self._tag, owner, holder, share)

    def _is_seed(self, node: int, secret: bytes) -> bool:
        return masking.seed_commitment(self._tag, node, secret) == self._ads[node].commitment

    def _is_mask_key(self, node: int, secret: bytes) -> bool:
        return masking.public_key(secret) == self._ads[node].mask_key

    def _check_keys(self, node: int, message: Advertisement) -> None:
        statement = masking.keys_statement(self._tag, node, message.keys, self._matter)
        self._roster.verify(node, statement, message.signature)
        if not (
            masking.is_public_key(message.mask_key) and masking.is_public_key(message.seal_key)
        ):
            raise RefusedError("an invalid public key: everybody would agree on zero with it", node)

    def _check_recipients(self, node: int, message: SealedShares) -> None:
        if set(message.sealed) != self._near[node]:
            raise RefusedError("shares for others than its neighbours", node)

    def _check_length(self, node: int, message: MaskedVector) -> None:
        if len(message.words) != len(self._bounds):
            raise RefusedError(f"{len(message.words)} numbers, expected {len(self._bounds)}", node)

    def _check_owners(self, node: int, message: RevealedShares) -> None:
        if set(message.shares) != (self._near[node] | {node}) & self._sharing:
            raise RefusedError("shares of others than its neighbours", node)

    def _accepted(
        self,
        kind: type[M],
        replies: Mapping[int, bytes],
        check: Callable[[int, M], None],
        *,
        needed: int,
    ) -> dict[int, M]:
        """The valid replies of the nodes that were asked, in the order of their ids."""
        accepted = {}
        for node in sorted(self._asked & set(replies)):
            try:
                message = kind.decode(replies[node], tag=self._tag, node=node)
                check(node, message)
            except RefusedError as error:
                self.refused[node] = str(error)
            else:
                accepted[node] = message
        if len(accepted) < needed:
            raise LostRoundError(f"{len(accepted)} nodes are left, {needed} are needed")
        return accepted

    def _messages(self, messages: Mapping[int, Message], *, then: str) -> dict[int, bytes]:
        self._asked, self._next = set(messages), then
        return {node: m.encode(tag=self._tag, node=node) for node, m in messages.items()}

    def _turn(self, this: str) -> None:
        if self._next != this:
            raise RefusedError(f"{this} out of turn: next is {self._next}")
        self._next = "over"  # unless messages go out
