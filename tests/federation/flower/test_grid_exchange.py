"""Messages over a Grid: whose reply it is, how long it is waited for, and what is none."""

import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from flower_grids import Played, PlayedGrid, message_of
from polyurn.federation.flower.grid_exchange import (
    MESSAGE_TYPE,
    RECORD,
    FlowerExchange,
    answered,
    reply_bytes,
)

LARGEST = 2**64 - 1  # of Flower's ids
TIMEOUT = 60.0


def reverse(stage, message):
    return message[::-1]


def exchange_of(clock, *nodes, **options):
    """Nodes 1, 2, ... under ids as large as Flower's."""
    grid = PlayedGrid({LARGEST - 977 * i: node for i, node in enumerate(nodes)}, clock, **options)
    return grid, FlowerExchange(grid, {key: i for i, key in enumerate(grid.nodes, start=1)})


def ask(exchange, *nodes, stage="plain"):
    return dict(exchange.ask(stage, dict.fromkeys(nodes, b"abc"), timeout=TIMEOUT))


def test_every_node_is_asked_by_its_own_id_and_answers_under_its_number(clock):
    grid, exchange = exchange_of(
        clock, Played(lambda stage, message: stage.encode() + message), Played(reverse)
    )
    assert ask(exchange, 1, 2, stage="mask") == {1: b"maskabc", 2: b"cba"}
    assert [message.metadata.dst_node_id for message in grid.sent] == list(grid.nodes)
    assert {message.metadata.message_type for message in grid.sent} == {MESSAGE_TYPE}


def test_only_connected_nodes_of_the_roster_can_be_asked(clock):
    grid, exchange = exchange_of(clock, Played(reverse), Played(reverse), Played(reverse))
    grid.nodes[12345] = Played(reverse)  # a stranger
    grid.nodes[LARGEST].is_there = False
    assert exchange.nodes() == [2, 3]


def test_nobody_waits_for_a_reply_that_is_there(clock):
    _, exchange = exchange_of(clock, Played(reverse), Played(reverse))
    ask(exchange, 1, 2)
    assert clock.now == 1000.0


def test_replies_are_given_as_they_come(clock):
    _, exchange = exchange_of(clock, Played(reverse, after=20.0), Played(reverse, after=1.0))
    times = {node: clock.now for node, _ in exchange.ask("plain", {1: b"", 2: b""}, timeout=60.0)}
    assert 1001.0 <= times[2] < 1003.0
    assert 1020.0 <= times[1] < 1022.0


def test_a_silent_node_costs_one_timeout(clock):
    _, exchange = exchange_of(clock, Played(reverse), Played())
    assert ask(exchange, 1, 2) == {1: b"cba"}
    assert 1000.0 + TIMEOUT <= clock.now <= 1001.0 + TIMEOUT


def test_a_reply_that_comes_with_the_timeout_is_still_looked_for(clock):
    _, exchange = exchange_of(clock, Played(reverse, after=TIMEOUT))
    assert ask(exchange, 1) == {1: b"cba"}


def test_what_the_sending_takes_is_not_the_nodes_time(clock):
    _, exchange = exchange_of(clock, Played(reverse, after=TIMEOUT - 1), sending_takes=500.0)
    assert ask(exchange, 1) == {1: b"cba"}


def test_a_message_outlives_the_wait_for_its_reply(clock):
    grid, exchange = exchange_of(clock, Played(reverse))
    ask(exchange, 1)
    assert TIMEOUT < grid.sent[0].metadata.ttl <= TIMEOUT + 10.0


# ----------------------------------------------------------------------------------- late replies


def test_a_late_reply_is_a_sign_of_life_of_a_node_that_is_not_asked_now(clock):
    _, exchange = exchange_of(clock, Played(reverse), Played(reverse, after=TIMEOUT + 5))
    assert ask(exchange, 1, 2) == {1: b"cba"}
    clock.now += 5.0
    assert ask(exchange, 1) == {1: b"cba", 2: b"cba"}
    assert ask(exchange, 1) == {1: b"cba"}  # and it is given once


