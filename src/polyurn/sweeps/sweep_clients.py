"""The clients of each population and seed of a sweep: given, or drawn and given points of the data.

The entries of a TOML file become such populations in `inputs.py`. Nothing is trained here.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from warnings import catch_warnings

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import CountsError, ParameterError, PartitionError
from polyurn.model.names import Match, side_of
from polyurn.model.populations import Population, Styled
from polyurn.partitioning.assign import partition
from polyurn.partitioning.result import Partition, check_labels
from polyurn.sweeps.run_scores import AGAIN, base_of
from polyurn.training.examples import check_clients

# The clients that a seed has.
ClientsOfSeed: TypeAlias = Callable[[int], Partition]
# Clients with their points, a function of the seed that gives them theirs anew, or a population.
Clients: TypeAlias = Partition | ClientsOfSeed | Population
_DRAWS, _ORDER = 6, 7  # these random streams are not those of training/schedule.py


def clients_by_seed(
    populations: Mapping[str, Clients],
    labels: NDArray[Any],
    features: NDArray[Any] | None,
    *,
    seeds: Sequence[int],
    n_clients: int | None,
    true: str,
    noise_floor: bool = False,
    client_test: float | None = None,
    match: Match | None = None,
) -> dict[tuple[str, int], Partition]:
    """The clients of each population under each seed, checked, by (name, seed).

    A population is drawn anew for each seed, by default as many clients as `true` has. They are given
    points by their labels, those of a `Styled` population also by features. `noise_floor` adds the true
    clients in another order as "again", unless there is such a population. `client_test` is the share
    of each client's points that it is tested on.
    """
    if n_clients is None and isinstance(of_true := populations.get(true), Partition):
        n_clients = len(of_true)
    found: dict[tuple[str, int], Partition] = {}
    for name, clients in populations.items():
        for seed in seeds:
            drawing, cutting, testing = streams(name, seed)
            if isinstance(clients, Population):
                if n_clients is None:
                    raise ParameterError(f"{name}: expected n_clients, how many clients to draw")
                counts = clients.sample(n_clients, rng=drawing)
                held = _given_points(name, clients, counts, labels, features, match, rng=cutting)
            else:
                held = clients(seed) if callable(clients) else clients
                check_clients(held, n_points=len(labels), name=name)
            if client_test is not None:
                # docs/training.md: they share rows
                with catch_warnings(action="ignore", category=UserWarning):
                    held = held.with_test(client_test, labels, rng=testing)
            found[name, seed] = held
    if noise_floor and true in populations and AGAIN not in populations:
        found |= {(AGAIN, seed): in_another_order(found[true, seed], seed) for seed in seeds}
    return found


def in_another_order(clients: Partition, seed: int) -> Partition:
    """The same clients in another order, so that the cohorts of the same seed differ.

    >>> again = in_another_order(Partition.from_lists([[0, 2], [1], [3, 4, 5]]), seed=0)
    >>> sorted(held.tolist() for held in again)
    [[0, 2], [1], [3, 4, 5]]
    """
    order = np.random.default_rng((_ORDER, seed)).permutation(len(clients))
    offsets = np.concatenate([[0], np.cumsum(clients.sizes[order])])
    indices = np.concatenate([clients[i] for i in order.tolist()])
    ids = None if clients.ids is None else clients.ids[order]
    return Partition(offsets, indices, ids=ids, test=clients.test)


def _given_points(
    name: str, population: Population, counts: Any, labels: NDArray[Any],
    features: NDArray[Any] | None, match: Match | None, *, rng: np.random.Generator,
) -> Partition:  # fmt: skip
    """Clients of a population with points of its categories, by the features if they have a style."""
    try:
        codes = check_labels(labels, side_of(population, population.n_categories), match)
    except (CountsError, PartitionError) as error:
        raise type(error)(f"{name}: {error}") from None
    if not isinstance(population, Styled):
        return partition(codes, counts, rng=rng)
    measured = features if population.features is None else population.features
    return partition(codes, counts, style=population.style, features=measured, rng=rng)


def streams(name: str, seed: int) -> list[np.random.Generator]:
    """Three random streams: for drawing a population's clients, giving them points, and testing them.

    Populations have streams of their own, or they would have the same sizes in the same order. Mixtures
    that are as plausible as another have its streams: what differs between them is not chance.
    """
    word = zlib.crc32(base_of(name).encode())
    return np.random.default_rng((_DRAWS, seed, word)).spawn(3)
