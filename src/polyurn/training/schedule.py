"""Cohorts, batches and random seeds of a run: functions of its seed, the round and the client alone.

Nothing depends on what happened before, so every engine and every number of workers sees the same.
Nothing is trained here.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.training.fedavg import FedAvg
from polyurn.typed.declared import Ints

# What a stream of random numbers is for. It stands first in the seed, since numpy takes
# (1, 2) and (1, 2, 0) for the same seed.
_COHORT, _ORDER, _CLIENT_STREAM, _START = 1, 2, 3, 4


def cohort(settings: FedAvg, n_clients: int, *, seed: int, round_: int) -> Ints:
    """The clients of a round, in the order in which their updates are added."""
    rng = np.random.default_rng((_COHORT, seed, round_))
    return rng.choice(n_clients, size=settings.cohort_size, replace=False)


def orders(settings: FedAvg, sizes: Ints, clients: Ints, *, seed: int, round_: int) -> Ints:
    """The order of some clients' points in each epoch, (n_clients, local_epochs, largest size).

    The first `size` entries of a row are the client's; the others are numbers from `size` on. Points are
    sorted by a hash of (seed, round, client, epoch, point), since a generator for each client would take
    as long as training it does on the engine "batched".

    >>> settings = FedAvg(n_rounds=1, cohort_size=1, local_epochs=2)
    >>> found = orders(settings, np.array([3, 2]), np.array([7, 8]), seed=0, round_=1)
    >>> found.shape, sorted(found[0, 1].tolist()), int(found[1, 0, 2])
    ((2, 2, 3), [0, 1, 2], 2)
    """
    start_word = np.uint64(_number(_ORDER, seed, round_))
    points = np.arange(sizes.max())
    keys = _mix(start_word + _mix(clients.astype(np.uint64)))
    for axis in (np.arange(settings.local_epochs), points):
        keys = _mix(keys[..., None] + _mix(axis.astype(np.uint64)))
    keys[np.broadcast_to(points >= sizes[:, None, None], keys.shape)] = np.iinfo(np.uint64).max
    return np.argsort(keys, axis=-1, kind="stable")


def client_stream(*, seed: int, round_: int, client: int) -> int:
    """The seed of a client's random stream in a round, which dropout draws from."""
    return _number(_CLIENT_STREAM, seed, round_, client)


def start(*, seed: int) -> int:
    """The seed of a model's first weights."""
    return _number(_START, seed)


def _number(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words that leaves no pattern: the output function of SplitMix64."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
