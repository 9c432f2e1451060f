import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from polyurn.errors import ParameterError
from polyurn.federation.graph import (
    MOST_LOST,
    MOST_UNMASKED,
    choose_graph,
    neighbourhoods,
    p_lost,
    p_unmasked,
)

SPARSE = [(101, 0.05), (200, 0.3), (1000, 0.05), (1000, 0.1), (1000, 0.3), (10_000, 0.3)]


def ring_is_lost(graph, gone):
    """Whether a round is lost, for each row of dropouts in ring order: shape (n_trials, n_nodes)."""
    half = graph.n_neighbours // 2
    wrapped = np.concatenate([gone[:, -half:], gone, gone[:, :half]], axis=1)
    sums = np.cumsum(np.pad(~wrapped, ((0, 0), (1, 0))), axis=1)
    holders = sums[:, graph.n_neighbours + 1 :] - sums[:, : -(graph.n_neighbours + 1)]
    no_quorum = (~gone).sum(axis=1) < graph.quorum
    return (holders < graph.threshold).any(axis=1) | no_quorum


@pytest.mark.parametrize(("n_nodes", "dropout"), SPARSE)
def test_fewer_than_1_in_10000_rounds_is_lost_by_the_formula(n_nodes, dropout):
    graph = choose_graph(n_nodes, dropout=dropout)
    holders, stay = graph.n_neighbours + 1, 1 - dropout
    secrets = n_nodes * binom.cdf(graph.threshold - 1, holders, stay)
    assert graph.lost <= MOST_LOST
    assert graph.lost <= secrets + binom.cdf(graph.quorum - 1, n_nodes, stay) + 1e-12
    assert 2 * graph.threshold > holders
    assert 2 * graph.quorum > n_nodes


def test_fewer_than_1_in_10000_rounds_is_lost_in_a_simulation_of_the_graph():
    # 20,000 rounds of 1,000 nodes of which 30 % drop out: at 1e-4 each, more than 9 are lost with a
    # probability of 5e-5. The bound says fewer, and the seed is fixed.
    graph, rng = choose_graph(1000, dropout=0.3), np.random.default_rng(1)
    lost = sum(
        int(ring_is_lost(graph, rng.random((500, 1000), dtype=np.float32) < 0.3).sum())
        for _ in range(40)
    )
    assert lost <= 9


def test_the_bound_is_that_of_a_simulation_where_rounds_are_lost():
    # A graph that is too small, so that there is something to count. The union bound is above what
    # happens, and not by much: neighbouring nodes lose their secrets together.
    small = {"n_neighbours": 80, "threshold": 41, "quorum": 501}
    bound = p_lost(1000, **small, dropout=0.3)
    graph, rng = choose_graph(1000, dropout=0.3), np.random.default_rng(2)
    graph = type(graph)(1000, *small.values(), bound, 0.0)
    share = np.mean(ring_is_lost(graph, rng.random((4000, 1000), dtype=np.float32) < 0.3))
    assert 0.1 * bound < share < bound < 0.2


def test_the_graph_of_a_ring_is_that_of_the_simulation():
    nodes = list(range(40))
    near = neighbourhoods(nodes, 6, rng=3)
    ring = [nodes[i] for i in np.random.default_rng(3).permutation(40)]
    for i, node in enumerate(ring):
        assert near[node] == {ring[(i + step) % 40] for step in (-3, -2, -1, 1, 2, 3)}


@pytest.mark.parametrize("n_nodes", [2, 3, 8, 100])
def test_up_to_100_nodes_everybody_is_everybodys_neighbour(n_nodes):
    graph = choose_graph(n_nodes, dropout=0.1)
    assert graph.n_neighbours == n_nodes - 1
    assert 2 * graph.threshold > n_nodes
    assert graph.threshold >= graph.quorum > n_nodes / 2
    near = neighbourhoods(range(n_nodes), graph.n_neighbours)
    assert all(near[node] == set(range(n_nodes)) - {node} for node in range(n_nodes))


def test_the_highest_threshold_is_taken_that_the_dropouts_allow():
    graph = choose_graph(100, dropout=0.1)
    assert (
        binom.cdf(graph.threshold - 1, 100, 0.9) <= MOST_LOST < binom.cdf(graph.threshold, 100, 0.9)
    )


def test_a_small_federation_of_which_many_drop_out_says_how_many_rounds_it_loses():
    graph = choose_graph(8, dropout=0.3)
    assert graph.threshold == 5
    assert graph.lost == pytest.approx(binom.cdf(4, 8, 0.7))


@pytest.mark.parametrize(("n_nodes", "dropout"), SPARSE)
def test_a_fifth_of_colluding_nodes_unmasks_nobody(n_nodes, dropout):
    graph = choose_graph(n_nodes, dropout=dropout)
    marked = int(np.ceil(0.2 * n_nodes))
    enough = n_nodes * hypergeom.sf(graph.threshold - 2, n_nodes - 1, marked, graph.n_neighbours)
    assert enough <= graph.unmasked * (1 + 1e-6) + 1e-30
    assert graph.unmasked <= MOST_UNMASKED


@pytest.mark.parametrize(("n_nodes", "dropout"), [(1000, 0.1), (1000, 0.3)])
def test_a_fifth_of_colluding_nodes_cannot_confirm_two_sets_of_survivors(n_nodes, dropout):
    assert 2 * choose_graph(n_nodes, dropout=dropout).quorum - n_nodes > 0.2 * n_nodes


def test_unmasking_is_as_frequent_as_the_bound_says_where_it_can_be_counted():
    # 20 neighbours, of whom 9 are enough, and 60 of 200 collude; seeded. The bound adds up over nodes
    # that collude themselves, too, and the chance that the ring falls apart.
    bound = p_unmasked(200, n_neighbours=20, threshold=10, colluding=0.3, dropout=0.0) / 200
    assert p_unmasked(200, n_neighbours=20, threshold=14, colluding=0.3, dropout=0.0) < 0.15
    exact = hypergeom.sf(8, 199, 60, 20)
    rng = np.random.default_rng(4)
    rings = np.argsort(rng.random((20_000, 200)), axis=1) < 60
    honest = rings[~rings[:, 0]]
    unmasked = (honest[:, 1:11].sum(axis=1) + honest[:, -10:].sum(axis=1) >= 9).mean()
    assert unmasked == pytest.approx(exact, rel=0.1)  # 4 standard errors
    assert bound == 1 / 200 or bound >= exact


@pytest.mark.parametrize(
    ("n_nodes", "dropout", "colluding"), [(1, 0, 0), (9, 0.5, 0), (9, 0, 0.5), (9, -1, 0)]
)
def test_rates_that_leave_no_majority_are_refused(n_nodes, dropout, colluding):
    with pytest.raises(ParameterError, match="no majority is left"):
        choose_graph(n_nodes, dropout=dropout, colluding=colluding)
