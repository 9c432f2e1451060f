"""Clients of the experiment on MNIST, on pictures made on the spot."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyurn.comparison.estimates import Estimate
from polyurn.datasets.dataset import LabelledPoints

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import digits_by_writer


def test_writers_of_digits_hold_their_own_pictures():
    rng = np.random.default_rng(2)
    writers = np.sort(rng.integers(0, 5, 60))
    pictures = rng.integers(0, 256, (60, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, 60)
    names = np.array([*"abcde"])
    train, test = LabelledPoints(labels, pictures, writers, names), LabelledPoints(labels, pictures)
    source = digits_by_writer.sources.SplitDataset("made", tuple("0123456789"), train, test=test)
    settings = replace(digits_by_writer.SETTINGS, n_features=8)
    data, made, modelled = digits_by_writer.federation(source, settings)
    assert [set(writers[held]) for held in made.true] == [{i} for i in range(5)]
    assert data.features.shape == (60, 8)
    assert modelled.codes is train.labels


def test_the_end_of_an_interval_that_is_further_from_nothing():
    assert digits_by_writer.furthest(Estimate(0.0, -0.3, 0.1)) == -0.3
    assert digits_by_writer.furthest(Estimate(0.1, -0.1, 0.3)) == 0.3
