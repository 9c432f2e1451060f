"""Simulated moments: the mixture whose expected sketch is the one that was received.

McFadden (1989): simulate clients from the current mixture, compare their mean sketch with the one
received, and take a damped Gauss-Newton step. The derivative of an expectation is a covariance with
the score, E[y s'], which the same clients give. All of it is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.model.scores import Mixture, scores
from polyurn.server.private.coordinates import moved
from polyurn.server.private.population import Population
from polyurn.server.private.sketch import sketch_rows
from polyurn.wire.private import Sketch

_ITERATIONS = 25
# The last iterations are judged, by more simulated clients.
_JUDGED, _DRAWN_JUDGED = 5, 20_000
_DRAWN = 6_000
_LARGEST_STEP = 0.7
# Damping grows and falls by these factors, between these bounds (Levenberg and Marquardt).
_HARDER, _SOFTER, _DAMPING = 4.0, 3.0, (1e-3, 100.0)


def match_sketch(
    start: Mixture,
    sketch: Sketch,
    values: NDArray[np.float64],
    tau: float,
    population: Population,
    rng: np.random.Generator,
) -> tuple[float, Mixture]:
    """The mixture near a start that explains a sketch best, and how badly (a χ² statistic).

    Parameters
    ----------
    start : Mixture
    sketch : Sketch
    values : float array of shape (n_groups * (n_categories + 2),)
        Per client: the noised sum over the noised number of clients.
    tau : float
        Standard deviation of the noise in it.
    population : Population
    rng : numpy.random.Generator
    """
    mixture, damping, before = start, 1.0, np.inf
    best = np.inf, start
    for i in range(_ITERATIONS):
        judged = i >= _ITERATIONS - _JUDGED
        counts = population.simulate(mixture, _DRAWN_JUDGED if judged else _DRAWN, rng)
        gradients = scores(mixture, counts)
        mean, slope, variance = _moments(sketch, counts, gradients)
        spread = tau**2 + variance * (1 / population.n_clients + 1 / len(counts)) + 1e-12
        rest = values - mean
        misfit = float((rest**2 / spread).sum())
        if judged and misfit < best[0]:
            best = misfit, mixture
        softer = misfit < 1.02 * before
        damping = (
            max(damping / _SOFTER, _DAMPING[0]) if softer else min(damping * _HARDER, _DAMPING[1])
        )
        before = misfit
        normal = slope.T @ (slope / spread[:, None])
        fisher = gradients.T @ gradients / len(counts)
        ridge = 0.02 * damping * np.trace(normal) / np.trace(fisher) * fisher
        step = np.linalg.solve(
            normal + ridge + 0.05 * np.eye(len(normal)), slope.T @ (rest / spread)
        )
        mixture = population.capped(moved(mixture, step, largest=_LARGEST_STEP))
    return best


def _moments(
    sketch: Sketch, counts: NDArray[np.int64], gradients: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, derivative and variance of simulated clients' sketches."""
    rows = sketch_rows(sketch, counts)
    n, width = rows.values.shape
    mean = np.zeros((sketch.n_groups, width))
    square, slope = np.zeros_like(mean), np.zeros((*mean.shape, gradients.shape[1]))
    order = np.argsort(rows.joined, kind="stable")
    ends = np.searchsorted(rows.joined[order], np.arange(sketch.n_groups + 1))
    for g in range(sketch.n_groups):
        some = order[ends[g] : ends[g + 1]]
        mine = rows.values[some]
        mean[g], square[g] = mine.sum(axis=0) / n, (mine**2).sum(axis=0) / n
        slope[g] = mine.T @ gradients[some] / n
    variance = np.maximum(square - mean**2, 0.1 / n)
    return mean.ravel(), slope.reshape(mean.size, -1), variance.ravel()
