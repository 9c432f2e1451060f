"""A node that is asked something else than the protocol says: each case is refused by its name."""

import numpy as np
import pytest

from polyurn.errors import InputError, LostRoundError, ParameterError, RefusedError
from polyurn.federation.keys import SigningKey
from polyurn.federation.masking import (
    bounds_digest,
    keys_digest,
    keys_statement,
    private_key,
    public_key,
)
from polyurn.federation.messages import (
    N_SEALED_BYTES,
    Advertisement,
    Confirmation,
    Confirmations,
    ForwardedShares,
    Neighbourhood,
    RevealedShares,
    SealedShares,
    Survivors,
    tag_of,
)
from polyurn.federation.participant import Participant, Stage
from secure_rounds import STAGES, Federation, secrets_of


class Case:
    """A federation just before a stage, its first node, and what the server would ask it."""

    def __init__(self, stage, n_nodes=6, **policy):
        self.federation = Federation(n_nodes, **policy)
        self.requests = self.federation.run(until=stage)
        self.stage, self.node = stage, self.federation.nodes[0]
        self.other = self.federation.nodes[1]
        self.me = self.federation.participants[self.node]
        self.request = self.requests[self.node]
        self.tag = tag_of(self.request)

    def decoded(self, kind):
        return kind.decode(self.request, tag=self.tag, node=self.node)

    def asked(self, message):
        """What the node answers to another message than the honest one."""
        return self.answer(message.encode(tag=self.tag, node=self.node))

    def answer(self, request):
        return self.federation.answer(self.stage, self.node, request)


def refused(case, message, why):
    with pytest.raises(RefusedError, match=why) as error:
        case.asked(message)
    assert case.me.stage is Stage.OVER
    return error.value


# ------------------------------------------------------------------------------------- order


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("wrong", STAGES)
def test_a_stage_out_of_turn_is_refused(stage, wrong):
    case = Case(stage)
    if wrong == stage:
        assert case.answer(case.request)
        return
    with pytest.raises(RefusedError, match=f"{wrong} out of turn: next is {stage}"):
        case.federation.answer(wrong, case.node, case.request)
    assert case.answer(case.request)  # the node goes on: a message that came twice does no harm


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_happens_twice(stage):
    case = Case(stage)
    case.answer(case.request)
    with pytest.raises(RefusedError, match=f"{stage} out of turn"):
        case.answer(case.request)


def test_a_second_reveal_is_refused_and_nothing_is_left_to_reveal():
    case = Case("reveal")
    case.answer(case.request)
    with pytest.raises(RefusedError, match="reveal out of turn: next is over"):
        case.answer(case.request)
    assert secrets_of(case.me) == ([b"", b"", b""], {})


@pytest.mark.parametrize("stage", STAGES)
def test_a_refusal_ends_the_participation(stage):
    case = Case(stage)
    with pytest.raises(RefusedError):
        case.answer(case.request + b"x")
    with pytest.raises(RefusedError, match="out of turn: next is over"):
        case.answer(case.request)


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_replayed_message_of_another_round_is_refused(stage):
    earlier, now = Case(stage), Case(stage)
    with pytest.raises(RefusedError, match="a message of another round"):
        now.answer(earlier.request)


@pytest.mark.parametrize("stage", STAGES)
def test_a_message_to_another_node_is_refused(stage):
    case = Case(stage)
    with pytest.raises(RefusedError, match="under the name of"):
        case.answer(case.requests[case.other])


# -------------------------------------------------------------------------------------- keys


def with_keys(message, node, ad):
    """The same neighbourhood, in which a node has other keys everywhere."""
    cohort = {**message.cohort, node: keys_digest(node, ad.keys)}
    return Neighbourhood(
        message.threshold, message.quorum, cohort, {**message.neighbours, node: ad}
    )


def servers_keys():
    return [public_key(private_key()) for _ in range(2)] + [bytes(32)]


def test_a_server_that_swaps_the_keys_of_a_neighbour_is_refused():
    case = Case("share")
    message = case.decoded(Neighbourhood)
    signature = message.neighbours[case.other].signature
    lie = with_keys(message, case.other, Advertisement(*servers_keys(), signature=signature))
    assert refused(case, lie, "a signature that is not node").node == case.other


