"""Children: the leader with one of its components exchanged.

Starts that came to rest in different places have found different groups of clients. A leader that lacks
one can get it from a start that is worse as a whole. Groups that no start has found are looked for
around clients that the leader makes up. Whether it helps is for the clients to say: nothing is judged
here.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.model.sizes import Sizes
from polyurn.wire import Parameters

# Even a component that the leader has already is taken now and then.
_LEAST_NOVELTY = 1e-3
# A niche: the share of the clients that it begins with, how concentrated it is compared with the
# component that its client is from, and the least of a category in it.
_NICHE, _DENSER, _RAREST = 0.02, (0.5, 2.0), 1e-3


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


def niche(leader: Parameters, *, rng: np.random.Generator) -> Parameters:
    """The leader with a small component around a client of its own making, mostly for a small one.

    Parameters
    ----------
    leader : Parameters
    rng : numpy.random.Generator
    """
    origin = rng.choice(len(leader.weights), p=leader.weights)
    client = np.maximum(rng.dirichlet(leader.alphas[origin]), _RAREST)
    density = leader.alphas[origin].sum() * np.exp(rng.uniform(*np.log(_DENSER)))
    odds = 1.0 / leader.weights
    goes = rng.choice(len(odds), p=odds / odds.sum())
    weights, alphas, masses = (
        block.copy() for block in (leader.weights, leader.alphas, leader.sizes.masses)
    )
    weights[goes] = 0.0
    weights *= (1.0 - _NICHE) / weights.sum()
    weights[goes], alphas[goes] = _NICHE, density * client / client.sum()
    masses[goes] = leader.weights @ leader.sizes.masses  # of all: no client becomes impossible
    return Parameters(weights, alphas, Sizes(leader.sizes.bins, masses))


def _roots(alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt(alphas / alphas.sum(axis=1, keepdims=True)))
