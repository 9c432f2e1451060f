"""Federated averaging: what a round computes, and that every engine computes the same."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from polyurn.errors import ParameterError, TrainingError
from polyurn.partitioning.result import Partition
from polyurn.training.building import build, prepare
from polyurn.training.engines.batched import parts
from polyurn.training.engines.choice import why_not_batched
from polyurn.training.engines.worker import blocks
from polyurn.training.federated import train, train_columns
from polyurn.training.losses import cross_entropy, squared_error
from polyurn.training.models import convolutional, perceptron
from polyurn.training.settings import FedAvg
from training_cases import EveryLayer, doubled, images, one_client, ragged, tabular

DATA = tabular()
MLP = doubled(lambda: perceptron((5,), 3, hidden=(4,)))


def close(a, b, tolerance=1e-10):
    return all(torch.allclose(a.state[name], b.state[name], atol=tolerance) for name in a.state)


def same_bits(a, b):
    return a.state.keys() == b.state.keys() and all(
        torch.equal(a.state[name], b.state[name]) for name in a.state
    )


# ------------------------------------------------------------------ what a round computes


@pytest.mark.parametrize("engine", ["workers", "batched"])
def test_one_client_with_one_full_batch_is_plain_gradient_descent(engine):
    asked = FedAvg(n_rounds=5, cohort_size=1, batch_size=400, local_learning_rate=0.3)
    run = train(asked, MLP, DATA, one_client(400), seed=3, engine=engine, n_workers=1)
    model = build(MLP, DATA, seed=3)
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
    model = build(MLP, DATA, seed=seed)
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


# ------------------------------------------------------------------------ engines agree


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


def test_engines_agree_when_steps_are_traced(monkeypatch):
    asked = FedAvg(n_rounds=3, cohort_size=3, local_epochs=2, proximal=0.2)
    clients = ragged(400, [25, 4, 11])
    slow = train(asked, MLP, DATA, clients, seed=2, engine="workers", n_workers=1)
    monkeypatch.setattr("polyurn.training.engines.batched.TRACE_AFTER", 1)
    assert close(slow, train(asked, MLP, DATA, clients, seed=2, engine="batched"))


def test_columns_side_by_side_equal_runs_on_their_own():
    base = FedAvg(n_rounds=3, cohort_size=4, evaluate_every=1)
    columns = [
        base,
        base.with_changes({"local_learning_rate": 0.01, "proximal": 0.3}),
        base.with_changes({"server_options": {"momentum": 0.5}, "weighting": "uniform"}),
        base.with_changes({"local_learning_rate": 1e200}),  # diverges; the others must not notice
    ]
    clients = ragged(400, [3, 11, 25, 8, 30, 1])
    together = train_columns(columns, MLP, DATA, clients, seed=5, engine="batched")
    for column, run in zip(columns, together, strict=True):
        alone = train(column, MLP, DATA, clients, seed=5, engine="workers", n_workers=1)
        assert run.diverged == alone.diverged
        assert run.diverged or (close(run, alone) and run.rounds == [1, 2, 3])
    assert [run.diverged for run in together] == [False, False, False, True]


def test_many_clients_are_trained_in_parts_without_a_difference(monkeypatch):
    asked = FedAvg(n_rounds=1, cohort_size=6)
    clients = ragged(400, [3, 11, 25, 8, 30, 1])
    whole = train(asked, MLP, DATA, clients, seed=5, engine="batched")
    monkeypatch.setattr("polyurn.training.engines.batched._COPIES_BYTES", 1)
    assert close(whole, train(asked, MLP, DATA, clients, seed=5, engine="batched"))


def test_results_have_the_same_bits_for_any_number_of_workers():
    # Batch statistics, dropout, ragged clients, channels last, a test set of more than one chunk.
    data = images(n_points=60)
    asked = FedAvg(n_rounds=2, cohort_size=5, local_epochs=2, batch_size=4, proximal=0.1)
    clients = ragged(60, [9, 2, 14, 5, 3, 11, 8])
    one, two = (
        train(asked, EveryLayer, data, clients, seed=4, n_workers=n, engine="workers")
        for n in (1, 2)
    )
    assert same_bits(one, two)
    assert one.loss == two.loss
    assert one.metrics == two.metrics


def test_training_neither_uses_nor_moves_the_callers_random_numbers():
    clients, asked = ragged(60, [9, 12]), FedAvg(n_rounds=1, cohort_size=2)
    torch.manual_seed(0)
    first = train(asked, EveryLayer, images(), clients, seed=4, n_workers=1)
    drawn = torch.rand(1)
    second = train(asked, EveryLayer, images(), clients, seed=4, n_workers=1)
    torch.manual_seed(0)
    assert same_bits(first, second)
    assert torch.equal(drawn, torch.rand(1))


def test_blocks_cover_the_cohort_in_order_within_memory():
    for cohort_size, n_bytes in [(1, 4), (50, 4_800_000), (1000, 4_800_000), (77, 10**9)]:
        cut = blocks(cohort_size, n_bytes)
        assert [i for block in cut for i in range(cohort_size)[block]] == [*range(cohort_size)]
        assert len(cut) * n_bytes <= max(512 * 2**20, 8 * n_bytes)


# -------------------------------------------------------------------- layers with a state


def test_buffers_are_averaged_and_counters_rounded():
    data, clients = images(), ragged(60, [8, 24])
    asked = FedAvg(n_rounds=1, cohort_size=2, batch_size=8, weighting="points")
    run = train(asked, lambda: EveryLayer().double(), data, clients, seed=0, n_workers=1)
    # One batch for the first client, three for the second: (1 · 8 + 3 · 24) / 32 = 2.5, even: 2.
    assert run.state["norm.num_batches_tracked"] == 2
    assert run.state["norm.num_batches_tracked"].dtype == torch.int64
    assert torch.equal(run.state["frozen"], torch.ones(3).double())
    alone = [
        train(
            asked.with_changes({"cohort_size": 1}),
            lambda: EveryLayer().double(),
            data,
            Partition.from_lists([points]),
            seed=0,
            n_workers=1,
        ).state["norm.running_mean"]
        for points in clients
    ]
    expected = (8 * alone[0] + 24 * alone[1]) / 32
    # the clients' numbers, and so the order of their points, differ when they are alone
    assert torch.allclose(run.state["norm.running_mean"], expected, atol=0.2)
    assert not torch.equal(run.state["norm.running_mean"], torch.zeros(3).double())


def test_running_statistics_of_one_client_are_those_of_torch():
    data = images()
    asked = FedAvg(n_rounds=2, cohort_size=1, batch_size=60, local_learning_rate=0.1)
    make = doubled(lambda: nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 2)))
    run = train(asked, make, data, one_client(60), seed=0, n_workers=1)
    model = build(make, data, seed=0).train()
    for _ in range(2):
        loss = cross_entropy(model(torch.tensor(data.features)), torch.tensor(data.labels)).mean()
        for p, g in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            p.data -= 0.1 * g
    for name, value in model.state_dict().items():
        assert torch.allclose(run.state[name], value, atol=1e-10), name


def test_batch_norm_goes_to_the_workers_and_is_refused_elsewhere():
    asked, clients = FedAvg(n_rounds=1, cohort_size=1), ragged(60, [9])
    run = train(asked, EveryLayer, images(), clients, seed=0, n_workers=1)
    assert run.engine == "workers"
    with pytest.raises(ParameterError, match="BatchNorm2d mixes the points of a batch"):
        train(asked, EveryLayer, images(), clients, seed=0, engine="batched")


@pytest.mark.parametrize("engine", ["workers", "batched"])
def test_dropout_is_repeatable_differs_by_client_and_is_off_in_tests(engine):
    def model():
        dropping = nn.Sequential(nn.Dropout(0.5), nn.Linear(5, 3, bias=False))
        nn.init.zeros_(dropping[1].weight)
        return dropping

    # Two clients with the same single point from zero weights: the gradient's columns are zero
    # exactly where the point's features were dropped.
    asked = FedAvg(n_rounds=1, cohort_size=1, local_learning_rate=1.0)
    runs = [
        train(asked, model, DATA, Partition([0, 1], [5]), seed=seed, engine=engine, n_workers=1)
        for seed in (*range(12), 0)
    ]
    dropped = [tuple((run.state["1.weight"] == 0).all(dim=0).tolist()) for run in runs]
    assert same_bits(runs[0], runs[-1])
    assert len(set(dropped)) > 4
    share = np.mean(dropped)  # 60 fair coins: outside (0.25, 0.75) with probability below 1e-4
    assert 0.25 < share < 0.75
    final = nn.functional.cross_entropy(
        torch.tensor(DATA.test_features, dtype=torch.float32) @ runs[0].state["1.weight"].T,
        torch.tensor(DATA.test_labels),
    )
    assert runs[0].loss[-1] == pytest.approx(float(final), rel=1e-5)


@pytest.mark.parametrize("trace_after", [0, 50])
def test_copies_of_a_client_throw_their_own_dice_in_every_step(trace_after, monkeypatch):
    monkeypatch.setattr("polyurn.training.engines.batched.TRACE_AFTER", trace_after)

    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(3, 5))

        def forward(self, x):
            return nn.functional.dropout(x, training=self.training) @ self.weight.T

    # Zero weights and a tiny rate: each step adds the same wherever the point was not dropped, so
    # that the mean update over 8 clients and 2 steps counts, feature by feature, those that were not.
    asked = FedAvg(n_rounds=1, cohort_size=8, local_epochs=2, local_learning_rate=1e-6)
    clients = Partition.from_lists([[5]] * 8)
    run = train(asked, Dropping, DATA, clients, seed=0, engine="batched")
    label = DATA.labels[5]
    heights = run.state["weight"][label] / torch.tensor(DATA.features[5], dtype=torch.float32)
    counts = heights / (2e-6 * (2 / 3)) * 8
    assert torch.allclose(counts, counts.round(), atol=1e-2)
    assert counts.max() <= 16
    assert len(set(counts.round().tolist())) > 1  # 5 equal binomials: probability 0.2 %


# ------------------------------------------------------------------------- awkward input


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
            "asks for the loss again",
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


class Dies(nn.Linear):
    """Ends its process when it is trained in a worker."""

    def forward(self, x):
        import os
        import sys

        if self.training and "polyurn.training.engines.worker_process" in sys.modules:
            os.kill(os.getpid(), 9)
        return super().forward(x)


def test_a_worker_that_dies_is_reported_and_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("polyurn.training.engines.processes._MEMORY", tmp_path)
    asked = FedAvg(n_rounds=1, cohort_size=2)
    with pytest.raises(TrainingError, match=r"a worker process died \(killed"):
        train(
            asked, lambda: Dies(5, 3), DATA, ragged(400, [5, 5]), seed=0, engine="workers",
            n_workers=2,
        )  # fmt: skip
    assert not any(tmp_path.iterdir())


# ---------------------------------------------------------------------- which engine


def work(model, data):
    clients = one_client(9)
    return prepare(model, data, clients, seed=0, loss=cross_entropy, metrics={}, device=None)


def test_convolutions_keep_their_channels_last_unless_the_model_cannot():
    class Viewing(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(1, 4, 3)
            self.out = nn.Linear(144, 2)

        def forward(self, x):
            return self.out(self.convolution(x).view(-1, 144))

    assert any(s.channels_last for s in work("cnn", images()).layout.trained)
    assert not any(s.channels_last for s in work(Viewing, images()).layout.trained)
    run = train(
        FedAvg(n_rounds=1, cohort_size=1), Viewing, images(), one_client(2), seed=0, n_workers=1
    )
    assert run.engine == "workers"


def test_channels_last_changes_the_order_in_memory_and_not_the_result():
    make = doubled(lambda: convolutional((1, 8, 8), 2, channels=(3, 4), hidden=5))
    asked, clients = FedAvg(n_rounds=2, cohort_size=2), ragged(60, [13, 8])
    data = images()
    stored = train(asked, make, data, clients, seed=0, n_workers=1)
    batched = train(asked, make, data, clients, seed=0, engine="batched")
    assert close(stored, batched)
    model = build(make, data, seed=0)
    model.load_state_dict(stored.state)
    outputs = model(torch.tensor(data.test_features))
    loss = cross_entropy(outputs, torch.tensor(data.test_labels)).mean()
    assert float(loss.detach()) == pytest.approx(stored.loss[-1], abs=1e-12)


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


# -------------------------------------------------- buffers that are replaced, single points


class MovingMean(nn.Module):
    """Re-assigns its buffer in every step instead of changing it in place."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, 3)
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(dim=0)
        return self.out(x - self.mean)