def test_a_server_that_signs_swapped_keys_itself_is_refused():
    case = Case("share")
    keys = servers_keys()
    signature = SigningKey.generate().sign(keys_statement(case.tag, case.other, b"".join(keys)))
    lie = with_keys(
        case.decoded(Neighbourhood), case.other, Advertisement(*keys, signature=signature)
    )
    refused(case, lie, "a signature that is not node")


def test_keys_that_a_neighbour_signed_in_another_round_are_refused():
    earlier, now = Case("share"), Case("share")
    old = earlier.decoded(Neighbourhood).neighbours[now.other]
    refused(now, with_keys(now.decoded(Neighbourhood), now.other, old), "a signature that is not")


def test_a_server_that_swaps_the_nodes_own_key_is_refused():
    case = Case("share")
    message = case.decoded(Neighbourhood)
    lie = with_keys(message, case.node, message.neighbours[case.other])
    refused(case, lie, "keys under this node's name that are not its own")


def test_a_neighbourhood_without_the_node_itself_is_refused():
    case = Case("share")
    message = case.decoded(Neighbourhood)
    others = {node: ad for node, ad in message.neighbours.items() if node != case.node}
    lie = Neighbourhood(message.threshold, message.quorum, message.cohort, others)
    refused(case, lie, "keys under this node's name")


def test_a_cohort_with_other_keys_than_the_neighbourhood_is_refused():
    case = Case("share")
    message = case.decoded(Neighbourhood)
    cohort = {**message.cohort, case.other: bytes(32)}
    lie = Neighbourhood(message.threshold, message.quorum, cohort, message.neighbours)
    refused(case, lie, "has other keys in the cohort")


def test_strangers_in_the_cohort_are_refused():
    case = Case("share")
    message = case.decoded(Neighbourhood)
    stranger = Advertisement(*servers_keys(), signature=b"anything")
    assert refused(case, with_keys(message, 5, stranger), "node 5 is not in the roster").node == 5


def test_strangers_among_those_who_share_are_refused():
    case = Case("mask")
    message = case.decoded(ForwardedShares)
    lie = ForwardedShares(message.bounds, {**message.sealed, 5: message.sealed[case.other]})
    refused(case, lie, "shares of a node that is not a neighbour")


def test_strangers_among_the_survivors_are_refused():
    case = Case("confirm")
    nodes = case.decoded(Survivors).nodes
    refused(case, Survivors((5, *nodes)), "who never were in the round")


# -------------------------------------------------------------------------------- thresholds


@pytest.mark.parametrize("threshold", [0, 1, 3, 7])
def test_a_minority_threshold_is_refused(threshold):
    case = Case("share")  # of six
    m = case.decoded(Neighbourhood)
    lie = Neighbourhood(threshold, m.quorum, m.cohort, m.neighbours)
    refused(case, lie, f"a threshold of {threshold} of 6")


def test_a_minority_quorum_is_refused():
    case = Case("share")
    m = case.decoded(Neighbourhood)
    refused(case, Neighbourhood(m.threshold, 3, m.cohort, m.neighbours), "a quorum of 3 of 6")


def test_a_node_may_demand_more_than_a_majority():
    case = Case("share", majority=2 / 3)
    m = case.decoded(Neighbourhood)
    refused(case, Neighbourhood(4, 5, m.cohort, m.neighbours), "a threshold of 4 of 6")


@pytest.mark.parametrize(("name", "value"), [("fewest", 1), ("majority", 0.4), ("majority", 1.0)])
def test_a_policy_that_protects_nobody_is_refused(name, value):
    federation = Federation(3)
    with pytest.raises(ParameterError, match="expected fewest"):
        Participant(
            1,
            signer=federation.keys[federation.nodes[0]],
            roster=federation.roster,
            **{name: value},
        )


def test_a_neighbourhood_of_fewer_than_its_fewest_is_refused():
    case = Case("share", fewest=7)
    refused(case, case.decoded(Neighbourhood), "6 in the neighbourhood, 7 are needed")


