"""Steps in θ: logs of alphas and logits of weights, component after component.

What a step should be is `moments.py` and `scores.py`.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.model.scores import Mixture

# No round goes beyond: a client of one point tells no alpha from these.
_ALPHAS = (1e-4, 1e5)
_LEAST_WEIGHT = 1e-4


def moved(mixture: Mixture, step: NDArray[np.float64], *, largest: float) -> Mixture:
    """The mixture after a step in θ, none of whose entries is larger than `largest`.

    Parameters
    ----------
    mixture : Mixture
    step : float array of shape (n_coordinates,)
    largest : float

    Examples
    --------
    >>> start = Mixture(np.array([0.5, 0.5]), np.ones((2, 2)))
    >>> after = moved(start, np.array([np.log(2), 0, 0, 9, 0, 0]), largest=1.0)
    >>> after.alphas.round(3).tolist()
    [[2.0, 1.0], [2.718, 1.0]]
    """
    k, c = mixture.alphas.shape
    table = np.clip(step.reshape(k, c + 1), -largest, largest)
    alphas = np.clip(mixture.alphas * np.exp(table[:, :c]), *_ALPHAS)
    logits = np.log(mixture.weights) + table[:, c]
    weights = np.exp(logits - logits.max())
    weights = np.maximum(weights / weights.sum(), _LEAST_WEIGHT)
    return Mixture(weights / weights.sum(), alphas)


def theta(mixture: Mixture) -> NDArray[np.float64]:
    """θ of a mixture, shape (n_coordinates,), with logits that sum to 0."""
    logits = np.log(mixture.weights)
    return np.column_stack([np.log(mixture.alphas), logits - logits.mean()]).ravel()


def mean_mixture(one: Mixture, other: Mixture, share: float) -> Mixture:
    """The mixture between two in θ, with `share` of the other."""
    weights = one.weights ** (1 - share) * other.weights**share
    return Mixture(weights / weights.sum(), one.alphas ** (1 - share) * other.alphas**share)
