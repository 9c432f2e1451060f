"""Questions about style: how many numbers they are, and what cannot be asked."""

import numpy as np
import pytest

from polyurn.errors import ParameterError
from polyurn.typed.arrays import symmetric
from polyurn.wire import BoundedStyle, Noised, StyleMoments
from polyurn.wire.style_queries import LABEL_EFFECT_PARTS, PARTS, triangle
from style_cases import whole_space


def test_four_directions_are_39_numbers():
    """38 of the model and the share of points that lie far."""
    assert StyleMoments(whole_space(4, 10)).n_numbers == 39
    assert StyleMoments(whole_space(4, 10), label_effect=True).n_numbers == 39 + 10 + 55 + 40
    assert BoundedStyle(whole_space(4, 10), 4.0).n_numbers == 39


def test_the_parts_of_the_squared_norm_are_1():
    assert sum(PARTS) == pytest.approx(1)
    assert sum(LABEL_EFFECT_PARTS) == pytest.approx(1)


def test_only_the_bounded_form_can_be_noised():
    assert Noised(BoundedStyle(whole_space(), 4.0), 1.0).n_numbers == 39
    with pytest.raises(ParameterError, match="norm at most 1"):
        Noised(StyleMoments(whole_space()), 1.0)


@pytest.mark.parametrize("clip", [0.0, -1.0, np.inf, np.nan])
def test_a_clip_that_is_no_length_is_refused(clip):
    with pytest.raises(ParameterError, match="clip above 0"):
        BoundedStyle(whole_space(), clip)


def test_a_symmetric_matrix_is_its_triangle():
    matrix = np.arange(9.0).reshape(3, 3)
    matrix += matrix.T
    assert np.array_equal(symmetric(triangle(matrix)), matrix)
