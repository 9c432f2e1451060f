"""The quantiles of a column of records, from bounded questions, against those of the points."""

import numpy as np
import pytest

import polyurn as pu
from polyurn.client.bins import Bins
from polyurn.errors import BudgetError, FitError, ParameterError
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.server.describing import describe_column
from polyurn.wire import Spread


def held(values, size=5):
    """Clients of so many points each, of which every point counts the same."""
    values = np.asarray(values, float)
    whose = np.arange(len(values)) // size
    return pu.Records(np.column_stack([np.zeros(len(values)), values]), np.zeros_like(whose), whose)


def found(values, *, size=5, **options):
    clients = pu.LocalAggregator(held(values, size))
    return describe_column(clients, "y", features=["x", "y"], **options)


SHAPES = {
    "incomes": lambda rng, n: rng.lognormal(10, 1, n),
    "delays": lambda rng, n: rng.exponential(30, n) - 10,
    "small": lambda rng, n: rng.normal(0, 1e-4, n),
    "years": lambda rng, n: rng.integers(1987, 2025, n),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_quantiles_are_those_of_the_points(shape):
    rng = np.random.default_rng(1)
    values = SHAPES[shape](rng, 20_000)
    seen = found(values)
    own = np.quantile(values, seen.ranks)
    assert all(one.low <= q <= one.high for one, q in zip(seen.quantiles, own, strict=True))
    ranks = [np.mean(values < one.value) for one in seen.quantiles]
    at_most = [np.mean(values <= one.value) for one in seen.quantiles]
    between = np.clip(seen.ranks, ranks, at_most)  # of a number that many points have
    np.testing.assert_allclose(between, seen.ranks, atol=0.02)
    assert seen.n_rounds <= 4
    assert seen.n_clients.value == 4_000


def test_the_edges_are_bins_of_about_equal_shares():
    rng = np.random.default_rng(2)
    values = rng.lognormal(3, 1, 20_000)
    bins = Bins([float(edge) for edge in found(values, n_bins=5).bins.split(",")])
    assert bins.n_bins == 5
    np.testing.assert_allclose(np.bincount(bins.locate(values)) / 20_000, 0.2, atol=0.02)


def test_each_client_counts_once_however_many_points_it_has():
    values = np.concatenate([np.full(9_000, 100.0), np.arange(200) / 100])
    clients = np.concatenate([np.full(9_000, 1_000), np.arange(200)])
    records = pu.Records(values[:, None], np.zeros(len(values), int), clients)
    seen = describe_column(pu.LocalAggregator(records), "x", features=["x"], n_bins=2)
    assert seen.quantiles[0].value == pytest.approx(1.0, abs=0.1)


def test_a_number_that_many_points_have_has_a_bin_of_its_own():
    rng = np.random.default_rng(3)
    values = np.where(rng.random(10_000) < 0.6, 0.0, rng.exponential(10, 10_000))
    seen = found(values)
    bins = Bins(seen.edges)
    assert bins.n_bins < 10
    shares = np.bincount(bins.locate(values)) / 10_000
    assert shares[bins.locate(0.0)] == pytest.approx(0.6, abs=0.02)
    assert found(np.full(500, 7.0)).quantiles[0].value == pytest.approx(7.0, rel=0.01)


def test_with_noise_quantiles_are_within_their_intervals_and_near():
    """In 7 % of runs some interval misses: then 9 of 20 do in 1 of 300,000 tests."""
    rng = np.random.default_rng(4)
    values = rng.normal(40, 10, 50_000)
    own = np.quantile(values, np.arange(1, 10) / 10)
    n_missed, errors = 0, []
    for _ in range(20):
        seen = found(values, epsilon=1.0, delta=1e-6)
        n_missed += not all(
            one.low <= q <= one.high for one, q in zip(seen.quantiles, own, strict=True)
        )
        errors.append(np.abs([one.value for one in seen.quantiles] - own).max())
        assert seen.guarantee.epsilon <= 1.0 + 1e-6
        assert seen.guarantee.n_rounds == seen.n_rounds
    assert n_missed <= 8
    assert np.median(errors) < 1.5


def test_a_ledger_that_cannot_pay_for_every_round_pays_for_none():
    ledger = PrivacyLedger(1.0, 1e-6)
    clients = PrivateAggregator(pu.LocalAggregator(held(np.arange(500))), ledger=ledger)
    with pytest.raises(BudgetError, match=r"4 questions would bring epsilon to 1\.2"):
        describe_column(clients, "y", features=["x", "y"], epsilon=1.2, delta=1e-6)
    assert ledger.charges == ()


def test_no_question_is_finer_than_a_quantile_needs():
    """The largest number of all is in a bin that is never cut, whatever it is."""
    asked = []

    class Watched(pu.LocalAggregator):
        def aggregate(self, query, cohort_size):
            asked.append(query)
            return super().aggregate(query, cohort_size)

    def questions(largest):
        asked.clear()
        values = np.append(np.random.default_rng(5).normal(40, 10, 19_999), largest)
        describe_column(Watched(held(values)), "y", features=["x", "y"])
        return [(type(query), query.column.edges.tolist()) for query in asked]

    assert questions(1e3) == questions(1e6)
    assert {kind for kind, _ in questions(1e3)} == {Spread}


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ParameterError, match="a column of x, y, got 'z'"):
        describe_column(pu.LocalAggregator(held([1.0])), "z", features=["x", "y"])
    with pytest.raises(ParameterError, match="records, got their histograms only"):
        describe_column(pu.LocalAggregator([[1, 2]]), "x", features=["x"])
    with pytest.raises(ParameterError, match="a column of 2 features, got one of 1"):
        describe_column(pu.LocalAggregator(held([1.0])), "x", features=["x"])
    with pytest.raises(FitError, match="more noise than clients"):
        found(np.arange(25), epsilon=0.01, delta=1e-6)
