"""Clients without the categories that the proxy data do not have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import polyurn as pu

COUNTS = np.array([[1, 2, 0], [0, 3, 0], [2, 0, 4]])


@pytest.mark.parametrize("table", [COUNTS, sparse.csr_array(COUNTS)])
def test_points_of_categories_that_the_data_have_none_of_are_left_out(table):
    left = pu.held_categories(table, [0, 0, 2])
    dense = left if isinstance(left, np.ndarray) else left.toarray()
    assert dense.tolist() == [[1, 0, 0], [2, 0, 4]]


@given(st.integers(0, 2**32))
def test_what_is_left_can_be_cut_from_the_data(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 6, 12)
    left = pu.held_categories(rng.integers(0, 3, (20, 6)) + np.eye(6, dtype=int)[labels[0]], labels)
    parts = pu.partition(labels, left, rng=rng)
    assert (parts.histograms(labels, 6) == left).all()


def test_with_every_category_in_the_data_nothing_changes():
    assert (pu.held_categories(COUNTS, [0, 1, 2]) == COUNTS).all()
