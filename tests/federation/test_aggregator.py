"""Fits over nodes against fits on the same clients, and nodes that are silent, hostile or gone."""

from dataclasses import replace

import numpy as np
import pytest

from federations import (
    EXACT,
    STAGES,
    Federation,
    RecordFederation,
    Recording,
    at,
    crash,
    garbage,
    impostor,
    node_of,
    numbers,
    opened,
    question_of,
    replay,
    rewrapped,
    short,
    silent,
    text,
)
from polyurn import LocalAggregator, ReplayAggregator, SizeBins, fit, fit_style
from polyurn.errors import LostRoundError, NodesError, ParameterError
from polyurn.federation.aggregator import Attempt, FederatedAggregator, Tally, Terms
from polyurn.federation.keys import Roster
from polyurn.federation.masking import keys_statement
from polyurn.federation.messages import (
    Advertisement,
    Ask,
    Refusal,
    Reply,
    RevealedShares,
    SealedShares,
    tag_of,
)
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.wire import BoundedSurvey, Noised, Part, Survey, decode_query, encode_query
from polyurn.wire.private_grid import STEP
from style_cases import drawn_world, whole_space

BOUNDS = {"n_categories": 10, "max_size": 20, "rng": 2}
QUERY = Survey(10, SizeBins.exact(20), pairs=True)


def summed(traffic):
    """The nodes that were in a sum."""
    return tuple(one.node for one in traffic.nodes if one.n_summed)


def total_log_likelihood(federation, mdm):
    return float(mdm.logpmf(federation.counts).sum())


# ----------------------------------------------------------------------------------- the same fit


def test_a_fit_over_one_plain_node_is_the_local_fit_to_the_last_bit(tmp_path):
    federation = Federation(tmp_path, 1, 200)
    local = fit(federation.local(), n_components=2, **BOUNDS).mdm
    mdm = fit(federation.aggregator(min_nodes=1), n_components=2, **BOUNDS).mdm
    np.testing.assert_array_equal(mdm.weights, local.weights)
    np.testing.assert_array_equal(mdm.alphas, local.alphas)
    np.testing.assert_array_equal(mdm.sizes.masses, local.sizes.masses)


@pytest.fixture(scope="module")
def local_fit(tmp_path_factory):
    federation = Federation(tmp_path_factory.mktemp("local"), 8)
    return fit(federation.local(), n_components=2, **BOUNDS)


@pytest.mark.parametrize("secure", [False, True])
def test_a_fit_over_eight_nodes_is_the_local_fit_to_a_billionth_of_a_nat(
    tmp_path, local_fit, secure
):
    federation = Federation(tmp_path, 8)
    clients = federation.aggregator(secure=secure)
    got = fit(clients, n_components=2, **BOUNDS)
    off = total_log_likelihood(federation, got.mdm) - total_log_likelihood(
        federation, local_fit.mdm
    )
    assert abs(off) <= 1e-9
    assert clients.traffic.n_attempts == clients.traffic.n_rounds == len(got.rounds)
    assert summed(clients.traffic) == tuple(federation.ids)
    assert clients.refused == clients.excluded == {}


@pytest.mark.parametrize("secure", [False, True])
def test_a_selection_over_eight_nodes_is_the_local_selection(tmp_path, secure):
    federation = Federation(tmp_path, 8)
    settings = {**BOUNDS, "max_rounds": 12}
    local = fit(federation.local(), n_components=[1, 2], **settings)
    got = fit(federation.aggregator(secure=secure), n_components=[1, 2], **settings)
    assert got.n_components == local.n_components
    off = total_log_likelihood(federation, got.mdm) - total_log_likelihood(federation, local.mdm)
    assert abs(off) <= 1e-9


@pytest.mark.parametrize("secure", [False, True])
def test_a_part_of_the_clients_is_that_of_their_buckets(tmp_path, secure):
    federation = Federation(tmp_path, 5)
    query = Part(QUERY, 0.25, 0.75)
    got = federation.aggregator(secure=secure).aggregate(query, None)
    expected = federation.local().aggregate(query, None)
    assert 0 < expected.n_clients < 125
    np.testing.assert_allclose(got.to_vector(), expected.to_vector(), rtol=0, atol=1e-11)