def test_a_buffer_that_is_replaced_is_averaged_and_does_not_leak_between_clients():
    clients = Partition.from_lists([np.arange(10), np.arange(10, 20)])
    asked = FedAvg(n_rounds=1, cohort_size=2, weighting="uniform")
    one, two = (
        train(asked, MovingMean, DATA, clients, seed=0, engine="workers", n_workers=n)
        for n in (1, 2)
    )
    expected = 0.1 * torch.tensor(DATA.features[:20], dtype=torch.float32).mean(dim=0)
    assert torch.allclose(one.state["mean"], expected, atol=1e-6)
    assert same_bits(one, two)
    longer = asked.with_changes({"n_rounds": 4, "evaluate_every": 1})
    assert train(longer, MovingMean, DATA, clients, seed=0, n_workers=1).engine == "workers"


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


def with_batch_norm(**options):
    return lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4, **options), nn.Linear(4, 3))


def test_batch_norm_gets_on_with_a_single_point_left_over_and_with_clients_of_one_point():
    asked = FedAvg(n_rounds=1, cohort_size=3, batch_size=5, weighting="uniform")
    run = train(asked, with_batch_norm(), DATA, ragged(400, [11, 1, 6]), seed=0, n_workers=1)
    # Batches of 5 and 6, none, and one of 6: the client of one point leaves the statistics alone.
    assert run.state["1.num_batches_tracked"] == (2 + 0 + 1) / 3
    assert not run.diverged


