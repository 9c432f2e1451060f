"""How alike a client's own points are, in a label, in a feature and in both: sums of shares of pairs.

A pair is two different points of one client, without replacement, so that a small client does not seem
more alike than it is. What is estimated from the sums is `server/feature_choice.py`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.cohort import Cohort
from polyurn.wire import Contrast, ContrastStatistics

# Clients whose histograms are held at once.
_BLOCK_CLIENTS = 65_536


def answer_contrast(query: Contrast, cohort: Cohort) -> ContrastStatistics:
    """The sums over the members that hold at least two points."""
    answer = query.read(np.zeros(query.n_numbers))
    paired = replace(cohort, members=cohort.members[cohort.sizes >= 2])
    for some in paired.blocks(_BLOCK_CLIENTS):
        answer = answer + _answer_block(query, some)
    return answer


def _answer_block(query: Contrast, cohort: Cohort) -> ContrastStatistics:
    counts, n = cohort.counts(), cohort.sizes
    code = np.arange(query.n_labels * query.n_values)
    both = _Shares(counts, n)
    label = _Shares(_merged(counts, code // query.n_values, query.n_labels), n)
    feature = _Shares(_merged(counts, code % query.n_values, query.n_values), n)
    by_label = (query.n_labels, query.n_values)
    return ContrastStatistics(
        n_clients=float(len(cohort)),
        proportions=both.sums(both.p),
        squares=both.sums(both.p**2).reshape(by_label).sum(axis=1),
        label_squares=label.sums(label.p**2),
        pairs=label.sums(label.pairs),
        matches=both.sums(both.pairs).reshape(by_label).sum(axis=1),
        feature_squares=float((feature.p**2).sum()),
        feature_matches=float(feature.pairs.sum()),
    )


class _Shares:
    """The proportion of each stored cell, c/n, and its share of the client's pairs of points."""

    def __init__(self, counts: sparse.csr_array[Any], n: NDArray[np.int64]) -> None:
        size = np.repeat(n, np.diff(counts.indptr)).astype(np.float64)
        self.p = counts.data / size
        self.pairs = self.p * (counts.data - 1) / (size - 1)
        self._category, self._n_categories = counts.indices, counts.shape[1]

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over clients, category by category."""
        sums = np.bincount(self._category, weights=values, minlength=self._n_categories)
        return np.asarray(sums, dtype=np.float64)


def _merged(
    counts: sparse.csr_array[Any], into: NDArray[np.int64], n_categories: int
) -> sparse.csr_array[Any]:
    """Histograms of fewer categories; `into` says which one each becomes."""
    ones = np.ones(len(into), dtype=np.int64)
    merges = sparse.csr_array((ones, into, np.arange(len(into) + 1)), (len(into), n_categories))
    return sparse.csr_array(counts @ merges)