def test_masks_with_fewer_than_its_fewest_are_refused():
    case = Case("mask", fewest=6)
    message = case.decoded(ForwardedShares)
    fewer = dict(list(message.sealed.items())[:4])
    refused(case, ForwardedShares(message.bounds, fewer), "5 of the neighbourhood are left")


def test_a_sum_over_fewer_than_the_participants_own_fewest_is_refused():
    case = Case("confirm", fewest=6)
    nodes = case.decoded(Survivors).nodes
    refused(case, Survivors(nodes[:5]), "a sum over 5 of the neighbourhood")


class Demanding(Case):
    """The server tells the first of six nodes another threshold and quorum, as it may."""

    def __init__(self, stage, *, threshold, quorum):
        self.federation = Federation(6)
        self.node, self.other = self.federation.nodes[:2]

        def lie(now, node, request):
            if (now, node) != ("share", self.node):
                return request
            tag = tag_of(request)
            m = Neighbourhood.decode(request, tag=tag, node=node)
            asked = Neighbourhood(threshold, quorum, m.cohort, m.neighbours)
            return asked.encode(tag=tag, node=node)

        self.requests = self.federation.run(until=stage, lie=lie)
        self.stage, self.me = stage, self.federation.participants[self.node]
        self.request = self.requests[self.node]
        self.tag = tag_of(self.request)


@pytest.mark.parametrize(
    ("threshold", "quorum", "n_left", "is_fine"),
    [(4, 4, 4, True), (4, 4, 3, False), (5, 4, 5, True), (5, 4, 4, False), (4, 5, 4, False)],
)
def test_survivors_have_to_be_a_threshold_of_the_neighbourhood_and_a_quorum_of_all(
    threshold, quorum, n_left, is_fine
):
    case = Demanding("confirm", threshold=threshold, quorum=quorum)
    survivors = Survivors(case.decoded(Survivors).nodes[:n_left])
    if is_fine:
        assert case.asked(survivors)
    else:
        refused(case, survivors, f"a sum over {n_left} of the neighbourhood and {n_left} in all")


def test_masks_with_fewer_than_its_threshold_are_refused():
    case = Demanding("mask", threshold=6, quorum=4)
    message = case.decoded(ForwardedShares)
    fewer = dict(list(message.sealed.items())[:4])
    refused(case, ForwardedShares(message.bounds, fewer), "5 of the neighbourhood are left")


def test_shares_under_the_nodes_own_name_are_refused():
    case = Case("mask")
    message = case.decoded(ForwardedShares)
    lie = {**message.sealed, case.node: message.sealed[case.other]}
    refused(case, ForwardedShares(message.bounds, lie), "shares of a node that is not a neighbour")


def test_a_quorum_above_everybody_is_refused():
    case = Case("share")
    m = case.decoded(Neighbourhood)
    refused(case, Neighbourhood(m.threshold, 7, m.cohort, m.neighbours), "a quorum of 7 of 6")


# --------------------------------------------------------------------------------- survivors


def test_survivors_without_the_node_itself_are_refused():
    case = Case("confirm")
    nodes = case.decoded(Survivors).nodes
    refused(case, Survivors(nodes[1:]), "survivors without this node")


def test_a_survivor_whose_shares_never_arrived_is_refused():
    case = Case("mask")
    message = case.decoded(ForwardedShares)
    without = {node: sealed for node, sealed in message.sealed.items() if node != case.other}
    case.asked(ForwardedShares(message.bounds, without))
    case.stage = "confirm"
    everybody = Survivors(tuple(case.federation.nodes))
    refused(case, everybody, "whose shares never arrived here")


def test_too_few_confirmations_are_refused():
    case = Case("reveal")
    signatures = dict(list(case.decoded(Confirmations).signatures.items())[:-1])
    refused(case, Confirmations(signatures), "3 survivors confirm, 4 are needed")


