"""A secure sum over nodes: the five stages of `secure/`, over an exchange.

The server sees masked numbers and their sum. Who is asked, and what happens when a sum is lost, is
`federated.py`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.asking import Asking
from polyurn.errors import LostRoundError, ParameterError
from polyurn.secure.roster import Roster
from polyurn.secure.round import Round
from polyurn.wire import Noised, Query, encode_query, node_bounds
from polyurn.wire.node_messages import question_digest
from polyurn.wire.query import ROUNDING


@dataclass(frozen=True)
class Security:
    """What a secure sum goes by.

    Attributes
    ----------
    roster : Roster
    dropout, colluding : float
        Declared shares of nodes, as in `choose_graph`.
    """

    roster: Roster
    dropout: float
    colluding: float


def secure_sum(
    query: Query[Any],
    cohort: Collection[int],
    *,
    asking: Asking,
    clients_per_node: int,
    needed: int,
    security: Security,
) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """The sum of the answers of a cohort, of shape (n_numbers,), and the nodes that are in it.

    Parameters
    ----------
    query, cohort, asking, clients_per_node, needed
        As in `plain_sum`.
    security : Security

    Raises
    ------
    LostRoundError
        Too few are left, shares do not fit, or the sum is larger than honest nodes' can be.
    """
    data = encode_query(query)
    round_ = Round(
        cohort,
        roster=security.roster.about(question_digest(data, clients_per_node)),
        bounds=node_bounds(query, clients_per_node),
        dropout=security.dropout,
        colluding=security.colluding,
        fewest=needed,
    )
    try:
        ask = round_.invite()
        said = asking.ask("advertise", ask, query=data, clients_per_node=clients_per_node)
        ask = round_.advertised(dict(said))
        _check_neighbourhoods(query, round_.graph.n_neighbours)
        ask = round_.shared(dict(asking.ask("share", ask)))
        ask = round_.masked(dict(asking.ask("mask", ask)))
        ask = round_.confirmed(dict(asking.ask("confirm", ask)))
        total = round_.revealed(dict(asking.ask("reveal", ask)))
    finally:
        for node, why in round_.refused.items():
            asking.tally.refuse(node, why)
    # Nobody sees who it was, and a smaller lie is not seen at all.
    most = query.bounds() * clients_per_node * len(round_.summed)
    if (np.abs(total) > most * (1 + ROUNDING)).any():
        raise LostRoundError("the sum is beyond its bounds: some node sent numbers that are none")
    return total, round_.summed


def _check_neighbourhoods(query: Query[Any], n_neighbours: int) -> None:
    """Refuse what every node would: noise in more shares than it has neighbours to count on."""
    match query:
        case Noised(trust="distributed", n_reporters=n) if n > n_neighbours + 1:
            raise ParameterError(
                f"expected n_reporters of at most {n_neighbours + 1}, a node and its neighbours in the "
                f"secure sum, got {n}; a node counts no share that it cannot see"
            )
