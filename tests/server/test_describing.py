"""What clients are said to be like, against what they are."""

import numpy as np
import pytest

import polyurn as pu
from polyurn.comparison.summaries import correlation_estimate
from polyurn.errors import FitError, ParameterError
from polyurn.model.paper_truths import truth
from polyurn.server.describing import describe

CLIENTS = np.random.default_rng(0).multinomial(
    np.random.default_rng(1).integers(1, 40, size=400), [0.5, 0.3, 0.15, 0.05]
)


def described(counts, **options):
    options = {"max_size": 64, **options}
    return describe(pu.LocalAggregator(counts), n_categories=counts.shape[1], **options)


def test_exact_sums_give_the_clients_own_numbers():
    found = described(CLIENTS)
    p = CLIENTS / CLIENTS.sum(axis=1, keepdims=True)
    assert found.n_clients.value == found.n_clients.low == 400
    np.testing.assert_allclose([one.value for one in found.shares], p.mean(axis=0), atol=1e-7)
    np.testing.assert_allclose(
        [h.value for h in found.holders], (CLIENTS > 0).sum(axis=0), atol=1e-4
    )
    median = np.median(CLIENTS.sum(axis=1))
    assert found.sizes[2].low <= median <= found.sizes[2].high


def test_the_variance_between_clients_is_that_of_the_clients_themselves():
    counts = truth("high/2").sample(3000, rng=2)
    own = correlation_estimate(counts, np.ones((1, 3000)))
    found = described(counts)
    assert found.between.value == pytest.approx(own.value, rel=1e-3)
    assert found.between.low < own.value < found.between.high
    assert found.sentence.startswith("clients differ by more than chance")


def test_clients_that_are_one_urn_are_not_said_to_differ():
    """By intervals that cover at least 95 %: of 40 federations at most 5 (false alarm: below 0.01)."""
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(40):
        counts = rng.multinomial(np.full(200, 15), [0.5, 0.3, 0.2])
        alarms += described(counts).between.low > 0
    assert alarms <= 5


def test_one_point_each_tells_nothing_about_differences():
    found = described(np.eye(4, dtype=int)[np.arange(40) % 4])
    assert np.isnan(found.between.value)
    assert found.points_in_pairs == 0
    assert "cannot be told" in found.sentence


def test_a_thousandth_of_a_share_and_a_median_with_epsilon_1_of_10_000_clients():
    """The bars: shares within .01, the median within one bin, the variance between within 15 %."""
    counts = truth("medium/3").sample(10_000, rng=4)
    own = correlation_estimate(counts, np.ones((1, 10_000))).value
    p = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    for _ in range(5):
        found = described(counts, epsilon=1.0, delta=1e-5)
        assert np.abs([one.value for one in found.shares] - p).max() < 0.01
        assert 16 <= found.sizes[2].value < 32
        assert abs(found.between.value / own - 1) < 0.15
        assert found.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)


def test_more_noise_than_clients_is_an_error_and_not_a_description():
    with pytest.raises(FitError, match="more noise than clients"):
        described(CLIENTS[:5], epsilon=0.01, delta=1e-6)
    with pytest.raises(ParameterError, match="expected delta with epsilon"):
        described(CLIENTS, epsilon=1.0)


def test_a_client_larger_than_the_largest_size_answers_for_so_many_points():
    counts = np.array([[90, 10], [50, 50], [2, 2]])
    found = described(counts, max_size=8)
    assert found.sizes[-1].high == 8
