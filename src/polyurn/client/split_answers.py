"""Answers to the questions about a tree over the categories, and about splits on it.

Each term of a client's log-probability depends on a node and the points that arrive there, so that
tables over the pairs (node, total) that occur serve all clients.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from polyurn.client.cohort import Cohort
from polyurn.counts import distinct
from polyurn.model.rising_factorials import digamma_rise, trigamma_fall
from polyurn.model.splits import Laws, Splits, hats
from polyurn.model.trees import Tree
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import Affinity, AffinityStatistics, Divide, DivideStatistics

# Clients times nodes that are handled at once.
_CELLS = 4_000_000


def answer_affinity(query: Affinity, cohort: Cohort) -> AffinityStatistics:
    """Sums of √p and √p √pᵀ of the members."""
    c = query.n_categories
    roots, products = np.zeros(c), np.zeros((c, c))
    for some in cohort.blocks(max(_CELLS // c, 1)):
        root = np.sqrt(some.counts().toarray() / some.sizes[:, None])
        roots += root.sum(axis=0)
        products += root.T @ root
    return AffinityStatistics(float(len(cohort)), roots, products[np.tril_indices(c)])


def answer_divides(queries: Sequence[Divide], cohort: Cohort) -> list[DivideStatistics]:
    """The sums of `Divide` over all members; all queries have the same tree."""
    answers = [query.read(np.zeros(query.n_numbers)) for query in queries]
    for some in cohort.blocks(max(_CELLS // (2 * queries[0].n_categories), 1)):
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
            adds = _adding(at[where], n.shape[1])
            found |= {name: (adds @ term).T for name, term in zip(names, terms, strict=True)}
        return found

    def _bends(self, splits: Splits, laws: Laws, weights: Floats) -> dict[str, Floats]:
        """Sums of hat functions of both sides, less what is expected of them, and of the totals."""
        k, j = weights.shape[1], self.tree.n_splits
        n_nodes, n_knots = 2 * j + 1, len(laws.knots)
        at = hats(laws.knots, self.totals)
        adds = _adding(self.nodes, n_nodes)
        sums = np.stack([np.asarray(adds @ (at * w[:, None])) for w in weights.T])
        inner = self.nodes < j
        seen, which = np.unique(self.totals[inner], return_inverse=True)
        arriving = np.zeros((k, j, len(seen)))
        arriving[:, self.nodes[inner], which] = weights[inner].T
        bends = sums[:, self.tree.children] - splits.expected_hats(seen, arriving)
        bends[..., 0] -= bends.sum(axis=-1)  # sides without a point are no pairs
        return {"bends": bends.reshape(k, -1), "arrivals": sums[:, :j].reshape(k, j * n_knots)}


def _adding(into: Ints, n_rows: int) -> sparse.csr_array[Any]:
    """A matrix whose product with one row per pair adds up the rows of each number in `into`."""
    n = len(into)
    return sparse.csr_array((np.ones(n), (into, np.arange(n))), (n_rows, n))
