"""A node that is slow, and a node that is there twice: nothing is added twice, signed twice or unpaid.

Elsewhere: a silent node and one whose reply comes late (tests/federation/test_aggregator.py), late
replies over Flower (flower/test_grid_exchange.py), two processes at the end of a budget
(tests/storage/test_ledger_file.py), the same keys in two nodes (test_roster.py), a second `join` in one
folder (commands/federation/test_join.py).
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from federations import STAGES, Federation, opened
from polyurn import SizeBins
from polyurn.federation.aggregator import FederatedAggregator, Terms
from polyurn.federation.exchange import InProcessExchange
from polyurn.federation.messages import Refusal
from polyurn.wire import Survey

QUERY = Survey(10, SizeBins.exact(20), pairs=False)
OTHER = Survey(10, SizeBins.exact(20), pairs=True)


def over(federation, exchange, **terms):
    return FederatedAggregator(
        exchange, Terms(**terms), roster=federation.roster, clients_per_node=federation.n_clients
    )


# ------------------------------------------------------------------------------------------ slow


class Slow(InProcessExchange):
    """One node replies to each message only when the next one is sent, to whatever stage that is."""

    def __init__(self, nodes, slow):
        super().__init__(nodes)
        self.slow, self.late = slow, None

    def ask(self, stage, messages, *, timeout):
        late, self.late = self.late, None
        if late is not None:
            yield self.slow, late
        for node, reply in super().ask(stage, messages, timeout=timeout):
            if node == self.slow:
                self.late = reply
            else:
                yield node, reply


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "secure"])
def test_no_reply_of_a_slow_node_is_added_to_another_sum_than_that_it_was_asked_for(
    tmp_path, secure
):
    federation = Federation(tmp_path, 5, 10)
    nodes = {node: one.answer for node, one in federation.nodes.items()}
    clients = over(federation, Slow(nodes, federation.ids[2]), secure=secure)
    others = federation.local([0, 1, 3, 4])
    for query in (QUERY, OTHER, QUERY):
        got = clients.aggregate(query, None)
        expected = others.aggregate(query, None)
        np.testing.assert_allclose(got.to_vector(), expected.to_vector(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("stage", STAGES[1:])
def test_no_stage_that_comes_too_late_is_counted_for_the_one_that_is_asked_now(tmp_path, stage):
    federation = Federation(tmp_path, 5, 10)
    slow, kept = federation.ids[2], []

    def late(asked, message):
        reply = federation.nodes[slow].answer(asked, message)
        if asked == stage:
            kept.append(reply)
            return None
        return kept.pop() if kept else reply

    nodes = {node: one.answer for node, one in federation.nodes.items()}
    clients = over(federation, InProcessExchange({**nodes, slow: late}))
    n_clients = clients.aggregate(QUERY, None).n_clients
    is_in = STAGES.index(stage) > STAGES.index("mask")
    assert n_clients == pytest.approx(50 if is_in else 40, abs=1e-9)
    assert list(clients.excluded) == [slow]


# ------------------------------------------------------------------------------------------ twice

ANSWERS = """
import os, sys
from dataclasses import replace
from pathlib import Path
from federations import OPEN, Federation, opened
from polyurn import SizeBins
from polyurn.federation.messages import Ask
from polyurn.wire import Survey, encode_query
federation = Federation(Path(sys.argv[1]), 1, policy=replace(OPEN, rounds_per_day=10))
node, ask = federation.node(0), Ask(25, encode_query(Survey(10, SizeBins.exact(20), pairs=False)), b"")
print("ready", flush=True)
sys.stdin.readline()
replies = [node.answer("plain", ask.encode(tag=os.urandom(16), node=federation.ids[0]))
           for _ in range(10)]
print(sum(opened(reply).refusal is None for reply in replies))
"""


def test_two_processes_of_a_node_do_not_answer_more_rounds_than_one(tmp_path):
    Federation(tmp_path, 1)  # the log is there
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ANSWERS, str(tmp_path)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
    for process in both:  # both are there: now they begin
        process.stdin.write("\n")
        process.stdin.flush()
    counts = [int(process.communicate()[0]) for process in both]
    assert sum(counts) == 10
    lines = (tmp_path / "0.log").read_text().splitlines()
    assert len(lines) == 20
    assert sum(line.endswith("| answered") for line in lines) == 10


@pytest.mark.parametrize("stage", STAGES[1:])
def test_two_processes_of_a_node_do_not_both_answer_a_stage(tmp_path, stage):
    """Two confirmations of different survivors would give the server both secrets of a node."""
    federation = Federation(tmp_path, 4, 2)
    node, replies = federation.ids[0], []

    def doubled(asked, message):
        if asked != stage:
            return federation.answer_once(0, asked, message)
        twins = [federation.node(0), federation.node(0)]
        begin = Barrier(2)

        def answered(twin):
            begin.wait()
            return twin.answer(asked, message)

        with ThreadPoolExecutor(2) as threads:
            replies.extend(threads.map(answered, twins))
        first = next(reply for reply in replies if opened(reply).refusal is None)
        federation.memories[node] = twins[replies.index(first)].memory()
        return first

    others = {other: federation.nodes[other].answer for other in federation.ids[1:]}
    clients = over(federation, InProcessExchange({node: doubled, **others}))
    assert clients.aggregate(QUERY, None).n_clients == pytest.approx(8, abs=1e-9)
    refusals = {opened(reply).refusal for reply in replies}
    assert len(replies) == 2
    assert refusals == {None, Refusal.OFF_PROTOCOL}


def test_a_node_that_is_connected_twice_is_in_a_sum_once(tmp_path):
    """Both connections reply to every stage, and the second one as whole as the first."""
    federation = Federation(tmp_path, 5, 2)

    class Twice(InProcessExchange):
        def nodes(self):
            return [*super().nodes(), federation.ids[2]]

        def ask(self, stage, messages, *, timeout):
            for node, reply in super().ask(stage, messages, timeout=timeout):
                yield from [(node, reply)] * (2 if node == federation.ids[2] else 1)

    nodes = {node: one.answer for node, one in federation.nodes.items()}
    clients = over(federation, Twice(nodes))
    for _ in range(2):
        assert clients.aggregate(QUERY, None).n_clients == pytest.approx(10, abs=1e-9)
    assert list(clients.refused) == [federation.ids[2]]