def test_a_cohort_is_so_many_nodes_and_another_one_each_time(tmp_path):
    federation = Federation(tmp_path, 8, 2)
    clients = federation.aggregator(rng=1)
    assert clients.aggregate(QUERY, 4).n_clients == 8  # 4 nodes of 2 clients
    clients.aggregate(QUERY, 4)
    (_, one), (_, other) = federation.exchange.asked
    assert len(one) == len(other) == 4
    assert one != other
    assert not hasattr(clients, "n_clients")


def test_a_recorded_run_draws_the_cohorts_that_it_would_have_drawn(tmp_path):
    whole, resumed = (Federation(tmp_path, 8, 2) for _ in range(2))
    kept = []
    clients = ReplayAggregator(whole.aggregator(rng=1), kept)
    for _ in range(3):
        clients.aggregate(QUERY, 4)
    clients = ReplayAggregator(resumed.aggregator(rng=1), kept[:2])
    for _ in range(3):
        clients.aggregate(QUERY, 4)
    assert resumed.exchange.asked == whole.exchange.asked[2:]


# -------------------------------------------------------------------------------------- dropouts


@pytest.mark.parametrize("how", [silent, crash])
@pytest.mark.parametrize("stage", STAGES)
def test_three_of_ten_nodes_may_leave_at_any_stage_of_one_attempt(tmp_path, stage, how):
    gone = {2, 5, 8}
    federation = Federation(tmp_path, 10, 3, faults=dict.fromkeys(gone, at(stage, how)))
    clients = federation.aggregator(secure=True)
    got = clients.aggregate(QUERY, None)
    in_sum = [p for p in range(10) if p not in gone or STAGES.index(stage) > 2]
    expected = federation.local(in_sum).aggregate(QUERY, None)
    np.testing.assert_allclose(got.to_vector(), expected.to_vector(), rtol=0, atol=1e-11)
    assert clients.traffic.n_attempts == 1
    assert summed(clients.traffic) == tuple(federation.ids[p] for p in in_sum)
    named = clients.excluded if how is silent else clients.refused
    assert sorted(named) == [federation.ids[p] for p in sorted(gone)]


@pytest.mark.parametrize("secure", [False, True])
def test_too_few_answers_are_an_error_with_the_numbers_and_the_nodes(tmp_path, secure):
    faults = dict.fromkeys((0, 1, 2, 3), silent)
    federation = Federation(tmp_path, 10, 2, faults=faults)
    with pytest.raises(NodesError, match="6 of 10 nodes can be asked, 7 are needed") as error:
        federation.aggregator(secure=secure).aggregate(QUERY, None)
    assert f"excluded: {federation.ids[0]}" in str(error.value)
    assert "\n" not in str(error.value)
    assert federation.exchange.n_timeouts == 1


@pytest.mark.parametrize("stage", STAGES[1:])
@pytest.mark.parametrize("first", [0, 3])
def test_below_the_threshold_there_is_an_error_and_no_sum_and_only_who_left_is_named(
    tmp_path, stage, first
):
    gone = range(first, first + 5)
    faults = dict.fromkeys(gone, at(stage, crash))
    federation = Federation(tmp_path, 8, 2, faults=faults)
    clients = federation.aggregator(secure=True, min_fraction=0.3, retries=1)
    with pytest.raises(NodesError, match="no sum in 2 attempts"):
        clients.aggregate(QUERY, None)
    assert clients.traffic.n_rounds == 0
    assert sorted(clients.refused) == [federation.ids[place] for place in gone]
    assert clients.excluded == {}


def test_too_few_nodes_are_an_error_before_anybody_is_asked(tmp_path):
    federation = Federation(tmp_path, 2, 2)
    with pytest.raises(NodesError, match="2 of 2 nodes can be asked, 3 are needed"):
        federation.aggregator().aggregate(QUERY, None)
    with pytest.raises(NodesError, match="2 of 10 nodes can be asked, 7 are needed"):
        federation.aggregator().aggregate(QUERY, 10)
    with pytest.raises(ParameterError, match="at least min_nodes=3 nodes, got 2"):
        federation.aggregator().aggregate(QUERY, 2)
    assert federation.exchange.asked == []


def test_a_lost_sum_is_begun_again_with_other_nodes(tmp_path):
    faults = dict.fromkeys(range(4), silent)
    federation = Federation(tmp_path, 12, 2, faults=faults)
    clients = federation.aggregator(secure=True, min_fraction=0.9, rng=0)
    got = clients.aggregate(QUERY, 8)
    assert got.n_clients == 16
    assert clients.traffic.n_attempts > clients.traffic.n_rounds == 1


