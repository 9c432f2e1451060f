"""Several worker processes give the same bits as one, and leave nothing behind."""

import pytest
from torch import nn

from polyurn.errors import TrainingError
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train
from training_cases import EveryLayer, images, ragged, same_bits, tabular

DATA = tabular()


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


class Dies(nn.Linear):
    """Ends its process when it is trained in a worker."""

    def forward(self, x):
        import os
        import sys

        if self.training and "polyurn.training.engines.worker_process" in sys.modules:
            os.kill(os.getpid(), 9)
        return super().forward(x)


def test_a_worker_that_dies_is_reported_and_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("polyurn.training.engines.worker_pool._MEMORY", tmp_path)
    asked = FedAvg(n_rounds=1, cohort_size=2)
    with pytest.raises(TrainingError, match=r"a worker process died \(killed"):
        train(
            asked, lambda: Dies(5, 3), DATA, ragged(400, [5, 5]), seed=0, engine="workers",
            n_workers=2,
        )  # fmt: skip
    assert not any(tmp_path.iterdir())
