"""Pictures of points: a row of images as one PNG, in a data address that a page can carry.

Arrays in, text out. Which points are shown is decided elsewhere (`style_section.py`).
"""

import base64
import math
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.typed.declared import Floats

# About the width of an image on the page; larger ones are shrunk, so that the page stays small.
_MOST_PIXELS = 56
_GAP = 2
# How many channels stand for which colour type of PNG (ISO/IEC 15948, 11.2.2): with transparency.
_COLOUR_TYPES = {2: 4, 4: 6}


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether points of this shape are images: (h, w), or with one or three channels, first or last.

    >>> [is_image(shape) for shape in ((28, 28), (32, 32, 3), (1, 28, 28), (784,), (5, 4, 6))]
    [True, True, True, False, False]
    """
    channels = {1, 3}
    if len(shape) == 3 and (shape[0] in channels or shape[-1] in channels):
        shape = shape[1:] if shape[0] in channels and shape[-1] not in channels else shape[:2]
    return len(shape) == 2 and min(shape) > 1


def brightness(features: NDArray[Any]) -> tuple[float, float]:
    """Which values are black and white: those of a byte, or the smallest and the largest."""
    if features.dtype == np.uint8:
        return 0.0, 255.0
    return float(features.min()), float(features.max())


def strip(images: NDArray[Any], black: float, white: float) -> str:
    """Images side by side, with gaps that are transparent, as the address of a PNG.

    Of shape (n, h, w), (n, h, w, 1 or 3) or (n, 1 or 3, h, w); `black` and `white` are values of theirs.

    >>> strip(np.zeros((3, 8, 8)), 0, 1)[:26]
    'data:image/png;base64,iVBO'
    """
    values = np.asarray(images, np.float64)
    if values.ndim == 3:
        values = values[..., None]
    elif values.shape[1] in (1, 3) and values.shape[-1] not in (1, 3):
        values = np.moveaxis(values, 1, -1)
    scale = white - black if white > black else 1.0
    pixels = np.rint(255 * np.clip((_shrunk(values) - black) / scale, 0, 1)).astype(np.uint8)
    n, height, width, channels = pixels.shape
    row = np.zeros((height, n * (width + _GAP) - _GAP, channels + 1), np.uint8)
    for i, image in enumerate(pixels):
        columns = slice(i * (width + _GAP), i * (width + _GAP) + width)
        row[:, columns, :channels] = image
        row[:, columns, channels] = 255
    return f"data:image/png;base64,{base64.b64encode(_png(row)).decode()}"


def _shrunk(images: Floats) -> Floats:
    """Means of square blocks, if an image is larger than it is shown."""
    n, height, width, channels = images.shape
    step = min(math.ceil(max(height, width) / _MOST_PIXELS), height, width)
    if step == 1:
        return images
    h, w = height // step, width // step
    blocks = images[:, : h * step, : w * step].reshape(n, h, step, w, step, channels)
    return np.asarray(blocks.mean(axis=(2, 4)))


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """PNG of shape (height, width, channels), the last channel of which is the opacity."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    unfiltered = np.zeros((height, 1), np.uint8)
    lines = np.concatenate([unfiltered, pixels.reshape(height, -1)], axis=1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
