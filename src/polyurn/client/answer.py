"""A client's answer to a query: (query, counts) → Statistics.

One client is a cohort of one: the same code serves both. Nothing here knows which method the server
runs, and nothing is kept between two answers.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from polyurn.client import kernels
from polyurn.client.rows import Rows, pack
from polyurn.client.simd import LANES
from polyurn.counts import check_counts
from polyurn.errors import CountsError
from polyurn.mdm import MDM
from polyurn.rising import digamma_rise, log_rising
from polyurn.wire import (
    Initialise,
    Query,
    S,
    StartStatistics,
    Statistics,
    Update,
    UpdateStatistics,
)


def answer(
    query: Query[S],
    counts: object,
    *,
    rng: int | np.random.Generator | None = None,
    n_threads: int = 1,
) -> S:
    """The statistics of one client or of a whole cohort.

    Parameters
    ----------
    query : Initialise or Update
    counts : int array or scipy.sparse of shape (n_categories,) or (n_clients, n_categories)
    rng : int or numpy.random.Generator
        For queries whose answer is random (`Initialise`).
    n_threads : int

    Returns
    -------
    Statistics
        The sum over the given clients.

    Examples
    --------
    >>> from polyurn.sizes import SizeBins
    >>> answer(Initialise(1, 3, SizeBins.exact(9)), [1, 0, 2], rng=0).first_moments.round(3).tolist()
    [[0.333, 0.0, 0.667]]
    """
    table = check_counts(counts, n_categories=query.dimensions.n_categories)
    return answer_rows(query, pack(table), rng=rng, n_threads=n_threads)


def answer_rows(
    query: Query[S],
    rows: Rows,
    *,
    members: NDArray[np.integer[Any]] | None = None,
    rng: int | np.random.Generator | None = None,
    n_threads: int = 1,
) -> S:
    """`answer` for histograms that are packed already.

    Parameters
    ----------
    members : int array of shape (n_members,), optional
        The clients that take part; all of them by default.
    """
    if rows.n_categories != query.dimensions.n_categories:
        raise CountsError(
            f"expected {query.dimensions.n_categories} categories, "
            f"got histograms of {rows.n_categories}"
        )
    who = np.arange(rows.n_clients, dtype=np.uint32) if members is None else members
    some = who.astype(np.uint32, copy=False)
    match query:
        case Initialise():
            statistics: Statistics = _answer_initialise(query, rows, some, rng)
        case Update():
            statistics = _answer_update(query, rows, some, n_threads)
        case _:
            raise TypeError(f"no client knows how to answer a {type(query).__name__}")
    return cast(S, statistics)


# ------------------------------------------------------------------------------ Algorithm 1


def _answer_initialise(
    query: Initialise,
    rows: Rows,
    members: NDArray[np.uint32],
    rng: int | np.random.Generator | None,
) -> StartStatistics:
    """Algorithm 1, lines 4 to 7, for all members at once."""
    rng = np.random.default_rng(rng)
    joined = rng.integers(query.n_components, size=len(members))  # k_i ~ U{1, ..., K}
    shape = (query.n_components, query.n_categories)
    size_counts = np.zeros((query.n_components, query.size_bins.n_bins))
    bins = query.size_bins.locate(rows.size_values)[rows.size_index[members]]
    np.add.at(size_counts, (joined, bins), 1.0)  # E_{k_i n_i} = 1
    owner, cells = _cells(rows, members)
    p = rows.count[cells] / rows.size_values[rows.size_index[members[owner]]]  # c_i / n_i
    where = joined[owner] * query.n_categories + rows.category[cells]
    first, second = np.zeros(shape), np.zeros(shape)
    np.add.at(first.reshape(-1), where, p)
    np.add.at(second.reshape(-1), where, p * p)
    return StartStatistics(float(len(members)), size_counts, first, second)


def _cells(
    rows: Rows, members: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.unsignedinteger[Any]]]:
    """The stored cells of the members, and the position in `members` that each belongs to."""
    if rows.width:
        cells = rows.cells.reshape(-1, rows.width)[members]
        return np.repeat(np.arange(len(members)), rows.width), cells.reshape(-1)
    starts, ends = rows.starts[members], rows.starts[members + np.uint32(1)]
    lengths = ends - starts
    owner = np.repeat(np.arange(len(members)), lengths)
    position = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, rows.cells[starts[owner] + position]


# ------------------------------------------------------------------------------ Algorithm 2


def _answer_update(
    query: Update, rows: Rows, members: NDArray[np.uint32], n_threads: int
) -> UpdateStatistics:
    """Algorithm 2, lines 7 to 10, for all members at once."""
    mdm = query.mdm
    sums = expectations(mdm, rows, members, n_threads)
    bins = mdm.sizes.bins.locate(rows.size_values)
    size_counts = np.zeros((mdm.n_components, mdm.sizes.bins.n_bins))
    np.add.at(size_counts.T, bins, sums.by_size)  # E_{k n_i} += ω_k
    rise = digamma_rise(mdm.alphas.sum(axis=1), rows.size_values[:, None])
    return UpdateStatistics(
        n_clients=float(len(members)),
        log_likelihood=sums.log_likelihood,
        responsibilities=sums.by_size.sum(axis=0),
        size_counts=size_counts,
        numerators=_numerators(mdm.alphas, rows, sums.by_pair),
        denominators=(sums.by_size * rise).sum(axis=0),  # v_k
    )


@dataclass(frozen=True)
class Expectations:
    """Σ ω over clients, by (category, count) pair and by size, and the log-likelihood."""

    by_pair: NDArray[np.float64]  # (n_pairs, n_components)
    by_size: NDArray[np.float64]  # (n_sizes, n_components)
    log_likelihood: float


def expectations(mdm: MDM, rows: Rows, members: NDArray[np.uint32], n_threads: int) -> Expectations:
    """The E-step: everything that any update needs to know about the members."""
    lanes = -(-mdm.n_components // LANES) * LANES
    pair_logs = _pair_logs(mdm.alphas, rows, lanes)
    size_logs = np.full((len(rows.size_values), lanes), -np.inf)
    size_logs[:, : mdm.n_components] = _size_logs(mdm, rows.size_values)

    def part(some: NDArray[np.uint32]) -> Expectations:
        by_pair, by_size = np.zeros_like(pair_logs), np.zeros_like(size_logs)
        log_likelihood = kernels.expect(
            rows.cells, rows.starts, rows.width, rows.size_index, some,
            pair_logs, size_logs, by_pair, by_size,
        )  # fmt: skip
        return Expectations(by_pair, by_size, log_likelihood)

    parts = _map_threads(part, np.array_split(members, max(1, n_threads)))
    return Expectations(
        by_pair=sum(p.by_pair for p in parts)[:, : mdm.n_components],  # type: ignore[index]
        by_size=sum(p.by_size for p in parts)[:, : mdm.n_components],  # type: ignore[index]
        log_likelihood=float(sum(p.log_likelihood for p in parts)),
    )


def _pair_logs(alphas: NDArray[np.float64], rows: Rows, lanes: int) -> NDArray[np.float64]:
    """Log of Γ(c + α_j) / (Γ(α_j) Γ(c + 1) α_0^c) for every pair (category j, count c)."""
    logs = np.zeros((len(rows.count), lanes))
    if rows.every_count:
        kernels.tabulate_logs(rows.category, rows.count, alphas, logs)
    else:
        count = rows.count[:, None]
        logs[:, : len(alphas)] = log_rising(
            alphas.T[rows.category], count, scale=alphas.sum(axis=1)
        ) - gammaln(count + 1)
    return logs


def _size_logs(mdm: MDM, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log of τ_k π_k(n) Γ(n + 1) Γ(α_0) α_0^n / Γ(n + α_0) for every size n."""
    alpha_0 = mdm.alphas.sum(axis=1)
    n = sizes[:, None]
    return (
        np.log(mdm.weights)
        + mdm.sizes.logpmf(sizes)
        + gammaln(n + 1)
        - log_rising(alpha_0, n, scale=alpha_0)
    )


def _numerators(
    alphas: NDArray[np.float64], rows: Rows, by_pair: NDArray[np.float64]
) -> NDArray[np.float64]:
    """u_kj = Σ_pairs S[pair, k] (ψ(c + α_kj) - ψ(α_kj))."""
    u = np.zeros(alphas.shape)
    if rows.every_count:
        kernels.sum_digammas(rows.category, rows.count, alphas, np.ascontiguousarray(by_pair), u)
        return u
    for k in range(len(alphas)):
        seen = by_pair[:, k] > 0  # a category with α = 0 has ω = 0 wherever it occurs
        category = rows.category[seen]
        terms = by_pair[seen, k] * digamma_rise(alphas[k, category], rows.count[seen])
        u[k] = np.bincount(category, terms, minlength=rows.n_categories)
    return u


def _map_threads(
    function: Callable[[NDArray[np.uint32]], Expectations], parts: list[NDArray[np.uint32]]
) -> list[Expectations]:
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(function, parts))
