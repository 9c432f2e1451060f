"""A node and whatever a server may send to it: its policy holds, and nothing of its errors leaves."""

import re
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from federations import EXACT, OPEN, STAGES, Federation, opened, question_of
from polyurn import Records, SizeBins, StyleSpace, answer
from polyurn.errors import FileError, InputError, NodesError
from polyurn.federation.aggregator import FederatedAggregator, Terms
from polyurn.federation.exchange import InProcessExchange
from polyurn.federation.messages import Ask, Invitation, Refusal, tag_of
from polyurn.federation.node import MOST_OPEN, Node
from polyurn.federation.node_log import NodeLogFile
from polyurn.federation.participant import Participant
from polyurn.storage.ledger_file import LedgerFile, open_ledger, raised_ledger
from polyurn.wire import (
    Batch,
    BoundedSurvey,
    Contrast,
    Noised,
    Part,
    RecordColumn,
    Scaled,
    Spread,
    StyleMoments,
    Survey,
    decode_statistics,
    encode_query,
)
from style_cases import drawn_world, whole_space

QUERY = Survey(10, SizeBins.exact(20), pairs=False)
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def question(federation, query=QUERY, *, clients_per_node=None, body=b"", place=0):
    data = query if isinstance(query, bytes) else encode_query(query)
    declared = federation.n_clients if clients_per_node is None else clients_per_node
    return Ask(declared, data, body).encode(tag=secrets.token_bytes(16), node=federation.ids[place])


def invitation(federation, query=QUERY, *, tag=None, **options):
    tag = tag or secrets.token_bytes(16)
    body = Invitation().encode(tag=tag, node=federation.ids[0])
    return question(federation, query, body=body, **options)


def asked(node, ask, stage="plain"):
    reply = node.answer(stage, ask)
    assert tag_of(reply) == tag_of(ask)
    return opened(reply)


def test_a_plain_answer_is_the_sum_over_the_nodes_clients(tmp_path):
    federation = Federation(tmp_path, 1)
    query = Part(QUERY, 0.0, 0.5)
    reply = asked(federation.node(0), question(federation, query))
    expected = answer(query, federation.counts, buckets=federation.buckets([0]))
    got = decode_statistics(reply.body, query)
    np.testing.assert_array_equal(got.to_vector(), expected.to_vector())


def test_buckets_survive_a_restart_and_another_order_of_the_table(tmp_path):
    federation = Federation(tmp_path, 1)
    query, order = Part(QUERY, 0.0, 0.5), np.random.default_rng(0).permutation(25)
    federation.counts = federation.counts[order]
    federation.names = [federation.names[i] for i in order]
    ask = question(federation, query)
    bodies = [asked(node, ask).body for node in (federation.nodes[federation.ids[0]],
                                                 federation.node(0))]  # fmt: skip
    before, after = (decode_statistics(body, query).to_vector() for body in bodies)
    np.testing.assert_allclose(before, after, rtol=1e-13)
    assert 0 < before[0] < 25


# ------------------------------------------------------------------------------------ its policy

REFUSED = {
    "secure only": (EXACT, QUERY, 25, Refusal.SECURE_ONLY),
    "sizes": (OPEN, Survey(10, SizeBins.exact(19), pairs=False), 25, Refusal.OTHER_SIZE),
    "numbers": (
        replace(OPEN, most_numbers=40),
        QUERY,
        25,
        Refusal.TOO_MANY_NUMBERS,
    ),
    "part": (
        replace(OPEN, narrowest_part=0.1),
        Part(QUERY, 0.5, 0.55),
        25,
        Refusal.TOO_NARROW_PART,
    ),
    "fewer clients": (OPEN, QUERY, 24, Refusal.OTHER_CLIENTS),
    "more clients": (OPEN, QUERY, 26, Refusal.OTHER_CLIENTS),
    "categories": (OPEN, Contrast(2, 2), 25, Refusal.OTHER_CATEGORIES),
    "never": (replace(OPEN, rounds_per_day=0), QUERY, 25, Refusal.TOO_OFTEN),
    "bytes": (OPEN, b"no query", 25, Refusal.UNREADABLE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_policy_does_not_allow_is_refused_with_a_code(tmp_path, name):
    policy, query, clients_per_node, refusal = REFUSED[name]
    federation = Federation(tmp_path, 1, policy=policy)
    reply = asked(
        federation.node(0), question(federation, query, clients_per_node=clients_per_node)
    )
    assert (reply.refusal, reply.body) == (refusal, b"")
    assert f"0 numbers sent | refused: {refusal.text}\n" in federation.log(0).read_text()


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "secure only"])
def test_the_same_holds_at_the_first_stage_of_a_secure_sum(tmp_path, name):
    policy, query, clients_per_node, refusal = REFUSED[name]
    federation = Federation(tmp_path, 3, policy=policy)
    ask = invitation(federation, query, clients_per_node=clients_per_node)
    node = federation.node(0)
    reply = asked(node, ask, "advertise")
    assert (reply.refusal, reply.body) == (refusal, b"")
    assert node.memory() == {}


