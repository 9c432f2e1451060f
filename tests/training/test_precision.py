"""Training in bfloat16."""

import numpy as np
import pytest
import torch

from polyurn import Examples, FedAvg, Partition, train
from polyurn.errors import ParameterError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(240, 1, 8, 8)).astype(np.float32), RNG.integers(0, 3, 240)
X[:, 0, 0, :3] += 2 * np.eye(3)[Y]
DATA = Examples(X[:200], Y[:200], X[200:], Y[200:])
PARTS = Partition.by_owner(np.arange(200) // 20)
SETTINGS = FedAvg(n_rounds=6, cohort_size=5, local_learning_rate=0.05, precision="bfloat16")
HAS_IT = torch.cpu.get_capabilities().get("avx512_bf16", False)


@pytest.mark.skipif(not HAS_IT, reason="the processor has no bfloat16")
def test_bfloat16_keeps_weights_of_32_bits_and_learns_the_same():
    half = train(SETTINGS, "cnn", DATA, PARTS, seed=0, n_workers=1)
    whole = train(SETTINGS.with_changes({"precision": "float32"}), "cnn", DATA, PARTS, seed=0)
    assert half.engine == "workers"
    assert {value.dtype for value in half.state.values()} == {torch.float32}
    assert half.loss != whole.loss
    assert np.isclose(half.loss[-1], whole.loss[-1], rtol=0.05)


def test_bfloat16_is_refused_where_it_is_not_there(monkeypatch):
    with pytest.raises(ParameterError, match="needs the engine 'workers'"):
        train(SETTINGS, "cnn", DATA, PARTS, seed=0, engine="batched")
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    with pytest.raises(ParameterError, match="this processor does not compute in bfloat16"):
        train(SETTINGS, "cnn", DATA, PARTS, seed=0)
