"""Clients of the experiment on MNIST, on pictures made on the spot."""

import sys
from pathlib import Path

import numpy as np
import pytest

from polyurn.datasets.dataset import Dataset, Records

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import digits_by_writer


def test_writers_of_digits_hold_their_own_pictures():
    rng = np.random.default_rng(2)
    writers = np.sort(rng.integers(0, 5, 60))
    pictures = rng.integers(0, 256, (60, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, 60)
    names = np.array([*"abcde"])
    train, test = Records(labels, pictures, writers, names), Records(labels, pictures)
    source = Dataset("made", tuple("0123456789"), train, test)
    made, modelled = digits_by_writer.federation(source, digits_by_writer.SETTINGS)
    assert [set(writers[held]) for held in made.true] == [{i} for i in range(5)]
    assert made.data.features.shape == (60, 14, 14)
    assert made.data.features[0, 0, 0] == pytest.approx(pictures[0, :2, :2].mean() / 255)
    assert modelled.codes is train.labels
