"""Clients to fit and clients to compare with."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from comparison_cases import HELD_OUT, QUICK
from polyurn import compare, split_clients


@given(st.integers(2, 40), st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_split_gives_every_client_to_one_part(n_clients, held_out, seed):
    counts = np.arange(1, 2 * n_clients + 1).reshape(-1, 2)
    split = split_clients(counts, held_out=held_out, rng=seed)
    rows = np.concatenate([split.fitted_rows, split.held_out_rows])
    assert np.sort(rows).tolist() == list(range(n_clients))
    assert (counts[split.fitted_rows] == split.fitted).all()
    assert (counts[split.held_out_rows] == split.held_out).all()
    assert min(len(split.fitted), len(split.held_out)) >= 1


def test_a_split_is_held_out_by_construction():
    split = split_clients(HELD_OUT, rng=0)
    verdict = compare({"oracle": split.fitted}, split, rng=0, **QUICK)
    assert verdict.n_fitted == 0
    assert verdict.standing == "compared with 30 clients that were held out from fitting"
