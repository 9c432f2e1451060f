"""Histograms packed for the kernels."""

import numpy as np
import pytest
from scipy import sparse

from polyurn.client.rows import pack


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("largest", [3, 400, 10**6])
def test_packed_rows_say_what_the_counts_say(make, largest):
    counts = np.random.default_rng(largest).integers(0, largest, (60, 12))
    counts[:, 3] = 0
    rows = pack(make(counts))
    again = np.zeros_like(counts)
    for i in range(60):
        lo, hi = (i * 12, i * 12 + 12) if rows.width else rows.starts[i : i + 2]
        cells = rows.cells[lo:hi]
        again[i, rows.category[cells]] = rows.count[cells]
    np.testing.assert_array_equal(again, counts)
    np.testing.assert_array_equal(rows.size_values[rows.size_index], counts.sum(axis=1))
