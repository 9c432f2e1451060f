"""Pictures of the experiment with a convolutional network."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import cifar10_cnn


def test_pixels_have_their_colours_first_and_are_between_minus_one_and_one():
    pictures = np.random.default_rng(3).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    made = cifar10_cnn.pixels(pictures, 2)
    assert made.shape == (5, 3, 16, 16)
    assert made[2, 1, 0, 15] == pytest.approx(pictures[2, :2, 30:, 1].mean() / 127.5 - 1, abs=1e-6)
    assert -1 <= made.min() <= made.max() <= 1
