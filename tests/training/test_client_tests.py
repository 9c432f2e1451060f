"""What a model does on each client's own test points."""

import numpy as np
import torch

from polyurn import Examples, FedAvg, Partition, train
from polyurn.sweeps.own_engines import sweep

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
DATA = Examples(X[:240], Y[:240], X[240:], Y[240:])
PARTS = Partition.by_owner(np.arange(240) // 12).with_test(0.25, Y[:240], rng=0)
SETTINGS = FedAvg(n_rounds=4, cohort_size=5, evaluate_every=2, local_learning_rate=0.5)


def test_the_mean_and_the_lowest_tenth_are_those_of_clients_own_points():
    for engine in ("batched", "workers"):
        run = train(SETTINGS, "softmax", DATA, PARTS, seed=0, engine=engine, n_workers=1)
        weight, bias = run.state.values()
        guesses = (torch.tensor(X[:240]) @ weight.T + bias).argmax(1).numpy()
        own = [np.mean(guesses[held] == Y[held]) for held in PARTS.test]
        assert np.isclose(run.metrics["client accuracy"][-1], np.mean(own))
        low = run.metrics["client accuracy, 10th percentile"][-1]
        assert np.isclose(low, np.quantile(own, 0.1))
        assert run.rounds == [2, 4]


def test_points_that_test_clients_change_nothing_else():
    plain = Partition(PARTS.offsets, PARTS.indices)
    one, other = (train(SETTINGS, "softmax", DATA, p, seed=0) for p in (plain, PARTS))
    assert one.metrics["accuracy"] == other.metrics["accuracy"]
    assert [*one.metrics] == ["accuracy"]


def test_a_sweep_has_clients_metrics_where_it_is_asked_for_them():
    owners = Partition.by_owner(np.arange(240) // 12)
    done = sweep(
        SETTINGS, "softmax", DATA, populations={"true": owners}, seeds=[0], n_jobs=1,
        grid={"local_learning_rate": [0.1, 0.5]}, client_test=0.25,
    )  # fmt: skip
    names = ["accuracy", "client accuracy", "client accuracy, 10th percentile"]
    assert all([*run.metrics] == names for run in done.runs)
    assert {run.population for run in done.runs} == {"true", "again"}
