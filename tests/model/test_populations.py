"""Populations: who the simulated clients are."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polyurn import IID, MDM, Dirichlet, Oracle, Population, SizeBins, Sizes, Styled
from polyurn.errors import CountsError, ParameterError
from polyurn.model.populations import check_population
from strategies import counts as tables
from style_cases import plain_style

POPULATIONS = [
    IID([4, 0, 1], sizes=[3, 8]),
    Dirichlet(0.3 * np.array([0.8, 0.0, 0.2]), sizes=[3, 8]),
    Dirichlet([1.0, 0.0, 2.0], sizes=[3, 8]),
    Oracle([[1, 0, 2], [4, 0, 4]]),
    MDM([1.0], [[1.0, 0.0, 2.0]], Sizes.from_table([[0, 0, 0, 0.5, 0, 0, 0, 0, 0.5]])),
]


@pytest.mark.parametrize("population", POPULATIONS)
def test_every_population_keeps_its_sizes_its_categories_and_its_seed(population):
    assert isinstance(population, Population)
    counts = population.sample(50, rng=7)
    assert counts.shape == (50, population.n_categories) == (50, 3)
    assert counts.dtype == np.int64
    assert set(counts.sum(axis=1)) == {3, 8}
    assert not counts[:, 1].any()
    assert np.array_equal(counts, population.sample(50, rng=np.random.default_rng(7)))
    assert not np.array_equal(counts, population.sample(50, rng=8))


@pytest.mark.parametrize(
    ("population", "clients"),
    [
        # What the first version drew: it must not change between versions.
        (IID([4, 0, 1], sizes=[3, 8]), [[4, 0, 4], [7, 0, 1], [3, 0, 0]]),
        (Dirichlet([0.24, 0.0, 0.06], sizes=[3, 8]), [[0, 0, 8], [3, 0, 0], [0, 0, 3]]),
        (Oracle([[1, 0, 2], [4, 0, 4]]), [[1, 0, 2], [4, 0, 4], [4, 0, 4]]),
    ],
)
def test_a_seed_gives_the_same_clients_in_every_version(population, clients):
    assert population.sample(3, rng=1).tolist() == clients


@pytest.mark.parametrize("population", POPULATIONS[:-1])
def test_a_population_is_a_frozen_value_that_shows_no_client(population):
    with pytest.raises(FrozenInstanceError):
        population.sizes = [1]
    assert repr(population) in {
        "IID(n_categories=3, max_size=8)",
        "Dirichlet(alpha=[0.24, 0.  , 0.06], max_size=8)",
        "Dirichlet(alpha=[1., 0., 2.], max_size=8)",
        "Oracle(n_clients=2, n_categories=3)",
    }


def test_fully_iid_clients_have_the_marginal_and_the_variance_of_a_multinomial():
    p = np.array([0.5, 0.3, 0.2])
    counts = IID(p, sizes=[10]).sample(20_000, rng=0)
    # Five standard errors of a mean of 20,000 and of a variance: false alarms under 1e-5.
    assert counts.mean(axis=0) == pytest.approx(10 * p, abs=5 * np.sqrt(10 * 0.25 / 20_000))
    assert counts.var(axis=0) == pytest.approx(10 * p * (1 - p), rel=0.05)


def test_a_dirichlet_has_the_variance_that_its_concentration_says():
    p = np.array([0.5, 0.3, 0.2])
    counts = Dirichlet(4.0 * p, sizes=[10]).sample(20_000, rng=0)
    inflation = (10 + 4) / (1 + 4)  # of a Dirichlet-multinomial over a multinomial
    assert counts.mean(axis=0) == pytest.approx(10 * p, abs=0.08)
    assert counts.var(axis=0) == pytest.approx(10 * p * (1 - p) * inflation, rel=0.05)


@given(tables(3), st.booleans())
def test_a_population_like_a_table_has_its_sizes_and_its_categories(counts, is_sparse):
    table = sparse.csr_array(counts) if is_sparse else counts
    iid, spread = IID.like(table), Dirichlet.like(table, alpha=0.5)
    assert np.allclose(iid.marginal, counts.sum(axis=0) / counts.sum())
    assert spread.alpha.tolist() == [0.5] * 3
    for population in (iid, spread):
        assert population.n_categories == 3
        assert set(population.sample(20, rng=0).sum(axis=1)) <= set(counts.sum(axis=1))


def test_sizes_are_drawn_as_often_as_they_are_listed():
    sizes = IID([1, 1], sizes=[2, 2, 2, 2_000_000_000]).sample(8_000, rng=0).sum(axis=1)
    assert set(sizes) == {2, 2_000_000_000}
    assert (sizes == 2).mean() == pytest.approx(0.75, abs=5 * np.sqrt(0.75 * 0.25 / 8_000))


def test_sizes_may_be_a_distribution():
    sizes = Sizes(SizeBins([1, 3, 5]), [[0.0, 1.0]])
    assert set(IID([1, 1], sizes).sample(99, rng=0).sum(axis=1)) == {3, 4}
    assert Dirichlet([1.0, 1.0], sizes).sample(9, rng=0).sum(axis=1).min() == 3


def test_one_dirichlet_is_an_mdm_of_one_component():
    mdm = MDM([1.0], [[0.2, 0.7]], Sizes.constant(6))
    ours = Dirichlet([0.2, 0.7], sizes=Sizes.constant(6)).sample(30, rng=3)
    assert np.array_equal(ours, mdm.sample(30, rng=3))


@given(tables(3), st.integers(1, 30))
def test_the_oracle_takes_every_client_once_before_any_twice(counts, n_clients):
    chosen = Oracle(sparse.csr_array(counts)).sample(n_clients, rng=0)
    rows, times = np.unique(chosen, axis=0, return_counts=True)
    for row, n in zip(rows, times, strict=True):
        twins = (counts == row).all(axis=1).sum()
        assert twins * (n_clients // len(counts)) <= n <= twins * -(-n_clients // len(counts))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: IID([1, 1], sizes=[]), "client sizes as a list"),
        (lambda: IID([1, 1], sizes=[0]), "at least 1"),
        (lambda: IID([1, 1], sizes=[1.5]), "whole numbers"),
        (lambda: IID([0, 0], sizes=[1]), "not all of them 0"),
        (lambda: IID([np.nan, 1], sizes=[1]), "counts or probabilities"),
        (lambda: IID([-1, 2], sizes=[1]), "counts or probabilities"),
        (lambda: IID([1], sizes=[1]), "shape"),
        (lambda: IID([1, 1], sizes=Sizes.constant(2, n_components=2)), "one component, got 2"),
        (lambda: Dirichlet(1.0, sizes=[1]), r"alpha of shape \(n_categories,\)"),
        (lambda: Dirichlet([[1, 1]], sizes=[1]), "got shape"),
        (lambda: Dirichlet([0.0, 0.0], sizes=[1]), "positive"),
        (lambda: Dirichlet.like([[1, 2]], alpha=-1.0), "not negative"),
        (lambda: check_population(np.ones((3, 2))), "expected a population, .* got ndarray"),
        (lambda: check_population(lambda n, rng: n), "got function"),
    ],
)
def test_what_is_no_population_is_refused_when_it_is_made(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize("population", POPULATIONS[:-1])
def test_no_clients_are_not_drawn(population):
    with pytest.raises(ParameterError, match=r"1 to .* clients, got 0"):
        population.sample(0)


def test_the_oracle_refuses_a_client_without_points():
    with pytest.raises(CountsError, match="hold no points"):
        Oracle([[1, 2], [0, 0]])


def test_a_data_frame_is_a_table_and_no_population():
    pandas = pytest.importorskip("pandas")
    assert not isinstance(pandas.DataFrame([[1, 2]]), Population)  # it has a sample of its own


def test_the_papers_iid_has_the_proxy_datas_marginal_and_the_fair_one_the_clients():
    counts, labels = np.array([[3, 1], [4, 0]]), np.array([0, 1, 1, 1])
    fair, paper = IID.like(counts), IID.proxy(labels, n_categories=2, sizes=counts.sum(axis=1))
    assert fair.marginal.tolist() == [7 / 8, 1 / 8]
    assert paper.marginal.tolist() == [0.25, 0.75]
    assert paper.sizes.max_size == fair.sizes.max_size == 4


@pytest.mark.parametrize("labels", [[0, 2], [-1, 0], [], [[0, 1]], [0.5, 1.0]])
def test_labels_that_are_no_categories_are_refused(labels):
    with pytest.raises(ParameterError, match=r"label|marginal"):
        IID.proxy(labels, n_categories=2, sizes=[3])


def test_a_styled_population_draws_the_same_histograms_and_carries_its_style():
    style = plain_style(n_labels=3)
    for population in POPULATIONS:
        styled = Styled(population, style)
        assert isinstance(styled, Population)
        assert styled.sample(5, rng=3).tolist() == population.sample(5, rng=3).tolist()
        assert styled.style is style
    with pytest.raises(ParameterError, match=r"a style of 3 labels, .*, got one of 2"):
        Styled(POPULATIONS[0], plain_style(n_labels=2))
