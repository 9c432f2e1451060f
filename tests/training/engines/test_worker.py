"""What a worker does with whole clients: blocks, buffers, batch statistics, dropout."""

import numpy as np
import pytest
import torch
from torch import nn

from polyurn.errors import ParameterError
from polyurn.partitioning.result import Partition
from polyurn.training.building import LearningProblem, build
from polyurn.training.engines.worker import blocks
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train
from polyurn.training.losses import cross_entropy
from training_cases import (
    EveryLayer,
    MovingMean,
    doubled,
    images,
    one_client,
    ragged,
    same_bits,
    tabular,
)

DATA = tabular()


def test_blocks_cover_the_cohort_in_order_within_memory():
    for cohort_size, n_bytes in [(1, 4), (50, 4_800_000), (1000, 4_800_000), (77, 10**9)]:
        cut = blocks(cohort_size, n_bytes)
        assert [i for block in cut for i in range(cohort_size)[block]] == [*range(cohort_size)]
        assert len(cut) * n_bytes <= max(512 * 2**20, 8 * n_bytes)


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
    model = build(LearningProblem(make, data), seed=0).train()
    for _ in range(2):
        loss = cross_entropy(model(torch.tensor(data.features)), torch.tensor(data.labels)).mean()
        for p, g in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            p.data -= 0.1 * g
    for name, value in model.state_dict().items():
        assert torch.allclose(run.state[name], value, atol=1e-10), name


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
