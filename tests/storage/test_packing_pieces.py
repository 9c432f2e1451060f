"""Pieces of rows that come client by client: where the rows of the next begin."""

import numpy as np

from polyurn.storage.long_rows import RowBlock
from polyurn.storage.packing import pieces


def block(clients, file, first_row=0):
    n, rows = len(clients), range(first_row, first_row + len(clients))
    return RowBlock(np.array(clients), np.zeros(n, np.int32), np.ones(n, np.int64), file, rows)


def places(blocks, n_clients):
    found = pieces(iter(blocks), n_clients)
    return [(len(piece.codes), piece.next_file, piece.next_row) for piece in found]


def test_the_next_rows_are_found_where_a_client_goes_over_several_files(monkeypatch):
    monkeypatch.setattr("polyurn.storage.packing._MOST_ROWS", 4)
    monkeypatch.setattr("polyurn.storage.packing._ROWS_PER_CLIENT", 0)
    over_two = [block([1, 1, 2], 0), block([2, 2], 1)]
    assert places(over_two, 9) == [(2, 0, 2), (3, 1, 2)]
    assert places([*over_two, block([2, 3], 2)], 9) == [(2, 0, 2), (4, 2, 1), (1, 2, 2)]


def test_pieces_do_not_depend_on_where_lots_end(monkeypatch):
    monkeypatch.setattr("polyurn.storage.packing._MOST_ROWS", 10)
    monkeypatch.setattr("polyurn.storage.packing._ROWS_PER_CLIENT", 0)
    clients = np.sort(np.random.default_rng(0).integers(30, size=100))
    cuts = ([], [50], range(1, 100), [7, 33, 34, 90])
    found = [
        places(
            [
                block(part, 0, first)
                for part, first in zip(np.split(clients, at), [0, *at], strict=True)
            ],
            4,
        )
        for at in map(list, cuts)
    ]
    assert all(one == found[0] for one in found)
