"""Clients as a pfl-research `FederatedDataset`, each user's data cut out when it is sampled.

Nothing is trained here.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.partitioning.result import Partition

if TYPE_CHECKING:
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset


def federated_dataset(
    data: Sequence[Any],
    partition: Partition,
    *,
    sampling: Literal["minimize_reuse", "random"] = "minimize_reuse",
) -> "FederatedDataset":
    """The clients of a partition as users of a pfl simulation.

    Parameters
    ----------
    data : sequence of arrays or tensors of shape (n_points, ...)
        What a model is given, features and labels for instance; all in the order of the labels that
        were partitioned.
    partition : Partition
    sampling : {"minimize_reuse", "random"}
        How pfl draws the users of a cohort. pfl draws from numpy's global state: seed that for a
        simulation that can be repeated.

    Returns
    -------
    pfl.data.federated_dataset.FederatedDataset
        Users are named "0", "1", ...; their weights, for pfl's scheduling, are their sizes.
    """
    try:
        from pfl.data.dataset import Dataset
        from pfl.data.federated_dataset import FederatedDataset
        from pfl.data.sampling import get_user_sampler
    except ImportError as error:
        raise MissingDependencyError("pfl", "pfl", "pfl datasets") from error
    last = int(partition.indices.max(initial=-1))
    lengths = {len(array) for array in data}
    if len(lengths) != 1 or last >= min(lengths):
        raise ParameterError(
            f"expected arrays with a row for each proxy point, at least {last + 1}, got "
            f"{', '.join(str(n) for n in sorted(lengths)) or 'none'}"
        )
    users = [str(client) for client in range(len(partition))]

    def user_data(user: str) -> "Dataset":
        mine = partition[int(user)]
        return Dataset(tuple(array[mine] for array in data), user_id=user)

    return FederatedDataset(
        user_data,
        get_user_sampler(sampling, users),
        user_id_to_weight=dict(zip(users, partition.sizes.tolist(), strict=True)),
    )