@pytest.mark.parametrize(
    ("model", "batch_size", "message"),
    [
        (with_batch_norm(), 1, "batch_size of at least 2"),
        (with_batch_norm(track_running_stats=False), 5, "a client holds a single point"),
    ],
)
def test_batch_norm_that_cannot_do_with_a_point_is_refused_before_training(
    model, batch_size, message
):
    asked = FedAvg(n_rounds=1, cohort_size=1, batch_size=batch_size)
    with pytest.raises(ParameterError, match=message):
        train(asked, model, DATA, ragged(400, [11, 1]), seed=0, n_workers=1)


# --------------------------------------------------------------- all clients at once, in detail


@pytest.mark.parametrize("trace_after", [0, 50])
def test_with_dropout_a_run_does_not_depend_on_the_columns_beside_it(trace_after, monkeypatch):
    monkeypatch.setattr("polyurn.training.engines.batched.TRACE_AFTER", trace_after)

    def model():
        layers = [nn.Dropout(0.2), nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 3)]
        return nn.Sequential(*layers).double()

    base = FedAvg(n_rounds=3, cohort_size=4)
    columns = [base.with_changes({"local_learning_rate": rate}) for rate in (0.1, 0.2, 0.3)]
    clients = ragged(400, [3, 11, 25, 8, 30, 1])
    together = train_columns(columns, model, DATA, clients, seed=5, engine="batched")
    for column, run in zip(columns, together, strict=True):
        alone = train_columns([column], model, DATA, clients, seed=5, engine="batched")[0]
        assert close(alone, run)


