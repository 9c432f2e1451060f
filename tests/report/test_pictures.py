"""Pictures in a page: rows of images as PNG."""

import base64
import io

import numpy as np
import pytest

from polyurn.report.pictures import brightness, is_image, strip

image = pytest.importorskip("PIL.Image", reason="Pillow reads the pictures back")


def read(source):
    kind, _, text = source.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(image.open(io.BytesIO(base64.b64decode(text))))


def test_images_stand_side_by_side_with_transparent_gaps_between():
    images = np.random.default_rng(0).integers(256, size=(3, 8, 5), dtype=np.uint8)
    pixels = read(strip(images, black=0, white=255))
    assert pixels.shape == (8, 3 * 5 + 2 * 2, 2)
    for i, one in enumerate(images):
        place = slice(7 * i, 7 * i + 5)
        np.testing.assert_array_equal(pixels[:, place, 0], one)
        assert (pixels[:, place, 1] == 255).all()
    assert (pixels[:, [5, 6, 12, 13], 1] == 0).all()


def test_colours_may_come_first_or_last():
    images = np.random.default_rng(1).integers(256, size=(2, 9, 7, 3), dtype=np.uint8)
    last = strip(images, black=0, white=255)
    assert strip(np.moveaxis(images, -1, 1), black=0, white=255) == last
    np.testing.assert_array_equal(read(last)[:, :7, :3], images[0])
    one = strip(images[..., :1], black=0, white=255)
    assert one == strip(images[..., 0], black=0, white=255)


def test_black_and_white_are_the_ends_of_the_values():
    images = np.array([[[-1.0, 0.0], [1.0, 3.0]]])
    assert brightness(images) == (-1.0, 3.0)
    assert read(strip(images, black=-1, white=3))[..., 0].tolist() == [[0, 64], [128, 255]]
    assert brightness(images.astype(np.uint8)) == (0.0, 255.0)
    assert read(strip(images, black=0, white=0))[..., 0].tolist() == [[0, 0], [255, 255]]


def test_large_images_are_shrunk_by_means():
    images = np.zeros((1, 112, 224))
    images[0, :4, 4:8] = 1
    pixels = read(strip(images, 0, 1))
    assert pixels.shape == (28, 56, 2)
    assert pixels[0, 1, 0] == 255
    assert pixels[..., 0].sum() == 255


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((8, 8), True), ((3, 8, 8), True), ((8, 8, 1), True), ((64,), False), ((1, 64), False),
     ((4, 5, 6), False), ((3, 2, 8, 8), False)],
)  # fmt: skip
def test_points_with_height_and_width_are_images(shape, expected):
    assert is_image(shape) == expected
