"""Clients to fit and clients to compare with, held apart by construction.

How the first are fitted and the others compared is elsewhere.
"""

from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

import numpy as np

from polyurn.errors import CountsError, ParameterError
from polyurn.model.names import columns_of
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Ints, Seed


@checked
@dataclass(frozen=True, eq=False)
class ClientSplit:
    """Clients in two parts that share none.

    Attributes
    ----------
    fitted, held_out : int array or csr_array of shape (n, n_categories), or Histograms
        The histograms of each part, with names if the whole table has them.
    fitted_rows, held_out_rows : int array
        Which rows of the whole table these are.
    """

    fitted: Any = field(repr=False)
    held_out: Any = field(repr=False)
    fitted_rows: Ints = field(repr=False)
    held_out_rows: Ints = field(repr=False)


@checked
def split_clients(counts: object, *, held_out: float = 0.2, rng: Seed = None) -> ClientSplit:
    """Set some clients aside, at random, before anything is fitted.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories), or Histograms
    held_out : float
        The share of clients that is set aside; at least one, and at least one is left.
    rng : int or numpy.random.Generator

    Examples
    --------
    >>> split = split_clients([[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]], held_out=0.4, rng=0)
    >>> split.fitted_rows.tolist(), split.held_out_rows.tolist()
    ([0, 1, 3], [2, 4])
    """
    whole: Any = counts
    named, (table, _) = is_dataclass(counts), columns_of(counts)
    parts = split_rows(table.shape[0], held_out=held_out, rng=rng)
    fitted, out = (
        replace(whole, counts=table[rows], clients=whole.clients[rows]) if named else table[rows]
        for rows in parts
    )
    return ClientSplit(fitted, out, *parts)


def split_rows(n_clients: int, *, held_out: float, rng: Seed = None) -> tuple[Ints, Ints]:
    """Which of so many clients are in each part of `split_clients`, in order."""
    if not 0 < held_out < 1:
        raise ParameterError(f"expected held_out between 0 and 1, got {held_out}")
    if n_clients < 2:
        raise CountsError("expected at least two clients to split, got 1")
    n_held_out = min(max(round(held_out * n_clients), 1), n_clients - 1)
    order = np.random.default_rng(rng).permutation(n_clients)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
