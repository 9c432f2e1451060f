"""What an adaptive search is told; that it searches is `test_grid.py`."""

import pytest

from polyurn.errors import ParameterError
from polyurn.sweeps.optuna_search import OptunaSearch


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {}}, "at least one setting"),
        ({"space": {"local_epochs": {"low": 1}}}, "expected low and high"),
        ({"space": {"local_epochs": {"choices": [1], "log": True}}}, "expected low and high"),
        ({"space": {"local_epochs": {"choices": 3}}}, "choices for local_epochs as a list"),
        ({"space": {"local_epochs": {"low": 5, "high": 1}}}, "low <= high for local_epochs"),
        ({"space": {"local_epochs": {"low": "1", "high": 2}}}, "low <= high for local_epochs"),
        ({"space": {"proximal": {"low": 0, "high": 1.0, "log": True}}}, "low above 0"),
        ({"space": {"local_epochs": 3}}, "got 3 under 'local_epochs', in place of a mapping"),
        ({"space": 3}, "space as a mapping, got 3"),
        ({"n_trials": "5"}, "n_trials as an integer"),
    ],
)
def test_a_search_refuses_mistakes(changes, message):
    with pytest.raises(ParameterError, match=message):
        OptunaSearch(
            **({"space": {"local_epochs": {"low": 1, "high": 2}}, "n_trials": 2} | changes)
        )
