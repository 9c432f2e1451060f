"""Which nodes share masks: a full graph or a ring of neighbours (Bell et al., 2020), and its failures.

The numbers of neighbours and of shares follow from the declared rates of dropouts and of collusion.
Nothing is sent here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, gammaln

from polyurn.errors import ParameterError
from polyurn.typed.declared import Seed

FULL_UP_TO = 100  # nodes; with more, the cost of a full graph to each node exceeds its benefit
MOST_LOST = 1e-4  # of the rounds
MOST_UNMASKED = 2.0**-40  # of the rounds: 40 bits of statistical security


@dataclass(frozen=True)
class Graph:
    """How many neighbours each node has, and how many shares and signatures are needed.

    `n_neighbours` is `n_nodes` - 1, or even: half of them on either side of the ring. `threshold` of the
    `n_neighbours` + 1 shares recover a secret, a majority; a node keeps one share of its own secret.
    `quorum` of `n_nodes`, a majority, have to confirm the survivors; to confirm two sets of survivors, 2
    quorum - n_nodes nodes would have to sign twice. `lost` bounds the probability that a round is lost,
    at the declared rate of dropouts, and `unmasked` the probability that the declared share of colluding
    nodes learns more than a sum.
    """

    n_nodes: int
    n_neighbours: int
    threshold: int
    quorum: int
    lost: float
    unmasked: float


def choose_graph(n_nodes: int, *, dropout: float, colluding: float = 0.2) -> Graph:
    """The smallest graph, with its highest threshold, that loses fewer than 1 in 10,000 rounds.

    `dropout` is the probability that a node is gone before the round's end, independently of the
    others, and `colluding` the share that may tell the server all they know: a larger graph is taken
    until they learn more than the sum with a probability of at most 2**-40. Up to 100 nodes it is the
    full graph. A few nodes of which many drop out lose more rounds than that with any majority:
    `Graph.lost` says how many, and the caller decides.

    >>> [choose_graph(1000, dropout=rate).n_neighbours for rate in (0.05, 0.1, 0.3)]
    [52, 62, 154]
    >>> choose_graph(100, dropout=0.1).threshold
    77
    """
    if n_nodes < 2 or not 0 <= dropout < 0.5 or not 0 <= colluding < 0.5:
        raise ParameterError(
            f"expected two nodes or more, and shares from 0 up to 0.5 that drop out or collude, got "
            f"{n_nodes}, {dropout} and {colluding}: where half of the nodes go, no majority is left"
        )
    sparse = range(2, n_nodes - 1, 2) if n_nodes > FULL_UP_TO else ()
    # Enough that the colluding nodes cannot confirm two sets of survivors; more has no benefit.
    one_set = int((1 + colluding) * n_nodes) // 2 + 1
    quorum = min(one_set, _highest(n_nodes, 1 - dropout, MOST_LOST / 10))
    for n_neighbours in sparse:
        threshold = _highest(n_neighbours + 1, 1 - dropout, 0.9 * MOST_LOST / n_nodes)
        graph = _graph(n_nodes, n_neighbours, threshold, quorum, dropout, colluding)
        if graph.lost <= MOST_LOST and graph.unmasked <= MOST_UNMASKED:
            return graph
    threshold = _highest(n_nodes, 1 - dropout, MOST_LOST)
    return _graph(n_nodes, n_nodes - 1, threshold, min(one_set, threshold), dropout, colluding)


def _highest(n: int, p: float, most: float) -> int:
    """The largest majority t of n for which P(Binomial(n, p) < t) ≤ `most`; else the smallest one."""
    majorities = np.arange(n // 2 + 1, n + 1)
    return int(majorities[max(0, int((bdtr(majorities - 1.0, n, p) <= most).sum()) - 1)])


def _graph(
    n_nodes: int, n_neighbours: int, threshold: int, quorum: int, dropout: float, colluding: float
) -> Graph:
    sizes = {"n_neighbours": n_neighbours, "threshold": threshold}
    lost = p_lost(n_nodes, **sizes, quorum=quorum, dropout=dropout)
    unmasked = p_unmasked(n_nodes, **sizes, colluding=colluding, dropout=dropout)
    return Graph(n_nodes, n_neighbours, threshold, quorum, lost, unmasked)


def p_lost(
    n_nodes: int, *, n_neighbours: int, threshold: int, quorum: int, dropout: float
) -> float:
    """A bound on the probability that some secret cannot be recovered, or that no quorum is left.

    A secret is lost if fewer than `threshold` of its `n_neighbours` + 1 holders stay: a binomial tail,
    and the union bound over nodes. In a full graph that is one event, the same for all nodes.

    >>> round(p_lost(1000, n_neighbours=30, threshold=16, quorum=501, dropout=0.3), 3)
    1.0
    """
    if n_neighbours == n_nodes - 1:
        return float(bdtr(max(threshold, quorum) - 1, n_nodes, 1 - dropout))
    secret, no_quorum = bdtr([threshold - 1, quorum - 1], [n_neighbours + 1, n_nodes], 1 - dropout)
    return min(1.0, float(n_nodes * secret + no_quorum))


def p_unmasked(
    n_nodes: int, *, n_neighbours: int, threshold: int, colluding: float, dropout: float
) -> float:
    """A bound on the probability that the server and colluding nodes learn more than the sum.

    They learn somebody's numbers if `threshold` - 1 of that node's neighbours collude, as a server that
    lies can declare the other neighbours gone: a hypergeometric tail, as the ring has a random order,
    and the union bound over nodes. They learn the sums of two parts of the others if the ring falls
    apart, for which half a neighbourhood in a row has to collude or drop out. The graph has to be drawn
    at random, and for the second the survivors have to be true: docs/secure-sums.md says what a server
    can do that lies about them.

    >>> f"{p_unmasked(1000, n_neighbours=154, threshold=78, colluding=0.33, dropout=0.3):.0e}"
    '2e-03'
    """
    n_colluding = min(int(np.ceil(colluding * n_nodes)), n_nodes - 1)
    enough = _hypergeometric_tail(threshold - 1, n_nodes - 1, n_colluding, n_neighbours)
    apart = 0.0 if n_neighbours == n_nodes - 1 else (colluding + dropout) ** (n_neighbours // 2)
    return min(1.0, n_nodes * (enough + apart))


def _hypergeometric_tail(at_least: int, n: int, n_marked: int, n_drawn: int) -> float:
    """P(at least so many of `n_drawn` are marked); scipy.stats has it, and takes a second to load."""
    x = np.arange(max(at_least, n_drawn - (n - n_marked)), min(n_marked, n_drawn) + 1)

    def log_choose(of: float, some: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1))

    logs = log_choose(n_marked, x) + log_choose(n - n_marked, n_drawn - x)
    return float(np.exp(logs - log_choose(n, np.array(n_drawn))).sum())


def neighbourhoods(
    nodes: Sequence[int], n_neighbours: int, *, rng: Seed = None
) -> dict[int, frozenset[int]]:
    """Each node's neighbours, without itself: the nearest on a ring in random order.

    `n_neighbours` is even, or all others. By default the order is fresh entropy of the system, so that
    no node chooses its position.

    >>> ring = neighbourhoods(range(9), 4, rng=1)
    >>> {len(near) for near in ring.values()}, all(a in ring[b] for a in ring for b in ring[a])
    ({4}, True)
    """
    n = len(nodes)
    ring = [nodes[i] for i in np.random.default_rng(rng).permutation(n)]
    if n_neighbours >= n - 1:
        return {node: frozenset(ring) - {node} for node in ring}
    steps = [step for step in range(-(n_neighbours // 2), n_neighbours // 2 + 1) if step]
    return {node: frozenset(ring[(i + s) % n] for s in steps) for i, node in enumerate(ring)}