def test_rounds_of_a_day_are_counted_over_restarts_and_come_back_the_next_day(tmp_path):
    federation = Federation(tmp_path, 1, policy=replace(OPEN, rounds_per_day=3))

    def ask_at(when):
        node = federation.node(0, clock=lambda: when)
        return asked(node, question(federation)).refusal

    hours = [NOW + timedelta(hours=h) for h in range(5)]
    assert [ask_at(h) for h in hours] == [None, None, None, Refusal.TOO_OFTEN, Refusal.TOO_OFTEN]
    assert ask_at(NOW + timedelta(hours=24, minutes=1)) is None  # the first is a day old
    assert ask_at(NOW + timedelta(hours=24, minutes=2)) is Refusal.TOO_OFTEN


def test_a_question_that_fails_counts_as_a_round(tmp_path, monkeypatch):
    federation = Federation(tmp_path, 1, policy=replace(OPEN, rounds_per_day=2))
    monkeypatch.setattr("polyurn.federation.node.answer_rows", broken)
    refusals = [asked(federation.node(0), question(federation)).refusal for _ in range(3)]
    assert refusals == [Refusal.FAILED, Refusal.FAILED, Refusal.TOO_OFTEN]


def test_rounds_that_are_begun_at_once_do_not_exceed_the_limit(tmp_path):
    """Both are begun before either has looked at a client."""
    federation = Federation(tmp_path, 3, 2, policy=replace(EXACT, rounds_per_day=1))
    inner = federation.aggregator(secure=True, retries=0)
    begun = []

    def interleaved(node):
        def reply(stage, message):
            if stage == "mask" and not begun:
                begun.append(node)
                inner.aggregate(QUERY, None)
            return federation.nodes[node].answer(stage, message)

        return reply

    exchange = InProcessExchange({node: interleaved(node) for node in federation.ids})
    outer = FederatedAggregator(
        exchange, Terms(retries=0), roster=federation.roster, clients_per_node=2
    )
    with pytest.raises(NodesError, match="0 nodes are left, 3 are needed"):
        outer.aggregate(QUERY, None)
    why = {"it was asked too often in a day": 1}
    assert outer.refused == dict.fromkeys(federation.ids, why)
    assert inner.traffic.n_rounds == 1


# --------------------------------------------------------------------------- what does not leave


class SecretError(Exception):
    """What no server may read."""


def broken(*args, **kwargs):
    raise SecretError("alice has 17 points")


@pytest.mark.parametrize("stage", ["plain", *STAGES])
def test_no_text_of_an_error_reaches_the_server(tmp_path, monkeypatch, stage):
    federation = Federation(tmp_path, 4, 2)
    monkeypatch.setattr("polyurn.federation.node.answer_rows", broken)
    for act in STAGES:
        if act == stage and act != "mask":
            monkeypatch.setattr(Participant, act, broken)
    sent = []

    def recorded(node):
        def reply(stage, message):
            sent.append(federation.nodes[node].answer(stage, message))
            return sent[-1]

        return reply

    federation.exchange = InProcessExchange({node: recorded(node) for node in federation.ids})
    clients = federation.aggregator(secure=stage != "plain", retries=0)
    with pytest.raises(NodesError, match="are needed") as error:
        clients.aggregate(QUERY, None)
    assert sent
    assert not any(word in reply for reply in sent for word in (b"alice", b"Secret", b"Error"))
    assert "alice" not in str(error.value)
    assert any("it failed" in why for why in clients.refused.values())


def test_an_owner_who_cannot_be_told_does_not_make_the_error_leave(tmp_path, monkeypatch):
    monkeypatch.setattr("polyurn.federation.node.answer_rows", broken)
    federation = Federation(tmp_path, 1)
    node = federation.node(0, on_failure=broken)
    assert asked(node, question(federation)).refusal is Refusal.FAILED
    assert federation.log(0).read_text().endswith("refused: it failed\n")


