"""Histograms packed for the kernels: each cell is the number of its (category, count) pair.

The number of a *pair* is a row of the tables that the kernels gather from. There are far fewer pairs
than cells. Rows are dense (every category of every client, also zeros) or sparse (non-zero cells only),
whichever makes a pass faster.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.records import Records
from polyurn.counts import Counts, client_sizes, distinct
from polyurn.model.names import columns_of
from polyurn.typed.declared import Ints

# Leaving a sparse row costs a mispredicted branch, about as long as ten cells (measured).
_ROW_COST_IN_CELLS = 10
# If a table over all counts from 1 to the largest is this much larger than the data, only the pairs
# that occur are listed.
_TABLE_TO_CELLS = 1.0
# Clients that are packed at once, so that packing needs little more memory than the result.
_BLOCK_CLIENTS = 65_536


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """A population of histograms; never shown in a repr.

    `cells` has the pair of each stored cell, client after client, and `starts` where each client begins,
    of shape (n_clients + 1,); it is empty when all clients have `width` cells, which is 0 otherwise. The
    pairs are `category` and `count`, of shape (n_pairs,), sorted by both. `size_index`, of shape
    (n_clients,), points into `size_values`, of shape (n_sizes,). `records` are those that the histograms
    count, and `categories` the names, if they are known.
    """

    cells: NDArray[np.unsignedinteger[Any]]
    starts: Ints
    width: int
    category: Ints
    count: Ints
    size_index: NDArray[np.uint32]
    size_values: Ints
    n_categories: int
    records: Records | None = None
    categories: tuple[str, ...] | None = None

    @property
    def n_clients(self) -> int:
        return len(self.size_index)

    def counts_of(self, members: NDArray[np.uint32]) -> sparse.csr_array[Any]:
        """The histograms of some clients, shape (n_members, n_categories)."""
        who = np.arange(len(members))
        if self.width:
            owner = np.repeat(who, self.width)
            cells = self.cells.reshape(-1, self.width)[members].reshape(-1)
        else:
            starts, ends = self.starts[members], self.starts[members + np.uint32(1)]
            lengths = ends - starts
            owner = np.repeat(who, lengths)
            position = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            cells = self.cells[starts[owner] + position]
        shape = (len(members), self.n_categories)
        counts = sparse.csr_array((self.count[cells], (owner, self.category[cells])), shape)
        counts.eliminate_zeros()
        return counts


def packed(clients: object) -> Rows:
    """Clients' counts, checked and packed; or their records, with the counts of their labels."""
    if isinstance(clients, Records):
        return replace(pack(clients.counts), records=clients)
    table, names = columns_of(clients)
    return replace(pack(table), categories=names)


def pack(counts: Counts) -> Rows:
    """Pack checked histograms of shape (n_clients, n_categories)."""
    n_clients, n_categories = counts.shape
    size_values, which_size = distinct(client_sizes(counts))
    n_nonzero = counts.nnz if sparse.issparse(counts) else np.count_nonzero(counts)
    most: Any = counts.max(axis=0)
    largest = np.asarray(most.todense() if hasattr(most, "todense") else most).reshape(-1)
    largest = largest.astype(np.int64)
    dense = n_clients * n_categories <= n_nonzero + _ROW_COST_IN_CELLS * n_clients
    n_cells = n_clients * n_categories if dense else n_nonzero
    every_count = largest.sum() + n_categories <= max(_TABLE_TO_CELLS * n_cells, 1024)
    if dense and every_count:
        pairs = _every_pair(largest, smallest=0)
        cells, starts = _dense_cells(counts, pairs), np.empty(0, dtype=np.int64)
    else:
        dense = False
        rows = sparse.csr_array(counts)
        starts = rows.indptr.astype(np.int64)
        if every_count:
            pairs = _every_pair(largest, smallest=1)
            cells = (pairs.offsets[rows.indices] + rows.data).astype(_cell_type(pairs))
        else:
            stride = int(largest.max()) + 1
            keys, which = distinct(rows.indices.astype(np.int64) * stride + rows.data)
            pairs = _Pairs(*np.divmod(keys, stride), offsets=np.empty(0, dtype=np.int64))
            cells = which.astype(_cell_type(pairs))
    return Rows(
        cells=cells, starts=starts, width=n_categories if dense else 0, category=pairs.category,
        count=pairs.count, size_index=which_size.astype(np.uint32), size_values=size_values,
        n_categories=n_categories,
    )  # fmt: skip


@dataclass(frozen=True)
class _Pairs:
    category: Ints
    count: Ints
    offsets: Ints  # pair number = offsets[category] + count

    def __len__(self) -> int:
        return len(self.count)


def _every_pair(largest: Ints, *, smallest: int) -> _Pairs:
    lengths = largest + 1 - smallest
    ends = np.cumsum(lengths)
    offsets = ends - lengths - smallest
    category = np.repeat(np.arange(len(largest)), lengths)
    return _Pairs(category, np.arange(len(category)) - offsets[category], offsets)


def _dense_cells(counts: Counts, pairs: _Pairs) -> NDArray[np.unsignedinteger[Any]]:
    cells = np.empty(counts.shape, dtype=_cell_type(pairs))
    for start in range(0, counts.shape[0], _BLOCK_CLIENTS):
        block = counts[start : start + _BLOCK_CLIENTS]
        block = block.toarray() if sparse.issparse(block) else block
        cells[start : start + _BLOCK_CLIENTS] = pairs.offsets + block
    return cells.reshape(-1)


def _cell_type(pairs: _Pairs) -> type[np.uint16] | type[np.uint32]:
    return np.uint16 if len(pairs) <= 2**16 else np.uint32
