import numpy as np

from polyurn.server.private.private_starts import k_means


def test_clusters_far_apart_are_found_whatever_the_seed():
    rng = np.random.default_rng(0)
    true = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])
    which = rng.integers(3, size=600)
    points = true[which] + rng.normal(size=(600, 2))
    for seed in range(10):
        centres, joined = k_means(points, 3, np.random.default_rng(seed))
        apart = np.linalg.norm(centres[joined] - true[which], axis=1)
        assert apart.max() < 0.5


def test_each_centre_is_the_weighted_mean_of_points_near_it():
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(200, 3)), rng.random(200)
    centres, joined = k_means(points, 4, np.random.default_rng(0), weights)
    for group in range(4):
        mine = joined == group
        mean = np.average(points[mine], axis=0, weights=weights[mine])
        np.testing.assert_allclose(centres[group], mean, rtol=1e-12)


def test_more_groups_than_different_points_leave_groups_empty():
    points = np.repeat([[0.0], [5.0]], 3, axis=0)
    _, joined = k_means(points, 4, np.random.default_rng(0))
    assert len(set(joined.tolist())) == 2
