"""Whole sums: with dropouts at every stage, with hostile nodes, and what the server gets to see."""

import struct

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from scipy.stats import chi2

from polyurn.errors import InputError, LostRoundError, RefusedError, SecureSumError
from polyurn.federation.keys import Roster, SigningKey
from polyurn.federation.masking import FixedPoint, KeyPair, Words, keys_statement, seed_mask
from polyurn.federation.messages import (
    N_SEALED_BYTES,
    Advertisement,
    MaskedVector,
    RevealedShares,
    SealedShares,
    tag_of,
)
from polyurn.federation.participant import Participant
from polyurn.federation.round import SecureSum
from secure_rounds import STAGES, Federation, secrets_of


def test_masked_sum_equals_plain_sum():
    federation = Federation(7)
    assert federation.error_of(federation.run()) <= 1e-12
    assert federation.round.summed == tuple(federation.nodes)
    assert federation.round.refused == {}


def test_nodes_with_keys_of_both_kinds_sum_together():
    federation = Federation(4)
    pem = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    p384 = SigningKey(ec.generate_private_key(ec.SECP384R1()).private_bytes(*pem))
    federation.keys = {**federation.keys, federation.nodes[0]: p384}
    roster = Roster({node: key.public for node, key in federation.keys.items()})
    federation.roster = roster
    federation.participants = {node: federation.participant(node) for node in federation.nodes}
    federation.round = SecureSum(
        federation.nodes, roster=roster, bounds=federation.bounds, dropout=0.1
    )
    assert federation.error_of(federation.run()) <= 1e-12
    assert len(federation.round.summed) == 4


def test_a_sum_over_two_nodes_is_refused_by_default():
    federation = Federation(2)
    with pytest.raises(LostRoundError, match="2 nodes are left, 3 are needed"):
        federation.run()


def test_a_node_may_be_another_process_at_every_stage():
    federation = Federation(5, restarts=True)
    assert federation.error_of(federation.run()) <= 1e-12


def test_nodes_that_demand_two_thirds_take_part_where_a_third_is_declared_to_collude():
    federation = Federation(12, rates={"dropout": 0.01, "colluding": 1 / 3}, majority=2 / 3)
    assert federation.error_of(federation.run()) <= 1e-12
    careless = Federation(12, rates={"dropout": 0.3, "colluding": 0.0}, majority=2 / 3)
    with pytest.raises(LostRoundError):
        careless.run()
    assert all("not the majority" in str(error) for error in careless.errors.values())


# --------------------------------------------------------------------------------- dropouts


def gone_at(stage, nodes, how):
    return lambda now, node: how if now == stage and node in nodes else None


@pytest.mark.parametrize("how", ["silent", "crash"])
@pytest.mark.parametrize("stage", STAGES)
def test_three_of_ten_nodes_may_leave_at_any_stage(stage, how):
    federation = Federation(10)
    gone = set(federation.nodes[2:9:3])
    total = federation.run(gone_at(stage, gone, how))
    summed = [node for node in federation.nodes if node not in gone or STAGES.index(stage) > 2]
    assert federation.round.summed == tuple(summed)
    assert federation.error_of(total, summed) <= 1e-12


def test_nodes_may_leave_a_sparse_graph_at_every_stage():
    federation = Federation(120, n_numbers=3, rates={"dropout": 0.1})
    leave = {node: STAGES[i % 5] for i, node in enumerate(federation.nodes[::12])}
    total = federation.run(lambda stage, node: "silent" if leave.get(node) == stage else None)
    early = {node for node, stage in leave.items() if STAGES.index(stage) <= 2}
    assert federation.round.graph.n_neighbours < 60
    assert set(federation.round.summed) == set(federation.nodes) - early
    assert federation.error_of(total, federation.round.summed) <= 1e-12


@pytest.mark.parametrize("how", ["silent", "crash"])
@pytest.mark.parametrize("stage", STAGES[1:])
def test_below_the_threshold_there_is_a_named_error_and_never_a_sum(stage, how):
    federation = Federation(10)  # six are needed
    with pytest.raises(LostRoundError, match="needed"):
        federation.run(gone_at(stage, set(federation.nodes[:5]), how))
    with pytest.raises(RefusedError, match="out of turn"):
        federation.round.revealed({})