def test_clients_that_some_question_would_be_refused_for_keep_the_node_from_beginning(tmp_path):
    federation = Federation(tmp_path, 1)
    for wrong, why in (
        ({"max_size": 19}, "at most 19 points a client, one has 20"),
        ({"clients_per_node": 24}, "at most 24 clients a node, the table has 25"),
        ({"policy": replace(OPEN, fewest_clients=26)}, "at least 26 clients .* exact sums, got 25"),
        ({"policy": replace(OPEN, most_epsilon=1.0)}, "a ledger with a policy"),
    ):
        with pytest.raises(InputError, match=why):
            federation.node(0, **wrong)


def test_neither_clients_nor_keys_are_shown_in_a_repr(tmp_path):
    assert repr(Federation(tmp_path, 1).node(0)) == f"Node({2**64 - 1}, 25 clients)"


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return Federation(tmp_path_factory.mktemp("fuzz"), 3, 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["plain", *STAGES, "other"]),
    st.binary(max_size=200),
    st.binary(max_size=200),
    st.booleans(),
)
def test_any_bytes_get_a_reply_and_never_an_error(target, stage, query, body, wrapped):
    ask = question(target, query, body=body) if wrapped else query
    assert opened(target.nodes[target.ids[0]].answer(stage, ask)).refusal is not None


def test_a_message_for_another_node_is_not_answered(tmp_path):
    federation = Federation(tmp_path, 2)
    ask = question(federation, place=1)
    assert asked_any(federation.node(0), ask) is Refusal.UNREADABLE


def asked_any(node, ask, stage="plain"):
    return opened(node.answer(stage, ask)).refusal


# --------------------------------------------------------------------------------------- the log


def test_the_log_says_what_was_asked_when_and_what_became_of_it(tmp_path):
    federation = Federation(tmp_path, 4, 2)
    federation.nodes = {
        node: federation.node(place, clock=lambda: NOW) for place, node in enumerate(federation.ids)
    }
    federation.exchange = InProcessExchange({n: one.answer for n, one in federation.nodes.items()})
    federation.aggregator().aggregate(QUERY, None)
    federation.aggregator(secure=True).aggregate(Part(QUERY, 0.0, 0.5), None)
    ask = question(federation, Survey(10, SizeBins.exact(3), pairs=False))
    asked(federation.nodes[federation.ids[0]], ask)
    text = federation.log(0).read_text()
    (name,) = set(re.findall(" of round ([0-9a-f]{32}) ", text))  # of the five lines of a sum
    assert text.replace(f" of round {name} ", " ").splitlines() == [
        "2026-11-17 12:00:00 UTC | plain | survey | 45 numbers sent | answered",
        "2026-11-17 12:00:00 UTC | advertise | part of 1 survey | 0 numbers sent | answered",
        "2026-11-17 12:00:00 UTC | share | part of 1 survey | 0 numbers sent | answered",
        "2026-11-17 12:00:00 UTC | mask | part of 1 survey | 45 numbers sent | answered",
        "2026-11-17 12:00:00 UTC | confirm | part of 1 survey | 0 numbers sent | answered",
        "2026-11-17 12:00:00 UTC | reveal | part of 1 survey | 0 numbers sent | answered",
        "2026-11-17 12:00:00 UTC | plain | survey | 0 numbers sent | refused: "
        "max_size is not the one that was declared to it",
    ]


def test_without_a_line_in_the_log_nothing_is_answered(tmp_path):
    class Full(NodeLogFile):
        def append(self, entry):
            raise FileError("No space left on device")

    federation, told = Federation(tmp_path, 1), []
    node = federation.node(0, log=Full(tmp_path / "full.log"), on_failure=told.append)
    reply = asked(node, question(federation))
    assert (reply.refusal, reply.body) == (Refusal.FAILED, b"")
    assert [str(error) for error in told] == ["No space left on device"]  # to the owner alone


# ----------------------------------------------------------------------------------- secure sums


