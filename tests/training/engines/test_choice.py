"""Which engine trains a model, and why."""

import pytest
import torch
from torch import nn

from polyurn.errors import ParameterError
from polyurn.training.engines.choice import why_not_batched
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train
from training_cases import EveryLayer, MovingMean, images, one_client, ragged, tabular, work

DATA = tabular()


def test_batch_norm_goes_to_the_workers_and_is_refused_elsewhere():
    asked, clients = FedAvg(n_rounds=1, cohort_size=1), ragged(60, [9])
    run = train(asked, EveryLayer, images(), clients, seed=0, n_workers=1)
    assert run.engine == "workers"
    with pytest.raises(ParameterError, match="BatchNorm2d mixes the points of a batch"):
        train(asked, EveryLayer, images(), clients, seed=0, engine="batched")


def test_a_model_that_cannot_be_stacked_goes_to_the_workers():
    class Branching(nn.Linear):
        def forward(self, x):
            return super().forward(x) if x.sum() > 0 else -super().forward(x)

    assert why_not_batched(work(lambda: Branching(5, 3), DATA)) is not None
    run = train(
        FedAvg(n_rounds=1, cohort_size=1),
        lambda: Branching(5, 3),
        DATA,
        one_client(1),
        seed=0,
        n_workers=1,
    )
    assert run.engine == "workers"


def test_a_model_that_changes_its_buffers_is_not_batched():
    class Counting(nn.Linear):
        def __init__(self):
            super().__init__(5, 3)
            self.register_buffer("n", torch.tensor(0.0))

        def forward(self, x):
            if self.training:
                self.n += 1
            return super().forward(x) / (1 + self.n)

    for model, reason in ((MovingMean, "it changes its buffer 'mean'"), (Counting, "in-place")):
        with pytest.raises(ParameterError, match=reason):
            train(
                FedAvg(n_rounds=1, cohort_size=1),
                model,
                DATA,
                one_client(2),
                seed=0,
                engine="batched",
            )


def test_a_client_with_most_of_the_points_sends_training_to_the_workers():
    asked = FedAvg(n_rounds=1, cohort_size=2)
    for sizes, engine in (([200, 20, 30], "workers"), ([20, 20, 30], "batched")):
        run = train(asked, "softmax", DATA, ragged(400, sizes), seed=0, n_workers=1)
        assert run.engine == engine
