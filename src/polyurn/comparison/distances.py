"""Distances between populations of histograms, as ratios to a noise floor: 1 is indistinguishable.

Two halves of the same true clients are some distance apart, too. That distance, scaled to two samples
of m clients where m are held out, is the floor, and a population's distance to the held-out clients is
divided by it.

*Energy distance*, 2E|X - Y| - E|X - X'| - E|Y - Y'|. Over all splits of the held-out clients into
halves of h and h', its mean is exactly d(1/h + 1/h'), where d is the mean distance of two different
held-out clients. So the floor needs no lot: it is 2d/m. The estimate D of the distance itself leaves
out each client's distance to itself, so that its mean is 0 when nothing differs; the ratio is
1 + D/floor, and its mean does not depend on how many clients were simulated.

*Wasserstein-1* in one dimension, ∫|F - G|, has under the null a mean proportional to √(1/n + 1/m).
Its floor is a mean over random splits, scaled so. Populations are taken m clients at a time.

What the clients are is not known here: points in, numbers out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from polyurn.comparison.estimates import interval

# Distances that are held at once: 32 MB of float64.
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class Floor:
    """How far apart true clients are from true clients.

    Attributes
    ----------
    distance : float
        Expected between two samples, each of as many clients as are held out.
    low, high : float
        95 % of the random splits into halves had a ratio to their floor in here; about 1.
    n_splits : int
    """

    distance: float
    low: float
    high: float
    n_splits: int


def random_halves(
    n_clients: int, n_splits: int, *, rng: int | np.random.Generator | None = None
) -> NDArray[np.bool_]:
    """Random splits into halves: who is in the first one, shape (n_splits, n_clients).

    Examples
    --------
    >>> random_halves(5, 3, rng=0).sum(axis=1).tolist()
    [2, 2, 2]
    """
    rng = np.random.default_rng(rng)
    first = np.zeros((n_splits, n_clients), dtype=bool)
    first[:, : n_clients // 2] = True
    return rng.permuted(first, axis=1)


# ------------------------------------------------------------------------------- energy


def energy_floor(points: NDArray[np.float64], halves: NDArray[np.bool_]) -> Floor:
    """The energy distance of true clients to true clients.

    Parameters
    ----------
    points : float array of shape (n_clients, n_dimensions)
    halves : bool array of shape (n_splits, n_clients)
    """
    between = cdist(points, points)
    total, m = between.sum(), len(points)
    sides = halves.astype(np.float64)
    within_first = np.einsum("sm,sm->s", sides @ between, sides)
    to_first = sides @ between.sum(axis=1)  # first to first and first to second
    across = to_first - within_first
    within_second = total - to_first - across
    h = m // 2
    splits = 2 * across / (h * (m - h)) - within_first / h**2 - within_second / (m - h) ** 2
    apart = total / (m * (m - 1))
    return _floor(2 * apart / m, splits, apart * (1 / h + 1 / (m - h)))


def energy_distance(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Unbiased energy distance between two samples of points; below 0 by chance if nothing differs.

    Parameters
    ----------
    x : float array of shape (n, n_dimensions)
    y : float array of shape (m, n_dimensions)

    Examples
    --------
    >>> energy_distance(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    -1.0
    """
    n, m = len(x), len(y)
    within_x = _sum_of_distances(x, x) / (n * (n - 1))
    within_y = _sum_of_distances(y, y) / (m * (m - 1))
    return float(2 * _sum_of_distances(x, y) / (n * m) - within_x - within_y)


def energy_ratio(distance: float, floor: Floor) -> float:
    """Ratio of an energy distance to the floor: 1 in the mean if nothing differs."""
    return 1 + _over(distance, floor.distance)


def _sum_of_distances(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    step = max(1, _BLOCK_CELLS // len(y))
    return sum(float(cdist(x[i : i + step], y).sum()) for i in range(0, len(x), step))


# -------------------------------------------------------------------------- Wasserstein


def directions(
    n_dimensions: int, n_directions: int, *, rng: int | np.random.Generator | None = None
) -> NDArray[np.float64]:
    """Random directions of length one, shape (n_dimensions, n_directions)."""
    drawn = np.random.default_rng(rng).standard_normal((n_dimensions, n_directions))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=0))


def wasserstein_floor(lines: NDArray[np.float64], halves: NDArray[np.bool_]) -> Floor:
    """The mean Wasserstein-1 distance, over lines, of true clients to true clients.

    Parameters
    ----------
    lines : float array of shape (n_clients, n_lines)
        Each column has the clients' places on one line, e.g. `points @ directions(...)`.
    halves : bool array of shape (n_splits, n_clients)
    """
    m = halves.shape[1]
    h = m // 2
    weights = np.where(halves, 1 / h, -1 / (m - h))
    splits = np.mean([_line_distance(line, weights) for line in lines.T], axis=0)
    mean = float(splits.mean())
    return _floor(mean * np.sqrt((2 / m) / (1 / h + 1 / (m - h))), splits, mean)


def wasserstein_distance(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Mean over lines of the Wasserstein-1 distance between places on them.

    Parameters
    ----------
    x : float array of shape (n, n_lines)
    y : float array of shape (m, n_lines)

    Examples
    --------
    >>> wasserstein_distance(np.array([[0.0], [1.0]]), np.array([[3.0]]))
    2.5
    """
    weights = np.repeat([1 / len(x), -1 / len(y)], [len(x), len(y)])
    both = np.concatenate([x, y])
    return float(np.mean([_line_distance(line, weights) for line in both.T]))


def wasserstein_ratio(x: NDArray[np.float64], y: NDArray[np.float64], floor: Floor) -> float:
    """Ratio of the Wasserstein-1 distance of x to the held-out y to the floor.

    x is taken len(y) rows at a time, and what is left over is not used: the ratio has the same meaning
    however many there are. Fewer rows than len(y) are scaled by √(1/n + 1/m).
    """
    m = len(y)
    if floor.distance <= 0:
        return 1 + _over(wasserstein_distance(x, y), floor.distance)
    ratios = [
        wasserstein_distance(part, y)
        / (floor.distance * np.sqrt((1 / len(part) + 1 / m) / (2 / m)))
        for part in _parts(x, m)
    ]
    return float(np.mean(ratios))


def _parts(x: NDArray[np.float64], m: int) -> Iterator[NDArray[np.float64]]:
    n_parts = max(1, len(x) // m)
    for part in range(n_parts):
        yield x[part * m : (part + 1) * m]


def _line_distance(
    places: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """∫|F - G| on a line, where the weights of F's points are positive and those of G's negative.

    Parameters
    ----------
    places : float array of shape (n,)
    weights : float array of shape (..., n)
    """
    order = np.argsort(places)
    ahead = np.cumsum(weights[..., order[:-1]], axis=-1)
    return np.asarray(np.abs(ahead, out=ahead) @ np.diff(places[order]))


def _floor(distance: float, splits: NDArray[np.float64], expected: float) -> Floor:
    """The floor of splits that are `expected` apart in the mean."""
    if expected <= 0:  # the held-out clients are all the same
        return Floor(0.0, 1.0, 1.0, n_splits=len(splits))
    return Floor(float(distance), *interval(splits / expected), n_splits=len(splits))


def _over(distance: float, floor: float) -> float:
    """A distance in floors; where true clients are all the same, none or infinitely many."""
    if floor > 0:
        return distance / floor
    return np.inf if distance > 0 else 0.0