def test_a_node_may_be_another_process_at_every_stage(tmp_path):
    federation = Federation(tmp_path, 4, 3)

    def fresh(place):
        return lambda stage, message: federation.answer_once(place, stage, message)

    nodes = {node: fresh(place) for place, node in enumerate(federation.ids)}
    federation.exchange = InProcessExchange(nodes)
    got = federation.aggregator(secure=True).aggregate(QUERY, None)
    expected = federation.local().aggregate(QUERY, None)
    np.testing.assert_allclose(got.to_vector(), expected.to_vector(), rtol=0, atol=1e-11)
    assert all(memory == {} for memory in federation.memories.values())


def test_a_stage_is_answered_once(tmp_path):
    federation = Federation(tmp_path, 4, 2)
    seen = {}

    def recorded(node):
        def reply(stage, message):
            seen[node, stage] = message
            return federation.nodes[node].answer(stage, message)

        return reply

    federation.exchange = InProcessExchange({node: recorded(node) for node in federation.ids})
    federation.aggregator(secure=True).aggregate(QUERY, None)
    for (node, stage), message in seen.items():
        if stage != "advertise":
            reply = opened(federation.nodes[node].answer(stage, message))
            assert reply.refusal is Refusal.OFF_PROTOCOL


@pytest.mark.parametrize("again", STAGES[1:])
def test_a_stage_is_answered_once_even_if_its_memory_has_gone_back(tmp_path, again):
    """A process may die after its reply has left, and before what it keeps is kept."""
    federation = Federation(tmp_path, 4, 2)
    node = federation.ids[0]
    asked_before = []

    def forgetful(stage, message):
        before = dict(federation.memories[node])
        said = federation.answer_once(0, stage, message)
        if stage == again:
            asked_before.append((message, before))
        return said

    federation.exchange._nodes[node] = forgetful
    federation.aggregator(secure=True).aggregate(QUERY, None)
    ((message, before),) = asked_before
    assert before
    federation.memories[node] = before
    reply = opened(federation.answer_once(0, again, message))
    assert (reply.refusal, reply.body) == (Refusal.OFF_PROTOCOL, b"")
    assert federation.memories[node] == {}