def test_confirmations_of_nodes_that_did_not_survive_are_refused():
    """They signed the same set, and still they do not count: only who is in the sum confirms it."""
    case = Case("confirm")
    nodes = case.decoded(Survivors).nodes
    survivors = Survivors(nodes[:4])
    signed = {}
    for node in nodes[:4]:
        reply = case.federation.answer("confirm", node, survivors.encode(tag=case.tag, node=node))
        signed[node] = Confirmation.decode(reply, tag=case.tag, node=node).signature
    gone = nodes[4]
    statement = case.me._survivors_statement()
    others = {n: s for n, s in signed.items() if n != nodes[3]}
    case.stage = "reveal"
    lie = {**others, gone: case.federation.keys[gone].sign(statement)}
    refused(case, Confirmations(lie), "4 survivors confirm, 4 are needed")


def test_confirmations_that_nobody_signed_are_refused():
    case = Case("reveal")
    signatures = case.decoded(Confirmations).signatures
    forged = {**signatures, case.other: signatures[case.node]}
    assert refused(case, Confirmations(forged), "a signature that is not").node == case.other


def test_confirmations_of_another_round_of_the_same_nodes_are_refused():
    earlier, now = Case("reveal"), Case("reveal")
    refused(now, earlier.decoded(Confirmations), "a signature that is not node")


def test_a_server_that_shows_different_survivors_to_different_nodes_is_refused():
    """Half of the nodes are told that the first has dropped out; nobody reveals anything."""
    federation = Federation(8)
    victim, half = federation.nodes[0], set(federation.nodes[4:])

    def lie(stage, node, request):
        if stage != "confirm" or node not in half:
            return request
        nodes = tuple(n for n in federation.nodes if n != victim)
        return Survivors(nodes).encode(tag=tag_of(request), node=node)

    with pytest.raises(LostRoundError, match="4 nodes are left, 5 are needed"):
        federation.run(lie=lie)
    # Signatures under the one set are of no use under the other, which a dishonest server would try.
    replies = federation.received[-1]
    tag = tag_of(next(iter(replies.values())))
    signatures = {
        node: Confirmation.decode(reply, tag=tag, node=node).signature
        for node, reply in replies.items()
    }
    for node in federation.nodes[1:]:
        survivors = {n: s for n, s in signatures.items() if n != victim or node not in half}
        with pytest.raises(RefusedError, match="a signature that is not node"):
            federation.participants[node].reveal(
                Confirmations(survivors).encode(tag=tag, node=node)
            )


def test_a_server_that_asks_for_both_secrets_of_anyone_is_refused():
    """Of each owner a node reveals one share, by the set that it signed; another set comes too late."""
    case = Case("reveal")
    _, held = secrets_of(case.me)
    reply = RevealedShares.decode(case.answer(case.request), tag=case.tag, node=case.node)
    assert set(reply.shares) == set(held)
    for owner, share in reply.shares.items():
        assert share == held[owner][:66]  # the seed's, as everybody survived
        assert held[owner][66:] not in case.federation.received[-1].values()
    others = Survivors(tuple(n for n in case.federation.nodes if n != case.other))
    for stage, message in (("confirm", others), ("reveal", case.decoded(Confirmations))):
        case.stage = stage
        refused(case, message, "out of turn: next is over")


def test_a_second_set_of_survivors_is_not_signed():
    case = Case("confirm")
    case.answer(case.request)
    nodes = case.decoded(Survivors).nodes
    with pytest.raises(RefusedError, match="confirm out of turn: next is reveal"):
        case.asked(Survivors(nodes[:-1]))


def test_nodes_that_were_shown_different_cohorts_hold_nothing_of_each_other():
    case = Case("share")
    message = case.decoded(Neighbourhood)
    last = max(message.cohort)
    cohort = {node: row for node, row in message.cohort.items() if node != last}
    near = {node: ad for node, ad in message.neighbours.items() if node != last}
    case.asked(Neighbourhood(message.threshold, message.quorum, cohort, near))
    # The others are in a cohort of six, and what they seal for this node does not open in one of five.
    sealed = {}
    for node in set(near) - {case.node}:
        reply = case.federation.answer("share", node, case.requests[node])
        sealed[node] = SealedShares.decode(reply, tag=case.tag, node=node).sealed[case.node]
    case.stage = "mask"
    digest = bounds_digest(case.federation.bounds)
    refused(case, ForwardedShares(digest, sealed), "the shares of node .* do not open")


