"""Populations: who the simulated clients are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polyurn import MDM, SizeBins, Sizes, dirichlet_counts, iid_counts, oracle_counts
from polyurn.errors import CountsError, ParameterError
from strategies import counts as tables

POPULATIONS = [
    lambda n, rng: iid_counts(n, sizes=[3, 8], marginal=[4, 0, 1], rng=rng),
    lambda n, rng: dirichlet_counts(n, alpha=0.3, sizes=[3, 8], marginal=[4, 0, 1], rng=rng),
    lambda n, rng: dirichlet_counts(n, alpha=[1.0, 0.0, 2.0], sizes=[3, 8], rng=rng),
    lambda n, rng: oracle_counts([[1, 0, 2], [4, 0, 4]], n, rng=rng),
]


@pytest.mark.parametrize("population", POPULATIONS)
def test_every_population_keeps_its_sizes_its_categories_and_its_seed(population):
    counts = population(50, 7)
    assert counts.shape == (50, 3)
    assert counts.dtype == np.int64
    assert set(counts.sum(axis=1)) == {3, 8}
    assert not counts[:, 1].any()
    assert np.array_equal(counts, population(50, np.random.default_rng(7)))
    assert not np.array_equal(counts, population(50, 8))


def test_fully_iid_clients_have_the_marginal_and_the_variance_of_a_multinomial():
    counts = iid_counts(20_000, sizes=[10], marginal=[0.5, 0.3, 0.2], rng=0)
    p = np.array([0.5, 0.3, 0.2])
    # Five standard errors of a mean of 20,000 and of a variance: false alarms under 1e-5.
    assert counts.mean(axis=0) == pytest.approx(10 * p, abs=5 * np.sqrt(10 * 0.25 / 20_000))
    assert counts.var(axis=0) == pytest.approx(10 * p * (1 - p), rel=0.05)


def test_a_dirichlet_has_the_variance_that_its_concentration_says():
    p = np.array([0.5, 0.3, 0.2])
    counts = dirichlet_counts(20_000, alpha=4.0, sizes=[10], marginal=p, rng=0)
    inflation = (10 + 4) / (1 + 4)  # of a Dirichlet-multinomial over a multinomial
    assert counts.mean(axis=0) == pytest.approx(10 * p, abs=0.08)
    assert counts.var(axis=0) == pytest.approx(10 * p * (1 - p) * inflation, rel=0.05)


def test_the_three_ways_to_give_alpha_are_one():
    vector = dirichlet_counts(9, alpha=[0.5, 0.5], sizes=[4], rng=1)
    assert np.array_equal(vector, dirichlet_counts(9, alpha=0.5, n_categories=2, sizes=[4], rng=1))
    assert np.array_equal(vector, dirichlet_counts(9, alpha=1, marginal=[7, 7], sizes=[4], rng=1))


def test_sizes_are_drawn_as_often_as_they_are_listed():
    sizes = iid_counts(8_000, sizes=[2, 2, 2, 2_000_000_000], marginal=[1, 1], rng=0).sum(axis=1)
    assert set(sizes) == {2, 2_000_000_000}
    assert (sizes == 2).mean() == pytest.approx(0.75, abs=5 * np.sqrt(0.75 * 0.25 / 8_000))


def test_sizes_may_be_a_distribution():
    sizes = Sizes(SizeBins([1, 3, 5]), [[0.0, 1.0]])
    assert set(iid_counts(99, sizes=sizes, marginal=[1, 1], rng=0).sum(axis=1)) == {3, 4}
    assert dirichlet_counts(9, alpha=1.0, n_categories=2, sizes=sizes, rng=0).sum(axis=1).min() == 3


def test_one_dirichlet_is_an_mdm_of_one_component():
    mdm = MDM([1.0], [[0.2, 0.7]], Sizes.constant(6))
    ours = dirichlet_counts(30, alpha=[0.2, 0.7], sizes=Sizes.constant(6), rng=3)
    assert np.array_equal(ours, mdm.sample(30, rng=3))


@given(tables(3), st.integers(1, 30))
def test_the_oracle_takes_every_client_once_before_any_twice(counts, n_clients):
    assert np.array_equal(oracle_counts(counts), counts)
    chosen = oracle_counts(sparse.csr_array(counts), n_clients, rng=0)
    rows, times = np.unique(chosen, axis=0, return_counts=True)
    for row, n in zip(rows, times, strict=True):
        twins = (counts == row).all(axis=1).sum()
        assert twins * (n_clients // len(counts)) <= n <= twins * -(-n_clients // len(counts))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: iid_counts(0, sizes=[1], marginal=[1, 1]), "at least 1, got 0"),
        (lambda: iid_counts(2, sizes=[], marginal=[1, 1]), "client sizes as a list"),
        (lambda: iid_counts(2, sizes=[0], marginal=[1, 1]), "at least 1"),
        (lambda: iid_counts(2, sizes=[1.5], marginal=[1, 1]), "whole numbers"),
        (lambda: iid_counts(2, sizes=[1], marginal=[0, 0]), "not all of them 0"),
        (lambda: iid_counts(2, sizes=[1], marginal=[np.nan, 1]), "counts or probabilities"),
        (lambda: iid_counts(2, sizes=[1], marginal=[-1, 2]), "counts or probabilities"),
        (lambda: iid_counts(2, sizes=[1], marginal=[1]), "shape"),
        (
            lambda: iid_counts(2, sizes=Sizes.constant(2, n_components=2), marginal=[1, 1]),
            "one component, got 2",
        ),
        (lambda: dirichlet_counts(2, sizes=[1], alpha=1.0), "n_categories or marginal"),
        (lambda: dirichlet_counts(2, sizes=[1], alpha=0.0, n_categories=2), "positive"),
        (lambda: dirichlet_counts(2, sizes=[1], alpha=[1, 1], n_categories=3), r"\(3,\)"),
        (lambda: dirichlet_counts(2, sizes=[1], alpha=[1, 1], marginal=[1, 1]), "single alpha"),
        (lambda: dirichlet_counts(2, sizes=[1], alpha=[[1, 1]]), "got shape"),
        (lambda: oracle_counts([[1, 2]], 0), "at least 1, got 0"),
    ],
)
def test_what_is_no_population_is_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_the_oracle_refuses_a_client_without_points():
    with pytest.raises(CountsError, match="hold no points"):
        oracle_counts([[1, 2], [0, 0]])
