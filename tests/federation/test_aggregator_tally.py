"""What crossed, counted: rounds, nodes, and the record that an MDM file keeps."""

import json

from federations import Federation, garbage, silent
from polyurn import SizeBins, fit
from polyurn.federation.aggregator import Tally
from polyurn.typed.json_form import from_json, to_json
from polyurn.wire import Survey
from polyurn.wire.traffic import Absence, Traffic

QUERY = Survey(10, SizeBins.exact(20), pairs=False)


def tallied():
    """Two rounds over three nodes; 5 is silent in the second, which takes two attempts."""
    tally = Tally()
    with tally.round(1, kind="survey", n_numbers=30):
        tally.n_attempts += 1
        tally.bytes_down, tally.bytes_up = 60, 90
        tally.summed((3, 4, 5), {3, 4, 5}, {3, 4, 5})
    with tally.round(2, kind="batch of 4 expect", n_numbers=80):
        tally.n_attempts += 2
        tally.bytes_down, tally.bytes_up = 160, 190
        tally.silent((5,))
        tally.refuse(4, "it answered twice")
        tally.summed((3, 4), {3, 4}, {3, 4, 5})
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
    said = [(n.node, n.name, n.n_summed, n.excluded, n.refused, n.absent) for n in record.nodes]
    assert said == [
        (3, "ward 3", 2, None, (), ()),
        (4, "4", 2, None, (("it answered twice", 1),), ()),
        (5, "5", 1, Tally.SILENT, (), (Absence(2, 2, Tally.SILENT),)),
        (8, "ward 8", 0, None, (), (Absence(1, 2, "it was not there"),)),
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


# ------------------------------------------------------------------------- who left and came back


class Followed:
    """A federation whose nodes are there or not as a test says, and the changes that were told."""

    def __init__(self, folder, n_nodes=5, *, faults=None, **terms):
        self.federation = Federation(folder, n_nodes, 2, faults=faults)
        self.ids, self.told = self.federation.ids, []
        self.there = set(self.ids)
        self.federation.exchange.nodes = lambda: sorted(self.there)
        self.clients = self.federation.aggregator(
            on_change=lambda *change: self.told.append(change), rng=0, **terms
        )

    def ask(self, cohort_size=None):
        self.clients.aggregate(QUERY, cohort_size)

    def absences(self):
        return {node.node: node.absent for node in self.clients.traffic.nodes if node.absent}


def test_who_leaves_and_comes_back_is_told_as_it_happens_and_kept_as_ranges(tmp_path):
    place = Followed(tmp_path)
    gone = place.ids[2]
    for rounds, there in ((2, True), (3, False), (1, True), (1, False)):
        place.there = set(place.ids) if there else set(place.ids) - {gone}
        for _ in range(rounds):
            place.ask()
    why = "it was not there"
    assert place.told == [(3, {gone: why}, []), (6, {}, [gone]), (7, {gone: why}, [])]
    assert place.absences() == {gone: (Absence(3, 5, why), Absence(7, 7, why))}
    named = place.clients.traffic.named({gone: "ward 9"})
    assert named.absences == [
        f"without ward 9 in rounds 3 to 5: {why}", f"without ward 9 in round 7: {why}",
    ]  # fmt: skip


def test_a_node_that_is_silent_from_the_first_round_is_told_with_the_reason(tmp_path):
    place = Followed(tmp_path, faults={1: silent})
    place.ask()
    place.ask()
    assert place.told == [(1, {place.ids[1]: "it did not reply in time"}, [])]
    assert place.absences() == {place.ids[1]: (Absence(1, 2, "it did not reply in time"),)}


def test_a_node_that_joins_late_was_not_in_the_rounds_before(tmp_path):
    place = Followed(tmp_path)
    late = place.ids[4]
    place.there -= {late}
    place.ask()
    place.ask()
    place.there |= {late}
    place.ask()
    assert place.told == [(3, {}, [late])]
    assert place.absences() == {late: (Absence(1, 2, "it was not there"),)}


def test_a_node_that_is_not_drawn_for_a_cohort_has_not_left(tmp_path):
    place = Followed(tmp_path)
    for _ in range(4):
        place.ask(3)
    assert (place.told, place.absences()) == ([], {})
    place.there -= {place.ids[0]}
    place.ask(3)
    assert place.told == [(5, {place.ids[0]: "it was not there"}, [])]


def test_a_node_that_refuses_has_not_joined_again_where_it_was_not_drawn(tmp_path):
    place = Followed(tmp_path, faults={0: garbage}, min_nodes=2, min_fraction=0.5)
    for _ in range(8):
        place.ask(3)
    ((_, left, joined),) = place.told
    assert (list(left), joined) == ([place.ids[0]], [])


def test_the_reason_is_that_of_the_round_in_which_a_node_left(tmp_path):
    place = Followed(tmp_path, faults={3: garbage}, min_fraction=0.5)
    place.ask()
    place.there -= {place.ids[2]}
    place.ask()
    refused = place.clients.refused[place.ids[3]]
    assert place.told == [
        (1, {place.ids[3]: next(iter(refused))}, []), (2, {place.ids[2]: "it was not there"}, []),
    ]  # fmt: skip
