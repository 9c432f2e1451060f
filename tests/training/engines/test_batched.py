"""All clients of a cohort at once: the same result as one after the other."""

import numpy as np
import pytest
import torch
from torch import nn

from polyurn.partitioning.result import Partition
from polyurn.training.building import LearningProblem
from polyurn.training.engines.batched import parts
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train, train_columns
from polyurn.training.losses import cross_entropy
from polyurn.training.networks import perceptron
from training_cases import close, doubled, ragged, tabular

DATA = tabular()
MLP = doubled(lambda: perceptron((5,), 3, hidden=(4,)))


def test_engines_agree_when_steps_are_traced(monkeypatch):
    asked = FedAvg(n_rounds=3, cohort_size=3, local_epochs=2, proximal=0.2)
    clients = ragged(400, [25, 4, 11])
    slow = train(asked, MLP, DATA, clients, seed=2, engine="workers", n_workers=1)
    monkeypatch.setattr("polyurn.training.engines.batched.TRACE_AFTER", 1)
    assert close(slow, train(asked, MLP, DATA, clients, seed=2, engine="batched"))


def test_many_clients_are_trained_in_parts_without_a_difference(monkeypatch):
    asked = FedAvg(n_rounds=1, cohort_size=6)
    clients = ragged(400, [3, 11, 25, 8, 30, 1])
    whole = train(asked, MLP, DATA, clients, seed=5, engine="batched")
    monkeypatch.setattr("polyurn.training.engines.batched._COPIES_BYTES", 1)
    assert close(whole, train(asked, MLP, DATA, clients, seed=5, engine="batched"))


@pytest.mark.parametrize("trace_after", [0, 50])
def test_copies_of_a_client_draw_their_own_dropout_in_every_step(trace_after, monkeypatch):
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


@pytest.mark.parametrize("trace_after", [0, 50])
def test_with_dropout_a_run_does_not_depend_on_the_columns_beside_it(trace_after, monkeypatch):
    monkeypatch.setattr("polyurn.training.engines.batched.TRACE_AFTER", trace_after)

    def model():
        layers = [nn.Dropout(0.2), nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 3)]
        return nn.Sequential(*layers).double()

    base = FedAvg(n_rounds=3, cohort_size=4)
    columns = [base.with_changes({"local_learning_rate": rate}) for rate in (0.1, 0.2, 0.3)]
    clients = ragged(400, [3, 11, 25, 8, 30, 1])
    problem = LearningProblem(model, DATA, engine="batched")
    together = train_columns(columns, problem, clients, seed=5)
    for column, run in zip(columns, together, strict=True):
        alone = train_columns([column], problem, clients, seed=5)[0]
        assert close(alone, run)


def test_padding_is_made_of_the_clients_own_points():
    features = DATA.features.copy()
    features[0] = np.nan  # held by nobody
    data = type(DATA)(features, DATA.labels, DATA.test_features, DATA.test_labels)
    clients = Partition.from_lists([np.arange(1, 4), np.arange(5, 30)])
    run = train(FedAvg(n_rounds=2, cohort_size=2), MLP, data, clients, seed=0, engine="batched")
    assert not run.diverged


def test_a_batch_size_beyond_all_clients_is_one_batch_of_each(monkeypatch):
    monkeypatch.setattr("polyurn.training.engines.batched.TRACE_AFTER", 1)
    clients = ragged(400, [3, 11, 25, 8, 30, 1])  # cohorts with other largest clients
    huge, enough = (
        train(
            FedAvg(n_rounds=5, cohort_size=2, local_epochs=3, batch_size=batch_size),
            MLP, DATA, clients, seed=5, engine=engine, n_workers=1,
        )
        for batch_size, engine in ((2**62, "batched"), (30, "workers"))
    )  # fmt: skip
    assert close(huge, enough)


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
