"""Clients as torch subsets."""

import pytest

from partition_cases import COUNTS, LABELS
from polyurn.errors import ParameterError


def test_clients_become_torch_subsets_when_they_are_asked_for(parts):
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, Subset, TensorDataset

    from polyurn.integrations.torch import ClientSubsets

    proxy = TensorDataset(torch.arange(len(LABELS)), torch.tensor(LABELS))
    clients = ClientSubsets(proxy, parts)
    assert len(clients) == 3
    assert isinstance(clients[1], Subset)
    for client, mine, counts in zip(clients, parts, COUNTS, strict=True):
        rows, labels = next(iter(DataLoader(client, batch_size=100)))
        assert rows.tolist() == mine.tolist()
        assert torch.bincount(labels, minlength=3).tolist() == counts.tolist()
    assert [len(client) for client in clients[1:]] == [9, 3]
    assert len(clients[-1]) == 3
    with pytest.raises(ParameterError, match="but the dataset has 5"):
        ClientSubsets(TensorDataset(torch.arange(5)), parts)
