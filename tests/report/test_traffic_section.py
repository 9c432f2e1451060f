"""Traffic on the wire: its section, and the rows of rounds and nodes, however many there are."""

from dataclasses import replace

import pytest

from polyurn.report.provenance_section import (
    MOST_NODES,
    traffic_section,
    what_the_server_saw,
)
from polyurn.wire.traffic import Absence
from report_material import KINDS, federated, gathered, saved, traffic_case


def test_the_smallest_sum_is_said_and_rounds_without_one_do_not_count():
    record = traffic_case(8, odd=2)
    assert what_the_server_saw(record).startswith("sums only, over 6 nodes at least:")
    lost = replace(record.rounds[1], n_nodes=0)
    rounds = (record.rounds[0], lost, *record.rounds[2:])
    after = replace(record, rounds=rounds)
    assert what_the_server_saw(after).startswith("sums only, over 6 nodes at least:")


def test_a_plain_sum_is_called_what_it_is():
    said = what_the_server_saw(traffic_case(secure=False))
    assert said.startswith("every node’s answer")
    assert "histogram can be read off" in said


def section(record):
    return traffic_section(gathered(federated(record)))


def test_a_model_that_was_not_fitted_over_a_federation_has_no_such_section():
    assert traffic_section(gathered(saved())) is None


@pytest.mark.parametrize(
    ("secure", "words"),
    [(True, "saw sums over nodes, and no node’s answer."), (False, "saw every node’s answer.")],
)
def test_what_the_server_saw_is_said_first(secure, words):
    found = section(traffic_case(secure=secure))
    assert found.lead.endswith(words)
    assert found.facts[0][0] == "What the server saw"


def test_what_a_node_sent_at_most_is_said_and_that_sums_are_no_differential_privacy():
    record = traffic_case()
    facts = dict(section(record).facts)
    assert "15,118 numbers in one answer" in facts["What a node sent at most"]
    assert f"{record.n_numbers:,} in all" in facts["What a node sent at most"]
    assert "50 clients at most" in facts["What a node sent at most"]
    assert facts["What that does not promise"].startswith(
        "differential privacy: sums are no guarantee"
    )


def test_rounds_exchanges_and_timeouts_are_said():
    said = dict(section(traffic_case()).facts)["Rounds"]
    assert "6 sums in 7 attempts, over 6 to 8 nodes each; 35 exchanges of messages" in said
    assert "1 of them ended at its timeout" in said
    never = dict(section(traffic_case(odd=0)).facts)["Rounds"]
    assert "none of which ended at its timeout" in never


def test_nodes_that_were_not_in_every_sum_are_said_with_rounds_and_reason():
    record = traffic_case(500, odd=0)
    assert dict(section(record).facts)["Nodes that were not in every sum"] == "none."
    gone = replace(record.nodes[7], absent=(Absence(4, 6, "it was not there"),))
    record = replace(record, nodes=(*record.nodes[:7], gone, *record.nodes[8:]))
    found = section(record)
    said = dict(found.facts)["Nodes that were not in every sum"]
    assert said == "without ward 8 in rounds 4 to 6: it was not there."
    assert [row[0] for row in found.tables[1].rows] == ["ward 8", "499 others"]


def test_bytes_are_said_in_all_and_for_each_node():
    first = replace(traffic_case().rounds[0], bytes_up=8_000_000, bytes_down=4_000)
    record = replace(traffic_case(), rounds=(first,))
    said = dict(section(record).facts)["Bytes"]
    assert said.startswith("8.0 MB from nodes and 4.0 kB to them; for each of the 8 nodes")
    assert "1.0 MB and 500 B, on average" in said


def test_a_resumed_run_says_which_rounds_are_not_in_it():
    record = traffic_case()
    rounds = record.rounds[2:]
    said = dict(section(replace(record, rounds=rounds)).facts)["Rounds"]
    assert said.endswith(
        "2 rounds were before the run was resumed; what clients sent in them was not kept."
    )


def test_a_run_that_asked_nobody_has_no_tables():
    found = section(traffic_case(kinds=()))
    assert found.tables == ()
    assert dict(found.facts)["Rounds"].startswith("0 sums in 0 attempts; 0 exchanges")


def test_the_table_has_a_row_for_each_round_and_the_facts_say_what_its_kinds_ask():
    found = section(traffic_case())
    table = found.tables[0]
    assert [row[1] for row in table.rows] == [kind for kind, _ in KINDS]
    assert [row[0] for row in table.rows] == [str(i + 1) for i in range(len(KINDS))]
    asked = dict(found.facts)["What nodes were asked"]
    assert asked.startswith("“survey”: how clients vary; “group”: ")
    assert "initialise" not in asked


def test_a_round_without_a_sum_says_so_in_the_table():
    record = traffic_case()
    rounds = (*record.rounds[:-1], replace(record.rounds[-1], n_nodes=0))
    table = section(replace(record, rounds=rounds)).tables[0]
    assert table.rows[-1][3] == "no sum"


def test_the_table_of_nodes_says_who_was_benched_and_why_and_whose_replies_were_not_used():
    _, table = section(traffic_case(3)).tables
    assert table.caption == "The 3 nodes"
    assert table.rows == (
        ("ward 1", "1", "it did not reply in time", "–"),
        ("ward 2", "1", "–", "a reply to an earlier message (3×), it answered twice (1×)"),
        ("ward 3", "6", "–", "–"),
    )


@pytest.mark.parametrize("n_nodes", [3, MOST_NODES])
def test_every_node_of_a_small_federation_has_a_row(n_nodes):
    _, table = section(traffic_case(n_nodes)).tables
    assert [row[0] for row in table.rows] == [f"ward {i + 1}" for i in range(n_nodes)]


@pytest.mark.parametrize("odd", [4, MOST_NODES, 60])
def test_of_a_large_federation_odd_nodes_have_a_row_excluded_ones_first(odd):
    _, table = section(traffic_case(500, odd=odd)).tables
    assert table.caption.startswith("The 500 nodes; a row each for those that were excluded")
    *own, others = table.rows
    assert len(own) == min(odd, MOST_NODES)
    excluded = [row[2] != "–" for row in own]
    assert excluded == sorted(excluded, reverse=True)
    assert others[0] == f"{500 - len(own)} others"


def test_the_table_of_many_nodes_ends_with_the_others_together():
    _, table = section(traffic_case(500, odd=60)).tables
    assert table.rows[-1] == (
        "476 others",
        "1 to 6",
        "it did not reply in time (6×)",
        "a reply to an earlier message (90×), it answered twice (30×)",
    )
    _, calm = section(traffic_case(500, odd=0)).tables
    assert calm.rows == (("500 nodes", "6", "–", "–"),)
