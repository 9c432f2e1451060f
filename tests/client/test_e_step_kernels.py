"""Each kernel against its plain NumPy twin."""

import numpy as np
import pytest
from numba import njit
from scipy.special import gammaln, logsumexp

from polyurn.client import e_step_kernels as kernels
from polyurn.client import simd
from polyurn.client.rows import pack
from polyurn.model.rising_factorials import digamma_rise, log_rising, trigamma_fall


def expect_twin(counts, pair_logs_by_cell, size_logs):
    """Responsibilities and log-likelihood from whole arrays."""
    joint = pair_logs_by_cell + size_logs
    total = logsumexp(joint, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        omega = np.where(np.isneginf(total), 0.0, np.exp(joint - total))
    return omega, float(total.sum())


@pytest.mark.parametrize("n_components", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("form", ["dense", "sparse", "pairs that occur"])
def test_expect_is_the_plain_e_step(n_components, form):
    rng = np.random.default_rng(n_components)
    if form == "dense":
        counts = rng.integers(1, 6, (150, 7))
    elif form == "sparse":
        counts = rng.integers(1, 4, (150, 80)) * (rng.random((150, 80)) < 0.1)
        counts[:, 0] = 1
    else:
        counts = rng.integers(1, 10**6, (150, 7))
    rows = pack(counts)
    assert (rows.width > 0) == (form == "dense")
    assert (len(rows.count) < counts.max(axis=0).sum()) == (form == "pairs that occur")
    lanes = -(-n_components // 4) * 4
    pair_logs = np.zeros((len(rows.count), lanes))
    pair_logs[:, :n_components] = rng.normal(size=(len(rows.count), n_components))
    size_logs = np.full((len(rows.size_values), lanes), -np.inf)
    size_logs[:, :n_components] = rng.normal(size=(len(rows.size_values), n_components))
    members = rng.permutation(150)[:101].astype(np.uint32)
    pair_sums, size_sums = np.zeros_like(pair_logs), np.zeros_like(size_logs)
    log_likelihood = kernels.expect(
        rows.cells, rows.starts, rows.width, rows.size_index, members,
        pair_logs, size_logs, pair_sums, size_sums,
    )  # fmt: skip

    number = {pair: i for i, pair in enumerate(zip(rows.category, rows.count, strict=True))}
    sums, logs = np.zeros_like(pair_sums), np.zeros((101, lanes))
    stored = [[number[j, c] for j, c in enumerate(counts[i]) if (j, c) in number] for i in members]
    for row, pairs in enumerate(stored):
        logs[row] = pair_logs[pairs].sum(axis=0)
    omega, total = expect_twin(counts, logs, size_logs[rows.size_index[members]])
    for row, pairs in enumerate(stored):
        sums[pairs] += omega[row]
    np.testing.assert_allclose(pair_sums, sums, rtol=1e-12, atol=1e-13)
    by_size = np.zeros_like(size_sums)
    np.add.at(by_size, rows.size_index[members], omega)
    np.testing.assert_allclose(size_sums, by_size, rtol=1e-12, atol=1e-13)
    assert log_likelihood == pytest.approx(total, rel=1e-12)


def test_an_impossible_client_makes_the_likelihood_zero_and_adds_nothing():
    rows = pack(np.array([[1, 2], [3, 0]]))
    pair_logs = np.zeros((len(rows.count), 4))
    pair_logs[rows.count == 3] = -np.inf
    size_logs = np.full((len(rows.size_values), 4), -np.inf)
    size_logs[:, 0] = 0.0
    pair_sums, size_sums = np.zeros_like(pair_logs), np.zeros_like(size_logs)
    got = kernels.expect(
        rows.cells, rows.starts, rows.width, rows.size_index, np.arange(2, dtype=np.uint32),
        pair_logs, size_logs, pair_sums, size_sums,
    )  # fmt: skip
    assert got == -np.inf
    assert size_sums.sum() == 1.0
    assert np.isfinite(pair_sums).all()


LARGEST = [30, 300, 10**6]  # running sums term by term, with and without leaps by the series
ALPHAS = np.concatenate(
    [np.random.default_rng(1).gamma(1.0, 1.0, (3, 5)), np.logspace(-9, 9, 5)[None]]
)


def some_pairs(largest):
    rows = pack(np.random.default_rng(0).integers(0, largest, (40, 5)))
    return rows, ALPHAS.T[rows.category], rows.count[:, None]


@pytest.mark.parametrize("largest", LARGEST)
def test_tabulated_logs_are_the_special_functions(largest):
    rows, a, c = some_pairs(largest)
    got = np.zeros((len(rows.count), 4))
    kernels.tabulate_logs(rows.category, rows.count, ALPHAS, got)
    plain = log_rising(a, c, scale=ALPHAS.sum(axis=1)) - gammaln(c + 1)
    np.testing.assert_allclose(got, plain, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("largest", LARGEST)
def test_summed_and_tabulated_rises_are_the_special_functions(largest):
    rows, a, c = some_pairs(largest)
    weights = np.random.default_rng(2).random((len(rows.count), 4))
    got = np.zeros((3, 4, 5))
    kernels.sum_rises(rows.category, rows.count, ALPHAS, weights, *got)
    plain = (c > 0, digamma_rise(a, c), trigamma_fall(a, c))
    for block, terms in zip(got, plain, strict=True):
        summed = [np.bincount(rows.category, (weights * terms)[:, k]) for k in range(4)]
        np.testing.assert_allclose(block, summed, rtol=1e-13)
    table = np.empty((len(rows.count), 4))
    kernels.tabulate_rises(rows.category, rows.count, ALPHAS, table)
    np.testing.assert_allclose(table, a * plain[1], rtol=1e-13)


def test_a_weight_of_zero_counts_for_nothing_whatever_it_weighs():
    @njit
    def weighted(a, b):
        out = np.empty(4)
        simd.store4(out, 0, simd.weighted4(simd.load4(a, 0), simd.load4(b, 0)))
        return out

    got = weighted(np.array([0.0, 0.0, 2.0, 1.0]), np.array([np.inf, np.nan, 3.0, np.inf]))
    np.testing.assert_array_equal(got, [0.0, 0.0, 6.0, np.inf])
