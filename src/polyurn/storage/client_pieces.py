"""Rows that come client by client, cut between clients into pieces of about the same size.

Only neighbours are compared: a client whose id is below that of the row above is out of order. Where
rows come from is `long_rows.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.storage.long_rows import Lot

# Rows that are held at once, whatever number of clients they belong to; or so many for each client that
# a piece is to have, where that is more.
_MOST_ROWS = 2**22
_ROWS_PER_CLIENT = 16


class OutOfOrder(Exception):  # noqa: N818 - not an error: whoever cuts sorts first
    """A client comes before the one in the row above."""


@dataclass(frozen=True, eq=False)
class Piece:
    """All rows of some clients, and where the rows of the next begin."""

    is_new: NDArray[np.bool_]  # whether a row is the first of its client
    codes: NDArray[np.int32]
    counts: NDArray[np.int64]
    next_file: int
    next_row: int


def pieces(lots: Iterator[Lot], n_clients: int) -> Iterator[Piece]:
    """Rows of so many whole clients at a time; fewer where they have very many rows."""
    held: list[tuple[Lot, NDArray[np.bool_]]] = []
    last: Any = None

    def cut(at: int) -> Piece:
        """Take away the first rows."""
        nonlocal held
        is_new = np.concatenate([new for _, new in held])[:at]
        codes = np.concatenate([lot.codes for lot, _ in held])[:at]
        counts = np.concatenate([lot.counts for lot, _ in held])[:at]
        left, before = [], 0
        for lot, new in held:  # each keeps its own file: the rows of a client may stand in several
            first, before = max(at - before, 0), before + len(lot.codes)
            place = lot.file, lot.first_row + first
            if first < len(lot.codes):
                left.append((Lot(None, lot.codes[first:], lot.counts[first:], *place), new[first:]))
        if left:
            place = left[0][0].file, left[0][0].first_row
        held = left
        return Piece(is_new, codes, counts, *place)

    held_clients = held_rows = 0
    most_rows = max(_MOST_ROWS, _ROWS_PER_CLIENT * n_clients)
    for lot in lots:
        if len(lot.codes) == 0:
            continue
        is_new = _first_rows(lot.clients, last)
        last = lot.clients[-1]
        held.append((lot, is_new))
        held_clients += int(is_new.sum())
        held_rows += len(is_new)
        while held_clients > n_clients or (held_rows > most_rows and held_clients > 1):
            begins = np.flatnonzero(np.concatenate([new for _, new in held]))
            # As many as fit, and at least one: wherever lots end, the pieces are the same.
            fit = max(1, int(np.searchsorted(begins, most_rows, side="right")) - 1)
            n_cut = min(n_clients, held_clients - 1, fit)
            at = int(begins[n_cut])
            yield cut(at)
            held_clients -= n_cut
            held_rows -= at
    if held:
        yield cut(held_rows)


def _first_rows(clients: Any, last: Any) -> NDArray[np.bool_]:
    """Which rows have another client than the row above; it has to come after that one."""
    is_new = np.ones(len(clients), bool)
    if isinstance(clients, np.ndarray):
        later = clients[1:] > clients[:-1]
        same = clients[1:] == clients[:-1]
        first, before = clients[0], last
    else:
        from pyarrow import compute

        above, below = clients.slice(0, len(clients) - 1), clients.slice(1)
        later = np.asarray(compute.greater(below, above))
        same = np.asarray(compute.equal(below, above))
        first, before = clients[0].as_py(), None if last is None else last.as_py()
    if not (later | same).all() or (before is not None and first < before):
        raise OutOfOrder
    is_new[1:] = later
    is_new[0] = before is None or bool(first != before)
    return is_new
