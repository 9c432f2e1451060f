"""A node whose clock jumps: no second day of rounds, no stage of a secure sum a second time.

With a right clock: tests/federation/test_node.py and test_node_log.py.
"""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from federations import OPEN, STAGES, Federation, opened
from polyurn import SizeBins
from polyurn.federation.exchange import InProcessExchange
from polyurn.federation.messages import Ask, Refusal
from polyurn.storage.ledger_file import open_ledger
from polyurn.wire import BoundedSurvey, Noised, Survey, encode_query

QUERY = Survey(10, SizeBins.exact(20), pairs=False)
PRIVATE = Noised(BoundedSurvey(10, SizeBins.exact(20)), 9.0)
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
DAY = timedelta(days=1)


class Clocked:
    """A node of two rounds a day, asked when its clock says a time; what its owner is told."""

    def __init__(self, folder, **options):
        self.federation = Federation(folder, 1, policy=replace(OPEN, rounds_per_day=2))
        self.options, self.told = options, []

    def refusal_at(self, when, query=QUERY):
        """A new process answers each question."""
        node = self.federation.node(
            0, clock=lambda: when, on_failure=self.told.append, **self.options
        )
        ask = Ask(25, encode_query(query), b"")
        message = ask.encode(tag=os.urandom(16), node=self.federation.ids[0])
        return opened(node.answer("plain", message)).refusal


def test_no_second_day_of_rounds_for_a_clock_that_was_set_back_and_right_again(tmp_path):
    """A line of an earlier day would hide all lines before it."""
    clocked = Clocked(tmp_path)
    assert [clocked.refusal_at(NOW) for _ in range(3)] == [None, None, Refusal.TOO_OFTEN]
    for earlier in (NOW - 3 * DAY, datetime(1970, 1, 1, tzinfo=UTC), NOW - timedelta(hours=1)):
        assert clocked.refusal_at(earlier) is Refusal.FAILED
        assert "expected a clock that says at least 2026-11-17 12:0" in str(clocked.told[-1])
        assert "\n" not in str(clocked.told[-1])
        assert clocked.refusal_at(NOW + timedelta(minutes=1)) is Refusal.TOO_OFTEN


def test_no_more_than_one_other_day_for_a_clock_that_was_ahead(tmp_path):
    """Nobody but its owner can say which of the two times is right: until then, nothing is answered."""
    clocked = Clocked(tmp_path)
    assert [clocked.refusal_at(NOW) for _ in range(2)] == [None, None]
    ahead = [clocked.refusal_at(NOW + 30 * DAY) for _ in range(3)]
    assert ahead == [None, None, Refusal.TOO_OFTEN]
    for later in (timedelta(), DAY, 29 * DAY):
        assert clocked.refusal_at(NOW + later) is Refusal.FAILED
    assert "if that line is wrong, move the log away" in str(clocked.told[-1])
    assert clocked.refusal_at(NOW + 32 * DAY) is None


def test_no_round_goes_uncounted_while_a_clock_is_put_right_by_some_minutes(tmp_path):
    clocked = Clocked(tmp_path)
    times = [NOW, NOW - timedelta(minutes=6), NOW - timedelta(minutes=3)]
    assert [clocked.refusal_at(when) for when in times] == [None, None, Refusal.TOO_OFTEN]
    assert clocked.told == []
    assert (
        clocked.refusal_at(NOW + DAY - timedelta(minutes=4)) is None
    )  # the first but one is a day old
    assert clocked.refusal_at(NOW + DAY - timedelta(minutes=3)) is Refusal.TOO_OFTEN


def test_no_question_is_charged_while_the_clock_is_wrong(tmp_path):
    ledger = open_ledger(tmp_path / "ledger", epsilon=4.0, delta=1e-6)
    clocked = Clocked(tmp_path, ledger=ledger)
    assert clocked.refusal_at(NOW, PRIVATE) is None
    assert clocked.refusal_at(NOW - 3 * DAY, PRIVATE) is Refusal.FAILED
    assert len(ledger.charges) == 1


@pytest.mark.parametrize("jump", [timedelta(hours=-30), timedelta(hours=30)], ids=["back", "ahead"])
@pytest.mark.parametrize("again", STAGES[1:])
def test_no_stage_is_answered_twice_after_a_jump_of_the_clock_and_a_crash(tmp_path, again, jump):
    """A second confirmation or reveal would give the server both secrets of a node.

    The crash is one after the reply has left, and before what the process keeps is kept.
    """
    federation, clock = Federation(tmp_path, 4, 2), [NOW]
    kept = []

    def forgetful(stage, message):
        node = federation.node(0, clock=lambda: clock[0])
        before = dict(federation.memories[federation.ids[0]])
        reply = node.answer(stage, message)
        federation.memories[federation.ids[0]] = node.memory()
        if stage == again:
            kept.append((message, before))
        return reply

    others = {node: federation.nodes[node].answer for node in federation.ids[1:]}
    federation.exchange = InProcessExchange({federation.ids[0]: forgetful, **others})
    federation.aggregator(secure=True).aggregate(QUERY, None)
    ((message, before),) = kept
    assert before
    clock[0] = NOW + jump
    federation.memories[federation.ids[0]] = before
    reply = opened(forgetful(again, message))
    assert reply.refusal in (Refusal.OFF_PROTOCOL, Refusal.FAILED)
    assert reply.body == b""
