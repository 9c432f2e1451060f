"""How alike a client's own points are in label, in feature and in both: one row for each client.

`wire/queries.py` says what the numbers are. Each is a ratio of whole numbers, so that a row has the same
bits whoever else is asked.
"""

from typing import Any

import numpy as np
from scipy import sparse

from polyurn.client.cohort import Cohort
from polyurn.wire import Contrast


def contrast_rows(query: Contrast, cohort: Cohort) -> sparse.csr_array[Any]:
    """What each member adds, shape (n_members, n_numbers); 0 for those of fewer than two points.

    A pair is two different points of one client: drawn with replacement, the points of a small client
    would seem more alike than they are.
    """
    column = query.column
    if column is None:
        both = cohort.counts()
    else:
        both = cohort.records.binned(cohort.members, column, with_labels=True)
    n = cohort.sizes.astype(np.float64)
    paired = n >= 2
    code = np.arange(query.n_labels * query.n_values)
    of_label = _membership(code // query.n_values, query.n_labels)
    label, feature = both @ of_label, both @ _membership(code % query.n_values, query.n_values)
    shares, squares, pairs = (
        sparse.diags_array(paired / np.where(paired, of, 1.0)) for of in (n, n * n, n * (n - 1))
    )
    of_pairs, of_matches = label * label - label, both * both - both
    same = (pairs @ _sums(of_matches)).toarray()
    other = (pairs @ (_sums(of_pairs) - _sums(of_matches))).toarray()
    blocks = [
        sparse.csr_array(paired[:, None].astype(np.float64)),
        shares @ both,
        squares @ (both * both @ of_label),
        squares @ (label * label),
        pairs @ of_pairs,
        pairs @ (of_matches @ of_label),
        squares @ _sums(feature * feature),
        pairs @ _sums(feature * feature - feature),
        sparse.csr_array(np.hstack([same * same, same * other, other * other])),
    ]
    return sparse.csr_array(sparse.hstack(blocks, format="csr"))


def _membership(into: Any, n_groups: int) -> sparse.csr_array[Any]:
    """A matrix whose product with counts adds up the categories of each group."""
    ones = np.ones(len(into), dtype=np.int64)
    return sparse.csr_array((ones, into, np.arange(len(into) + 1)), (len(into), n_groups))


def _sums(table: sparse.csr_array[Any]) -> sparse.csr_array[Any]:
    return sparse.csr_array(np.asarray(table.sum(axis=1)).reshape(-1, 1))
