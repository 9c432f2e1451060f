"""Children of two starts: the leader with one of its components exchanged for one of another's.

Starts that came to rest in different places have found different groups of clients. A leader that lacks
one can get it from a start that is worse as a whole. Whether it helps is for the clients to say: nothing
is judged here.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.sizes import Sizes
from polyurn.wire import Parameters

# Even a component that the leader has already is taken now and then.
_LEAST_NOVELTY = 1e-3


def child(leader: Parameters, other: Parameters, *, rng: np.random.Generator) -> Parameters:
    """The leader's parameters with a random component of another, novel ones rather than known ones.

    Parameters
    ----------
    leader, other : Parameters of the same shape
    rng : numpy.random.Generator
    """
    alike = _roots(leader.alphas) @ _roots(other.alphas).T  # Bhattacharyya's coefficient
    novelty = np.maximum(1.0 - alike.max(axis=0), 0.0) + _LEAST_NOVELTY
    comes = rng.choice(len(novelty), p=novelty / novelty.sum())
    goes = rng.integers(len(novelty))
    weights, alphas, masses = (
        block.copy() for block in (leader.weights, leader.alphas, leader.sizes.masses)
    )
    weights[goes], alphas[goes] = other.weights[comes], other.alphas[comes]
    masses[goes] = other.sizes.masses[comes]
    return Parameters(weights / weights.sum(), alphas, Sizes(leader.sizes.bins, masses))


def _roots(alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt(alphas / alphas.sum(axis=1, keepdims=True)))
