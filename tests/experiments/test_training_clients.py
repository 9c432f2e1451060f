"""True and simulated clients of the training experiments, on data made on the spot."""

import sys
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import training_clients as clients

MODELLED = clients.Modelled("colour", np.arange(600) % 4, 4)


def federation(seed):
    """Twenty clients with a colour each, other ones for every seed; the server has the second half."""
    rng = np.random.default_rng(seed)
    counts = 5 * np.eye(4, dtype=int)[rng.integers(0, 4, 20)]
    return clients.Federation(
        pu.partition(MODELLED.codes[:300], counts, rng=rng), np.arange(300, 600)
    )


MAKERS = {"iid": pu.IID.like, "oracle": pu.Oracle, "dirichlet": clients.around_marginal(0.1)}


def test_simulated_clients_hold_the_servers_points_and_the_true_clients_sizes():
    for clients_of in clients.simulated(federation, MODELLED, MAKERS, n_clients=50).values():
        made = clients_of(3)
        assert len(made) == 50
        assert made.indices.min() >= 300
        assert set(made.sizes) == {5}


def test_an_oracle_has_the_true_clients_histograms_of_that_seed():
    oracle = clients.simulated(federation, MODELLED, MAKERS)["oracle"]
    for seed in (0, 1):
        drawn = oracle(seed).histograms(MODELLED.codes, 4)
        assert sorted(drawn.tolist()) == sorted(federation(seed).counts(MODELLED).tolist())


def test_a_population_is_the_same_under_one_seed_and_another_one_under_another():
    drawn = clients.simulated(clients.always(federation(0)), MODELLED, MAKERS)["iid"]
    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_a_model_is_learned_once_for_the_same_histograms(tmp_path, monkeypatch):
    make = clients.learned(tmp_path, "colour", (1,))
    counts = federation(0).counts(MODELLED)
    first = make(counts)
    monkeypatch.setattr(pu, "fit", lambda *_, **__: pytest.fail("learned twice"))
    assert np.array_equal(make(counts).alphas, first.alphas)
    assert len(list(tmp_path.glob("colour_*.json"))) == 1


def test_a_dirichlet_around_the_marginal_has_it_and_leaves_empty_categories_empty():
    counts = np.array([[6, 0, 14], [4, 0, 16]])
    drawn = clients.around_marginal(0.5)(counts).sample(4_000, rng=0)
    # The share of a category varies by sqrt(p (1 - p) / (1 + a0)) = 0.27 between clients and by 0.1
    # within them: five standard errors of the mean are 0.023.
    assert drawn.mean(axis=0) / 20 == pytest.approx([0.25, 0, 0.75], abs=0.023)
    assert (drawn.sum(axis=1) == 20).all()


def test_iid_clients_differ_by_one_and_sorted_ones_by_more():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 6_000)
    features = rng.normal(size=(6_000, 2)) + labels[:, None]
    owners = np.arange(6_000) // 20
    shuffled = clients.differences(pu.Partition.by_owner(rng.permutation(owners)), labels, features)
    # The means of 300 clients: five standard errors are 5 * sqrt(2 / 2 / 300) = 0.29 at most.
    assert shuffled["labels"] == pytest.approx(1, abs=0.3)
    assert shuffled["rest"] == pytest.approx(1, abs=0.3)
    by_label = pu.Partition.by_owner(owners).renumbered(np.argsort(labels))
    by_feature = pu.Partition.by_owner(owners).renumbered(np.argsort(features[:, 0] - labels))
    assert clients.differences(by_label, labels, features)["labels"] > 10
    assert clients.differences(by_feature, labels, features)["rest"] > 5
