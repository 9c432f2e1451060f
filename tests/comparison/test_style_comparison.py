"""How much clients differ in style, against clients of a known law."""

import numpy as np
import pytest

from polyurn import IID, Style, partition, style_dispersion
from polyurn.errors import ParameterError
from style_cases import drawn_world, plain_style, whole_space


def drawn(between, by_label, *, n_clients=400, n_labels=4, n_directions=3, seed=0):
    """Clients of 30 points, and the variances that belong to them, and to them and a label."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_clients), 30)
    labels = rng.integers(n_labels, size=len(owner))
    shape = (n_clients, n_labels, n_directions)
    own = np.sqrt(between) * rng.normal(size=(n_clients, 1, n_directions))
    centres = own + np.sqrt(by_label) * rng.normal(size=shape)
    noise = np.sqrt(1 - between - by_label) * rng.normal(size=(len(owner), n_directions))
    return centres[owner, labels] + noise + 5 * labels[:, None], labels, owner


def test_clients_that_do_not_differ_have_the_noise_floor():
    # Their standard error is 0.02. False alarm: 1 in 10,000.
    found = style_dispersion(*drawn(0.0, 0.0, n_clients=1_600), rng=0)
    assert found.by_client.value == pytest.approx(1, abs=0.08)
    assert found.by_client.low < 1 < found.by_client.high
    assert found.by_label.value == pytest.approx(1, abs=0.06)


def test_the_index_has_the_mean_that_the_variances_give_it():
    # n (B + a V + E / n) with a = Σ_l (n_l / n)², and by label n_l (B + V + E / n_l).
    features, labels, owner = drawn(0.3, 0.2, n_clients=2000)
    found = style_dispersion(features, labels, owner, rng=0)
    counts = np.zeros((2000, 4))
    np.add.at(counts, (owner, labels), 1)
    expected = 30 * 0.3 + 0.2 * (counts**2).sum(axis=1).mean() / 30 + 0.5
    assert found.by_client.value == pytest.approx(expected, rel=0.05)
    within = counts[counts > 1]
    assert found.by_label.value == pytest.approx((0.5 * within + 0.5).mean(), rel=0.05)
    assert found.n_clients == 2000


def test_the_mean_of_a_label_is_no_style():
    features, labels, owner = drawn(0.3, 0.2)
    moved = features + np.array([0.0, 7.0, -3.0, 1.0])[labels][:, None]
    one, other = (style_dispersion(f, labels, owner, rng=0) for f in (features, moved))
    assert one.by_client.value == pytest.approx(other.by_client.value)


def test_simulated_clients_have_the_dispersion_of_the_true_ones():
    world = drawn_world(500, sizes=(20, 60), n_labels=4, n_directions=2, seed=1)
    held = world.records.of(np.arange(500))
    space = whole_space(2, 4, radius=20.0)
    true = style_dispersion(held.features, held.labels, held.owner, space=space, rng=0)
    style = Style(space, np.zeros(2), world.shared, world.by_label, world.within)
    rng = np.random.default_rng(0)
    labels, pool = rng.integers(4, size=40_000), rng.normal(size=(40_000, 2))
    parts = partition(labels, world.records.counts, style=style, features=pool, rng=2)
    where = parts.indices
    simulated = style_dispersion(pool[where], labels[where], parts.clients, space=space, rng=0)
    assert simulated.by_client.value == pytest.approx(true.by_client.value, rel=0.15)
    assert simulated.by_label.value == pytest.approx(true.by_label.value, rel=0.15)
    plain = partition(labels, world.records.counts, rng=2)
    where = plain.indices
    floor = style_dispersion(pool[where], labels[where], plain.clients, space=space, rng=0)
    assert floor.by_client.value == pytest.approx(1, abs=0.1)


def test_a_space_measures_in_its_directions_only():
    features, labels, owner = drawn(0.4, 0.0)
    noise = np.random.default_rng(1).normal(size=(len(features), 3))
    style = plain_style(n_labels=4, n_directions=3)
    raw = style_dispersion(np.hstack([features, 3 * noise]), labels, owner, rng=0)
    there = style_dispersion(
        features - 5 * labels[:, None], labels, owner, space=style.space, rng=0
    )
    assert there.by_client.value > 3 * raw.by_client.value


def test_points_that_are_all_alike_say_nothing():
    found = style_dispersion(np.ones((9, 2)), [0, 1, 0] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2], rng=0)
    assert found.by_client.value == 1
    assert np.isnan(found.by_label.value)


@pytest.mark.parametrize(
    ("features", "labels", "clients", "message"),
    [
        ([[1.0], [2.0]], [0, 1], [0], "a client for each of 2 points"),
        ([[1.0]], [0], [0], "at least two points"),
        ([[1.0], [2.0]], [0, -1], [0, 1], "labels from 0"),
        ([1.0, 2.0], [0, 1], [0, 1], "features of shape"),
    ],
)
def test_points_that_are_no_clients_are_refused(features, labels, clients, message):
    with pytest.raises(ParameterError, match=message):
        style_dispersion(features, labels, clients, rng=0)


def test_iid_clients_of_a_pool_have_the_floor_in_every_feature():
    rng = np.random.default_rng(0)
    labels, pool = rng.integers(3, size=9_000), rng.gamma(1.0, size=(9_000, 5))
    parts = partition(labels, IID([1, 1, 1], sizes=[25]), n_clients=300, rng=0)
    found = style_dispersion(pool[parts.indices], labels[parts.indices], parts.clients, rng=0)
    assert found.by_client.value == pytest.approx(1, abs=0.08)


def test_features_that_are_not_finite_are_refused():
    with pytest.raises(ParameterError, match="features as an array of finite numbers"):
        style_dispersion([[1.0], [np.nan], [2.0]], [0, 0, 1], [0, 1, 1], rng=0)