# ----------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_number_beyond_its_bound_raises_and_nothing_is_sent(value):
    case = Case("mask")
    case.federation.values[case.node][3] = value
    with pytest.raises(InputError, match="nothing is sent"):
        case.answer(case.request)
    assert case.me.stage is Stage.OVER


def test_a_server_with_other_bounds_is_refused():
    case = Case("mask")
    case.federation.bounds = case.federation.bounds * 2
    with pytest.raises(RefusedError, match="other bounds than this node"):
        case.answer(case.request)


def test_numbers_that_would_lose_digits_are_not_sent():
    """Bounds of up to 100,000 and six nodes leave 62 - 17 - 3 of them."""
    for digits, is_fine in ((42, True), (43, False)):
        case = Case("mask")
        values = case.federation.values[case.node]
        case.federation.bounds[:] = 1e5
        case.request = case.request.replace(
            case.decoded(ForwardedShares).bounds, bounds_digest(case.federation.bounds)
        )
        mask = case.me.mask
        if is_fine:
            assert mask(case.request, values, bounds=case.federation.bounds, digits=digits)
        else:
            with pytest.raises(RefusedError, match="no room for 43 binary digits"):
                mask(case.request, values, bounds=case.federation.bounds, digits=digits)


def test_damaged_shares_name_the_neighbour_that_they_came_from():
    case = Case("mask")
    message = case.decoded(ForwardedShares)
    damaged = {**message.sealed, case.other: bytes(N_SEALED_BYTES)}
    lie = ForwardedShares(message.bounds, damaged)
    assert refused(case, lie, "do not open").node == case.other


@pytest.mark.parametrize("at", [0, 32])
def test_shares_that_their_owner_committed_itself_otherwise_to_are_refused_and_name_it(at):
    case = Case("mask")
    message = case.decoded(ForwardedShares)
    row = bytearray(message.sealed[case.other])
    row[at] ^= 1
    lie = ForwardedShares(message.bounds, {**message.sealed, case.other: bytes(row)})
    assert refused(case, lie, "committed itself to other shares").node == case.other


@pytest.mark.parametrize(("stage", "which"), [("share", slice(32, 64)), ("mask", slice(0, 32))])
def test_a_neighbours_key_that_agrees_with_everybody_is_refused_and_its_node_named(stage, which):
    """As a server that lies lets it through; of low order, so that the agreed key would be zero."""
    case = Case("share")
    message = case.decoded(Neighbourhood)
    keys = bytearray(message.neighbours[case.other].keys)
    keys[which] = bytes(32)
    signature = case.federation.keys[case.other].sign(
        keys_statement(case.tag, case.other, bytes(keys))
    )
    ad = Advertisement(*(bytes(keys[i : i + 32]) for i in (0, 32, 64)), signature=signature)
    lie = with_keys(message, case.other, ad)
    if stage == "mask":
        case.asked(lie)
        case.me._memory.cohort = dict(message.cohort)  # that of the others, whose shares so open
        sealed = {}
        for node in set(message.neighbours) - {case.node}:
            reply = case.federation.answer("share", node, case.requests[node])
            sealed[node] = SealedShares.decode(reply, tag=case.tag, node=node).sealed[case.node]
        case.stage = "mask"
        lie = ForwardedShares(bounds_digest(case.federation.bounds), sealed)
    assert refused(case, lie, "has an invalid public key").node == case.other


# ------------------------------------------------------------------------------------ memory


def test_a_node_shows_nothing_of_what_it_knows():
    case = Case("mask")
    assert repr(case.me) == f"Participant({case.node}, stage=MASK)"


@pytest.mark.parametrize(
    "saved",
    [
        b"",
        b"[]",
        b"{}x",
        b'{"seed": {"bytes": "xy"}}',
        b'{"other": 1}',
        b'{"stage": 9}',
        b'{"tag": 5}',
    ],
)
def test_a_damaged_memory_is_an_error_of_ours(saved):
    federation = Federation(3)
    with pytest.raises(InputError, match="saved state of a secure sum is damaged"):
        federation.resumed(federation.nodes[0], saved)
