"""Simulated clients as a pfl-research `FederatedDataset`, whose users' data are cut out when sampled.

    pip install polyurn 'pfl>=0.6'      # an environment of its own: pfl needs an older dp-accounting
    python examples/pfl_dataset.py      # draws two cohorts

Copy `federated_dataset` into your simulation. Nothing is trained here.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler

import polyurn as pu
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth


def main() -> None:
    """Clients of a known mixture, with points that have a label and one feature."""
    np.random.seed(0)  # noqa: NPY002 - pfl draws from the global state
    labels = np.random.default_rng(0).integers(10, size=5_000)
    parts = pu.partition(labels, truth("medium/3"), n_clients=100, rng=1)
    users = federated_dataset([labels + 0.5, labels], parts)
    for _ in range(2):
        print([(user.user_id, len(user)) for user, _ in users.get_cohort(5)])


def federated_dataset(
    data: Sequence[Any],
    partition: pu.Partition,
    *,
    sampling: Literal["minimize_reuse", "random"] = "minimize_reuse",
) -> FederatedDataset:
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
    last = int(partition.indices.max(initial=-1))
    lengths = {len(array) for array in data}
    if len(lengths) != 1 or last >= min(lengths):
        raise ParameterError(
            f"expected arrays with a row for each proxy point, at least {last + 1}, got "
            f"{', '.join(str(n) for n in sorted(lengths)) or 'none'}"
        )
    users = [str(client) for client in range(len(partition))]

    def user_data(user: str) -> Dataset:
        mine = partition[int(user)]
        return Dataset(tuple(array[mine] for array in data), user_id=user)

    return FederatedDataset(
        user_data,
        get_user_sampler(sampling, users),
        user_id_to_weight=dict(zip(users, partition.sizes.tolist(), strict=True)),
    )


if __name__ == "__main__":
    main()
