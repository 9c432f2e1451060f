"""Clients as torch `Subset`s of the proxy dataset, each made when it is asked for.

Nothing is copied, loaded or trained here.
"""

from collections.abc import Sequence
from typing import Any, overload

from polyurn.errors import MissingDependencyError
from polyurn.partitioning.result import Partition

try:
    from torch.utils.data import Dataset, Subset
except ImportError as error:
    raise MissingDependencyError("torch", "torch", "torch subsets") from error


class ClientSubsets(Sequence[Subset[Any]]):
    """The clients of a partition as a sequence of `torch.utils.data.Subset`.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        The proxy dataset, in the order of the labels that were partitioned.
    partition : Partition

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import TensorDataset
    >>> from polyurn import partition
    >>> labels = torch.tensor([0, 1, 1, 0])
    >>> clients = ClientSubsets(TensorDataset(labels), partition(labels, [[2, 0], [1, 2]], rng=0))
    >>> [len(client) for client in clients], clients[0][0]
    ([2, 3], (tensor(0),))
    """

    def __init__(self, dataset: Dataset[Any], partition: Partition) -> None:
        partition.check_points(len(dataset))  # type: ignore[arg-type]
        self.dataset = dataset
        self.partition = partition

    def __len__(self) -> int:
        return len(self.partition)

    @overload
    def __getitem__(self, client: int) -> Subset[Any]: ...
    @overload
    def __getitem__(self, client: slice) -> list[Subset[Any]]: ...
    def __getitem__(self, client: int | slice) -> Subset[Any] | list[Subset[Any]]:
        if isinstance(client, slice):
            return [self[i] for i in range(*client.indices(len(self)))]
        return Subset(self.dataset, self.partition[client].tolist())

    def __repr__(self) -> str:
        return f"ClientSubsets(n_clients={len(self)})"
