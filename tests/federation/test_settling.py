"""The wait for nodes before the first round, and one that hangs, by a clock that nobody waits for."""

import pytest

from federations import Federation, aggregator_of
from played_federations import Played, PlayedExchange
from polyurn import SizeBins, fit
from polyurn.errors import NodesError, ParameterError
from polyurn.wire import Survey

BOUNDS = {"n_categories": 10, "max_size": 20, "rng": 2}
QUERY = Survey(10, SizeBins.exact(20), pairs=True)


class Settling:
    """A federation whose nodes are played."""

    def __init__(self, folder, clock, n_nodes=4, n_clients=25):
        self.federation = Federation(folder, n_nodes, n_clients)
        played = {n: Played(node.answer) for n, node in self.federation.nodes.items()}
        self.exchange = PlayedExchange(played, clock)

    def node(self, place):
        return list(self.exchange.played.values())[place]

    def aggregator(self, **options):
        settings = {
            "secure": False,
            "expected": len(self.exchange.played),
            "roster": self.federation.roster,
            "clients_per_node": self.federation.n_clients,
        }
        return aggregator_of(self.exchange, **{**settings, **options})


@pytest.mark.parametrize("secure", [False, True])
def test_a_node_that_hangs_for_ever_costs_a_fit_one_timeout_and_is_named(tmp_path, clock, secure):
    made = Settling(tmp_path, clock, 5, 5)
    made.node(2).answer = None
    clients = made.aggregator(secure=secure, timeout=60.0)
    done = fit(clients, n_components=1, **BOUNDS)
    assert len(done.rounds) > 2
    assert clients.traffic.n_timeouts == 1
    assert list(clients.excluded) == [made.federation.ids[2]]
    assert clock.now - 1000.0 <= 62.0


def test_the_first_round_waits_until_all_nodes_are_connected(tmp_path, clock):
    made = Settling(tmp_path, clock, 4, 2)
    made.node(3).is_there = False

    def arrive():
        made.node(3).is_there = clock.now >= 1010.0

    clock.on_sleep = arrive
    clients = made.aggregator(settling=60.0)
    assert clients.aggregate(QUERY, None).n_clients == 8
    assert 1010.0 <= clock.now <= 1011.0


def test_after_the_settling_time_the_nodes_that_are_there_are_asked(tmp_path, clock):
    made = Settling(tmp_path, clock, 4, 2)
    made.node(3).is_there = False
    clients = made.aggregator(settling=60.0)
    assert clients.aggregate(QUERY, None).n_clients == 6
    settled = clock.now
    assert 1060.0 <= settled <= 1061.0
    clients.aggregate(QUERY, None)  # the second round does not wait again
    assert clock.now == settled


def test_fewer_expected_nodes_are_waited_for_if_the_caller_says_so(tmp_path, clock):
    made = Settling(tmp_path, clock, 4, 2)
    made.node(3).is_there = False
    assert made.aggregator(expected=3).aggregate(QUERY, None).n_clients == 6
    assert clock.now == 1000.0


def test_too_few_nodes_after_the_settling_time_are_an_error_with_the_numbers(tmp_path, clock):
    made = Settling(tmp_path, clock, 4, 2)
    for place in (0, 1):
        made.node(place).is_there = False
    expected = "2 of 4 nodes are connected after 60 s, 3 are needed"
    with pytest.raises(NodesError, match=expected):
        made.aggregator().aggregate(QUERY, None)


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
    made = Settling(tmp_path, clock, 4, 2)
    with pytest.raises(ParameterError, match=why):
        made.aggregator(secure=secure, **settings)