# ------------------------------------------------------------------------------------ the bench


def test_a_silent_node_costs_one_timeout_and_is_not_asked_again(tmp_path):
    federation = Federation(tmp_path, 8, faults={3: silent})
    clients = federation.aggregator()
    got = fit(clients, n_components=2, **BOUNDS)
    assert len(got.rounds) > 3
    assert federation.exchange.n_timeouts == clients.traffic.n_timeouts == 1
    assert sum(federation.ids[3] in asked for _, asked in federation.exchange.asked) == 1
    assert clients.excluded == {federation.ids[3]: "it did not reply in time"}


class LateExchange(Recording):
    """What was not replied in time comes with the next replies."""

    late = ()

    def ask(self, stage, messages, *, timeout):
        yield from ((node, reply) for node, reply in self.late if node not in messages)
        yield from super().ask(stage, messages, timeout=timeout)


def test_a_node_whose_reply_comes_late_is_asked_again_once(tmp_path):
    federation = Federation(tmp_path, 5, 2)
    gone = federation.ids[0]
    exchange = LateExchange({**federation.exchange._nodes, gone: lambda stage, message: None})
    clients = FederatedAggregator(exchange, Terms(secure=False), clients_per_node=2)

    def asks_it():
        clients.aggregate(QUERY, None)
        return gone in exchange.asked[-1][1]

    assert asks_it()  # silent
    assert not asks_it()
    exchange.late = [(gone, b"late")]
    assert not asks_it()  # the sign of life comes now
    assert asks_it()  # silent again
    assert not asks_it()
    assert not asks_it()
    assert exchange.n_timeouts == 2


def test_a_node_that_leaves_and_joins_again_is_asked_again(tmp_path):
    federation = Federation(tmp_path, 5, 2, faults={0: silent})
    clients = federation.aggregator()
    clients.aggregate(QUERY, None)
    whole = federation.exchange.nodes
    federation.exchange.nodes = lambda: federation.ids[1:]
    clients.aggregate(QUERY, None)
    federation.exchange.nodes = whole
    federation.exchange._nodes[federation.ids[0]] = federation.nodes[federation.ids[0]].answer
    assert clients.aggregate(QUERY, None).n_clients == 10
    assert clients.excluded == {}


@pytest.mark.parametrize(("n_rounds", "comes_back"), [(3, False), (6, False), (5, True)])
def test_a_fit_during_which_a_node_leaves_ends_at_the_optimum_of_those_who_are_there(
    tmp_path, n_rounds, comes_back
):
    federation = Federation(tmp_path, 8, 50, name="high/3")
    clients, whole = federation.aggregator(), federation.exchange.nodes

    def there():
        n_done = clients.traffic.n_rounds
        gone = n_done >= n_rounds and not (comes_back and n_done >= n_rounds + 3)
        return federation.ids[1:] if gone else whole()

    federation.exchange.nodes = there
    # No profile inside bins, which would be that of the first round's clients.
    settings = {"n_components": 3, "sizes": "exact", **BOUNDS}
    done = fit(clients, **settings)
    left = federation.local(range(not comes_back, 8))
    best = fit(left, **settings)
    assert done.converged
    assert {r.n_clients for r in done.rounds} == {350, 400}
    assert done.rounds[-1].n_clients == len(left.counts)
    value = done.mdm.logpmf(left.counts).mean()
    assert value == pytest.approx(best.mdm.logpmf(left.counts).mean(), abs=1e-4)


# --------------------------------------------------------------------------------- hostile nodes

