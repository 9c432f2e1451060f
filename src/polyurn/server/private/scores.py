"""One score round: what simulated clients say beforehand, and the step that the noised sum stands for.

Let s be a client's score and I = E[s s'] its information under the current mixture. Clients send
z = W's clipped at S, with W'IW = 1: every direction of θ is measured in its own standard deviations,
so that noise costs the same in each, d (σ S / n)² / 2 nats in all. Clipping biases the mean by
E[clip(z) - z] and flattens its response to θ to D = E[clip(z) z']; both are computed under the current
mixture, and the step W D⁻¹ (mean - bias) is Fisher scoring.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.model.scores import Mixture, scores
from polyurn.server.private.plan import Plan
from polyurn.server.private.population import Population
from polyurn.wire.private import WhitenedScore

# The clip is at most this many √d: beyond it nobody is clipped.
_LARGEST_CLIP = 10.0
# Simulated clients for each coordinate, at least: an information matrix of fewer is too rough.
_DRAWN_PER_COORDINATE = 40
# Directions of like noise that are shrunk together.
_BLOCK = 8


@dataclass(frozen=True)
class Round:
    """A score round about to be asked.

    Attributes
    ----------
    query : WhitenedScore
    bias : float array of shape (n_directions,)
        E[clip(z) - z] under the mixture.
    response : float array of shape (n_directions, n_directions)
        E[clip(z) z'].
    information : float array of shape (n_coordinates, n_coordinates)
    tau : float
        Standard deviation of the noise in the mean of z.
    n_clients : float
    """

    query: WhitenedScore
    bias: NDArray[np.float64]
    response: NDArray[np.float64]
    information: NDArray[np.float64]
    tau: float
    n_clients: float

    def step(
        self, values: NDArray[np.float64], *, shrunk: bool, largest_gain: float
    ) -> NDArray[np.float64]:
        """The step in θ that a noised sum stands for.

        Parameters
        ----------
        values : float array of shape (n_directions,)
            The noised sum of the clients' vectors.
        shrunk : bool
            Whether each block of directions is shrunk by what its noise explains (James and Stein).
        largest_gain : float
            The step is scaled down to promise no more nats per client than this.
        """
        rest = values * (self.query.clip / self.n_clients) - self.bias
        left, scale, right = np.linalg.svd(self.response)
        scale = np.maximum(scale, 1e-6)
        along = (left.T @ rest) / scale
        if shrunk:
            along *= _shrinkage(along, (self.tau / scale) ** 2)
        delta = right.T @ along
        gain = 0.5 * float(delta @ delta)
        if gain > largest_gain:
            delta *= np.sqrt(largest_gain / gain)
        return np.asarray(self.query.whitener @ delta)


def prepare(
    mixture: Mixture,
    population: Population,
    sigma: float,
    plan: Plan,
    n_simulated: int,
    rng: np.random.Generator,
) -> Round:
    """What simulated clients say about a score round whose noise has standard deviation `sigma`."""
    n = population.n_clients
    n_drawn = max(n_simulated, _DRAWN_PER_COORDINATE * mixture.n_coordinates)
    simulated = scores(mixture, population.simulate(mixture, n_drawn, rng))
    information = simulated.T @ simulated / len(simulated)
    values, vectors = np.linalg.eigh(information)
    kept = values > max(plan.least_information, mixture.n_coordinates * (sigma / n) ** 2)
    if not kept.any():
        kept = values == values.max()
    whitener = vectors[:, kept] / np.sqrt(values[kept])
    z = simulated @ whitener
    d, norms = z.shape[1], np.linalg.norm(z, axis=1)
    affordable = np.sqrt(2 * plan.noise_cost / d) * n / sigma
    clip = max(
        float(np.quantile(norms, plan.unclipped)), min(affordable, _LARGEST_CLIP * np.sqrt(d))
    )
    clipped = z * np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None]
    return Round(
        query=WhitenedScore(mixture, whitener, clip, population.max_size),
        bias=(clipped - z).mean(axis=0),  # E z = 0 exactly, and its estimate varies with E clip(z)
        response=clipped.T @ z / len(z),
        information=information,
        tau=sigma * clip / n,
        n_clients=n,
    )


def _shrinkage(along: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each direction the positive-part James-Stein factor of its block."""
    factors = np.empty(len(along))
    for block in np.array_split(np.arange(len(along)), max(1, round(len(along) / _BLOCK))):
        square = max(float((along[block] ** 2).sum()), 1e-300)
        factors[block] = max(0.0, 1 - float(variance[block].sum()) / square)
    return factors