def test_too_few_to_begin_with_is_a_named_error():
    federation = Federation(10)
    with pytest.raises(LostRoundError, match="2 nodes are left, 3 are needed"):
        federation.run(gone_at("advertise", set(federation.nodes[:8]), "silent"))


@pytest.mark.slow
@pytest.mark.parametrize("gone", [0, 300])
def test_a_thousand_nodes_of_which_a_third_leaves_are_summed_to_1e_12_of_the_bound(gone):
    federation = Federation(1000, n_numbers=50, rates={"dropout": 0.3 if gone else 0.05})
    nodes = np.random.default_rng(5).choice(federation.nodes, gone, replace=False)
    total = federation.run(gone_at("mask", set(nodes.tolist()), "silent"))
    assert len(federation.round.summed) == 1000 - gone
    assert federation.error_of(total, federation.round.summed) <= 1e-12


# ------------------------------------------------------------------------------ hostile nodes

HOSTILE = {
    "nothing": lambda reply: b"",
    "noise": lambda reply: bytes(range(100)),
    "text": lambda reply: "text",
    "left over": lambda reply: reply + b"x",
    "cut": lambda reply: reply[:-1],
    "another version": lambda reply: reply[:4] + b"\x02" + reply[5:],
    "another round": lambda reply: reply[:6] + bytes(16) + reply[22:],
    "another node": lambda reply: reply[:22] + struct.pack("<Q", 5) + reply[30:],
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("forged", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_node_that_sends_something_else_is_left_out_and_named(stage, forged):
    federation = Federation(5)
    hostile = federation.nodes[2]
    total = federation.run(
        forge=lambda now, node, reply: forged(reply) if (now, node) == (stage, hostile) else reply
    )
    summed = [n for n in federation.nodes if n != hostile or STAGES.index(stage) > 2]
    assert federation.round.summed == tuple(summed)
    assert set(federation.round.refused) == {hostile}
    assert federation.error_of(total, summed) <= 1e-12


def test_a_node_that_replays_anothers_keys_is_left_out_and_named():
    federation = Federation(5)
    first, hostile = federation.nodes[:2]
    stolen = {}

    def forge(stage, node, reply):
        stolen.setdefault(stage, reply)
        as_its_own = stolen[stage][:22] + struct.pack("<Q", node) + stolen[stage][30:]
        return as_its_own if (stage, node) == ("advertise", hostile) else reply

    total = federation.run(forge=forge)
    assert federation.round.refused == {hostile: f"a signature that is not node {hostile}'s"}
    assert first in federation.round.summed
    assert federation.error_of(total, federation.round.summed) <= 1e-12


def test_a_vector_of_another_length_is_left_out_and_named():
    federation = Federation(5)
    hostile = federation.nodes[2]

    def forge(stage, node, reply):
        if (stage, node) != ("mask", hostile):
            return reply
        return MaskedVector(np.zeros(3, np.uint64)).encode(tag=tag_of(reply), node=node)

    total = federation.run(forge=forge)
    assert federation.round.refused == {hostile: "3 numbers, expected 10"}
    assert federation.error_of(total, federation.round.summed) <= 1e-12


def test_shares_for_others_than_the_neighbours_are_left_out_and_named():
    federation = Federation(5)
    hostile = federation.nodes[2]

    def forge(stage, node, reply):
        if (stage, node) != ("share", hostile):
            return reply
        sealed = SealedShares.decode(reply, tag=tag_of(reply), node=node).sealed
        fewer = dict(list(sealed.items())[1:])
        return SealedShares(fewer).encode(tag=tag_of(reply), node=node)

    total = federation.run(forge=forge)
    assert federation.round.refused == {hostile: "shares for others than its neighbours"}
    assert federation.error_of(total, federation.round.summed) <= 1e-12


def with_false_shares(liars, owners=None):
    def forge(stage, node, reply):
        if stage != "reveal" or node not in liars:
            return reply
        shares = RevealedShares.decode(reply, tag=tag_of(reply), node=node).shares
        false = {o: s if owners and o not in owners else bytes(66) for o, s in shares.items()}
        return RevealedShares(false).encode(tag=tag_of(reply), node=node)

    return forge


def test_a_node_that_reveals_false_shares_is_named_and_the_sum_is_right():
    federation = Federation(8)
    liar = federation.nodes[1]
    total = federation.run(forge=with_false_shares({liar}))
    assert federation.round.refused == {liar: "it revealed a false share"}
    assert federation.error_of(total) <= 1e-12


def test_false_shares_of_a_node_that_left_are_noticed_too():
    federation = Federation(8)
    liar, gone = federation.nodes[1], federation.nodes[4]
    total = federation.run(gone_at("mask", {gone}, "silent"), with_false_shares({liar}, {gone}))
    assert federation.round.refused == {liar: "it revealed a false share"}
    assert federation.error_of(total, federation.round.summed) <= 1e-12


def test_as_many_as_are_not_needed_may_reveal_false_shares_and_all_are_named():
    federation = Federation(8)  # five are needed
    liars = set(federation.nodes[:3])
    total = federation.run(forge=with_false_shares(liars))
    assert set(federation.round.refused) == liars
    assert federation.error_of(total) <= 1e-12


def test_false_shares_of_many_lose_the_round_and_give_no_wrong_sum():
    federation = Federation(8)
    liars = set(federation.nodes[4:])
    with pytest.raises(LostRoundError, match=r"4 shares of node .* 5 are needed") as lost:
        federation.run(forge=with_false_shares(liars))
    assert set(federation.round.refused) == liars
    assert lost.value.node in liars


def test_false_shares_where_everybodys_are_needed_name_the_liar_and_not_the_owner():
    federation = Federation(8, rates={"dropout": 0.0})
    liar, owner = federation.nodes[5], federation.nodes[1]
    with pytest.raises(LostRoundError, match=f"7 shares of node {owner}'s") as lost:
        federation.run(forge=with_false_shares({liar}, {owner}))
    assert federation.round.graph.threshold == 8
    assert lost.value.node == liar
    assert set(federation.round.refused) == {liar}


class FalseDealer(Participant):
    """Deals shares of another seed than it advertised, and commits itself to them."""

    def share(self, neighbourhood):
        keys = self._my_keys()
        self._my_keys, self._memory.seed = lambda: keys, bytes(32)
        return super().share(neighbourhood)


def test_a_node_that_deals_shares_of_another_secret_is_named_and_its_holders_are_not():
    federation = Federation(8)
    dealer = federation.nodes[3]
    federation.participants[dealer] = FalseDealer(
        dealer, signer=federation.keys[dealer], roster=federation.roster
    )
    with pytest.raises(LostRoundError, match="do not fit together") as lost:
        federation.run()
    assert lost.value.node == dealer
    assert federation.round.refused == {}


def test_too_few_shares_are_nobodys_fault_but_of_those_who_left():
    federation = Federation(120, n_numbers=3, rates={"dropout": 0.1})
    federation.run(until="share")
    near = federation.round._near[federation.nodes[0]]
    federation = Federation(120, n_numbers=3, rates={"dropout": 0.1})
    gone = set(list(near)[: len(near) // 2])
    with pytest.raises(LostRoundError, match=r"shares of node .* are needed") as lost:
        federation.run(gone_at("reveal", gone, "silent"))
    assert lost.value.node is None


def test_once_numbers_have_arrived_the_graph_says_how_many_have_to_stay():
    """A sum over eight was asked for, and it is one; that two of them do not stay does no harm."""
    federation = Federation(10, rates={"fewest": 8})
    leave = {"mask": set(federation.nodes[:2]), "reveal": set(federation.nodes[2:4])}
    total = federation.run(lambda stage, node: "silent" if node in leave.get(stage, ()) else None)
    assert len(federation.round.summed) == 8
    assert federation.error_of(total, federation.round.summed) <= 1e-12


@pytest.mark.parametrize("which", [slice(0, 32), slice(32, 64)], ids=["mask", "seal"])
@pytest.mark.parametrize("point", [bytes(32), bytes([1]) + bytes(31)])
def test_a_public_key_that_agrees_with_everybody_is_left_out_and_its_node_named(which, point):
    """All its neighbours would refuse to go on, and the round would be lost, again and again."""
    federation = Federation(5)
    hostile = federation.nodes[2]

    def forge(stage, node, reply):
        if (stage, node) != ("advertise", hostile):
            return reply
        tag = tag_of(reply)
        keys = bytearray(Advertisement.decode(reply, tag=tag, node=node).keys)
        keys[which] = point
        signature = federation.keys[node].sign(keys_statement(tag, node, bytes(keys)))
        ad = Advertisement(*(bytes(keys[i : i + 32]) for i in (0, 32, 64)), signature=signature)
        return ad.encode(tag=tag, node=node)

    total = federation.run(forge=forge)
    assert list(federation.round.refused) == [hostile]
    assert federation.error_of(total, federation.round.summed) <= 1e-12


@pytest.mark.parametrize(
    "others",
    [
        lambda shares: {**shares, 5: bytes(66)},
        lambda shares: dict(list(shares.items())[1:]),
        lambda shares: {},
    ],
    ids=["a stranger's", "too few", "none"],
)
def test_revealed_shares_of_others_than_its_neighbours_are_left_out_and_named(others):
    federation = Federation(5)
    hostile = federation.nodes[2]

    def forge(stage, node, reply):
        if (stage, node) != ("reveal", hostile):
            return reply
        shares = RevealedShares.decode(reply, tag=tag_of(reply), node=node).shares
        return RevealedShares(others(shares)).encode(tag=tag_of(reply), node=node)

    total = federation.run(forge=forge)
    assert federation.round.refused == {hostile: "shares of others than its neighbours"}
    assert federation.error_of(total) <= 1e-12


def test_a_node_whose_sealed_shares_do_not_open_is_named_by_its_neighbours():
    federation = Federation(5)
    hostile = federation.nodes[2]

    def forge(stage, node, reply):
        if (stage, node) != ("share", hostile):
            return reply
        sealed = SealedShares.decode(reply, tag=tag_of(reply), node=node).sealed
        noise = dict.fromkeys(sealed, bytes(N_SEALED_BYTES))
        return SealedShares(noise).encode(tag=tag_of(reply), node=node)

    with pytest.raises(SecureSumError):
        federation.run(forge=forge)
    assert {error.node for error in federation.errors.values()} == {hostile}


def test_a_reply_of_somebody_who_was_not_asked_is_ignored():
    federation = Federation(5)
    requests = federation.run(until="share")
    replies = {n: federation.answer("share", n, r) for n, r in requests.items()}
    assert set(federation.round.shared({**replies, 5: b"", "x": b""})) == set(federation.nodes)


def test_nodes_that_are_not_in_the_roster_cannot_be_asked():
    federation = Federation(3)
    with pytest.raises(InputError, match="expected nodes of the roster, got 5"):
        SecureSum([5, *federation.nodes], roster=federation.roster, bounds=[1.0], dropout=0.1)


def test_the_stages_of_the_server_come_in_their_order():
    federation = Federation(3)
    with pytest.raises(RefusedError, match="masked out of turn: next is invite"):
        federation.round.masked({})


# --------------------------------------------------------------------- what the server gets to see

N_NUMBERS = 4000
FALSE_ALARM = (
    1e-7  # of each chi-square test; masks are fresh in every run, so that no seed fixes them
)


def uploads(federation, node):
    reply = federation.received[2][node]
    return MaskedVector.decode(reply, tag=tag_of(reply), node=node).words


def alike(*samples):
    """Whether samples of words could have the same distribution of bytes (chi-square, 256 cells)."""
    tables = np.array([np.bincount(s.view(np.uint8), minlength=256) for s in samples], dtype=float)
    if len(tables) == 1:
        expected = np.full((1, 256), tables.sum() / 256)
    else:
        expected = tables.sum(axis=0) * tables.sum(axis=1, keepdims=True) / tables.sum()
    statistic = ((tables - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    return chi2.sf(statistic, 255) > FALSE_ALARM


def test_uploads_of_two_runs_that_differ_in_one_clients_data_cannot_be_told_apart():
    runs = [Federation(6, n_numbers=N_NUMBERS) for _ in range(2)]
    node = runs[0].nodes[3]
    runs[0].values[node] = np.zeros(N_NUMBERS)
    runs[1].values[node] = runs[1].bounds.copy()
    sums = [run.run() for run in runs]
    words = [uploads(run, node) for run in runs]
    assert alike(*words)
    assert alike(words[0])
    assert alike(words[1])
    assert alike(
        words[1] - words[0]
    )  # nor is the difference of the two runs the difference of the data
    # The same test sees the difference at once where nothing is masked.
    plain = [FixedPoint(run.bounds, n_summands=6).encode(run.values[node]) for run in runs]
    assert not alike(*plain)
    assert not alike(plain[1])
    assert np.allclose(sums[1] - sums[0], runs[0].bounds)


def test_an_upload_is_behind_the_nodes_own_mask_and_that_of_each_pair():
    """Whoever knows all masks but one still sees noise: of a survivor, or of a node that left."""
    federation = Federation(4, n_numbers=N_NUMBERS)
    federation.run(until="confirm")
    node, *peers = federation.nodes
    me = federation.participants[node]._memory
    pair = KeyPair(me.mask_private, me.tag)
    masks = [(seed_mask(me.tag, node, me.seed), 1)]
    for peer in peers:
        low, high = sorted((node, peer))
        key = pair.agreed(me.keys[peer][:32], b"mask", low, high)
        masks.append((key, 1 if node == low else -1))
    assert len({key for key, _ in masks}) == 4

    def without(some):
        words = Words(uploads(federation, node))
        for key, sign in some:
            (words.subtract_mask if sign > 0 else words.add_mask)(key)
        return words.values

    for left in masks:
        assert alike(without([mask for mask in masks if mask is not left]))
    scale = FixedPoint(federation.bounds, n_summands=4)
    np.testing.assert_array_equal(without(masks), scale.encode(federation.values[node]))


def test_the_secrets_of_a_node_are_fresh_and_of_256_bits_each():
    # Of 60 random bytes 54 are distinct on average, and fewer than 35 never.
    secrets = []
    for _ in range(20):
        federation = Federation(3)
        federation.run(until="share")
        secrets += [secrets_of(one)[0] for one in federation.participants.values()]
    for kind in zip(*secrets, strict=True):
        assert len(set(kind)) == 60
        assert min(len(set(column)) for column in zip(*kind, strict=True)) > 35


def test_no_unmasked_number_is_in_what_reaches_the_server():
    federation = Federation(6, n_numbers=500)
    gone = federation.nodes[5]
    federation.run(gone_at("confirm", {gone}, "silent"))
    received = b"".join(reply for replies in federation.received for reply in replies.values())
    assert len(received) > 6 * 500 * 8
    windows = {received[i : i + 8] for i in range(len(received) - 7)}
    scale = FixedPoint(federation.bounds, n_summands=6)
    for values in federation.values.values():
        words = scale.encode(values)
        for numbers in (values.astype("<f8"), words.astype("<u8"), words.astype(">u8")):
            assert windows.isdisjoint(number.tobytes() for number in numbers)


def test_no_secret_of_a_survivor_is_in_what_reaches_the_server():
    federation = Federation(6)
    federation.run(until="reveal")
    received = b"".join(reply for replies in federation.received for reply in replies.values())
    for participant in federation.participants.values():
        private, shares = secrets_of(participant)
        halves = [half for share in shares.values() for half in (share[:66], share[66:])]
        assert len(halves) == 12
        assert all(secret and secret not in received for secret in private + halves)
