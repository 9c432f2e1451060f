"""The server's step."""

import pytest
import torch

from polyurn.errors import ParameterError
from polyurn.training.building import LearningProblem, build
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train
from polyurn.training.networks import perceptron
from training_cases import doubled, ragged, tabular

DATA = tabular()
MLP = doubled(lambda: perceptron((5,), 3, hidden=(4,)))


def test_adam_on_the_server_is_torch_adam_on_minus_the_update():
    asked = FedAvg(n_rounds=1, cohort_size=2, local_learning_rate=0.2)
    clients = ragged(400, [20, 30])
    update = {}
    for kind in ("SGD", "Adam"):
        start = build(LearningProblem(MLP, DATA), seed=0).state_dict()
        changes = {"server_optimizer": kind, "server_learning_rate": 1.0 if kind == "SGD" else 0.01}
        run = train(asked.with_changes(changes), MLP, DATA, clients, seed=0)
        update[kind] = {name: run.state[name] - start[name] for name in start}
    for name, step in update["Adam"].items():  # Adam's first step is the sign, 1e-8 softened
        gradient = update["SGD"][name]
        assert torch.allclose(step, 0.01 * gradient / (gradient.abs() + 1e-8), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"server_optimizer": "lr_scheduler"},
            "no optimiser 'lr_scheduler' .*; expected one of .*Adam",
        ),
        ({"server_optimizer": "Optimizer"}, "no optimiser 'Optimizer' .*; expected one of .*Adam"),
        (
            {"server_optimizer": "LBFGS"},
            "no optimiser 'LBFGS' .*again; expected one of .*Adam",
        ),
        ({"server_options": {"speed": 1}}, "SGD has no option 'speed'; expected one of momentum"),
        ({"server_options": {"params": 1}}, "SGD has no option 'params'; expected one of momentum"),
        ({"server_options": {"momentum": -1}}, "SGD: Invalid momentum .*; check server_options"),
    ],
)
def test_a_server_optimiser_that_cannot_be_is_told_what_can(changes, message):
    asked = FedAvg(n_rounds=1, cohort_size=2).with_changes(changes)
    with pytest.raises(ParameterError, match=message):
        train(asked, MLP, DATA, ragged(400, [20, 30]), seed=0)
