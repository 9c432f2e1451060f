"""A style space of proxy data: main directions, whitened labels, and the pool's own distance."""

import numpy as np
import pytest

from polyurn.errors import ParameterError
from polyurn.model.style_coordinates import style_space


def pool(n=3000, seed=0):
    """Three labels with means and covariances of their own, most variance in two directions."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    scales = np.array([5.0, 3.0, 0.5, 0.4, 0.3]) * (1 + labels[:, None])
    return rng.normal(size=(n, 5)) * scales + 10 * labels[:, None], labels


def test_the_points_of_each_label_have_mean_0_and_covariance_1():
    features, labels = pool()
    space = style_space(features, labels, n_directions=2, radius=1e9)
    for label in range(3):
        z = space.coordinates(features, labels)[labels == label]
        np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-10)
        # The covariance of all labels counts as three points of each.
        np.testing.assert_allclose(z.T @ z / len(z), np.eye(2), atol=0.02)


def test_directions_are_the_principal_components_of_the_residuals_of_all_labels():
    features, labels = pool()
    space = style_space(features, labels, n_directions=2)
    means = np.stack([features[labels == label].mean(axis=0) for label in range(3)])
    residuals = features - means[labels]
    np.testing.assert_allclose(space.centres, means @ space.basis, rtol=1e-12)
    main = np.linalg.svd(residuals, full_matrices=False)[2][:2]
    assert np.abs(np.sum(main * space.basis.T, axis=1)) == pytest.approx([1, 1])


def test_one_point_in_a_hundred_of_the_pool_lies_beyond_the_radius():
    features, labels = pool()
    space = style_space(features, labels)
    assert space.located(features, labels)[1].sum() == 30
    assert space.proxy_far_share == pytest.approx(0.01)
    near = style_space(features, labels, radius=1.0)
    assert near.radius == 1.0
    assert near.proxy_far_share > 0.5


def test_the_order_of_the_points_does_not_matter():
    features, labels = pool()
    order = np.random.default_rng(1).permutation(len(labels))
    one, other = style_space(features, labels), style_space(features[order], labels[order])
    np.testing.assert_allclose(one.basis, other.basis, atol=1e-9)
    np.testing.assert_allclose(one.whitening, other.whitening, atol=1e-9)


def test_a_rare_label_is_whitened_with_the_help_of_the_others():
    features, labels = pool()
    labels = np.append(labels, [3, 3])
    features = np.concatenate([features, [[0.0] * 5, [1.0] * 5]])
    assert np.isfinite(style_space(features, labels).whitening).all()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n_directions": 0}, "n_directions from 1 to 5"),
        ({"n_directions": 6}, "n_directions from 1 to 5"),
        ({"n_labels": 4}, "none of label 3"),
        ({"n_labels": 2}, "labels from 0 to 1, got 2"),
        ({"radius": -1.0}, r"radius.* above 0"),
        ({"labels": np.ones(3000, int)}, "none of label 0"),
        ({"features": np.zeros((3000, 5))}, "vary within labels in 4 directions, got 0"),
        ({"features": np.full((3000, 5), np.inf)}, "in point 0"),
    ],
)
def test_proxy_data_that_make_no_space_are_refused_in_one_line(changed, said):
    features, labels = pool()
    with pytest.raises(ParameterError, match=said):
        style_space(**{"features": features, "labels": labels} | changed)