def test_padding_is_made_of_the_clients_own_points():
    features = DATA.features.copy()
    features[0] = np.nan  # held by nobody
    data = type(DATA)(features, DATA.labels, DATA.test_features, DATA.test_labels)
    clients = Partition.from_lists([np.arange(1, 4), np.arange(5, 30)])
    run = train(FedAvg(n_rounds=2, cohort_size=2), MLP, data, clients, seed=0, engine="batched")
    assert not run.diverged


def test_parts_cover_all_clients_within_memory():
    sizes = np.array([3_000_000, 50_000, 400, 400, 3, 1])
    asked = FedAvg(n_rounds=1, cohort_size=6, batch_size=400)
    cut = parts(sizes, asked, copy_bytes=400, point_bytes=4_000)
    assert [i for part in cut for i in range(6)[part]] == [*range(6)]
    assert cut[0] == slice(0, 1)
    for part in cut[1:]:
        n = part.stop - part.start
        assert n * 400 * 4_000 * 16 <= 256 * 2**20 or n == 1
        assert n * sizes[part.start] * 8 <= 16 * 2**20 or n == 1


def test_a_client_with_most_of_the_points_sends_training_to_the_workers():
    asked = FedAvg(n_rounds=1, cohort_size=2)
    for sizes, engine in (([200, 20, 30], "workers"), ([20, 20, 30], "batched")):
        run = train(asked, "softmax", DATA, ragged(400, sizes), seed=0, n_workers=1)
        assert run.engine == engine


