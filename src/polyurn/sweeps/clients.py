"""Who holds what in a sweep, for each population and seed: as given, or drawn and cut from the data.

Nothing is trained here, and no file is read.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from polyurn.errors import ParameterError
from polyurn.partitioning.assign import partition
from polyurn.partitioning.result import Partition
from polyurn.populations import Population, Styled
from polyurn.sweeps.scores import AGAIN
from polyurn.training.examples import Examples, check_clients

# Clients with their points, a function of the seed that gives them theirs anew, or a population.
Clients: TypeAlias = Partition | Callable[[int], Partition] | Population

_DRAWS, _ORDER = 6, 7  # these random streams are not those of training/schedule.py


def clients_by_seed(
    populations: Mapping[str, Clients],
    data: Examples,
    *,
    seeds: Iterable[int],
    n_clients: int | None,
    true: str,
    noise_floor: bool = False,
) -> dict[tuple[str, int], Partition]:
    """The clients of each population under each seed, checked, by (name, seed).

    A population is drawn anew for each seed, `n_clients` of it or as many as `true` has, and given points by
    their labels, and by their features if it is `Styled`. `noise_floor` adds the true clients in another
    order as "again", if they are there and it is not.
    """
    if n_clients is None and isinstance(of_true := populations.get(true), Partition):
        n_clients = len(of_true)
    seeds = list(seeds)
    found = {
        (name, seed): _held(name, clients, data, seed=seed, n_clients=n_clients)
        for name, clients in populations.items()
        for seed in seeds
    }
    if noise_floor and true in populations and AGAIN not in populations:
        found |= {(AGAIN, seed): in_another_order(found[true, seed], seed) for seed in seeds}
    return found


def in_another_order(clients: Partition, seed: int) -> Partition:
    """The same clients in another order, so that others meet in the cohorts of the same seed.

    Examples
    --------
    >>> again = in_another_order(Partition.from_lists([[0, 2], [1], [3, 4, 5]]), seed=0)
    >>> sorted(held.tolist() for held in again)
    [[0, 2], [1], [3, 4, 5]]
    """
    order = np.random.default_rng((_ORDER, seed)).permutation(len(clients))
    offsets = np.concatenate([[0], np.cumsum(clients.sizes[order])])
    indices = np.concatenate([clients[i] for i in order.tolist()])
    return Partition(offsets, indices, ids=None if clients.ids is None else clients.ids[order])


def _held(
    name: str, clients: Clients, data: Examples, *, seed: int, n_clients: int | None
) -> Partition:
    if isinstance(clients, Population):
        if n_clients is None:
            raise ParameterError(f"{name}: expected n_clients, how many clients to draw")
        drawing, cutting = streams(name, seed)
        counts = clients.sample(n_clients, rng=drawing)
        style, features = None, None
        if isinstance(clients, Styled):
            style = clients.style
            features = data.features if clients.features is None else clients.features
        return partition(data.labels, counts, style=style, features=features, rng=cutting)
    made = clients(seed) if callable(clients) else clients
    return check_clients(made, n_points=len(data), name=name)


def streams(name: str, seed: int) -> list[np.random.Generator]:
    """Two random streams: for drawing a population's clients, and for giving them points.

    Populations have streams of their own, or they would have the same sizes in the same order.
    """
    word = zlib.crc32(name.encode())
    return np.random.default_rng((_DRAWS, seed, word)).spawn(2)
