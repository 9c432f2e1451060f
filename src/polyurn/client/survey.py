"""Sums before there are parameters: Algorithm 1's moments, sizes, and features and groups for starts.

A client's features are its proportions p, Σ p², which tells concentrated clients from spread ones, and
log n / log max_size. What starts are made of them is `server/starts.py`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.rows import Rows
from polyurn.model.sizes import SizeBins
from polyurn.wire import (
    Group,
    GroupStatistics,
    Initialise,
    StartStatistics,
    Survey,
    SurveyStatistics,
)

# One row for each client.
Table: TypeAlias = NDArray[np.float64] | sparse.csr_array[Any]

# Clients whose features are held at once.
_BLOCK_CLIENTS = 8_192


def answer_initialise(
    query: Initialise,
    rows: Rows,
    members: NDArray[np.uint32],
    rng: int | np.random.Generator | None,
) -> StartStatistics:
    """Algorithm 1, lines 4 to 7, for all members at once."""
    joined = np.random.default_rng(rng).integers(query.n_components, size=len(members))  # k_i
    p = _proportions(rows, members)
    groups = _membership(joined[:, None], query.n_components)
    return StartStatistics(
        n_clients=float(len(members)),
        size_counts=_size_counts(rows, members, joined, query.size_bins, query.n_components),
        first_moments=_dense(groups @ p),  # P = Σ c/n
        second_moments=_dense(groups @ (p * p)),  # Q = Σ (c/n) ⊙ (c/n)
    )


def answer_survey(query: Survey, rows: Rows, members: NDArray[np.uint32]) -> SurveyStatistics:
    """Sums of the features and of their products, and how many members have which size."""
    n_features, max_size = query.n_categories + 2, query.size_bins.max_size
    features = np.zeros(n_features)
    products = np.zeros((n_features, n_features) if query.pairs else n_features)
    for start in range(0, len(members), _BLOCK_CLIENTS):
        some = members[start : start + _BLOCK_CLIENTS]
        p = _proportions(rows, some)
        squares, sizes = _squares(p), _log_sizes(rows, some, max_size)
        x = np.concatenate([_dense(p), squares[:, None], sizes[:, None]], axis=1)
        features += x.sum(axis=0)
        products += x.T @ x if query.pairs else (x * x).sum(axis=0)
    if query.pairs:
        products = products[np.tril_indices(n_features)]
    alone = np.zeros(len(members), np.int64)
    (size_counts,) = _size_counts(rows, members, alone, query.size_bins, 1)
    return SurveyStatistics(float(len(members)), features, products, size_counts)


def answer_groups(
    queries: Sequence[Group], rows: Rows, members: NDArray[np.uint32]
) -> list[GroupStatistics]:
    """The moments of the members by the group that they fall into, for each way to form groups.

    All queries have the same size bins and as many groups.
    """
    bins = queries[0].size_bins
    n, k = len(queries), len(queries[0].offsets)
    directions = np.concatenate([query.directions for query in queries])
    offsets = np.concatenate([query.offsets for query in queries])
    beside = np.column_stack([directions[:, -2:], offsets])
    proportions = np.zeros((n * k, rows.n_categories))
    squares, size_counts = np.zeros(n * k), np.zeros(n * k * bins.n_bins)
    where = bins.locate(rows.size_values)
    for start in range(0, len(members), _BLOCK_CLIENTS):
        some = members[start : start + _BLOCK_CLIENTS]
        p = _proportions(rows, some)
        of_client, sizes = _squares(p), _log_sizes(rows, some, bins.max_size)
        others = np.column_stack([of_client, sizes, np.ones(len(some))])
        scores = np.asarray(p @ directions[:, :-2].T) + others @ beside.T
        joined = scores.reshape(len(some), n, k).argmax(axis=2) + k * np.arange(n)
        groups = _membership(joined, n * k)
        proportions += _dense(groups @ p)
        squares += groups @ of_client
        in_bins = joined * bins.n_bins + where[rows.size_index[some]][:, None]
        size_counts += np.bincount(in_bins.reshape(-1), minlength=len(size_counts))
    blocks = zip(
        size_counts.reshape(n, k, -1), proportions.reshape(n, k, -1), squares.reshape(n, k),
        strict=True,
    )  # fmt: skip
    return [GroupStatistics(float(len(members)), *sums) for sums in blocks]


def _proportions(rows: Rows, members: NDArray[np.uint32]) -> Table:
    """c/n of each member, one row each; sparse where the rows are."""
    n = rows.size_values[rows.size_index[members]]
    if rows.width:
        cells = rows.cells.reshape(-1, rows.width)[members]
        return np.asarray(rows.count[cells] / n[:, None])
    p = rows.counts_of(members).astype(np.float64)
    p.data /= np.repeat(n, np.diff(p.indptr))
    return p


def _dense(table: Table) -> NDArray[np.float64]:
    return np.asarray(table.toarray() if sparse.issparse(table) else table)


def _squares(p: Table) -> NDArray[np.float64]:
    """Σ p² of each member."""
    return np.asarray((p * p).sum(axis=1)).reshape(-1)


def _log_sizes(rows: Rows, members: NDArray[np.uint32], max_size: int) -> NDArray[np.float64]:
    """Each member's log n / log max_size."""
    sizes = np.log(rows.size_values) / max(np.log(max_size), 1.0)
    return np.asarray(sizes[rows.size_index[members]])


def _membership(joined: NDArray[np.int64], n_groups: int) -> sparse.csr_array[Any]:
    """A matrix whose product with one row per client sums the rows of each group.

    `joined` has the groups of each client, shape (n_members, n_joined).
    """
    n, each = joined.shape
    starts = np.arange(0, n * each + 1, each)
    members = sparse.csc_array((np.ones(n * each), joined.reshape(-1), starts), (n_groups, n))
    return members.tocsr()


def _size_counts(
    rows: Rows, members: NDArray[np.uint32], joined: NDArray[np.int64], bins: SizeBins, k: int
) -> NDArray[np.float64]:
    which = joined * bins.n_bins + bins.locate(rows.size_values)[rows.size_index[members]]
    return np.bincount(which, minlength=k * bins.n_bins).reshape(k, -1).astype(np.float64)
