import sys

import numpy as np
import pytest

from polyurn.comparison.likeness import two_sample_auc
from polyurn.errors import MissingDependencyError


def test_clients_of_the_same_kind_cannot_be_told_apart():
    # 12 trials at about 95 %: fewer than 9 by chance in 1 of 300.
    rng = np.random.default_rng(0)
    found = [two_sample_auc(*rng.random((2, 100, 3)), rng=seed) for seed in range(12)]
    assert sum(auc.low <= 0.5 <= auc.high for auc in found) >= 9
    assert 0.4 < np.mean([auc.value for auc in found]) < 0.6


def test_what_only_trees_can_see_is_seen():
    """Same marginals and the same correlation, zero; one kind keeps out of the corners."""
    rng = np.random.default_rng(1)
    square = rng.uniform(-1, 1, (300, 2))
    cross = square * np.where(rng.random((300, 1)) < 0.5, [1.0, 0.05], [0.05, 1.0])
    auc = two_sample_auc(cross, square, rng=0)
    assert auc.low > 0.7


def test_clients_that_share_nothing_are_always_told_apart():
    x = np.random.default_rng(0).random((40, 2))
    assert two_sample_auc(x, x + 2, rng=0).value == 1.0


def test_the_same_seed_gives_the_same_answer():
    x, y = np.random.default_rng(0).random((2, 50, 2))
    assert two_sample_auc(x, y, rng=3) == two_sample_auc(x, y, rng=3)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingDependencyError, match=r"polyurn\[sklearn\]"):
        two_sample_auc(np.ones((10, 2)), np.ones((10, 2)), rng=0)