def test_lazy_layers_find_their_shapes_and_start_from_the_seed():
    def lazy():
        return nn.Sequential(nn.LazyLinear(7), nn.ReLU(), nn.LazyLinear(3))

    data = tabular()
    one, same, other = (build(lazy, data, seed=seed) for seed in (1, 1, 2))
    assert one[0].weight.shape == (7, data.features.shape[1])
    assert torch.equal(one[0].weight, same[0].weight)
    assert not torch.equal(one[0].weight, other[0].weight)


def test_a_model_that_cannot_take_the_points_is_refused_in_one_line():
    data = tabular()
    pixels = replace(
        data,
        features=np.ones(data.features.shape, dtype=np.uint8),
        test_features=np.ones(data.test_features.shape, dtype=np.uint8),
    )
    with pytest.raises(ParameterError, match=r"type uint8.*convert them to floats"):
        build("softmax", pixels, seed=0)
    with pytest.raises(ParameterError, match=r"cannot take points of shape \(\d+,\)"):
        build(lambda: nn.Linear(99, 3), data, seed=0)


class Silent(nn.Module):
    def forward(self, x):
        raise ValueError


def test_models_that_say_nothing_or_cannot_be_copied_are_no_trouble():
    data = tabular()
    with pytest.raises(ParameterError, match="ValueError"):
        build(Silent, data, seed=0)
    n = data.features.shape[1]
    old_style = build(lambda: keeps_a_result(nn.Linear(n, 3)), data, seed=0)
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(old_style)
    lazy = build(lambda: nn.LazyBatchNorm1d(affine=False), data, seed=0)
    assert lazy.running_mean.shape == (n,)


def keeps_a_result(layer):
    layer.last = layer.weight * 2
    return layer


def masked_loss(outputs, labels):
    """Multiplies by ones into which something is written, and by a truth value."""
    mask = torch.ones_like(outputs)
    mask[:, 0] = 0
    known = torch.ones_like(outputs[:, 0]) * (labels > 0)
    return cross_entropy(outputs * mask, labels) * (1.0 - 0.5 * known)


def test_a_traced_step_is_the_step_with_masks_too(monkeypatch):
    data = tabular()
    clients = ragged(len(data), (3, 9, 4, 12, 7, 5, 8))
    asked = FedAvg(n_rounds=3, cohort_size=7, local_learning_rate=0.1, batch_size=4)
    found = []
    for trace_after in (0, 10**6):
        monkeypatch.setattr("polyurn.training.engines.batched.TRACE_AFTER", trace_after)
        done = train(asked, "mlp", data, clients, seed=0, loss=masked_loss, engine="batched")
        found.append(done.state)
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name], rtol=1e-6, atol=1e-7)
