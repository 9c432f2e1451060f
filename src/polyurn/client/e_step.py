"""The E-step of a cohort, and the sums that follow from it.

Everything that an update needs is computed from Σ ω by (category, count) pair and by size: the paper's u
and v, the tables and spreads of `Expect`, and the observed curvature. With splits, each term of a
client's log-probability depends on a node and the points that arrive there, so that tables over the
pairs (node, total) that occur serve all clients.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from polyurn.client import e_step_kernels as kernels
from polyurn.client.cohort import Cohort
from polyurn.client.rows import Rows
from polyurn.client.simd import LANES
from polyurn.counts import distinct
from polyurn.model.mdm import MDM
from polyurn.model.rising_factorials import digamma_rise, trigamma_fall
from polyurn.model.sizes import SizeBins
from polyurn.model.splits import Laws, Splits, hats
from polyurn.model.trees import Tree
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import (
    Divide,
    DivideStatistics,
    Expect,
    ExpectStatistics,
    Parameters,
    Update,
    UpdateStatistics,
)

# Clients whose gradients enter one matrix product: many enough for its speed, few enough for the cache.
_TOGETHER = 512
# Clients whose sizes are looked up at once: one number each.
_BLOCK = 65_536
# Clients times categories, or nodes, that are dense at once.
CELLS = 4_000_000


def answer_update(query: Update, cohort: Cohort) -> UpdateStatistics:
    """Algorithm 2, lines 7 to 10, for all members at once."""
    (log_likelihood,), (size_counts,), (by_category,), (by_total,) = _sums_of_many(
        [query.mdm], cohort
    )
    return UpdateStatistics(
        n_clients=float(len(cohort)),
        log_likelihood=float(log_likelihood),
        responsibilities=size_counts.sum(axis=1),  # Σ ω_k
        size_counts=size_counts,  # E_{k n_i} += ω_k
        numerators=by_category[1],  # u_k
        denominators=by_total[1, :, 0],  # v_k
    )


def answer_expects(queries: Sequence[Expect], cohort: Cohort) -> list[ExpectStatistics]:
    """Σ ω α (ψ(c + α) - ψ(α)) and the other sums of queries that share size bins and K."""
    asked = [query.parameters for query in queries]
    log_likelihoods, size_counts, by_category, by_total = _sums_of_many(asked, cohort)
    alphas = np.array([parameters.alphas for parameters in asked])
    alpha_0 = alphas.sum(axis=2)
    present, rises, falls = by_category.swapaxes(0, 1)
    _, total_rises, total_falls = by_total[..., 0].swapaxes(0, 1)
    blocks = (  # in the order of the fields
        log_likelihoods.tolist(),
        size_counts,
        present,
        alphas * rises,  # tables
        alphas**2 * falls,  # spread
        alpha_0 * total_rises,  # total_tables
        alpha_0**2 * total_falls,  # total_spread
        [np.empty(0)] * len(queries),  # curvature
    )
    n_clients, answers = float(len(cohort)), []
    for query, *values in zip(queries, *blocks, strict=True):
        answer = ExpectStatistics(n_clients, *values)
        if query.curvature:
            answer = replace(answer, curvature=_curvature(query, cohort, answer))
        answers.append(answer)
    return answers


def _sums_of_many(models: Sequence[MDM | Parameters], cohort: Cohort) -> tuple[Floats, ...]:
    """The log-likelihoods and the other sums of `kernels.expect_many` for models with the same bins.

    Threads share the models, or the members.
    """
    rows, members, n_threads = cohort.rows, cohort.members, cohort.n_threads
    alphas = np.array([model.alphas for model in models])
    densities = np.array([_density(model) for model in models])
    bins = models[0].sizes.bins
    size_bins = bins.locate(rows.size_values)
    n, k, c = alphas.shape
    shapes = ((), densities.shape[1:], (3, k, c), (3, k, 1))

    def zeros(n_models: int) -> tuple[Floats, ...]:
        return tuple(np.zeros((n_models, *shape)) for shape in shapes)

    def part(task: tuple[slice, NDArray[np.uint32]]) -> tuple[Floats, ...]:
        some, who = task
        sums = zeros(some.stop - some.start)
        kernels.expect_many(
            rows.cells, rows.starts, rows.width, rows.size_index, who,
            rows.category, rows.count, rows.size_values, size_bins,
            alphas[some], densities[some], *sums,
        )  # fmt: skip
        return sums

    if n < n_threads:
        tasks = [(slice(0, n), who) for who in np.array_split(members, n_threads)]
    else:
        cuts = [n * i // n_threads for i in range(n_threads + 1)]
        tasks = [(slice(*ends), members) for ends in pairwise(cuts)]
    with ThreadPoolExecutor(len(tasks)) as threads:
        each = map if len(tasks) == 1 else threads.map
        done = list(each(part, tasks))
    sums = zeros(n)
    for (some, _), found in zip(tasks, done, strict=True):
        for total, one in zip(sums, found, strict=True):
            total[some] += one
    sums[0][:] += _log_inside(bins, cohort)
    return sums


def _density(model: MDM | Parameters) -> Floats:
    """Log of τ_k and the mass of each bin, shape (n_components, n_size_bins).

    π_k(n) is the mass of n's bin in component k, times P(n | bin). All components share the second
    factor: the E-step leaves it out, and `_log_inside` counts it once for each client.
    """
    with np.errstate(divide="ignore"):  # an empty bin has log-probability -inf
        return np.asarray(np.log(model.weights)[:, None] + np.log(model.sizes.masses))


def _log_inside(bins: SizeBins, cohort: Cohort) -> float:
    """Σ log P(n | bin of n) over the members."""
    logs = bins.log_inside(cohort.rows.size_values)
    blocks = cohort.blocks(_BLOCK)
    return float(sum(logs[some.rows.size_index[some.members]].sum() for some in blocks))


def _lanes(n_components: int) -> int:
    """Columns of a table by components: the kernels take four of them at a time."""
    return -(-n_components // LANES) * LANES


def _size_logs(parameters: Parameters, rows: Rows) -> Floats:
    """Log of τ_k mass_k Γ(n + 1) Γ(α_0) α_0^n / Γ(n + α_0) for every size n; -inf in unused lanes."""
    k, n_sizes = len(parameters.weights), len(rows.size_values)
    logs = np.full((n_sizes, _lanes(k)), -np.inf)
    logs[:, :k] = _density(parameters).T[parameters.sizes.bins.locate(rows.size_values)]
    rising = np.empty(logs.shape)
    # A client's size is the count of a single category with all points, whose α is α_0.
    kernels.tabulate_logs(*_as_pairs(rows), parameters.alphas.sum(axis=1, keepdims=True), rising)
    logs[:, :k] -= rising[:, :k]
    return logs


def _as_pairs(rows: Rows) -> tuple[Ints, Ints]:
    """The sizes as counts of a single category."""
    return np.zeros(len(rows.size_values), np.int64), rows.size_values


def _curvature(query: Expect, cohort: Cohort, sums: ExpectStatistics) -> Floats:
    """The Hessian of Σ log q in x = (log α_k, log τ_k of each k asked for; τ a softmax), lower triangle.

    The Hessian of log q is Σ_k ω_k (∂²_k + g_k g_k') - s s', with g_k the gradient of component k's
    log-probability and s = Σ_k ω_k g_k. ∂²_k follows from `sums`, and the softmax
    subtracts diag(τ) - ττ' for each client.
    """
    rows, members = cohort.rows, cohort.members
    parameters, some = query.parameters, list(query.curvature)
    alphas, tau = parameters.alphas[some], parameters.weights[some]
    alpha_0 = alphas.sum(axis=1)
    k, c = alphas.shape
    # Log of Γ(c + α_j) / (Γ(α_j) Γ(c + 1) α_0^c) for every pair (category j, count c).
    pair_logs = np.empty((len(rows.count), _lanes(len(parameters.alphas))))
    kernels.tabulate_logs(rows.category, rows.count, parameters.alphas, pair_logs)
    pair_rises, size_rises = (
        np.empty((len(values), _lanes(k))) for values in (rows.count, rows.size_values)
    )
    kernels.tabulate_rises(rows.category, rows.count, alphas, pair_rises)
    kernels.tabulate_rises(*_as_pairs(rows), alpha_0[:, None], size_rises)
    tables = (
        pair_logs, _size_logs(parameters, rows), len(parameters.weights), np.array(some),
        pair_rises, size_rises, alphas / alpha_0[:, None],
    )  # fmt: skip
    found = np.zeros((k, c + 1, k, c + 1))
    gradients, scores = np.empty((2, min(_TOGETHER, len(members)), k, c + 1))
    for start in range(0, len(members), _TOGETHER):
        part = members[start : start + _TOGETHER]
        gradient, score = gradients[: len(part)], scores[: len(part)]
        kernels.client_gradients(
            rows.cells, rows.starts, rows.width, rows.size_index, part, rows.category,
            *tables, gradient, score,
        )  # fmt: skip
        for i in range(k):
            found[i, :, i] += score[:, i].T @ gradient[:, i]
        flat = score.reshape(len(part), -1)
        found -= (flat.T @ flat).reshape(found.shape)
    totals, spreads = sums.total_tables[some], sums.total_spread[some]
    gradient = sums.tables[some] - alphas * totals[:, None] / alpha_0[:, None]
    squares = alphas[:, :, None] * alphas[:, None, :]
    blocks = squares * spreads[:, None, None] / alpha_0[:, None, None] ** 2
    np.einsum("kjj -> kj", blocks)[:] += gradient - sums.spread[some]
    each = np.arange(k)
    found[each, :c, each, :c] += blocks
    found[:, c, :, c] -= len(members) * (np.diag(tau) - np.outer(tau, tau))
    square = found.reshape(k * (c + 1), -1)
    return np.asarray(square[np.tri(len(square), dtype=bool)])


def answer_divides(queries: Sequence[Divide], cohort: Cohort) -> list[DivideStatistics]:
    """The sums of `Divide` over all members; all queries have the same tree."""
    answers = [query.read(np.zeros(query.n_numbers)) for query in queries]
    for some in cohort.blocks(max(CELLS // (2 * queries[0].n_categories), 1)):
        pairs = _Pairs.of(some, queries[0].splits.tree)
        answers = [one + pairs.answer(q) for one, q in zip(answers, queries, strict=True)]
    return answers


@dataclass(frozen=True)
class _Pairs:
    """The pairs of a node and a total that occur among some clients, sorted by node.

    `of_clients`, of shape (n_clients, n_pairs), has a one for each pair of a client.
    """

    tree: Tree
    sizes: Ints
    nodes: Ints
    totals: Ints
    of_clients: sparse.csr_array[Any]

    @classmethod
    def of(cls, cohort: Cohort, tree: Tree) -> "_Pairs":
        totals = sparse.csr_array(tree.totals(cohort.counts().toarray().astype(np.int64)))
        stride = int(totals.data.max(initial=0)) + 1
        keys, which = distinct(totals.indices.astype(np.int64) * stride + totals.data)
        ones = np.ones(len(which))
        of_clients = sparse.csr_array((ones, which, totals.indptr), (len(cohort), len(keys)))
        return cls(tree, cohort.sizes, *np.divmod(keys, stride), of_clients)

    def answer(self, query: Divide) -> DivideStatistics:
        mdm, splits = query.mdm, query.splits
        joint = np.log(mdm.weights) + mdm.sizes.logpmf(self.sizes)
        joint += self.of_clients @ splits.terms(self.nodes, self.totals)
        log_q = logsumexp(joint, axis=1, keepdims=True)
        responsibilities = np.exp(joint - log_q)
        where, n_bins = query.size_bins.locate(self.sizes), query.size_bins.n_bins
        in_bins = [np.bincount(where, column, n_bins) for column in responsibilities.T]
        weights = np.asarray(self.of_clients.T @ responsibilities)
        laws = splits.laws
        blocks = self._sums(splits, weights) if laws is None else self._bends(splits, laws, weights)
        found: dict[str, Any] = {**blocks, "size_counts": np.array(in_bins)}
        found |= {"n_clients": float(len(self.sizes)), "log_likelihood": float(log_q.sum())}
        return replace(query.read(np.zeros(query.n_numbers)), **found)

    def _sums(self, splits: Splits, weights: Floats) -> dict[str, Floats]:
        """The sums of each side, and of the points that arrive at each split."""
        j, nodes, c = self.tree.n_splits, self.nodes, self.totals[:, None]
        sides, below, inner = self.tree.sides[nodes], nodes > 0, nodes < j
        a, a_0 = splits.concentrations.reshape(len(splits.concentrations), -1), splits.of_inner
        found: dict[str, Floats] = {}
        for where, at, n, names in (
            (below, sides, a, ("present", "tables", "spread")),
            (inner, nodes, a_0, ("total_present", "total_tables", "total_spread")),
        ):
            w, alpha, count = weights[where], n.T[at[where]], c[where]
            terms = (
                w, w * alpha * digamma_rise(alpha, count), w * alpha**2 * trigamma_fall(alpha, count)
            )  # fmt: skip
            adds = membership(at[where, None], n.shape[1])
            found |= {name: (adds @ term).T for name, term in zip(names, terms, strict=True)}
        return found

    def _bends(self, splits: Splits, laws: Laws, weights: Floats) -> dict[str, Floats]:
        """Sums of hat functions of both sides, less what is expected of them, and of the totals."""
        k, j = weights.shape[1], self.tree.n_splits
        n_nodes, n_knots = 2 * j + 1, len(laws.knots)
        at = hats(laws.knots, self.totals)
        adds = membership(self.nodes[:, None], n_nodes)
        sums = np.stack([np.asarray(adds @ (at * w[:, None])) for w in weights.T])
        inner = self.nodes < j
        seen, which = np.unique(self.totals[inner], return_inverse=True)
        arriving = np.zeros((k, j, len(seen)))
        arriving[:, self.nodes[inner], which] = weights[inner].T
        bends = sums[:, self.tree.children] - splits.expected_hats(seen, arriving)
        bends[..., 0] -= bends.sum(axis=-1)  # sides without a point are no pairs
        return {"bends": bends.reshape(k, -1), "arrivals": sums[:, :j].reshape(k, j * n_knots)}


def membership(joined: Ints, n_groups: int) -> sparse.csr_array[Any]:
    """A matrix that sums the rows of each group; `joined` has shape (n_rows, n_joined)."""
    n, each = joined.shape
    starts = np.arange(0, n * each + 1, each)
    members = sparse.csc_array((np.ones(n * each), joined.reshape(-1), starts), (n_groups, n))
    return members.tocsr()
