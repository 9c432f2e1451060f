"""Clients with a style, on points made on the spot."""

import sys
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import styles


@pytest.fixture
def writers():
    """60 clients of 30 points, each with a place of its own in the first of three features."""
    rng = np.random.default_rng(0)
    owners, labels = np.repeat(np.arange(60), 30), rng.integers(2, size=1800)
    features = rng.normal(size=(1800, 3)) * [1.0, 0.7, 0.5]
    features[:, 0] += rng.normal(size=60)[owners]
    data = pu.Examples(features, labels, features[:5], labels[:5])
    return styles.Halves(data, 2, features, *styles.halves(owners, split=1)), owners


def test_no_client_is_in_both_halves(writers):
    there, owners = writers
    assert not set(owners[there.true.indices]) & set(owners[there.pool])
    assert len(there.true.indices) + len(there.pool) == len(owners)


def test_simulated_clients_have_points_of_the_pool_only_and_the_asked_labels(writers):
    there, _ = writers
    style = styles.learned_style(there, 2)
    made = styles.simulated(there, "oracle style", pu.Oracle, lambda _: style)(0)
    assert set(made.indices) <= set(there.pool)
    asked = there.true.histograms(there.data.labels, 2)
    given = made.histograms(there.data.labels, 2)
    assert sorted(map(tuple, given)) == sorted(map(tuple, asked))


def test_coordinates_on_the_basis_are_those_of_all_features(writers):
    there, _ = writers
    whole, (fewer, space) = styles.space_of(there, 2), styles.on_basis(there, 2)
    mine = whole.coordinates(there.features, there.data.labels)
    assert np.allclose(mine, space.coordinates(fewer.features, there.data.labels))


def test_clients_differ_first_in_the_first_of_the_client_directions(writers):
    there, _ = writers
    found = styles.client_directions(there, 3, 1)
    assert abs(np.corrcoef(found.features[:, 0], there.features[:, 0])[0, 1]) > 0.9


def test_features_of_iid_clients_are_spread_by_one_and_those_of_natural_ones_by_more(writers):
    there, _ = writers
    labels = there.data.labels
    iid = styles.simulated(there, "iid", pu.IID.like)(0)
    assert styles.spreads(iid, labels, there.features) == pytest.approx(1, abs=0.25)
    assert styles.spreads(there.natural, labels, there.features) > 3


def test_style_tells_the_label_share_of_a_client_if_both_go_together():
    owner = np.repeat(np.arange(40), 50)
    labels = (np.arange(2000) % 50 < owner).astype(int)
    clients = pu.Partition.by_owner(owner)
    assert styles.tie(clients, labels, owner[:, None] + 0.0) == pytest.approx(1)
    rng = np.random.default_rng(0)
    assert styles.tie(clients, labels, rng.normal(size=(2000, 1))) < 0.5
