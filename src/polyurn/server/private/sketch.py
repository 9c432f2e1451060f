"""A sketch of the clients: how many are near each of some prototypes, and how they differ from them.

Prototypes are those of clients simulated from the survey, so they cost nothing. The expected sketch of
any mixture, and its derivative, follow from simulated clients too: `moments.py` matches them. What
crosses is `Sketch` of `wire/private.py`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.model.k_means import k_means
from polyurn.server.private.population import Population
from polyurn.wire.private import SKETCH_PARTS, Sketch

# Simulated clients that prototypes are made of.
_N_DRAWN = 8_000
# Residuals longer than those of 95 % of simulated clients are clipped.
_UNCLIPPED = 0.95
# Directions are logs of prototypes that have a little of everything: no category decides alone.
_BLURRED, _LEAST_SHARE = 0.03, 1e-6


def make_sketch(population: Population, n_groups: int, rng: np.random.Generator) -> Sketch:
    """The question: prototypes are centres of simulated clients, by k-means in √p."""
    counts = population.simulate(population.single, _N_DRAWN, rng)
    p = counts / counts.sum(axis=1, keepdims=True)
    _, joined = k_means(np.sqrt(p), n_groups, rng)
    sizes = np.bincount(joined, minlength=n_groups)
    sums = np.zeros((n_groups, p.shape[1]))
    np.add.at(sums, joined, p)
    prototypes = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], p.mean(axis=0))
    blurred = (1 - _BLURRED) * prototypes + _BLURRED * prototypes.mean(axis=0)
    directions = np.log(np.maximum(blurred, _LEAST_SHARE))
    nearest = (p @ directions.T).argmax(axis=1)
    radius = float(np.quantile(np.linalg.norm(p - prototypes[nearest], axis=1), _UNCLIPPED))
    return Sketch(prototypes, directions, max(radius, _LEAST_SHARE), population.max_size)


@dataclass(frozen=True)
class Rows:
    """The rows of simulated clients in a sketch: which one, and what stands in it."""

    joined: NDArray[np.int64]
    values: NDArray[np.float64]


def sketch_rows(sketch: Sketch, counts: NDArray[np.int64]) -> Rows:
    """What simulated clients would send, shape (n_clients, n_categories + 2) in `values`."""
    n = counts.sum(axis=1, keepdims=True)
    p = counts / n
    joined = (p @ sketch.directions.T).argmax(axis=1)
    rest = p - sketch.prototypes[joined]
    long = np.linalg.norm(rest, axis=1, keepdims=True)
    rest *= np.minimum(1.0, sketch.radius / np.maximum(long, 1e-300)) / sketch.radius
    pairs = (counts * (counts - 1.0)).sum(axis=1) / np.maximum(n * (n - 1.0), 1.0)[:, 0]
    of_clients, of_rest, of_pairs = np.sqrt(SKETCH_PARTS)
    ones = np.full(len(p), of_clients)
    return Rows(joined, np.column_stack([ones, of_rest * rest, of_pairs * pairs]))


@dataclass(frozen=True)
class Cells:
    """What a noised sketch says about each prototype's clients.

    Attributes
    ----------
    sizes : float array of shape (n_cells,)
        How many of all clients there are, as a share; cells that noise alone would fill are left out.
    means : float array of shape (n_cells, n_categories)
        Their mean proportions, shrunk towards the prototype where noise would move them.
    agreement : float array of shape (n_cells,)
        Their mean κ.
    agreement_noise : float array of shape (n_cells,)
        Its standard deviation.
    """

    sizes: NDArray[np.float64]
    means: NDArray[np.float64]
    agreement: NDArray[np.float64]
    agreement_noise: NDArray[np.float64]


def read_cells(sketch: Sketch, values: NDArray[np.float64], tau: float, n_components: int) -> Cells:
    """The cells of a noised sketch.

    Parameters
    ----------
    sketch : Sketch
    values : float array of shape (n_groups, n_categories + 2)
        Per client: the noised sum over the noised number of clients.
    tau : float
        Standard deviation of the noise in it.
    n_components : int
        At least so many cells are kept.
    """
    of_clients, of_rest, of_pairs = np.sqrt(SKETCH_PARTS)
    sizes, noise = values[:, 0] / of_clients, tau / of_clients
    kept = np.flatnonzero(sizes > 2 * noise)
    if len(kept) < n_components:
        kept = np.argsort(-sizes)[:n_components]
    sizes = np.maximum(sizes[kept], noise)
    rest = values[kept, 1:-1] * (sketch.radius / of_rest) / sizes[:, None]
    variance = (tau * sketch.radius / of_rest / sizes) ** 2
    # James and Stein (1961): what is left of a mean after its noise is taken off its square.
    squares = np.maximum((rest**2).sum(axis=1), 1e-300)
    shrink = np.maximum(0.0, 1 - rest.shape[1] * variance / squares)
    means = np.maximum(sketch.prototypes[kept] + shrink[:, None] * rest, 1e-4)
    agreement = np.maximum(values[kept, -1] / of_pairs, 0.0) / sizes
    return Cells(sizes, means / means.sum(axis=1, keepdims=True), agreement, tau / of_pairs / sizes)
