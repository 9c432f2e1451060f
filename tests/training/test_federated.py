"""Federated averaging: what a round computes, whichever engine computes it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from polyurn.errors import ParameterError
from polyurn.partitioning.result import Partition
from polyurn.training.building import LearningProblem, build
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train, train_columns
from polyurn.training.losses import cross_entropy
from polyurn.training.networks import perceptron
from training_cases import (
    EveryLayer,
    close,
    doubled,
    images,
    one_client,
    ragged,
    same_bits,
    tabular,
)

DATA = tabular()
MLP = doubled(lambda: perceptron((5,), 3, hidden=(4,)))


@pytest.mark.parametrize("engine", ["workers", "batched"])
def test_one_client_with_one_full_batch_is_plain_gradient_descent(engine):
    asked = FedAvg(n_rounds=5, cohort_size=1, batch_size=400, local_learning_rate=0.3)
    run = train(asked, MLP, DATA, one_client(400), seed=3, engine=engine, n_workers=1)
    model = build(LearningProblem(MLP, DATA), seed=3)
    x, y = torch.tensor(DATA.features), torch.tensor(DATA.labels)
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(x), y)
        for parameter, gradient in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            parameter.data -= 0.3 * gradient
    for name, value in model.state_dict().items():
        assert torch.allclose(run.state[name], value, atol=1e-12)


def fedavg_by_hand(asked, clients, *, seed, momentum=0.0):
    """Whole clients as one batch each, every client in every round: no chance is left."""
    model = build(LearningProblem(MLP, DATA), seed=seed)
    weights = [p.detach().clone() for p in model.parameters()]
    speed = [torch.zeros_like(w) for w in weights]
    total = sum(map(len, clients))
    for _ in range(asked.n_rounds):
        mean = [torch.zeros_like(w) for w in weights]
        for points in clients:
            share = len(points) / total if asked.weighting == "points" else 1 / len(clients)
            x, y = torch.tensor(DATA.features[points]), torch.tensor(DATA.labels[points])
            for parameter, weight in zip(model.parameters(), weights, strict=True):
                parameter.data = weight.clone()
            for _ in range(asked.local_epochs):
                loss = nn.functional.cross_entropy(model(x), y)
                for parameter, weight in zip(model.parameters(), weights, strict=True):
                    loss = loss + asked.proximal / 2 * ((parameter - weight) ** 2).sum()
                gradients = torch.autograd.grad(loss, list(model.parameters()))
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter.data -= asked.local_learning_rate * gradient
            for i, parameter in enumerate(model.parameters()):
                mean[i] += share * (parameter.data - weights[i])
        for i, step in enumerate(mean):
            speed[i] = momentum * speed[i] + step
            weights[i] = weights[i] + asked.server_learning_rate * speed[i]
    return weights


@pytest.mark.parametrize("engine", ["workers", "batched"])
@pytest.mark.parametrize(
    ("changes", "momentum"),
    [
        ({}, 0.0),
        ({"weighting": "uniform"}, 0.0),
        ({"proximal": 0.7}, 0.0),
        ({"server_learning_rate": 0.5, "server_options": {"momentum": 0.9}}, 0.9),
    ],
)
def test_rounds_equal_the_formulas_written_out(engine, changes, momentum):
    clients = ragged(400, [7, 1, 12])
    asked = FedAvg(
        n_rounds=3, cohort_size=3, batch_size=50, local_epochs=3, local_learning_rate=0.2
    ).with_changes(changes)
    run = train(asked, MLP, DATA, clients, seed=1, engine=engine, n_workers=1)
    by_hand = fedavg_by_hand(asked, clients, seed=1, momentum=momentum)
    for value, expected in zip(run.state.values(), by_hand, strict=True):
        assert torch.allclose(value, expected, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 23), min_size=1, max_size=6),
    batch_size=st.integers(1, 9),
    local_epochs=st.integers(1, 3),
    proximal=st.sampled_from([0.0, 0.5]),
)
def test_engines_agree_on_ragged_clients(sizes, batch_size, local_epochs, proximal):
    asked = FedAvg(
        n_rounds=2,
        cohort_size=len(sizes),
        batch_size=batch_size,
        local_epochs=local_epochs,
        proximal=proximal,
    )
    clients = ragged(400, sizes)
    runs = [
        train(asked, MLP, DATA, clients, seed=2, engine=engine, n_workers=1)
        for engine in ("workers", "batched")
    ]
    assert close(*runs)
    assert np.allclose(runs[0].loss, runs[1].loss, atol=1e-12)


def test_columns_side_by_side_equal_runs_on_their_own():
    base = FedAvg(n_rounds=3, cohort_size=4, evaluate_every=1)
    columns = [
        base,
        base.with_changes({"local_learning_rate": 0.01, "proximal": 0.3}),
        base.with_changes({"server_options": {"momentum": 0.5}, "weighting": "uniform"}),
        base.with_changes({"local_learning_rate": 1e30}),  # diverges; the others must not notice
    ]
    clients = ragged(400, [3, 11, 25, 8, 30, 1])
    together = train_columns(columns, LearningProblem(MLP, DATA, engine="batched"), clients, seed=5)
    for column, run in zip(columns, together, strict=True):
        alone = train(column, MLP, DATA, clients, seed=5, engine="workers", n_workers=1)
        assert run.diverged == alone.diverged
        assert run.diverged or (close(run, alone) and run.rounds == [1, 2, 3])
    assert [run.diverged for run in together] == [False, False, False, True]


def test_training_neither_uses_nor_moves_the_callers_random_numbers():
    clients, asked = ragged(60, [9, 12]), FedAvg(n_rounds=1, cohort_size=2)
    torch.manual_seed(0)
    first = train(asked, EveryLayer, images(), clients, seed=4, n_workers=1)
    drawn = torch.rand(1)
    second = train(asked, EveryLayer, images(), clients, seed=4, n_workers=1)
    torch.manual_seed(0)
    assert same_bits(first, second)
    assert torch.equal(drawn, torch.rand(1))


def test_clients_with_one_class_and_clients_smaller_than_a_batch_learn():
    by_label = Partition.from_lists(
        np.flatnonzero(DATA.labels == c)[i::20] for c in range(3) for i in range(20)
    )
    asked = FedAvg(n_rounds=40, cohort_size=20, local_learning_rate=0.3, batch_size=64)
    run = train(asked, "softmax", DATA, by_label, seed=0)
    assert run.engine == "batched"
    assert run.rounds == [10, 20, 30, 40]
    assert run.metrics["accuracy"][-1] > 0.9
    assert run.loss[-1] < run.loss[0]


@pytest.mark.parametrize("engine", ["workers", "batched"])
def test_a_diverging_run_stops_and_says_so(engine):
    asked = FedAvg(n_rounds=50, cohort_size=2, local_learning_rate=1e30, evaluate_every=1)
    run = train(asked, "mlp", DATA, ragged(400, [40, 40]), seed=0, engine=engine, n_workers=1)
    assert run.diverged
    assert run.diverged_at < 10
    assert [*run.final] == ["accuracy"]
    assert all(np.isnan(value) for value in run.final.values())
    never = train(asked.with_changes({"evaluate_every": 50}), "mlp", DATA, ragged(400, [40, 40]),
                  seed=0, engine=engine, n_workers=1)  # fmt: skip
    assert np.isnan(never.final["accuracy"])
    assert never.metrics == {"accuracy": []}


def squared_error(outputs, targets):
    return (outputs[:, 0] - targets) ** 2


def test_targets_with_a_fraction_and_another_loss():
    data = tabular(n_classes=1)
    targets = data.features @ np.arange(5.0)
    regression = type(data)(data.features, targets, data.test_features, data.test_features.sum(1))
    asked = FedAvg(n_rounds=30, cohort_size=2, local_learning_rate=0.05, batch_size=20)
    run = train(
        asked, lambda: nn.Linear(5, 1), regression, ragged(400, [200, 200]), seed=0,
        loss=squared_error, metrics={"error": squared_error}, n_workers=1,
    )  # fmt: skip
    assert torch.allclose(run.state["weight"][0], torch.arange(5.0), atol=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": [[1], [2, 3]]}, "clients as a Partition, got list; make one with"),
        ({"clients": Partition.by_owner([0] * 401)}, "holds point 400, but the data have 400"),
        ({"settings": FedAvg(n_rounds=1, cohort_size=3)}, "at most 2 clients, got 3"),
        ({"seed": -1}, "expected seed"),
        ({"engine": "fast"}, "expected engine"),
        ({"model": "transformer"}, "expected a model out of softmax, mlp, cnn"),
        ({"model": lambda: 3}, "return a torch.nn.Module"),
        ({"model": nn.Linear(5, 3)}, "a function that builds one"),
        ({"model": nn.Identity}, "got none"),
        ({"loss": nn.functional.cross_entropy}, "one value per example"),
        (
            {"settings": FedAvg(n_rounds=1, cohort_size=1, server_optimizer="Sgd")},
            "no optimiser 'Sgd'",
        ),
        (
            {"settings": FedAvg(n_rounds=1, cohort_size=1, server_optimizer="LBFGS")},
            "no optimiser 'LBFGS' for a server",
        ),
        (
            {"settings": FedAvg(n_rounds=1, cohort_size=1, server_options={"speed": 1})},
            "torch.optim.SGD",
        ),
    ],
)
def test_mistakes_are_refused_with_one_line(changes, message):
    asked = {
        "settings": FedAvg(n_rounds=1, cohort_size=1),
        "model": "softmax",
        "clients": Partition.from_lists([[1], [2, 3]]),
        "seed": 0,
        "loss": cross_entropy,
        "engine": "auto",
    } | changes
    with pytest.raises(ParameterError, match=message) as error:
        train(
            asked["settings"], asked["model"], DATA, asked["clients"], seed=asked["seed"],
            loss=asked["loss"], engine=asked["engine"], n_workers=1,
        )  # fmt: skip
    assert "\n" not in str(error.value)
