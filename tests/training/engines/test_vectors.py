"""A model as one flat vector."""

import pytest
import torch

from polyurn.training.building import LearningProblem, build
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train
from polyurn.training.losses import cross_entropy
from polyurn.training.networks import convolutional
from training_cases import close, doubled, images, ragged


def test_channels_last_changes_the_order_in_memory_and_not_the_result():
    make = doubled(lambda: convolutional((1, 8, 8), 2, channels=(3, 4), hidden=5))
    asked, clients = FedAvg(n_rounds=2, cohort_size=2), ragged(60, [13, 8])
    data = images()
    stored = train(asked, make, data, clients, seed=0, n_workers=1)
    batched = train(asked, make, data, clients, seed=0, engine="batched")
    assert close(stored, batched)
    model = build(LearningProblem(make, data), seed=0)
    model.load_state_dict(stored.state)
    outputs = model(torch.tensor(data.test_features))
    loss = cross_entropy(outputs, torch.tensor(data.test_labels)).mean()
    assert float(loss.detach()) == pytest.approx(stored.loss[-1], abs=1e-12)
