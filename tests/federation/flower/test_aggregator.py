"""Fits over a Grid against fits on the same clients, and the wait for nodes before the first round."""

import numpy as np
import pytest

from federations import Federation, aggregator_of, garbage, impostor, numbers, replay, short, text
from flower_grids import Played, PlayedGrid
from polyurn import SizeBins, fit
from polyurn.errors import NodesError, ParameterError
from polyurn.federation.flower.grid_exchange import FlowerExchange
from polyurn.wire import Survey

BOUNDS = {"n_categories": 10, "max_size": 20, "rng": 2}
QUERY = Survey(10, SizeBins.exact(20), pairs=True)


class OnFlower:
    """A federation whose nodes are played by a grid."""

    def __init__(self, folder, clock, n_nodes=4, n_clients=25, faults=None):
        self.federation = Federation(folder, n_nodes, n_clients)
        self.numbers = {(1 << 63) + 31 * i: node for i, node in enumerate(self.federation.ids)}
        faults = faults or {}
        self.grid = PlayedGrid(
            {
                key: Played(self._answer(node, faults.get(place)))
                for place, (key, node) in enumerate(self.numbers.items())
            },
            clock,
        )

    def _answer(self, node, fault):
        honest = self.federation.nodes[node].answer
        return honest if fault is None else lambda stage, body: fault(stage, body, honest)

    def node(self, place):
        return list(self.grid.nodes.values())[place]

    def aggregator(self, **options):
        settings = {
            "secure": False,
            "expected": len(self.numbers),
            "roster": self.federation.roster,
            "clients_per_node": self.federation.n_clients,
        }
        exchange = FlowerExchange(self.grid, self.numbers)
        return aggregator_of(exchange, **{**settings, **options})

    def distance(self, mdm, other):
        """In nats, over all clients."""
        counts = self.federation.counts
        return abs(float(mdm.logpmf(counts).sum()) - float(other.logpmf(counts).sum()))


def test_a_fit_over_one_plain_node_is_the_local_fit_to_the_last_bit(tmp_path, clock):
    flower = OnFlower(tmp_path, clock, 1, 100)
    local = fit(flower.federation.local(), n_components=2, **BOUNDS).mdm
    mdm = fit(flower.aggregator(min_nodes=1), n_components=2, **BOUNDS).mdm
    np.testing.assert_array_equal(mdm.weights, local.weights)
    np.testing.assert_array_equal(mdm.alphas, local.alphas)
    np.testing.assert_array_equal(mdm.sizes.masses, local.sizes.masses)


@pytest.mark.parametrize("secure", [False, True])
def test_a_fit_over_four_nodes_is_the_local_fit_to_a_billionth_of_a_nat(tmp_path, clock, secure):
    flower = OnFlower(tmp_path, clock)
    clients = flower.aggregator(secure=secure)
    mdm = fit(clients, n_components=2, **BOUNDS).mdm
    local = fit(flower.federation.local(), n_components=2, **BOUNDS).mdm
    assert flower.distance(mdm, local) <= 1e-9
    assert clients.traffic.summed == tuple(flower.federation.ids)


@pytest.mark.parametrize("secure", [False, True])
def test_a_node_that_hangs_for_ever_costs_a_fit_one_timeout_and_is_named(tmp_path, clock, secure):
    flower = OnFlower(tmp_path, clock, 5, 5)
    flower.node(2).answer = None
    clients = flower.aggregator(secure=secure, timeout=60.0)
    done = fit(clients, n_components=1, **BOUNDS)
    assert len(done.rounds) > 2
    assert clients.traffic.n_timeouts == 1
    assert list(clients.excluded) == [flower.federation.ids[2]]
    assert clock.now - 1000.0 <= 62.0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (numbers(np.nan), "numbers that are not finite, or beyond 1e150"),
        (numbers(1e300), "numbers that are not finite, or beyond 1e150"),
        (numbers(1e100), "numbers beyond their bounds"),
        (short, "an answer of another length"),
        (text, "a reply of type str"),
        (garbage, "a reply that cannot be read"),
        (impostor(1), "a reply in another's name"),
        (replay(), "a reply to an earlier message"),
    ],
    ids=["nan", "1e300", "1e100", "short", "text", "garbage", "impostor", "replay"],
)
def test_a_hostile_node_costs_no_time_and_is_named(tmp_path, clock, fault, reason):
    flower = OnFlower(tmp_path, clock, 4, 5, faults={1: fault})
    clients = flower.aggregator()
    for _ in range(2):
        clients.aggregate(QUERY, None)
    assert clock.now == 1000.0
    assert list(clients.refused) == [flower.federation.ids[1]]
    assert list(clients.refused[flower.federation.ids[1]]) == [reason]


# ------------------------------------------------------------------------------------- settling


def test_the_first_round_waits_until_all_nodes_are_connected(tmp_path, clock):
    flower = OnFlower(tmp_path, clock, 4, 2)
    flower.node(3).is_there = False

    def arrive():
        flower.node(3).is_there = clock.now >= 1010.0

    clock.on_sleep = arrive
    clients = flower.aggregator(settling=60.0)
    assert clients.aggregate(QUERY, None).n_clients == 8
    assert 1010.0 <= clock.now <= 1011.0


def test_after_the_settling_time_the_nodes_that_are_there_are_asked(tmp_path, clock):
    flower = OnFlower(tmp_path, clock, 4, 2)
    flower.node(3).is_there = False
    clients = flower.aggregator(settling=60.0)
    assert clients.aggregate(QUERY, None).n_clients == 6
    settled = clock.now
    assert 1060.0 <= settled <= 1061.0
    clients.aggregate(QUERY, None)  # the second round does not wait again
    assert clock.now == settled


def test_fewer_expected_nodes_are_waited_for_if_the_caller_says_so(tmp_path, clock):
    flower = OnFlower(tmp_path, clock, 4, 2)
    flower.node(3).is_there = False
    assert flower.aggregator(expected=3).aggregate(QUERY, None).n_clients == 6
    assert clock.now == 1000.0


def test_too_few_nodes_after_the_settling_time_are_an_error_with_the_numbers(tmp_path, clock):
    flower = OnFlower(tmp_path, clock, 4, 2)
    for place in (0, 1):
        flower.node(place).is_there = False
    expected = "2 of 4 nodes are connected after 60 s, 3 are needed"
    with pytest.raises(NodesError, match=expected) as error:
        flower.aggregator().aggregate(QUERY, None)
    assert (error.value.n_nodes, error.value.n_needed) == (2, 3)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"expected": 5}, "expected 0 to 4 nodes"),
        ({"expected": -1}, "expected 0 to 4 nodes"),
        ({"settling": -1.0}, "settling as a .*of at least 0"),
    ],
)
@pytest.mark.parametrize("secure", [True, False])
def test_a_wait_that_cannot_end_is_refused(tmp_path, clock, secure, settings, why):
    flower = OnFlower(tmp_path, clock, 4, 2)
    with pytest.raises(ParameterError, match=why):
        flower.aggregator(secure=secure, **settings)
