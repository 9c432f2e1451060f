"""What privacy would cost, before anything is spent."""

import pytest

from polyurn import LocalAggregator
from polyurn.errors import ParameterError
from polyurn.server.private.planning import expected_losses


def test_less_noise_costs_less():
    losses = expected_losses(
        LocalAggregator,
        [0.2, 8.0],
        n_clients=2_000,
        n_categories=4,
        n_components=1,
        n_runs=2,
        rng=1,
    )
    assert [loss.epsilon for loss in losses] == [None, 0.2, 8.0]
    none, much, little = (loss.mean for loss in losses)
    assert none < 0.02
    assert little < much
    assert all(loss.worst >= loss.mean for loss in losses)


def test_too_few_clients_to_plan_for_are_refused():
    with pytest.raises(ParameterError, match="n_clients as an integer of at least 100"):
        expected_losses(LocalAggregator, [1.0], n_clients=9, n_categories=3, n_components=1)
