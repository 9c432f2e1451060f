"""Clients of the experiment on CIFAR-10, on labels made on the spot."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyurn.model.paper_truths import truth

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import cifar10
import torch

LABELS = np.arange(500) % 10
SMALL = replace(cifar10.SETTINGS, n_clients=20, size=30, n_simulated=40, components=(1,))


def test_the_true_clients_are_others_under_another_seed():
    of = cifar10.federation("high/1", LABELS, SMALL)
    assert of(0).true == of(0).true
    assert of(0).true != of(1).true
    assert of(0).true.sizes.tolist() == [30] * 20
    assert of(0).proxy.tolist() == list(range(500))


def test_more_clients_are_simulated_than_there_are_true_ones(tmp_path):
    of = cifar10.federation("high/1", LABELS, SMALL)
    made = {
        name: clients(0)
        for name, clients in cifar10.populations(tmp_path, of, LABELS, SMALL).items()
    }
    assert [*made] == ["true", "mdm", "iid", "iid proxy", "dirichlet 0.1", "dirichlet 0.5"]
    assert {name: len(clients) for name, clients in made.items()} == {
        name: 20 if name == "true" else 40 for name in made
    }


def test_only_iid_keeps_the_clients_marginal(tmp_path):
    settings = replace(SMALL, n_simulated=2_000)
    of = cifar10.federation("high/1", LABELS, settings)
    made = cifar10.populations(tmp_path, of, LABELS, settings)
    shares = {
        name: np.bincount(LABELS[made[name](0).indices], minlength=10) / made[name](0).sizes.sum()
        for name in ("true", "iid", "iid proxy")
    }
    # 60,000 independent points: five standard errors of a share are at most 0.0102.
    assert np.abs(shares["iid"] - shares["true"]).max() < 0.0102
    assert np.abs(shares["iid proxy"] - 0.1).max() < 0.0102
    assert np.abs(shares["true"] - 0.1).max() > 0.03


def test_the_second_test_is_weighted_to_the_hidden_mixtures_classes():
    metric = cifar10.tests("high/2", LABELS)["federation"]
    labels = torch.as_tensor(LABELS)
    only_first = torch.zeros(500, 10)
    only_first[:, 0] = 1
    marginal = truth("high/2").mean()
    assert metric(only_first, labels).mean() == pytest.approx(marginal[0] / marginal.sum())


def test_the_share_of_the_marginal_is_that_of_the_gap():
    class Verdict:
        def paired(self, first, second):
            gap = {"mdm": 0.04, "iid": 0.03}[second]
            return type("Estimate", (), {"value": gap})

    assert cifar10.share_of_marginal(Verdict()) == pytest.approx(75)
