"""Parameters as a vector without bounds, and the gradient and Hessian in it.

x is log α_k1, ..., log α_kC, log τ_k of each component in turn. Many models of the same shape can be
stacked: arrays then have one more axis, the first. Nothing here knows what a search is.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyurn.model.mdm import at_cap
from polyurn.model.sizes import Sizes
from polyurn.server.em.m_step import capped
from polyurn.wire import ExpectStatistics, Parameters

# No alpha's logarithm is below this; the cap on concentrations bounds them above.
_LOWEST = -25.0


def to_x(parameters: Parameters) -> NDArray[np.float64]:
    """Parameters as one vector."""
    return np.asarray(stacked_x(parameters.weights[None], parameters.alphas[None])[0])


def from_x(x: NDArray[np.float64], shape: tuple[int, int], sizes: Sizes) -> Parameters:
    """The parameters that a vector stands for."""
    weights, alphas = unstacked(x[None], shape)
    return Parameters(weights[0], alphas[0], sizes)


def stacked_x(weights: NDArray[np.float64], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vectors of many models, from weights of shape (n, K) and alphas of shape (n, K, C)."""
    logs = np.concatenate([np.log(alphas), np.log(weights)[..., None]], axis=2)
    return logs.reshape(len(logs), -1)


def unstacked(
    xs: NDArray[np.float64], shape: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weights and alphas that many vectors stand for."""
    k, c = shape
    logs = xs.reshape(-1, k, c + 1)
    alphas = capped(np.exp(np.clip(logs[..., :c], _LOWEST, -_LOWEST)))
    weights = np.exp(logs[..., c] - logs[..., c].max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True), alphas


def stacked_sums(sums: Sequence[ExpectStatistics]) -> ExpectStatistics:
    """The sums about many models, without their Hessians."""
    names = [name for name in ExpectStatistics.SHAPES if name != "curvature"]
    blocks = {name: np.array([getattr(s, name) for s in sums]) for name in names}
    return ExpectStatistics(**blocks, curvature=np.empty(0))  # type: ignore[arg-type]


def gradients(
    weights: NDArray[np.float64], alphas: NDArray[np.float64], sums: ExpectStatistics
) -> NDArray[np.float64]:
    """The gradients of the mean log-likelihood in x of many models, from their stacked sums."""
    n = np.asarray(sums.n_clients)[:, None]
    of_alphas = sums.tables - alphas * (sums.total_tables / alphas.sum(axis=2))[..., None]
    of_weights = sums.size_counts.sum(axis=2) - n * weights
    both = np.concatenate([of_alphas, of_weights[..., None]], axis=2)
    return np.asarray(both.reshape(len(both), -1) / n)


def hessian(sums: ExpectStatistics) -> NDArray[np.float64] | None:
    """The Hessian of the mean log-likelihood in x, if the clients sent it."""
    if sums.curvature.size == 0:
        return None
    n = int(np.sqrt(2 * sums.curvature.size))
    lower = np.zeros((n, n))
    lower[np.tri(n, dtype=bool)] = sums.curvature / sums.n_clients
    return np.asarray(lower + np.tril(lower, -1).T)


def within_cap(gradient: NDArray[np.float64], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The gradients of many models without what leads out through the cap on concentrations."""
    beyond = at_cap(alphas)
    if not beyond.any():
        return gradient
    k, c = alphas.shape[1:]
    normals = _normals(alphas)
    inside = gradient.reshape(-1, k, c + 1).copy()
    outwards = np.maximum((inside[..., :c] * normals).sum(axis=2), 0.0) * beyond
    inside[..., :c] -= outwards[..., None] * normals
    return inside.reshape(gradient.shape)


def along_cap(
    curvature: NDArray[np.float64],
    x: NDArray[np.float64],
    gradient: NDArray[np.float64],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """The Hessian of a model along the caps that the likelihood presses it against.

    `gradient` is within the cap already, so that it has no part across a cap that is pressed against.
    """
    k, c = shape
    alphas = np.exp(x.reshape(k, c + 1)[:, :c])
    for component in np.flatnonzero(at_cap(alphas)):
        normal = np.zeros((k, c + 1))
        normal[component, :c] = _normals(alphas[component])
        across = normal.reshape(-1)
        if across @ gradient >= -(np.finfo(float).eps ** 0.75):
            product = curvature @ across
            curvature = curvature - np.outer(across, product) - np.outer(product, across)
            curvature += (across @ product) * np.outer(across, across)
    return curvature


def _normals(alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The directions in which log α_0 grows, of length one."""
    return np.asarray(alphas / np.sqrt((alphas**2).sum(axis=-1, keepdims=True)))
