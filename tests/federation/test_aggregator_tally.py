"""What crossed, counted: rounds, nodes, and the record that an MDM file keeps."""

import json

from federations import Federation, garbage, silent
from polyurn import fit
from polyurn.federation.aggregator import Tally
from polyurn.typed.json_form import from_json, to_json
from polyurn.wire.traffic import Traffic


def tallied():
    """Two rounds over three nodes; 5 is silent in the second, which takes two attempts."""
    tally = Tally()
    with tally.round(1, kind="survey", n_numbers=30):
        tally.n_attempts += 1
        tally.bytes_down, tally.bytes_up = 60, 90
        tally.summed((3, 4, 5))
    with tally.round(2, kind="batch of 4 expect", n_numbers=80):
        tally.n_attempts += 2
        tally.bytes_down, tally.bytes_up = 160, 190
        tally.silent((5,))
        tally.refuse(4, "it answered twice")
        tally.summed((3, 4))
    return tally.traffic(secure=False, clients_per_node=9, known=(5, 4, 3))


def test_what_crosses_inside_a_round_is_of_that_round():
    first, second = tallied().rounds
    assert (first.kind, first.n_nodes, first.n_attempts) == ("survey", 3, 1)
    assert (first.bytes_down, first.bytes_up) == (60, 90)
    assert (second.kind, second.n_nodes, second.n_attempts) == ("batch of 4 expect", 2, 2)
    assert (second.bytes_down, second.bytes_up) == (100, 100)


def test_the_sums_of_each_node_are_counted():
    assert {n.node: n.n_summed for n in tallied().nodes} == {3: 2, 4: 2, 5: 1}


def test_the_record_has_every_node_with_its_name_and_those_that_never_came_too():
    record = tallied().named({3: "ward 3", 8: "ward 8"})
    assert record.n_nodes == 4
    said = [(n.node, n.name, n.n_summed, n.excluded, n.refused) for n in record.nodes]
    assert said == [
        (3, "ward 3", 2, None, ()),
        (4, "4", 2, None, (("it answered twice", 1),)),
        (5, "5", 1, Tally.SILENT, ()),
        (8, "ward 8", 0, None, ()),
    ]


def test_the_record_of_a_fit_over_nodes_is_read_from_json_as_it_was_counted(tmp_path):
    federation = Federation(tmp_path, 5, 20, faults={0: silent, 1: garbage})
    clients = federation.aggregator(min_fraction=0.6)
    done = fit(clients, n_components=1, n_categories=10, max_size=20, max_rounds=4, rng=2)
    crossed = clients.traffic
    record = from_json(Traffic, json.loads(json.dumps(to_json(crossed))))
    assert record == crossed
    assert [one.number for one in record.rounds] == [one.number for one in done.rounds]
    assert [one.n_numbers for one in record.rounds] == [one.n_numbers for one in done.rounds]
    assert [node.n_summed for node in record.nodes] == [0, 0] + [record.n_rounds] * 3
    assert record.seconds == sum(one.seconds for one in record.rounds) > 0
