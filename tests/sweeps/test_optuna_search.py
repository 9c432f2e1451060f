"""What an adaptive search is told; that it searches is `test_grid.py`."""

import pytest

from polyurn.errors import ParameterError
from polyurn.sweeps.optuna_search import OptunaSearch
from sweep_cases import small_sweep


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {}}, "at least one setting"),
        ({"space": {"local_epochs": {"low": 1}}}, "numbers low and high .* local_epochs: .*'high'"),
        ({"space": {"local_epochs": {"choices": [1], "log": True}}}, "argument 'log'"),
        ({"space": {"local_epochs": {"choices": 3}}}, "a list of choices, for local_epochs"),
        (
            {"space": {"local_epochs": {"low": 5, "high": 1}}},
            "local_epochs: `low <= high` must hold",
        ),
        ({"space": {"local_epochs": {"low": "1", "high": 2}}}, "expected numbers low and high"),
        (
            {"space": {"proximal": {"low": 0, "high": 1.0, "log": True}}},
            "proximal: `low > 0` must hold",
        ),
        ({"space": {"local_epochs": 3}}, "got 3 under 'local_epochs', in place of a mapping"),
        ({"space": 3}, "space as a mapping, got 3"),
        ({"n_trials": "5"}, "n_trials as an integer"),
    ],
)
def test_a_search_refuses_mistakes(changes, message):
    asked = {"space": {"local_epochs": {"low": 1, "high": 2}}, "n_trials": 2} | changes
    with pytest.raises(ParameterError, match=message):
        small_sweep(grid=None, optuna=OptunaSearch(**asked))
