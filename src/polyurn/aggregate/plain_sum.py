"""A plain sum over nodes: each answer is checked, and added as it comes.

The server sees every node's answer. Of a node with many clients that is their sum; of a node with one it
is the client's own. `secure_sum.py` is the other way.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.asking import Asking
from polyurn.errors import InputError, MessageError, NodesError, NumbersError
from polyurn.wire import Query, decode_statistics, encode_query


def plain_sum(
    query: Query[Any],
    cohort: Collection[int],
    *,
    asking: Asking,
    clients_per_node: int,
    needed: int,
) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """The sum of the answers of a cohort, of shape (n_numbers,), and the nodes that are in it.

    Parameters
    ----------
    query : Query
    cohort : collection of int
    asking : Asking
    clients_per_node : int
        An answer beyond so many times the bounds of one client is refused.
    needed : int
        With fewer answers than that there is no sum.

    Raises
    ------
    NodesError
    """
    bounds = query.bounds() * clients_per_node
    total, lost, summed = np.zeros(query.n_numbers), np.zeros(query.n_numbers), []
    replies = asking.ask(
        "plain",
        dict.fromkeys(cohort, b""),
        query=encode_query(query),
        clients_per_node=clients_per_node,
    )
    for node, data in replies:
        vector = _vector(data, query)
        if isinstance(vector, str):
            asking.tally.refuse(node, vector)
        elif (np.abs(vector) > bounds).any():
            asking.tally.refuse(node, "numbers beyond their bounds")
        else:
            # Compensated (Neumaier, 1974), so that the sum does not depend on who replied first.
            before, total = total, total + vector
            lost += np.where(
                np.abs(before) >= np.abs(vector),
                (before - total) + vector,
                (vector - total) + before,
            )
            summed.append(node)
    if len(summed) < needed:
        raise NodesError(
            f"{len(summed)} of {len(cohort)} nodes answered, {needed} are needed",
            len(summed),
            needed,
        )
    return total + lost, tuple(sorted(summed))


def _vector(data: bytes, query: Query[Any]) -> NDArray[np.float64] | str:
    """The numbers of an answer, or why it is none: one of a few reasons, whatever arrives."""
    try:
        vector: NDArray[np.float64] = decode_statistics(data, query).to_vector()
        return vector
    except NumbersError:
        return "numbers that are not finite, or beyond 1e150"
    except MessageError:
        return "no answer to the question"
    except InputError:
        return "an answer of another length"
