"""The E-step of a cohort, and the sums that follow from it.

Everything an update can want to know follows from Σ ω by (category, count) pair and by size: the
paper's u and v, the tables and spreads of `Expect`, and the observed curvature. Which of them are
asked for is `answer.py`.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from polyurn.client import kernels
from polyurn.client.rows import Rows
from polyurn.client.simd import LANES
from polyurn.mdm import MDM
from polyurn.rising import digamma_rise, log_rising, trigamma_fall
from polyurn.sizes import SizeBins, Sizes
from polyurn.wire import Expect, ExpectStatistics, Parameters, Update, UpdateStatistics

_A = TypeVar("_A")
_B = TypeVar("_B")

# Tables of fewer pairs are made sooner than a thread is started.
_FEW_PAIRS = 10_000
# Clients whose slopes are multiplied together: enough for a matrix product, few enough for the cache.
_TOGETHER = 512


def answer_update(
    query: Update, rows: Rows, members: NDArray[np.uint32], n_threads: int
) -> UpdateStatistics:
    """Algorithm 2, lines 7 to 10, for all members at once."""
    mdm = query.mdm
    size_logs = _size_logs([mdm], rows.size_values)
    sums = expectations(mdm.alphas, size_logs, rows, members, n_threads)
    rise = digamma_rise(mdm.alphas.sum(axis=1), rows.size_values[:, None])
    return UpdateStatistics(
        n_clients=float(len(members)),
        log_likelihood=sums.log_likelihood,
        responsibilities=sums.by_size.sum(axis=0),
        size_counts=_by_bin(mdm.sizes.bins, rows, sums.by_size),  # E_{k n_i} += ω_k
        numerators=_rises(mdm.alphas, rows, sums.by_pair, n_threads)[1],  # u_k
        denominators=(sums.by_size * rise).sum(axis=0),  # v_k
    )


def answer_expects(
    queries: Sequence[Expect], rows: Rows, members: NDArray[np.uint32], n_threads: int
) -> list[ExpectStatistics]:
    """Σ ω α (ψ(c + α) - ψ(α)) and its like, for all members and all queries at once.

    All queries have the same size bins: what depends on a client's size alone is worked out for the
    components of all of them together.
    """
    asked = [query.parameters for query in queries]
    ends = np.cumsum([len(parameters.weights) for parameters in asked])[:-1]
    size_logs = np.split(_size_logs(asked, rows.size_values), ends, axis=1)
    sums, by_category = [], []
    for parameters, logs in zip(asked, size_logs, strict=True):
        found = expectations(parameters.alphas, logs, rows, members, n_threads)
        by_category.append(_rises(parameters.alphas, rows, found.by_pair, n_threads))
        sums.append((found.log_likelihood, found.by_size))  # one table by pairs at a time: large
    by_size = np.concatenate([by_size for _, by_size in sums], axis=1)
    alpha_0 = np.concatenate([parameters.alphas.sum(axis=1) for parameters in asked])
    n = rows.size_values[:, None]
    by_query = zip(
        np.split(_by_bin(asked[0].sizes.bins, rows, by_size), ends),
        np.split((by_size * (alpha_0 * digamma_rise(alpha_0, n))).sum(axis=0), ends),
        np.split((by_size * (alpha_0**2 * trigamma_fall(alpha_0, n))).sum(axis=0), ends),
        strict=True,
    )
    answers = []
    for query, (log_likelihood, _), (present, rises, falls), of_size in zip(
        queries, sums, by_category, by_query, strict=True
    ):
        alphas = query.parameters.alphas
        size_counts, total_tables, total_spread = of_size
        answer = ExpectStatistics(
            n_clients=float(len(members)),
            log_likelihood=log_likelihood,
            size_counts=size_counts,
            present=present,
            tables=alphas * rises,
            spread=alphas**2 * falls,
            total_tables=total_tables,
            total_spread=total_spread,
            curvature=np.empty(0),
        )
        if query.curvature:
            answer = replace(answer, curvature=_curvature(query, rows, members, answer))
        answers.append(answer)
    return answers


@dataclass(frozen=True)
class Expectations:
    """Σ ω over clients, by (category, count) pair and by size, and the log-likelihood."""

    by_pair: NDArray[np.float64]  # (n_pairs, n_components)
    by_size: NDArray[np.float64]  # (n_sizes, n_components)
    log_likelihood: float


def expectations(
    alphas: NDArray[np.float64],
    size_logs: NDArray[np.float64],
    rows: Rows,
    members: NDArray[np.uint32],
    n_threads: int,
) -> Expectations:
    """The E-step: everything that any update needs to know about the members.

    `size_logs` has shape (n_sizes, n_components): see `_size_logs`.
    """
    k = len(alphas)
    lanes = -(-k // LANES) * LANES
    pair_logs = _pair_logs(alphas, rows, lanes, n_threads)
    padded = np.full((len(size_logs), lanes), -np.inf)
    padded[:, :k] = size_logs

    def part(some: NDArray[np.uint32]) -> Expectations:
        by_pair, by_size = np.zeros_like(pair_logs), np.zeros_like(padded)
        log_likelihood = kernels.expect(
            rows.cells, rows.starts, rows.width, rows.size_index, some,
            pair_logs, padded, by_pair, by_size,
        )  # fmt: skip
        return Expectations(by_pair, by_size, log_likelihood)

    cut = [members] if n_threads == 1 else np.array_split(members, n_threads)
    parts = _map_threads(part, cut)
    for other in parts[1:]:
        parts[0].by_pair[:] += other.by_pair
        parts[0].by_size[:] += other.by_size
    return Expectations(
        by_pair=parts[0].by_pair[:, :k],
        by_size=parts[0].by_size[:, :k],
        log_likelihood=float(sum(p.log_likelihood for p in parts)),
    )


def _pair_logs(
    alphas: NDArray[np.float64], rows: Rows, lanes: int, n_threads: int = 1
) -> NDArray[np.float64]:
    """Log of Γ(c + α_j) / (Γ(α_j) Γ(c + 1) α_0^c) for every pair (category j, count c)."""
    logs = np.zeros((len(rows.count), lanes))
    if rows.every_count:

        def part(span: tuple[int, int]) -> None:
            kernels.tabulate_logs(rows.category, rows.count, alphas, span, logs)

        _map_threads(part, _spans(rows, n_threads))
    else:
        count = rows.count[:, None]
        logs[:, : len(alphas)] = log_rising(
            alphas.T[rows.category], count, scale=alphas.sum(axis=1)
        ) - gammaln(count + 1)
    return logs


def _size_logs(
    several: Sequence[MDM | Parameters], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Log of τ_k π_k(n) Γ(n + 1) Γ(α_0) α_0^n / Γ(n + α_0) for every size n and every component.

    The components of several models with the same size bins stand side by side.
    """
    alpha_0 = np.concatenate([parameters.alphas.sum(axis=1) for parameters in several])
    weights = np.concatenate([parameters.weights for parameters in several])
    masses = np.concatenate([parameters.sizes.masses for parameters in several])
    n = sizes[:, None]
    logs = Sizes(several[0].sizes.bins, masses).logpmf(sizes) + np.log(weights)
    return np.asarray(logs + gammaln(n + 1) - log_rising(alpha_0, n, scale=alpha_0))


