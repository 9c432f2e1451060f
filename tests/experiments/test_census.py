"""Clients of the census experiments, on records made on the spot."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyurn.datasets.dataset import LabelledPoints

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import census

SMALL = replace(census.SETTINGS, n_clients=12, train_share=0.7, test_share=0.3, components=(1,))


def people(n_clients: int = 30, size: int = 40) -> tuple[LabelledPoints, dict[str, np.ndarray]]:
    """Clients that differ in their income, which the first feature tells."""
    rng = np.random.default_rng(0)
    clients = np.repeat(np.arange(n_clients), size)
    income = rng.binomial(40, rng.uniform(0.1, 0.9, n_clients)[clients])
    features = np.stack([income / 40, rng.random(len(income))], axis=1).astype(np.float32)
    names = np.array([f"{i:02d}" for i in range(n_clients)])
    records = LabelledPoints((income > 20).astype(np.int64), features, clients, names)
    return records, {"income": income, "race": rng.integers(0, 9, len(income))}


def test_the_server_has_the_true_clients_records_and_no_test_record_is_trained_on():
    data, made, _ = census.federation(*people(), SMALL, disjoint=False)
    assert len(made.true) == SMALL.n_clients
    assert sorted(made.true.indices) == sorted(made.proxy)
    trained = {tuple(row) for row in data.features.tolist()}
    assert not trained & {tuple(row) for row in data.test_features.tolist()}


@pytest.mark.parametrize("disjoint", [False, True])
def test_simulated_clients_hold_the_servers_records(disjoint, tmp_path):
    _, made, features = census.federation(*people(), SMALL, disjoint=disjoint)
    found = census.populations(tmp_path, made, features, SMALL, disjoint=disjoint)
    assert ("iid proxy" in found) == disjoint
    simulated = {name: of(0) for name, of in found.items() if name != "true"}
    assert {"iid", "mdm income", "oracle income", "mdm race", "oracle race"} <= set(simulated)
    for held in simulated.values():
        assert set(held.indices.tolist()) <= set(made.proxy.tolist())
        assert disjoint == (not set(held.indices.tolist()) & set(made.true.indices.tolist()))
