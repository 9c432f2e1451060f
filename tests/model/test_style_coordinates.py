"""Style coordinates: the plain formula, the same bits however they are asked for, and clipping."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn.errors import ParameterError
from polyurn.model.style_coordinates import StyleSpace


def some_space(rng, *, n_labels=3, n_features=7, n_directions=2, radius=1e9):
    return StyleSpace(
        rng.normal(size=(n_labels, n_directions)),
        rng.normal(size=(n_features, n_directions)),
        rng.normal(size=(n_labels, n_directions, n_directions)),
        radius,
    )


def test_coordinates_are_those_of_the_plain_formula():
    rng = np.random.default_rng(0)
    space = some_space(rng)
    features, labels = rng.normal(size=(50, 7)), rng.integers(3, size=50)
    plain = [
        space.whitening[label] @ (space.basis.T @ f - space.centres[label])
        for f, label in zip(features, labels, strict=True)
    ]
    np.testing.assert_allclose(space.coordinates(features, labels), plain, rtol=1e-12, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
def test_coordinates_have_the_same_bits_in_any_blocks_and_memory_order(seed, n_directions, fortran):
    rng = np.random.default_rng(seed)
    space = some_space(rng, n_directions=n_directions, n_features=9, radius=3.0)
    features, labels = rng.normal(size=(20, 9)), rng.integers(3, size=20)
    whole = space.coordinates(np.asfortranarray(features) if fortran else features, labels)
    cut = [space.coordinates(features[i : i + 1], labels[i : i + 1])[0] for i in range(20)]
    assert np.array_equal(whole, cut)


def test_a_point_beyond_the_radius_is_moved_to_it_along_its_ray():
    rng = np.random.default_rng(1)
    open_space = some_space(rng)
    space = StyleSpace(open_space.centres, open_space.basis, open_space.whitening, 1.5)
    features, labels = rng.normal(size=(200, 7)), rng.integers(3, size=200)
    free, (clipped, far) = (
        open_space.coordinates(features, labels),
        space.located(features, labels),
    )
    lengths = np.linalg.norm(free, axis=1)
    assert np.array_equal(far, lengths > 1.5)
    assert far.any()
    np.testing.assert_allclose(clipped, free * np.minimum(1, 1.5 / lengths)[:, None], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", ">f8"])
def test_numbers_of_any_type_give_the_coordinates_of_the_same_float64(dtype):
    rng = np.random.default_rng(2)
    space = some_space(rng)
    features, labels = rng.integers(0, 200, size=(30, 7)).astype(dtype), rng.integers(3, size=30)
    assert np.array_equal(
        space.coordinates(features, labels), space.coordinates(features.astype("f8"), labels)
    )


def test_images_are_flattened():
    rng = np.random.default_rng(3)
    space = some_space(rng, n_features=6)
    images, labels = rng.normal(size=(4, 2, 3)), [0, 1, 2, 0]
    assert np.array_equal(
        space.coordinates(images, labels), space.coordinates(images.reshape(4, 6), labels)
    )


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        ([1.0, 2.0], [0], "shape"),
        ([[1.0, 2.0, 3.0]], [0], "points of 7 features"),
        (np.zeros((2, 7)), [0], "a label for each of 2 points"),
        (np.zeros((2, 7)), [0, 3], "labels from 0 to 2, got 3"),
        (np.zeros((2, 7)), [0, -1], "got -1"),
        (np.zeros((2, 7)), [0, 0.5], "labels as integers"),
        (np.full((2, 7), np.nan), [0, 1], "in point 0"),
        ([[0.0] * 7, [np.inf] + [0.0] * 6], [0, 1], "in point 1"),
    ],
)
def test_points_that_do_not_fit_are_refused_in_one_line(features, labels, said):
    with pytest.raises(ParameterError, match=said):
        some_space(np.random.default_rng(4)).coordinates(features, labels)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"centres": [[0.0, 0.0]]}, "of shape"),
        ({"basis": [[np.nan], [1.0]]}, "finite"),
        ({"whitening": [[[1.0, 0.0]]]}, "whitening of shape"),
        ({"radius": 0.0}, r"radius.* above 0"),
        ({"radius": np.inf}, r"radius.* above 0"),
        ({"proxy_far_share": 2.0}, "from 0 to 1"),
    ],
)
def test_a_space_whose_parts_do_not_fit_is_refused(changed, said):
    given = {"centres": [[0.0]], "basis": [[1.0], [0.0]], "whitening": [[[1.0]]], "radius": 1.0}
    with pytest.raises(ParameterError, match=said):
        StyleSpace(**given | changed)


def test_a_space_equals_its_pickle_and_no_other_one():
    space = some_space(np.random.default_rng(5))
    again = pickle.loads(pickle.dumps(space))
    assert again == space
    assert not again.centres.flags.writeable
    assert StyleSpace(space.centres, space.basis, space.whitening, 7.0) != space


@pytest.mark.parametrize("n_threads", [2, 3, 50])
def test_threads_change_no_bit_and_no_point_that_is_named(n_threads):
    rng = np.random.default_rng(6)
    space, features, labels = some_space(rng), rng.normal(size=(40, 7)), rng.integers(3, size=40)
    one = space.coordinates(features, labels)
    assert np.array_equal(space.coordinates(features, labels, n_threads=n_threads), one)
    features[[23, 31]] = np.nan
    with pytest.raises(ParameterError, match="in point 23, counted from 0"):
        space.coordinates(features, labels, n_threads=n_threads)
