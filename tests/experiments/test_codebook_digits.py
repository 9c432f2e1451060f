import sys
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import codebook_digits as experiment


def test_clients_at_random_have_a_dispersion_and_a_label_index_of_one():
    rng = np.random.default_rng(0)
    residuals, labels = rng.normal(size=(40_000, 6)), rng.integers(10, size=40_000)
    clients = pu.Partition.by_owner(rng.integers(1_000, size=40_000))
    scale = np.trace(np.cov(residuals.T))
    # Chi-squares of 6,000 and of 9,000 degrees of freedom over them: s.e. 0.02.
    assert experiment.dispersion(residuals, clients, scale) == pytest.approx(1, abs=0.08)
    assert experiment.label_index(labels, clients) == pytest.approx(1, abs=0.08)


def test_clients_who_lean_each_their_own_way_are_dispersed():
    rng = np.random.default_rng(1)
    owners = rng.integers(1_000, size=40_000)
    leaning = rng.normal(size=(1_000, 6))[owners] + rng.normal(size=(40_000, 6))
    clients = pu.Partition.by_owner(owners)
    # 1 + n * 1 with clients of 40 points, over the variance of a point, 1.
    assert experiment.dispersion(leaning, clients, 6.0) == pytest.approx(41, rel=0.1)