HOSTILE = {
    "silent": (silent, None),
    "crash": (crash, "the transport says that it failed"),
    "garbage": (garbage, "a reply that cannot be read"),
    "text": (text, "a reply of type str"),
    "NaN": (numbers(np.nan), "numbers that are not finite, or beyond 1e150"),
    "1e300": (numbers(1e300), "numbers that are not finite, or beyond 1e150"),
    "1e9": (numbers(1e9), "numbers beyond their bounds"),
    "short": (short, "an answer of another length"),
    "impostor": (impostor(7), "a reply in another's name"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_node_of_a_plain_fit_costs_at_most_one_timeout_and_is_named(tmp_path, how):
    fault, why = HOSTILE[how]
    federation = Federation(tmp_path, 5, 10, faults={2: fault})
    clients = federation.aggregator()
    for _ in range(4):
        got = clients.aggregate(QUERY, None)
    others = federation.local([0, 1, 3, 4]).aggregate(QUERY, None)
    np.testing.assert_allclose(got.to_vector(), others.to_vector(), rtol=1e-13)
    assert federation.exchange.n_timeouts == (how == "silent")
    hostile = federation.ids[2]
    assert clients.refused == ({} if why is None else {hostile: {why: 4}})
    assert list(clients.excluded) == ([hostile] if why is None else [])


def test_a_replayed_answer_is_not_added_again(tmp_path):
    federation = Federation(tmp_path, 5, 10, faults={2: replay()})
    clients = federation.aggregator()
    assert clients.aggregate(QUERY, None).n_clients == 50  # its first message is no replay
    assert clients.aggregate(QUERY, None).n_clients == 40
    assert clients.refused == {federation.ids[2]: {"a reply to an earlier message": 1}}


def test_a_second_answer_of_a_node_is_not_added(tmp_path):
    federation = Federation(tmp_path, 4, 2)

    class Twice(Recording):
        def ask(self, stage, messages, *, timeout):
            for node, reply in super().ask(stage, messages, timeout=timeout):
                yield from [(node, reply)] * 2

    exchange = Twice({node: one.answer for node, one in federation.nodes.items()})
    clients = FederatedAggregator(exchange, Terms(secure=False), clients_per_node=2)
    assert clients.aggregate(QUERY, None).n_clients == 8
    assert clients.refused == {node: {"it answered twice": 1} for node in federation.ids}


SECURE_HOSTILE = {
    "silent": lambda: silent,
    "crash": lambda: crash,
    "garbage": lambda: garbage,
    "text": lambda: text,
    "replay": replay,
    "impostor": lambda: impostor(7),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("how", SECURE_HOSTILE)
def test_a_hostile_node_of_secure_sums_costs_at_most_one_timeout_and_is_named(tmp_path, how, stage):
    federation = Federation(tmp_path, 6, 2, faults={2: at(stage, SECURE_HOSTILE[how]())})
    clients = federation.aggregator(secure=True)
    for _ in range(3):
        got = clients.aggregate(QUERY, None)
    assert got.n_clients == pytest.approx(
        12 if STAGES.index(stage) > 2 and how != "silent" else 10, abs=1e-9
    )
    assert clients.traffic.n_attempts == 3
    assert federation.exchange.n_timeouts == (how == "silent")
    assert list(clients.excluded if how == "silent" else clients.refused) == [federation.ids[2]]


def test_words_in_place_of_masked_numbers_are_refused(tmp_path):
    def half(stage, message, honest):
        reply = honest(stage, message)
        body = opened(reply).body
        return rewrapped(reply, body[: len(body) // 2])

    federation = Federation(tmp_path, 6, 2, faults={2: at("mask", half)})
    clients = federation.aggregator(secure=True)
    assert clients.aggregate(QUERY, None).n_clients == pytest.approx(10, abs=1e-9)
    assert list(clients.refused) == [federation.ids[2]]


def test_a_sum_beyond_what_honest_nodes_can_send_is_an_error_and_no_sum(tmp_path):
    def poison(stage, message, honest):
        reply = honest(stage, message)
        body = bytearray(opened(reply).body)
        body[-1] ^= 0x40  # of the last word's eight bytes the highest: 2**62
        return rewrapped(reply, bytes(body))

    federation = Federation(tmp_path, 6, 2, faults={2: at("mask", poison)})
    clients = federation.aggregator(secure=True, retries=1)
    with pytest.raises(NodesError, match="the sum is beyond its bounds"):
        clients.aggregate(QUERY, None)
    assert clients.traffic.n_rounds == 0


def test_a_node_that_deals_false_shares_is_found_and_the_sum_begun_again_without_it(tmp_path):
    def false_shares(stage, message, honest):
        reply = honest(stage, message)
        dealt, node = opened(reply).body, node_of(reply)
        sealed = SealedShares.decode(dealt, tag=None, node=node).sealed
        noise = {peer: bytes(len(one)) for peer, one in sealed.items()}
        return rewrapped(reply, SealedShares(noise).encode(tag=tag_of(dealt), node=node))

    federation = Federation(tmp_path, 6, 2, faults={2: at("share", false_shares)})
    clients = federation.aggregator(secure=True)
    assert clients.aggregate(QUERY, None).n_clients == pytest.approx(10, abs=1e-9)
    assert clients.aggregate(QUERY, None).n_clients == pytest.approx(10, abs=1e-9)
    assert clients.traffic.n_attempts == 3
    assert clients.excluded == {federation.ids[2]: "its part of a secure sum was false"}


def reveals_false_shares(stage, message, honest):
    reply = honest(stage, message)
    true, node = opened(reply).body, node_of(reply)
    shares = RevealedShares.decode(true, tag=None, node=node).shares
    false = RevealedShares(dict.fromkeys(shares, bytes(66)))
    return rewrapped(reply, false.encode(tag=tag_of(true), node=node))


def test_a_node_that_reveals_false_shares_where_all_are_needed_is_benched_and_no_other(tmp_path):
    federation = Federation(tmp_path, 6, 2, faults={2: at("reveal", reveals_false_shares)})
    clients = federation.aggregator(secure=True, dropout=0.0)
    for _ in range(2):
        assert clients.aggregate(QUERY, None).n_clients == pytest.approx(10, abs=1e-9)
    assert clients.traffic.n_attempts == 3
    assert clients.excluded == {federation.ids[2]: "its part of a secure sum was false"}


def test_a_node_whose_key_agrees_with_everybody_is_named_and_the_others_are_summed(tmp_path):
    federation = Federation(tmp_path, 6, 2)
    hostile = federation.ids[2]

    def low_order(stage, message, honest):
        reply, ask = honest(stage, message), question_of(message)
        said = opened(reply).body
        tag = tag_of(said)
        ad = Advertisement.decode(said, tag=tag, node=hostile)
        keys = ad.mask_key, bytes(32), ad.commitment
        statement = keys_statement(tag, hostile, b"".join(keys), ask.digest)
        signature = federation.keys[hostile].sign(statement)
        body = Advertisement(*keys, signature=signature).encode(tag=tag, node=hostile)
        return rewrapped(reply, body)

    federation = Federation(tmp_path, 6, 2, faults={2: at("advertise", low_order)})
    clients = federation.aggregator(secure=True)
    assert clients.aggregate(QUERY, None).n_clients == pytest.approx(10, abs=1e-9)
    assert clients.traffic.n_attempts == 1
    assert list(clients.refused) == [hostile]


def test_one_node_that_accuses_another_is_not_believed(tmp_path):
    federation = Federation(tmp_path, 6, 2)
    victim = federation.ids[4]

    def accuse(stage, message):
        reply = Reply(Refusal.OFF_PROTOCOL, suspect=victim)
        return reply.encode(tag=tag_of(message), node=node_of(message))

    federation.exchange._nodes[federation.ids[0]] = accuse
    clients = federation.aggregator(secure=True)
    assert clients.aggregate(QUERY, None).n_clients == pytest.approx(10, abs=1e-9)
    assert clients.excluded == {}
    assert list(clients.refused) == [federation.ids[0]]


# ------------------------------------------------------------------------------ a server that lies


class Gullible(Roster):
    """What a server that lies believes about signatures: all of them."""

    def verify(self, node, message, signature):
        pass


def test_a_server_that_puts_another_question_to_all_nodes_but_one_gets_nothing_of_that_one(
    tmp_path,
):
    """The others' answers would be 0, and the sum that of one node."""
    federation = Federation(tmp_path, 6, 2, policy=replace(EXACT, narrowest_part=0.0))
    alone = federation.ids[0]

    def lied_to(node):
        def answer(stage, message):
            ask = question_of(message)
            if ask.query and node != alone:
                nobody = encode_query(Part(decode_query(ask.query).query, 0.0, 0.0))
                lie = Ask(ask.clients_per_node, nobody, ask.body)
                message = lie.encode(tag=tag_of(message), node=node)
            return federation.nodes[node].answer(stage, message)

        return answer

    exchange = Recording({node: lied_to(node) for node in federation.ids})
    roster = Gullible({node: key.public for node, key in federation.keys.items()})
    clients = FederatedAggregator(exchange, Terms(), roster=roster, clients_per_node=2)
    got = clients.aggregate(Part(QUERY, 0.0, 1.0), None)
    assert (got.to_vector() == 0).all()
    assert summed(clients.traffic) == tuple(federation.ids[1:])
    assert all(alone not in asked for stage, asked in exchange.asked if stage == "mask")


def test_nodes_that_are_not_in_the_roster_take_no_part_in_secure_sums(tmp_path):
    federation = Federation(tmp_path, 5, 2)
    federation.exchange._nodes[99] = lambda stage, message: b"hello"
    clients = federation.aggregator(secure=True)
    clients.aggregate(QUERY, None)
    assert all(99 not in asked for _, asked in federation.exchange.asked)


# ------------------------------------------------------------------------------------- refusals


def test_nodes_that_answer_in_secure_sums_only_refuse_a_plain_question_and_are_asked_it_once(
    tmp_path,
):
    federation = Federation(tmp_path, 5, 2, policy=EXACT)
    clients = federation.aggregator()
    with pytest.raises(NodesError, match="0 of 5 nodes answered, 4 are needed"):
        clients.aggregate(QUERY, None)
    why = {"it answers in secure sums only": 1}
    assert clients.refused == dict.fromkeys(federation.ids, why)
    assert federation.aggregator(secure=True).aggregate(QUERY, None).n_clients == pytest.approx(10)


def test_a_sum_that_fails_for_another_reason_is_begun_again_though_a_node_refuses_for_good(
    tmp_path,
):
    """Four of five are needed: one will never answer, and one fails the first time only."""
    seen = []

    def fails_once(stage, message, honest):
        seen.append(stage)
        return crash(stage, message, honest) if len(seen) == 1 else honest(stage, message)

    def strict(stage, message, honest):
        return federation.node(0, policy=EXACT).answer(stage, message)

    federation = Federation(tmp_path, 5, 2, faults={0: strict, 1: fails_once})
    clients = federation.aggregator()
    assert clients.aggregate(QUERY, None).n_clients == 8
    assert clients.traffic.n_attempts == 2


def test_nodes_that_demand_larger_sums_take_no_part(tmp_path):
    federation = Federation(tmp_path, 5, 2, policy=replace(EXACT, fewest=6))
    clients = federation.aggregator(secure=True, retries=0)
    with pytest.raises(NodesError, match="0 nodes are left, 4 are needed"):
        clients.aggregate(QUERY, None)
    why = {"the secure sum does not keep to what it demands": 1}
    assert clients.refused == dict.fromkeys(federation.ids, why)


def test_nodes_with_which_another_number_of_clients_was_declared_do_not_answer(tmp_path):
    federation = Federation(tmp_path, 5, 2)
    for secure in (False, True):
        clients = federation.aggregator(secure=secure, clients_per_node=1, retries=0)
        with pytest.raises(NodesError):
            clients.aggregate(QUERY, None)
        why = {"the number of clients of a node is not the one that was declared to it": 1}
        assert clients.refused == dict.fromkeys(federation.ids, why)


# -------------------------------------------------------------------------------- what crossed


@pytest.mark.parametrize("secure", [False, True])
def test_what_crossed_is_counted_to_the_byte(tmp_path, secure):
    federation = Federation(tmp_path, 4, 2, faults={1: garbage})
    n_bytes = {"down": 0, "up": 0}

    class Counting(Recording):
        def ask(self, stage, messages, *, timeout):
            n_bytes["down"] += sum(map(len, messages.values()))
            for node, reply in super().ask(stage, messages, timeout=timeout):
                n_bytes["up"] += len(reply)
                yield node, reply

    exchange = Counting(federation.exchange._nodes)
    clients = FederatedAggregator(
        exchange, Terms(secure=secure), roster=federation.roster, clients_per_node=2
    )
    for _ in range(2):
        clients.aggregate(QUERY, None)
    crossed = clients.traffic
    assert (crossed.bytes_down, crossed.bytes_up) == (n_bytes["down"], n_bytes["up"])
    assert crossed.n_asks == len(exchange.asked) == (10 if secure else 2)
    assert (crossed.secure, crossed.n_rounds, crossed.n_timeouts) == (secure, 2, 0)
    assert summed(crossed) == tuple(n for i, n in enumerate(federation.ids) if i != 1)
    assert {n.node: dict(n.refused) for n in crossed.nodes if n.refused} == clients.refused
    assert sum(one.bytes_down for one in crossed.rounds) == crossed.bytes_down
    assert sum(one.bytes_up for one in crossed.rounds) == crossed.bytes_up


def test_each_round_is_kept_with_what_was_asked_and_how_many_nodes_are_in_its_sum(tmp_path):
    federation = Federation(tmp_path, 4, 2, faults={0: silent})
    clients = federation.aggregator()
    for query in (QUERY, Part(QUERY, 0.0, 0.5)):
        clients.aggregate(query, None)
    crossed = clients.traffic
    assert [(one.number, one.kind) for one in crossed.rounds] == [
        (1, "survey"),
        (2, "part of 1 survey"),
    ]
    assert [one.n_numbers for one in crossed.rounds] == [QUERY.n_numbers] * 2
    assert [(one.n_nodes, one.n_attempts) for one in crossed.rounds] == [(3, 1), (3, 1)]
    assert all(one.seconds > 0 for one in crossed.rounds)
    assert [n.n_summed for n in crossed.nodes] == [0, 2, 2, 2]
    assert [n.node for n in crossed.nodes] == federation.ids
    assert crossed.clients_per_node == 2


def test_a_round_that_ends_in_an_error_is_kept_and_one_in_which_nobody_was_asked_is_not(tmp_path):
    clients = Federation(tmp_path, 4, 2, faults={0: crash, 1: crash}).aggregator(retries=1)
    with pytest.raises(NodesError):
        clients.aggregate(QUERY, None)
    with pytest.raises(ParameterError):
        clients.aggregate(QUERY, 1)
    (lost,) = clients.traffic.rounds
    assert (lost.number, lost.n_nodes, lost.n_attempts) == (1, 0, 2)
    assert (lost.bytes_down, lost.bytes_up) == (
        clients.traffic.bytes_down,
        clients.traffic.bytes_up,
    )


def test_rounds_of_a_resumed_run_have_the_numbers_that_they_would_have_had(tmp_path):
    clients = Federation(tmp_path, 4, 2).aggregator()
    recorded = ReplayAggregator(clients, [np.zeros(QUERY.n_numbers)] * 2)
    for _ in range(3):
        recorded.aggregate(QUERY, None)
    assert [one.number for one in clients.traffic.rounds] == [3]


# ------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"clients_per_node": 0}, "clients_per_node of at least 1"),
        ({"min_nodes": 0}, "min_nodes as an integer of at least 1"),
        ({"retries": -1}, "retries as an integer of at least 0"),
        ({"min_fraction": 1.5}, "min_fraction as a number from 0 to 1"),
        ({"timeout": 0.0}, "timeout as a number above 0"),
        ({"secure": True, "min_nodes": 1}, "a sum over one node is its answer"),
        ({"secure": True, "roster": {}}, "expected roster as a Roster or None"),
        ({"secure": True, "dropout": 0.5}, "no majority is left"),
        ({"secure": "yes"}, "expected secure as True or False"),
    ],
)
def test_settings_out_of_range_are_refused(tmp_path, options, why):
    with pytest.raises(ParameterError, match=why):
        Federation(tmp_path, 3, 2).aggregator(**options)


# ------------------------------------------------------------------------------- noise in shares

PRIVATE = BoundedSurvey(10, SizeBins.exact(20))
SHARES = Noised(PRIVATE, 3.0, "distributed", n_reporters=7, n_colluding=2)


def private_noise(federation, gone=()):
    """What was added to the exact sum over the nodes that stayed."""
    places = [place for place in range(10) if place not in gone]
    exact = federation.local(places).aggregate(PRIVATE, None).to_vector()
    clients = federation.aggregator(secure=True, retries=0)
    return clients.aggregate(SHARES, None).to_vector() - exact


@pytest.mark.parametrize("gone", [(), (1, 4, 8)])
def test_a_secure_sum_has_the_noise_of_every_node_that_is_in_it(tmp_path, gone):
    faults = {place: at("mask", crash) for place in gone}
    federation = Federation(tmp_path, 10, faults=faults)
    noise = np.concatenate([private_noise(federation, gone) for _ in range(4)])
    # Each adds a variance of 9 / (7 - 2); 5 standard errors of 168 draws.
    expected = np.sqrt((10 - len(gone)) * 9 / 5)
    assert expected > 3.0
    assert abs(noise.std() / expected - 1) < 5 / np.sqrt(2 * len(noise))
    assert np.array_equal(np.rint(noise / STEP), noise / STEP)


def test_below_the_declared_reporters_there_is_no_sum(tmp_path):
    faults = {place: at("mask", crash) for place in range(4)}
    federation = Federation(tmp_path, 10, faults=faults)
    with pytest.raises(NodesError, match="7 are needed"):
        federation.aggregator(secure=True, min_fraction=0.3, retries=0).aggregate(SHARES, None)


def test_nodes_do_not_help_a_server_to_a_sum_with_too_little_noise(tmp_path):
    """The server goes on with six; each of them refuses to sign, and no mask comes off."""
    faults = {place: at("mask", crash) for place in range(4)}
    federation = Federation(tmp_path, 10, faults=faults)
    attempt = Attempt(
        SHARES, Ask(25, encode_query(SHARES)), federation.ids, 2, federation.exchange,
        Terms(dropout=0.4, colluding=0.1, timeout=1.0), Tally(),
    )  # fmt: skip
    with pytest.raises(LostRoundError, match="0 nodes are left"):
        attempt.secure_sum(federation.roster)
    for place in range(4, 10):
        last = federation.log(place).read_text().splitlines()[-1]
        assert "confirm" in last
        assert Refusal.OFF_PROTOCOL.text in last


def test_on_a_ring_a_node_counts_only_the_shares_of_its_neighbourhood(tmp_path):
    """A server that lies can have the sums of several parts of a ring in one round."""
    federation = Federation(tmp_path, 130, 1)
    clients = federation.aggregator(secure=True, dropout=0.05, colluding=0.0)
    query = Noised(PRIVATE, 3.0, "distributed", n_reporters=120)
    with pytest.raises(ParameterError, match="n_reporters of at most "):
        clients.aggregate(query, None)


def test_a_private_round_is_charged_for_every_attempt(tmp_path):
    faults = {place: at("mask", crash) for place in range(4)}
    federation = Federation(tmp_path, 10, faults=faults)
    ledger = PrivacyLedger(10.0, 1e-6)
    clients = PrivateAggregator(
        federation.aggregator(secure=True, retries=2), ledger=ledger, trust="distributed",
        n_reporters=7, n_colluding=2,
    )  # fmt: skip
    with pytest.raises(NodesError):
        clients.aggregate(Noised(PRIVATE, 3.0), None)
    assert [(charge.sigma, charge.trust) for charge in ledger.charges] == [(3.0, "distributed")] * 3


@pytest.mark.parametrize("trust", ["central", "local"])
def test_private_sums_over_plain_nodes_have_noise_too(tmp_path, trust):
    federation = Federation(tmp_path, 4)
    clients = PrivateAggregator(
        federation.aggregator(), ledger=PrivacyLedger(50.0, 1e-6), trust=trust
    )
    exact = federation.local().aggregate(PRIVATE, None).to_vector()
    noise = np.concatenate(
        [clients.aggregate(Noised(PRIVATE, 3.0), None).to_vector() - exact for _ in range(4)]
    )
    expected = 3.0 if trust == "central" else 3.0 * np.sqrt(100)
    assert abs(noise.std() / expected - 1) < 5 / np.sqrt(2 * len(noise))


# --------------------------------------------------------------------------------------------- styles


def test_a_style_from_secure_sums_over_nodes_is_that_of_the_same_records(tmp_path):
    world, space = drawn_world(60, n_directions=2, n_labels=3, seed=2), whole_space(2, 3)
    there = fit_style(RecordFederation(tmp_path, world, 6).aggregator(secure=True), space)
    here = fit_style(LocalAggregator(world.records), space)
    assert there.n_clients == 60
    for name in ("mean", "shared", "by_label", "within"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), atol=1e-4)


def test_a_style_with_noise_in_shares_of_secure_sums_is_near_it(tmp_path):
    world, space = drawn_world(60, n_directions=2, n_labels=3, seed=2), whole_space(2, 3)
    federation = RecordFederation(tmp_path, world, 6)
    private = PrivateAggregator(
        federation.aggregator(secure=True), ledger=PrivacyLedger(1000.0, 1e-6), n_reporters=5,
        trust="distributed",
    )  # fmt: skip
    there = fit_style(private, space, epsilon=1000.0, delta=1e-6)
    here = fit_style(LocalAggregator(world.records), space)
    apart = np.abs(there.within - here.within)
    assert (apart < 5 * there.errors.within + 0.1).all()