def _by_bin(bins: SizeBins, rows: Rows, by_size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ ω by size bin, shape (n_components, n_size_bins)."""
    counts = np.zeros((bins.n_bins, by_size.shape[1]))
    np.add.at(counts, bins.locate(rows.size_values), by_size)
    return np.ascontiguousarray(counts.T)


def _rises(
    alphas: NDArray[np.float64], rows: Rows, by_pair: NDArray[np.float64], n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Σ ω over the clients that have category j, of 1, ψ(c + α) - ψ(α) and ψ′(α) - ψ′(c + α)."""
    present, rises, falls = np.zeros((3, *alphas.shape))
    if rows.every_count:

        def part(span: tuple[int, int]) -> None:
            kernels.sum_rises(
                rows.category, rows.count, alphas, by_pair, span, present, rises, falls
            )

        _map_threads(part, _spans(rows, n_threads))
        return present, rises, falls
    for k in range(len(alphas)):
        seen = by_pair[:, k] > 0  # a category with α = 0 has ω = 0 wherever it occurs
        category, count, weight = rows.category[seen], rows.count[seen], by_pair[seen, k]
        a = alphas[k, category]
        for out, terms in (
            (present, (count > 0)),
            (rises, digamma_rise(a, count)),
            (falls, trigamma_fall(a, count)),
        ):
            out[k] = np.bincount(category, weight * terms, minlength=rows.n_categories)
    return present, rises, falls


def _curvature(
    query: Expect, rows: Rows, members: NDArray[np.uint32], sums: ExpectStatistics
) -> NDArray[np.float64]:
    """The Hessian of Σ log q in x = (log α_k, log τ_k of each k asked for; τ a softmax), lower triangle.

    The Hessian of log q is Σ_k ω_k (∂²_k + g_k g_k') - s s', with g_k the gradient of component k's
    log-probability and s = Σ_k ω_k g_k. ∂²_k follows from sums that are there already, and the softmax
    takes away diag(τ) - ττ' for each client.
    """
    parameters, some = query.parameters, list(query.curvature)
    alphas, tau = parameters.alphas[some], parameters.weights[some]
    alpha_0 = alphas.sum(axis=1)
    k, c = alphas.shape
    a = alphas.T[rows.category]
    tables = (
        _pair_logs(parameters.alphas, rows, len(parameters.weights)),
        _size_logs([parameters], rows.size_values),
        a * digamma_rise(a, rows.count[:, None]),
        digamma_rise(alpha_0, rows.size_values[:, None]),
    )
    found = np.zeros((k, c + 1, k, c + 1))
    for start in range(0, len(members), _TOGETHER):
        part = members[start : start + _TOGETHER]
        omega = np.empty((len(part), len(parameters.weights)))
        slope = np.empty((len(part), k, c + 1))
        kernels.slopes(
            rows.cells, rows.starts, rows.width, rows.size_index, part, rows.category,
            *tables, alphas, omega, slope,
        )  # fmt: skip
        score = omega[:, some, None] * slope
        for i in range(k):
            found[i, :, i] += score[:, i].T @ slope[:, i]
        flat = score.reshape(len(part), -1)
        found -= (flat.T @ flat).reshape(found.shape)
    for i, component in enumerate(some):
        total, spread = sums.total_tables[component], sums.total_spread[component]
        slope = sums.tables[component] - alphas[i] * total / alpha_0[i]
        bend = np.outer(alphas[i], alphas[i]) * spread / alpha_0[i] ** 2
        found[i, :c, i, :c] += bend + np.diag(slope - sums.spread[component])
    found[:, c, :, c] -= len(members) * (np.diag(tau) - np.outer(tau, tau))
    square = found.reshape(k * (c + 1), -1)
    return np.asarray(square[np.tril_indices(len(square))])


def _spans(rows: Rows, n: int) -> list[tuple[int, int]]:
    """The pairs cut into about n spans of whole categories; one where there is little to do."""
    n_pairs = len(rows.category)
    if n == 1 or n_pairs < _FEW_PAIRS:
        return [(0, n_pairs)]
    near = rows.category[np.linspace(0, n_pairs - 1, n + 1).astype(np.int64)[1:-1]]
    cuts = [0, *np.searchsorted(rows.category, near).tolist(), n_pairs]
    return list(pairwise(cuts))


def _map_threads(function: Callable[[_A], _B], parts: list[_A]) -> list[_B]:
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(function, parts))
