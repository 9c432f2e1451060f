"""The server's step."""

import torch

from polyurn.training.building import build
from polyurn.training.federated import train
from polyurn.training.models import perceptron
from polyurn.training.settings import FedAvg
from training_cases import doubled, ragged, tabular

DATA = tabular()
MLP = doubled(lambda: perceptron((5,), 3, hidden=(4,)))


def test_adam_on_the_server_is_torch_adam_on_minus_the_update():
    asked = FedAvg(n_rounds=1, cohort_size=2, local_learning_rate=0.2)
    clients = ragged(400, [20, 30])
    update = {}
    for kind in ("SGD", "Adam"):
        start = build(MLP, DATA, seed=0).state_dict()
        changes = {"server_optimizer": kind, "server_learning_rate": 1.0 if kind == "SGD" else 0.01}
        run = train(asked.with_changes(changes), MLP, DATA, clients, seed=0)
        update[kind] = {name: run.state[name] - start[name] for name in start}
    for name, step in update["Adam"].items():  # Adam's first step is the sign, 1e-8 softened
        gradient = update["SGD"][name]
        assert torch.allclose(step, 0.01 * gradient / (gradient.abs() + 1e-8), atol=1e-12)
