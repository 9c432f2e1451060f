"""Clients as users of a pfl simulation, with the real library."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from partition_cases import COUNTS, LABELS
from polyurn.errors import ParameterError


def test_clients_become_users_of_a_pfl_simulation(parts, monkeypatch):
    pytest.importorskip("pfl", reason="pfl needs an environment of its own: pip install pfl")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    federated_dataset = importlib.import_module("pfl_dataset").federated_dataset
    np.random.seed(0)  # noqa: NPY002 - pfl draws from the global state
    users = federated_dataset([np.arange(len(LABELS)), LABELS], parts)
    seen = {user.user_id: user for user, _ in users.get_cohort(3)}
    assert sorted(seen) == ["0", "1", "2"]  # each once before any twice
    for name, user in seen.items():
        rows, labels = user.raw_data
        assert rows.tolist() == parts[int(name)].tolist()
        assert np.bincount(labels, minlength=3).tolist() == COUNTS[int(name)].tolist()
        assert len(user) == COUNTS[int(name)].sum()
    again, _ = next(federated_dataset([LABELS], parts, sampling="random"))
    assert again.user_id in seen
    with pytest.raises(ParameterError, match="got 5, 200"):
        federated_dataset([LABELS, LABELS[:5]], parts)
