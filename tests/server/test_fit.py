"""`fit`: what it refuses before any client is asked."""

import pytest

from polyurn import LocalAggregator, SizeBins, fit
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth


@pytest.mark.parametrize(
    "settings",
    [
        {"n_components": 0},
        {"n_components": 51},
        {"max_rounds": 2},
        {"tol": 0.0},
        {"size_prior": -1.0},
        {"sizes": "some"},
        {"sizes": SizeBins.exact(3)},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    clients = LocalAggregator(truth("low/1").sample(50, rng=0), rng=0)
    usual = {"n_components": 1, "n_categories": 10, "max_size": 20}
    with pytest.raises(ParameterError):
        fit(clients, **{**usual, **settings})
