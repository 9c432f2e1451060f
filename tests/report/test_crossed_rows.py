"""What crossed, as rows: kinds of question and nodes, however many there are."""

from dataclasses import replace

import pytest

from polyurn.report.traffic import (
    MOST_KINDS,
    MOST_NODES,
    MOST_ODD,
    OTHER,
    round_rows,
    shown_nodes,
    what_the_server_saw,
)
from report_material import crossed_record


def test_questions_that_differ_in_their_numbers_only_are_of_one_kind():
    asked = [row["asked"] for row in round_rows(crossed_record())]
    assert asked == ["survey, score", "group", "expect", "expect", "expect", "expect, score"]


def test_there_are_no_more_kinds_than_shapes_however_many_a_file_has():
    kinds = [(f"question {chr(97 + i)}", 5) for i in range(MOST_KINDS + 4)]
    asked = [row["asked"] for row in round_rows(crossed_record(kinds=kinds))]
    assert len(set(asked)) == MOST_KINDS
    assert asked[-5:] == [OTHER] * 5
    as_many = [row["asked"] for row in round_rows(crossed_record(kinds=kinds[:MOST_KINDS]))]
    assert OTHER not in as_many


def test_the_rows_of_the_rounds_add_up_to_all_bytes():
    record = crossed_record()
    rows = round_rows(record)
    assert sum(row["up"] for row in rows) == record.bytes_up
    assert sum(row["down"] for row in rows) == record.bytes_down


@pytest.mark.parametrize("n_nodes", [3, MOST_NODES])
def test_every_node_of_a_small_federation_has_a_row(n_nodes):
    record = crossed_record(n_nodes)
    shown = shown_nodes(record)
    assert (shown.own, shown.alike, shown.more) == (record.nodes, (), ())


@pytest.mark.parametrize("odd", [0, 4, MOST_ODD, 60])
def test_of_a_large_federation_each_node_is_shown_or_counted_once(odd):
    record = crossed_record(500, odd=odd)
    shown = shown_nodes(record)
    assert len(shown.own) == min(odd, MOST_ODD)
    assert len(shown.more) == max(odd - MOST_ODD, 0)
    assert all(node.benched or node.refused for node in (*shown.own, *shown.more))
    assert sorted((*shown.own, *shown.alike, *shown.more), key=lambda n: -n.node) == [*record.nodes]


def test_benched_nodes_come_before_those_whose_replies_were_not_used():
    shown = shown_nodes(crossed_record(500, odd=4))
    assert [node.benched is None for node in shown.own] == [False, False, True, True]


def test_the_smallest_sum_is_said_and_rounds_without_one_do_not_count():
    record = crossed_record(8, odd=2)
    assert what_the_server_saw(record).startswith("sums only, over 6 nodes at least:")
    lost = replace(record.rounds[1], n_nodes=0)
    rounds = (record.rounds[0], lost, *record.rounds[2:])
    after = replace(record, rounds=rounds)
    assert what_the_server_saw(after).startswith("sums only, over 6 nodes at least:")


def test_a_plain_sum_is_called_what_it_is():
    said = what_the_server_saw(crossed_record(secure=False))
    assert said.startswith("every node’s answer")
    assert "histogram can be read off" in said
