"""What an MDM file keeps of what crossed between a server and its nodes."""

import json
from dataclasses import replace

import pytest

from polyurn.errors import FileError
from polyurn.typed.json_form import from_json, to_json
from polyurn.wire.traffic import Absence, Traffic
from report_material import traffic_case


def as_read(record):
    return json.loads(json.dumps(to_json(record), allow_nan=False))


@pytest.mark.parametrize("n_nodes", [3, 500])
def test_a_record_comes_back_from_json_as_it_was(n_nodes):
    record = traffic_case(n_nodes)
    assert from_json(Traffic, as_read(record)) == record


def test_the_names_in_a_file_are_these():
    record = to_json(traffic_case())
    assert [*record] == [
        "secure", "clients_per_node", "n_asks", "n_timeouts", "rounds", "nodes",
    ]  # fmt: skip
    assert [*record["rounds"][0]] == [
        "number", "kind", "n_numbers", "n_nodes", "n_attempts", "bytes_down", "bytes_up", "seconds",
    ]  # fmt: skip
    assert [*record["nodes"][0]] == ["node", "name", "n_summed", "excluded", "refused", "absent"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"secure": "yes"}, "traffic.secure: expected true or false, got 'yes'"),
        ({"n_asks": -1}, "traffic.n_asks: expected an integer of at least 0, got -1"),
        (
            {"nodes": [{"node": 1, "name": "a", "n_summed": 0, "refused": [["late"]]}]},
            "traffic.nodes[0].refused[0]: expected a list of 2, got ['late']",
        ),
    ],
    ids=str,
)
def test_a_damaged_record_is_one_line(change, line):
    with pytest.raises(FileError) as error:
        from_json(Traffic, {**as_read(traffic_case()), **change}, where="traffic")
    assert str(error.value) == line


def test_a_round_without_a_sum_is_no_sum():
    record = traffic_case()
    lost = replace(record.rounds[-1], n_nodes=0)
    record = replace(record, rounds=(*record.rounds[:-1], lost))
    assert len(record.sums) == len(record.rounds) - 1


def test_a_node_sends_an_answer_in_every_attempt_at_most():
    record = traffic_case()
    again = record.rounds[1]
    assert again.n_attempts == 2
    assert record.n_numbers == sum(one.n_numbers for one in record.rounds) + again.n_numbers


def test_the_rounds_of_an_earlier_run_are_counted():
    record = traffic_case()
    assert record.n_earlier == 0
    assert replace(record, rounds=record.rounds[2:]).n_earlier == 2


@pytest.mark.parametrize("n_nodes", [1, 8, 500])
def test_the_line_fits_on_a_terminal_beside_a_word(n_nodes):
    line = traffic_case(n_nodes, odd=0).line
    assert line.startswith(f"secure sums over {n_nodes} node")
    assert len(line) <= 70


def test_the_line_says_of_how_many_nodes_there_is_anything():
    record = traffic_case(8, odd=0)
    fewer = replace(record, rounds=tuple(replace(one, n_nodes=7) for one in record.rounds))
    assert fewer.line.startswith("secure sums over 7 of 8 nodes: ")


def with_absences(record, *absences):
    """The same, with these absences of the first nodes, one or several each."""
    gone = [replace(node, absent=one) for node, one in zip(record.nodes, absences, strict=False)]
    return replace(record, nodes=(*gone, *record.nodes[len(gone) :]))


def test_the_line_says_over_how_few_and_how_many_nodes_the_sums_were():
    assert traffic_case(8, odd=2).line.startswith("secure sums over 6 to 8 of 8 nodes: ")


def test_who_was_not_in_which_rounds_is_said_once_for_all_that_left_alike():
    late, again = Absence(4, 6, "it did not reply in time"), Absence(2, 2, "it was not there")
    record = with_absences(traffic_case(8), (again, late), (late,))
    assert record.absences == [
        "without ward 1 in round 2: it was not there",
        "without ward 1, ward 2 in rounds 4 to 6: it did not reply in time",
    ]
    assert from_json(Traffic, as_read(record)) == record


def test_of_a_node_that_was_in_no_sum_no_rounds_are_said_unless_there_were_earlier_ones():
    record = traffic_case(2, odd=0).named({5: "ward 5"})
    assert record.absences == ["without ward 5: it was not there"]
    rounds = tuple(replace(one, number=one.number + 9) for one in record.rounds)
    resumed = replace(traffic_case(2, odd=0), rounds=rounds).named({5: "ward 5"})
    assert resumed.absences == ["without ward 5 in rounds 10 to 15: it was not there"]


def test_nobody_is_missed_where_all_were_in_every_sum():
    assert traffic_case(3, odd=0).absences == []