def test_a_late_reply_of_a_node_that_is_asked_again_is_dropped(clock):
    grid, exchange = exchange_of(clock, Played(lambda *_: b"old", after=TIMEOUT + 5))
    assert ask(exchange, 1) == {}
    clock.now += 5.0
    grid.nodes[LARGEST] = Played(lambda *_: b"new", after=1.0)
    assert ask(exchange, 1) == {1: b"new"}


def test_a_late_failure_is_no_sign_of_life_and_is_not_looked_for_again(clock):
    grid, exchange = exchange_of(
        clock, Played(reverse, after=30.0), Played(error="gone", after=TIMEOUT + 5)
    )
    assert ask(exchange, 1, 2) == {1: b"cba"}
    clock.now += 5.0
    grid.pulled.clear()
    assert ask(exchange, 1) == {1: b"cba"}
    assert grid.pulled.count("message 1") == 1 < grid.pulled.count("message 2")


# -------------------------------------------------------------------------- what Flower does not do


def test_a_node_that_failed_replies_with_no_bytes_and_its_words_are_not_passed_on(clock):
    _, exchange = exchange_of(clock, Played(reverse), Played(error="client 7 holds 4711 points"))
    assert ask(exchange, 1, 2) == {1: b"cba", 2: b""}
    assert clock.now == 1000.0


def test_a_message_that_flower_does_not_take_is_that_of_a_failed_node(clock):
    _, exchange = exchange_of(clock, Played(reverse), Played(refuses_messages=True))
    assert ask(exchange, 1, 2) == {1: b"cba", 2: b""}


def test_when_flower_takes_no_message_all_nodes_have_failed(clock):
    _, exchange = exchange_of(clock, Played(reverse), Played(reverse), takes_nothing=True)
    assert ask(exchange, 1, 2) == {1: b"", 2: b""}
    assert clock.now == 1000.0


def test_an_error_of_the_connection_is_the_callers(clock):
    grid, exchange = exchange_of(clock, Played(reverse))
    grid.pull_messages = lambda ids: (_ for _ in ()).throw(ConnectionError("no SuperLink"))
    with pytest.raises(ConnectionError):
        ask(exchange, 1)


# ------------------------------------------------------------------------------ wrong record types


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"another": ConfigRecord({"reply": b"abc"})}),
        RecordDict({RECORD: ConfigRecord({"answer": b"abc"})}),
        RecordDict({RECORD: MetricRecord({"reply": 1.0})}),
        RecordDict({RECORD: ArrayRecord()}),
    ],
)
def test_a_reply_without_our_record_is_nothing_that_could_be_read(content):
    assert reply_bytes(Message(content, reply_to=message_of("plain", b""))) is None


@pytest.mark.parametrize("value", ["text", 3, 2.5, [1, 2], [b"abc"], True])
def test_a_reply_of_another_type_is_given_as_it_is_and_whoever_asks_refuses_it(value):
    content = RecordDict({RECORD: ConfigRecord({"reply": value})})
    assert reply_bytes(Message(content, reply_to=message_of("plain", b""))) == value


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({RECORD: MetricRecord({"stage": 1})}),
        RecordDict({RECORD: ConfigRecord({"stage": 3, "message": "text"})}),
        RecordDict({RECORD: ConfigRecord({"message": [b"abc"]})}),
    ],
)
def test_a_node_is_asked_nothing_readable_by_a_message_that_is_not_ours(content):
    message = Message(content, dst_node_id=5, message_type=MESSAGE_TYPE)
    asked = []
    answered(message, lambda stage, body: asked.append((stage, body)) or b"no")
    assert asked == [("", b"")]


def test_a_reply_goes_to_whoever_asked():
    message = message_of("plain", b"abc", node=LARGEST)
    reply = answered(message, reverse)
    assert reply_bytes(reply) == b"cba"
    assert reply.metadata.src_node_id == LARGEST
    assert reply.metadata.reply_to_message_id == message.metadata.message_id
