"""Clients of the experiment on CIFAR-10, on pictures made on the spot."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyurn.datasets.dataset import Dataset, Records

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import cifar10


def test_pictures_are_cut_into_clients_of_the_hidden_mixture():
    rng = np.random.default_rng(3)
    records = Records(np.arange(500) % 10, rng.integers(0, 256, (500, 32, 32, 3), dtype=np.uint8))
    source = Dataset("made", tuple("0123456789"), records, records)
    settings = replace(cifar10.SETTINGS, n_clients=20, size=30)
    made, modelled = cifar10.federation(source, "high/2", settings)
    assert [len(held) for held in made.true] == [30] * 20
    assert made.data.features.shape == (500, 3, 16, 16)
    assert made.data.features.min() >= -1
    assert made.data.features.max() <= 1
    assert np.array_equal(np.sort(np.concatenate(made.true)), np.sort(made.proxy))
    assert modelled.n_categories == 10
