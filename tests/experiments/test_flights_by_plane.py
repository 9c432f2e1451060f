"""Clients of the experiment on flights, on flights made on the spot."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyurn.datasets.dataset import Dataset, LabelledPoints

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import flights_by_plane

SMALL = replace(flights_by_plane.SETTINGS, most_flights=25, n_test=50, components=(1,))


def flown():
    """Thirty aeroplanes of which ten fly rarely, in two airports and to three."""
    rng = np.random.default_rng(0)
    planes = np.repeat(np.arange(30), [5] * 10 + [40] * 20)
    to, out_of = rng.integers(0, 3, len(planes)), rng.integers(0, 2, len(planes))
    features = rng.random((len(planes), 4)).astype(np.float32)
    ids = np.array([f"N{i:02d}" for i in range(30)])
    routes = tuple(f"{a}-{b}" for a in "EJ" for b in "XYZ")
    return (
        planes,
        Dataset("made", ("X", "Y", "Z"), LabelledPoints(to, features, planes, ids)),
        Dataset("made", routes, LabelledPoints(3 * out_of + to, features, planes, ids)),
    )


def test_true_clients_the_servers_flights_and_those_to_test_on_are_of_different_aeroplanes():
    planes, by_destination, by_route = flown()
    data, made, (destination, route) = flights_by_plane.federation(by_destination, by_route, SMALL)
    mine = [set(planes[held]) for held in made.true]
    assert len(mine) == 12
    assert {len(owners) for owners in mine} == {1}
    assert set(made.true.sizes) == {25}
    assert set(np.bincount(planes[made.proxy])) == {0, 25}
    assert min(set.union(*mine)) >= 10
    assert not set.union(*mine) & set(planes[made.proxy])
    tested = {tuple(row) for row in data.test_features.tolist()}
    assert len(data.test_labels) == 50
    for rows in (made.true.indices, made.proxy):
        assert not tested & {tuple(row) for row in data.features[rows].tolist()}
    assert (destination.n_categories, route.n_categories) == (3, 6)


def test_simulated_aeroplanes_hold_flights_of_the_server(tmp_path):
    _, by_destination, by_route = flown()
    _, made, features = flights_by_plane.federation(by_destination, by_route, SMALL)
    found = flights_by_plane.populations(tmp_path, made, features, SMALL)
    assert [*found] == [
        "true", "mdm route", "oracle route", "mdm destination", "oracle destination",
        "dirichlet 0.1", "dirichlet 0.5", "iid", "iid proxy",
    ]  # fmt: skip
    for name, of in found.items():
        if name != "true":
            assert set(of(0).indices.tolist()) <= set(made.proxy.tolist())