@pytest.mark.parametrize("kept", [b"", b"damaged", "half", "state"])
def test_a_damaged_memory_is_a_line_in_the_log_and_other_rounds_go_on(tmp_path, kept):
    federation = Federation(tmp_path, 3, 2)
    ask = invitation(federation)
    node = federation.node(0)
    assert asked(node, ask, "advertise").body
    ((name, saved),) = node.memory().items()
    memory = {"half": saved[: len(saved) // 2], "state": saved[:-7]}.get(kept, kept)
    told = []
    node = federation.node(0, memory={name: memory}, on_failure=told.append)
    share = question(federation, b"", body=question_of(ask).body, clients_per_node=0)
    reply = asked(node, share, "share")
    assert reply.refusal in (Refusal.FAILED, Refusal.OFF_PROTOCOL, Refusal.UNREADABLE)
    assert reply.refusal.text in federation.log(0).read_text().splitlines()[-1]
    assert node.memory() == {}
    assert asked(node, invitation(federation), "advertise").body


def test_a_round_whose_tag_was_used_before_is_not_begun_again(tmp_path):
    federation = Federation(tmp_path, 3, 2)
    assert asked(federation.node(0), invitation(federation, tag=bytes(16)), "advertise").body
    reply = asked(federation.node(0), invitation(federation, tag=bytes(16)), "advertise")
    assert reply.refusal is Refusal.OFF_PROTOCOL


def test_rounds_that_are_begun_and_not_ended_do_not_fill_the_memory(tmp_path):
    federation = Federation(tmp_path, 3, 2)
    node = federation.node(0)
    for _ in range(3 * MOST_OPEN):
        assert asked(node, invitation(federation), "advertise").refusal is None
    assert len(node.memory()) == MOST_OPEN


def test_an_invitation_to_a_round_that_is_open_is_refused(tmp_path):
    federation = Federation(tmp_path, 3, 2)
    node, tag = federation.node(0), bytes(16)
    assert asked(node, invitation(federation, tag=tag), "advertise").refusal is None
    reply = asked(node, invitation(federation, tag=tag), "advertise")
    assert reply.refusal is Refusal.OFF_PROTOCOL


def test_ids_that_are_not_one_for_each_client_are_an_error_for_the_owner(tmp_path):
    federation = Federation(tmp_path, 1)
    federation.names = federation.names[:-1]
    with pytest.raises(InputError, match="expected 25 ids, got 24"):
        federation.node(0)


# ------------------------------------------------------------------------------------ private ones

PRIVATE = BoundedSurvey(10, SizeBins.exact(20))


def test_a_node_that_answers_with_noise_only_refuses_every_other_question(tmp_path):
    federation = Federation(tmp_path, 1, policy=replace(OPEN, least_noise=2.0, allow_exact=False))
    node = federation.node(0)
    for query in (QUERY, PRIVATE, Batch((PRIVATE,))):
        assert asked(node, question(federation, query)).refusal is Refusal.PRIVATE_ONLY
    assert asked(node, question(federation, Noised(PRIVATE, 2.0))).refusal is None
    too_little = question(federation, Noised(PRIVATE, 1.99))
    assert asked(node, too_little).refusal is Refusal.TOO_LITTLE_NOISE


def test_every_client_of_a_node_adds_all_of_the_noise_if_it_trusts_nobody(tmp_path):
    federation = Federation(tmp_path, 1)
    query, exact = Noised(PRIVATE, 2.0), answer(PRIVATE, federation.counts).to_vector()
    replies = [asked(federation.node(0), question(federation, query)).body for _ in range(60)]
    noise = np.array([decode_statistics(body, query).to_vector() - exact for body in replies])
    # 25 clients: five times as much; 5 standard errors of 60 x 32 draws.
    assert abs(noise.std() / 10.0 - 1) < 5 / np.sqrt(2 * noise.size)


def test_noise_in_shares_is_refused_outside_of_a_secure_sum(tmp_path):
    federation = Federation(tmp_path, 1)
    query = Noised(PRIVATE, 2.0, "distributed", 5, 1)
    assert asked(federation.node(0), question(federation, query)).refusal is Refusal.SECURE_ONLY


def test_an_owner_who_fears_colluding_nodes_does_not_count_their_shares(tmp_path):
    policy = replace(EXACT, least_noise=2.0, majority=0.75)
    declared = {"max_size": 20, "clients_per_node": 25}
    enough = Noised(PRIVATE, 2.0, "distributed", n_reporters=10, n_colluding=5)
    assert policy.objection(enough, secure=True, **declared) is None
    too_trusting = Noised(PRIVATE, 2.0, "distributed", n_reporters=10, n_colluding=4)
    assert policy.objection(too_trusting, secure=True, **declared) is Refusal.TOO_LITTLE_NOISE


def test_the_owners_budget_holds_whatever_the_server_says(tmp_path):
    federation = Federation(tmp_path, 1)
    node = federation.node(0, ledger=open_ledger(tmp_path / "ledger", epsilon=1.0, delta=1e-6))
    query = question(federation, Noised(PRIVATE, 5.0))
    assert asked(node, query).refusal is None
    again = federation.node(0, ledger=open_ledger(tmp_path / "ledger", epsilon=1.0, delta=1e-6))
    assert asked(again, query).refusal is Refusal.BUDGET_SPENT


def test_the_owners_month_holds_whatever_the_server_says(tmp_path):
    federation = Federation(tmp_path, 1)
    query = question(federation, Noised(PRIVATE, 6.0))
    refusals = []
    for renew in ("yearly:1", "yearly:1", "yearly:1.5"):
        ledger = raised_ledger(tmp_path / "ledger", epsilon=9.0, delta=1e-6, first=9.0, renew=renew)
        refusals += [asked(federation.node(0, ledger=ledger), query).refusal for _ in range(2)]
    spent = Refusal.BUDGET_SPENT
    assert refusals == [None, None, spent, spent, None, None]


def test_an_exact_answer_is_not_missing_from_the_owners_ledger(tmp_path):
    federation = Federation(tmp_path, 1, policy=replace(OPEN, least_noise=0.0))
    ledger = open_ledger(tmp_path / "ledger", epsilon=1.0, delta=1e-6)
    node = federation.node(0, ledger=ledger)
    assert asked(node, question(federation, QUERY)).refusal is None
    assert (ledger.n_exact, ledger.charges) == (1, ())
    assert f"ledger {ledger.entries.mark}" in federation.log(0).read_text()
    entries = LedgerFile(tmp_path / "alone")
    asked(federation.node(0, entries=entries), question(federation, QUERY))
    assert [entry.what for entry in entries.read()] == ["survey"]


def test_what_a_node_was_asked_with_noise_is_in_its_log(tmp_path):
    federation = Federation(tmp_path, 1)
    asked(federation.node(0), question(federation, Noised(PRIVATE, 5.0)))
    assert "noised bounded_survey" in federation.log(0).read_text()


# ---------------------------------------------------------------------------- questions about style


def test_a_node_with_records_answers_a_question_about_style(tmp_path):
    world, query = drawn_world(25, n_labels=4, seed=1), StyleMoments(whole_space(4, 4))
    federation = Federation(tmp_path, 1)
    node = Node(
        federation.ids[0], world.records, ids=world.records.ids.tolist(), key=bytes(32),
        policy=OPEN, log=NodeLogFile(tmp_path / "style.log"), max_size=60,
        clients_per_node=25, signer=federation.keys[federation.ids[0]], roster=federation.roster,
    )  # fmt: skip
    reply = asked(node, question(federation, query))
    got = decode_statistics(reply.body, query).to_vector()
    np.testing.assert_array_equal(got, answer(query, world.records).to_vector())


COLUMN = RecordColumn(2, 4, np.array([-0.5, 0.5]))
OF_COLUMNS = [Spread(4, COLUMN), Scaled(Contrast(4, 3, COLUMN))]


@pytest.mark.parametrize("query", OF_COLUMNS)
def test_a_question_about_a_column_is_charged_to_the_owners_budget(tmp_path, query):
    world, federation = drawn_world(25, n_labels=4, seed=1), Federation(tmp_path, 1)
    ledger = open_ledger(tmp_path / "ledger", epsilon=1.0, delta=1e-6)
    node = Node(
        federation.ids[0], world.records, ids=world.records.ids.tolist(), key=bytes(32),
        policy=OPEN, log=NodeLogFile(tmp_path / "column.log"), max_size=60, clients_per_node=25,
        ledger=ledger, signer=federation.keys[federation.ids[0]], roster=federation.roster,
    )  # fmt: skip
    message = question(federation, Noised(query, 5.0))
    refusals = [asked(node, message).refusal for _ in range(2)]
    assert refusals == [None, Refusal.BUDGET_SPENT]
    (charge,) = ledger.charges
    assert (charge.sigma, charge.change_norm) == (5.0, query.change_norm)


@pytest.mark.parametrize(
    "query",
    [StyleMoments(whole_space()), Part(StyleMoments(whole_space()), 0, 1), *OF_COLUMNS],
)
def test_a_node_with_histograms_only_refuses_it_in_one_clear_line(tmp_path, query):
    federation = Federation(tmp_path, 1, policy=OPEN)
    reply = asked(federation.node(0), question(federation, query))
    assert reply.refusal is Refusal.NO_RECORDS
    assert reply.refusal.text == "it has histograms only, and the question needs records"


def test_a_space_of_another_number_of_features_is_refused_before_any_record_is_looked_at(tmp_path):
    world, federation = drawn_world(25, n_labels=4, seed=1), Federation(tmp_path, 1)
    log = NodeLogFile(tmp_path / "style.log")
    node = Node(
        federation.ids[0], world.records, ids=world.records.ids.tolist(), key=bytes(32),
        policy=OPEN, log=log, max_size=60, clients_per_node=25,
        signer=federation.keys[federation.ids[0]], roster=federation.roster,
    )  # fmt: skip
    reply = asked(node, question(federation, StyleMoments(whole_space(3, 4))))
    assert reply.refusal is Refusal.OTHER_FEATURES
    assert log.n_rounds_since(datetime.now(UTC) - timedelta(days=1)) == 0


@pytest.mark.parametrize("largest", [5.0, 50.0])
def test_a_space_that_only_some_points_overflow_in_does_not_tell_whether_they_are_there(
    tmp_path, largest
):
    """Who refuses is seen outside of the sum: a threshold could be asked for, node by node."""
    above_20 = np.full((2, 1, 1), np.sqrt(np.finfo(np.float64).max) / 20 / 1e150)
    space = StyleSpace(np.zeros((2, 1)), [[1e150]], above_20, radius=1.0)
    records = Records([[1.0], [2.0], [3.0], [largest]], [0, 1, 0, 1], ["a", "a", "b", "b"])
    federation = Federation(tmp_path, 1)
    node = Node(
        federation.ids[0], records, ids=records.ids.tolist(), key=bytes(32),
        policy=OPEN, log=NodeLogFile(tmp_path / "style.log"), max_size=60,
        clients_per_node=25, signer=federation.keys[federation.ids[0]], roster=federation.roster,
    )  # fmt: skip
    assert asked(node, question(federation, StyleMoments(space))).refusal is None
