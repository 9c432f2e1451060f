"""Settings out of range, and size models by name."""

import pytest

from polyurn import SizeBins
from polyurn.errors import ParameterError
from polyurn.server.em import Problem
from polyurn.server.fit_settings import Policy, Settings, size_bins

USUAL = {
    "n_components": 2, "n_categories": 3, "size_prior": 1.0, "category_prior": 1e-3,
}  # fmt: skip


def check(**settings):
    model = {name: settings.pop(name, value) for name, value in USUAL.items()}
    Problem(size_bins=SizeBins.exact(9), shared_sizes=False, **model)
    policy = settings.pop("policy", {})
    Settings(policy=Policy(**policy), **settings)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_components": 0}, "n_components from 1 to 65535, got 0"),
        ({"n_categories": -1}, "n_categories of at least 2, got -1"),
        ({"n_components": 2**16}, "n_components from 1 to 65535"),
        ({"max_rounds": 2}, "max_rounds from 3 to 1000000, got 2"),
        ({"max_rounds": 10**20}, "max_rounds from 3 to 1000000, got 10{20}"),
        ({"tol": 0.0}, "tol above 0 and finite, got 0.0"),
        ({"tol": float("nan")}, "tol above 0 and finite, got nan"),
        ({"max_upload": 0}, "max_upload of at least 1, got 0"),
        ({"patience": -1}, "patience of at least 0, got -1"),
        ({"size_prior": -1.0}, "size_prior from 0 to 1000000000, got -1"),
        ({"category_prior": 0.0}, "category_prior above 0 and finite, got 0"),
        ({"category_prior": float("inf")}, "category_prior above 0 and finite, got inf"),
        ({"policy": {"starts": 0}}, "starts as an integer of at least 1, got 0"),
        ({"policy": {"finalists": 0}}, "finalists as an integer of at least 1, got 0"),
        ({"policy": {"recombined": -1}}, "recombined as an integer of at least 0, got -1"),
        ({"policy": {"dampings": ()}}, "dampings, one or several, got none"),
        ({"policy": {"dampings": (1.0, 0.0)}}, "dampings as a list above 0"),
        ({"policy": {"safety": float("nan")}}, "safety as a number above 0 and finite, got nan"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(setting, message):
    with pytest.raises(ParameterError, match=message):
        check(**setting)


@pytest.mark.parametrize(
    "setting", [{}, {"patience": 0}, {"max_rounds": 3}, {"size_prior": 0.0}, {"patience": 10**20}]
)
def test_settings_in_range_pass(setting):
    check(**setting)


def test_a_size_model_is_named_or_given():
    assert size_bins("exact", 50) == SizeBins.exact(50)
    assert size_bins("binned", 50) == size_bins("shared", 50) == SizeBins.logarithmic(50)
    assert size_bins(given := SizeBins([1, 9, 51]), 50) is given


def test_size_bins_end_at_the_largest_size():
    with pytest.raises(ParameterError, match="end at max_size 50, got 9"):
        size_bins(SizeBins.exact(9), 50)
