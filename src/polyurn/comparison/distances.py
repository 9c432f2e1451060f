"""Distances between populations of histograms, as ratios to a noise floor: 1 is indistinguishable.

Two halves of the same true clients are some distance apart, too. That distance, scaled to two samples
of m clients where m are held out, is the floor, and a population's distance to the held-out clients is
divided by it.

*Energy distance*, 2E|X - Y| - E|X - X'| - E|Y - Y'|. Over all splits of the held-out clients into
halves of h and h', its mean is exactly d(1/h + 1/h'), where d is the mean distance of two different
held-out clients. So the floor needs no random splits: it is 2d/m. The estimate D of the distance
itself leaves out each client's distance to itself, so that its mean is 0 when nothing differs; the ratio
is 1 + D/floor, and its mean does not depend on how many clients were simulated, as long as they are m at
least. Of n < m clients D has the noise of so few, about d(1/n + 1/m), and that is the floor then.

What a ratio may be when nothing differs is seen on splits of the held-out clients into n and the rest,
or into halves where n is more than that. D is there d(1/h + 1/h') times a sum of squares of normal
variates, less its mean, whose weights do not depend on the sizes (Székely and Rizzo, 2013), so that its
range for h and h' is drawn together to that for n and m.

*Wasserstein-1* in one dimension, ∫|F - G|, has under the null a mean proportional to √(1/n + 1/m).
Its floor is a mean over random splits, scaled so. Populations are taken m clients at a time.

What the clients are is not known here: points in, numbers out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.spatial.distance import cdist

from polyurn.comparison.estimates import interval
from polyurn.memory import check_memory
from polyurn.typed.declared import Bools, Floats, Seed

# Distances that are held at once: 32 MB of float64.
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class Floor:
    """How far apart true clients are from true clients.

    `distance` is what is expected between two samples, each of as many clients as are held out; 95 % of
    the `n_splits` random splits into halves had a ratio to their floor from `low` to `high`, about 1.
    """

    distance: float
    low: float
    high: float
    n_splits: int

    def __format__(self, spec: str) -> str:
        return f"{self.low:{spec}} to {self.high:{spec}}"


def random_halves(n_clients: int, n_splits: int, *, rng: Seed = None) -> Bools:
    """Random splits into halves: who is in the first one, shape (n_splits, n_clients).

    >>> random_halves(5, 3, rng=0).sum(axis=1).tolist()
    [2, 2, 2]
    """
    return _random_splits(n_clients, n_clients // 2, n_splits, np.random.default_rng(rng))


def _random_splits(n_clients: int, n_first: int, n_splits: int, rng: np.random.Generator) -> Bools:
    what = f"{n_splits} splits of {n_clients} clients"
    check_memory(9 * n_splits * n_clients, what, "take a smaller n_splits")
    first = np.zeros((n_splits, n_clients), dtype=bool)
    first[:, :n_first] = True
    return rng.permuted(first, axis=1)


# ------------------------------------------------------------------------------- energy


def energy_floor(points: Floats, halves: Bools) -> Floor:
    """The energy distance of true clients to true clients: points of shape (n_clients, n_dimensions),
    cut into `halves`, of shape (n_splits, n_clients).
    """
    between = cdist(points, points)
    m = len(points)
    h = m // 2
    within_first, across, within_second = _split_sums(between, halves)
    splits = 2 * across / (h * (m - h)) - within_first / h**2 - within_second / (m - h) ** 2
    apart = between.sum() / (m * (m - 1))
    return _floor(2 * apart / m, splits, apart * (1 / h + 1 / (m - h)))


def energy_distance(x: Floats, y: Floats) -> float:
    """Unbiased energy distance between samples of points, of shape (n or m, n_dimensions); below 0 by
    chance.

    >>> energy_distance(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    -1.0
    """
    n, m = len(x), len(y)
    within_x = _sum_of_distances(x, x) / (n * (n - 1))
    within_y = _sum_of_distances(y, y) / (m * (m - 1))
    return float(2 * _sum_of_distances(x, y) / (n * m) - within_x - within_y)


def energy_ratio(distance: float, floor: Floor, *, n: int, m: int) -> float:
    """Ratio of an energy distance, of n clients to m held-out ones: 1 in the mean if nothing differs.

    Fewer clients than are held out are measured by the noise that so few have.
    """
    return 1 + _over(distance, floor.distance * (1 + m / min(n, m)) / 2)


def energy_null(points: Floats, *, n: int, n_splits: int, rng: Seed = None) -> tuple[float, float]:
    """The range of 95 % of the energy ratios that n true clients would have to the held-out ones.

    The held-out clients, four at least, have shape (m, n_dimensions); n is two at least.

    >>> points = np.random.default_rng(0).random((40, 3))
    >>> few, many = (energy_null(points, n=n, n_splits=500, rng=1) for n in (40, 4_000))
    >>> few[0] < many[0] < 1 < many[1] < few[1]
    True
    """
    m = len(points)
    h = min(n, m // 2)
    between = cdist(points, points)
    apart = between.sum() / (m * (m - 1))
    if apart == 0:  # the held-out clients are all the same
        return 1.0, 1.0
    splits = _random_splits(m, h, n_splits, np.random.default_rng(rng))
    within_first, across, within_second = _split_sums(between, splits)
    rest = m - h
    distances = 2 * across / (h * rest)
    distances -= within_first / (h * (h - 1)) + within_second / (rest * (rest - 1))
    noise = (1 / n + 1 / m) / (1 / h + 1 / rest)
    return interval(1 + noise * distances / (apart * (1 / min(n, m) + 1 / m)))


def _split_sums(between: Floats, splits: Bools) -> tuple[Floats, Floats, Floats]:
    """Sums of distances within the first part of each split, across, and within the second."""
    sides = splits.astype(np.float64)
    within_first = np.einsum("sm,sm->s", sides @ between, sides)
    to_first = sides @ between.sum(axis=1)  # first to first and first to second
    across = to_first - within_first
    return within_first, across, between.sum() - to_first - across


def _sum_of_distances(x: Floats, y: Floats) -> float:
    step = max(1, _BLOCK_CELLS // len(y))
    return sum(float(cdist(x[i : i + step], y).sum()) for i in range(0, len(x), step))


# -------------------------------------------------------------------------- Wasserstein


def directions(n_dimensions: int, n_directions: int, *, rng: Seed = None) -> Floats:
    """Random directions of length one, shape (n_dimensions, n_directions)."""
    what = f"{n_directions} directions of {n_dimensions} dimensions"
    check_memory(16 * n_directions * n_dimensions, what, "take a smaller n_directions")
    drawn = np.random.default_rng(rng).standard_normal((n_dimensions, n_directions))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=0))


def wasserstein_floor(lines: Floats, halves: Bools) -> Floor:
    """The mean Wasserstein-1 distance, over lines, of true clients to true clients.

    Lines, e.g. `points @ directions(...)`, have shape (n_clients, n_lines), halves (n_splits,
    n_clients).
    """
    m = halves.shape[1]
    h = m // 2
    sides = np.ascontiguousarray(halves.T)
    splits = np.mean([split_distances(line, sides, n_first=h) for line in lines.T], axis=0)
    mean = float(splits.mean())
    return _floor(mean * np.sqrt((2 / m) / (1 / h + 1 / (m - h))), splits, mean)


def wasserstein_distance(x: Floats, y: Floats) -> float:
    """Mean over lines of the Wasserstein-1 distance between positions on them, of shape (n or m,
    n_lines).

    >>> wasserstein_distance(np.array([[0.0], [1.0]]), np.array([[3.0]]))
    2.5
    """
    weights = np.repeat([1 / len(x), -1 / len(y)], [len(x), len(y)])
    both = np.concatenate([x, y])
    return float(np.mean([_line_distance(line, weights) for line in both.T]))


def wasserstein_ratio(x: Floats, y: Floats, floor: Floor) -> float:
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


def _parts(x: Floats, m: int) -> Iterator[Floats]:
    n_parts = max(1, len(x) // m)
    for part in range(n_parts):
        yield x[part * m : (part + 1) * m]


def _line_distance(positions: Floats, weights: Floats) -> float:
    """∫|F - G| on a line, where the weights of F's points are positive and those of G's negative; all of
    shape (n,).
    """
    order = np.argsort(positions)
    ahead = np.cumsum(weights[order[:-1]])
    return float(np.abs(ahead) @ np.diff(positions[order]))


def _floor(distance: float, splits: Floats, expected: float) -> Floor:
    """The floor of splits that are `expected` apart in the mean."""
    if expected <= 0:  # the held-out clients are all the same
        return Floor(0.0, 1.0, 1.0, n_splits=len(splits))
    return Floor(float(distance), *interval(splits / expected), n_splits=len(splits))


def _over(distance: float, floor: float) -> float:
    """A distance in floors; where true clients are all the same, none or infinitely many."""
    if floor > 0:
        return distance / floor
    return np.inf if distance > 0 else 0.0


def split_distances(positions: Floats, splits: Bools, *, n_first: int) -> Floats:
    """∫|F - G| on a line, between the two parts of each split, shape (n_splits,).

    Positions have shape (n,). Splits, shape (n, n_splits) with contiguous rows, say who is in the first
    part: `n_first` in each column. Positions are walked in order, so that the inner loop is over splits.

    >>> split_distances(np.array([3.0, 0.0, 1.0]), np.array([[False], [True], [True]]), n_first=2)
    array([2.5])
    """
    n, n_splits = splits.shape
    order = np.argsort(positions)
    distances = np.zeros(n_splits)
    _walk(order, np.diff(positions[order]), splits, 1 / n_first, 1 / (n - n_first), distances)
    return distances


@njit(cache=True, nogil=True)
def _walk(order, gaps, splits, first, second, distances):  # type: ignore[no-untyped-def]
    ahead = np.zeros(len(distances))  # F - G so far
    for i in range(len(gaps)):
        side, gap = splits[order[i]], gaps[i]
        for s in range(len(ahead)):
            ahead[s] += first if side[s] else -second
            distances[s] += abs(ahead[s]) * gap
