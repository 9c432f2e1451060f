"""Who takes part in a round, and in which order a client looks at its points.

Each is a function of the seed and of nothing that happened before, so every engine and every number
of workers sees the same. Nothing is trained here.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.training.settings import FedAvg

# What a stream of random numbers is for. It stands first in the seed, since numpy takes
# (1, 2) and (1, 2, 0) for the same seed.
_COHORT, _ORDER, _DICE, _START = 1, 2, 3, 4


def cohort(settings: FedAvg, n_clients: int, *, seed: int, round_: int) -> NDArray[np.int64]:
    """The clients of a round, in the order in which their updates are added."""
    rng = np.random.default_rng((_COHORT, seed, round_))
    return rng.choice(n_clients, size=settings.cohort_size, replace=False)


def orders(
    settings: FedAvg, size: int, *, seed: int, round_: int, client: int
) -> NDArray[np.int64]:
    """The order of a client's points in each epoch, of shape (local_epochs, size).

    Examples
    --------
    >>> settings = FedAvg(n_rounds=1, cohort_size=1, local_epochs=2)
    >>> sorted(orders(settings, 3, seed=0, round_=1, client=7)[1].tolist())
    [0, 1, 2]
    """
    rng = np.random.default_rng((_ORDER, seed, round_, client))
    return np.stack([rng.permutation(size) for _ in range(settings.local_epochs)])


def n_batches(settings: FedAvg, size: int) -> int:
    """Batches of an epoch; the last may be smaller."""
    return -(-size // settings.batch_size)


def dice(*, seed: int, round_: int, client: int) -> int:
    """The seed of a client's own chance in a round, such as dropout."""
    return _number(_DICE, seed, round_, client)


def start(*, seed: int) -> int:
    """The seed of a model's first weights."""
    return _number(_START, seed)


def _number(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)
