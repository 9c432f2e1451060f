"""Populations side by side as rows: what clients hold, how much, and who is like whom.

Histograms in, numbers out. The plane that clients are drawn in is the joint t-SNE of the paper's
figures, for the eye; how far apart populations are is measured by `polyurn.comparison`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from polyurn.comparison.results import Comparison
from polyurn.counts import Counts
from polyurn.errors import ParameterError
from polyurn.report.parts import Rows
from polyurn.report.tsne import tsne

# Clients of a strip, and categories that have a colour of their own in it.
N_STRIPS, N_COLOURS = 48, 8
OTHER = "other"
# Smaller shares of a client, of categories without a colour, are put together.
_FINEST = 0.01
# Points of a curve of sizes.
_N_QUANTILES = 101
# Whose neighbours are counted.
_N_NEIGHBOURS = 10
_PERPLEXITY = 30.0
# The distances of a comparison.
MEASURES = ("content (energy)", "content (Wasserstein)", "size (Wasserstein)")


def strip_rows(
    counts: Mapping[str, NDArray[np.int64]], categories: Sequence[str], *, rng: np.random.Generator
) -> Rows:
    """What some clients of each population hold, category by category.

    The most frequent categories are themselves ("category"); all the rest are "other", still one row
    for each of a client's categories ("held"), so that a pure client can be told from a mixed one.
    Clients are in the order of their largest category, so that populations can be compared by eye.
    """
    together = sum(table.sum(axis=0) / table.sum() for table in counts.values())
    frequent = np.argsort(-np.asarray(together), kind="stable")
    rank = np.argsort(frequent)
    rows: Rows = []
    for name, table in counts.items():
        some = table[np.sort(rng.permutation(len(table))[:N_STRIPS])]
        shares = some / some.sum(axis=1, keepdims=True)
        largest = shares.argmax(axis=1)
        order = np.lexsort((-shares.max(axis=1), rank[largest]))
        for place, i in enumerate(order):
            held = frequent[shares[i, frequent] > 0]
            held = held[(shares[i, held] >= _FINEST) | (rank[held] < N_COLOURS)]
            for j in held:
                rows.append(_strip_row(name, place + 1, categories[j], int(rank[j]), shares[i, j]))
            rest = 1 - shares[i, held].sum()
            if rest > _FINEST / 10:
                rows.append(_strip_row(name, place + 1, OTHER, len(categories), rest))
    return rows


def _strip_row(population: str, client: int, held: str, rank: int, share: float) -> dict[str, Any]:
    return {
        "population": population,
        "client": client,
        "category": held if rank < N_COLOURS else OTHER,
        "held": held,
        "place": rank,
        "share": round(float(share), 4),
    }


def strip_categories(rows: Rows) -> list[str]:
    """The categories that have a colour in the strips, the most frequent first, and perhaps "other"."""
    ranks = {row["place"]: row["category"] for row in rows}
    return [*dict.fromkeys(ranks[rank] for rank in sorted(ranks))]


def population_size_rows(counts: Mapping[str, NDArray[np.int64]]) -> Rows:
    """The share of each population's clients that hold at most so many points."""
    levels = np.linspace(0, 1, _N_QUANTILES)
    return [
        {"population": name, "size": float(size), "share": float(level)}
        for name, table in counts.items()
        for size, level in zip(
            np.quantile(table.sum(axis=1), levels, method="inverted_cdf"), levels, strict=True
        )
    ]


def joint_plane(
    counts: Mapping[str, NDArray[np.int64]], *, rng: int | np.random.Generator | None = None
) -> dict[str, NDArray[np.float64]]:
    """Places of all clients in one plane, by t-SNE of their normalised histograms.

    Parameters
    ----------
    counts : mapping of name to int array of shape (n_clients, n_categories)
    rng : int or numpy.random.Generator

    Returns
    -------
    dict of name to float array of shape (n_clients, 2)

    Examples
    --------
    >>> tables = {"a": np.eye(20, dtype=int) + 1, "b": np.ones((20, 20), dtype=int)}
    >>> {name: places.shape for name, places in joint_plane(tables, rng=0).items()}
    {'a': (20, 2), 'b': (20, 2)}
    """
    together = np.concatenate([*counts.values()])
    if len(together) < 4:
        raise ParameterError(f"expected at least four clients for a plane, got {len(together)}")
    shares = together / together.sum(axis=1, keepdims=True)
    perplexity = min(_PERPLEXITY, (len(shares) - 1) / 3)
    places = tsne(shares, perplexity=perplexity, rng=rng)
    ends = np.cumsum([len(table) for table in counts.values()])[:-1]
    return dict(zip(counts, np.split(places, ends), strict=True))


def plane_rows(places: Mapping[str, NDArray[np.float64]]) -> Rows:
    """Every client's place in the plane."""
    return [
        {"population": name, "x": round(float(x), 2), "y": round(float(y), 2)}
        for name, points in places.items()
        for x, y in points
    ]


def neighbour_rows(places: Mapping[str, NDArray[np.float64]]) -> Rows:
    """Of the nearest neighbours of each population's clients in the plane, whose they are.

    Where populations are alike, every row has the shares of the populations themselves.

    Examples
    --------
    >>> apart = {"a": np.zeros((20, 2)) + [[0, 0]], "b": np.zeros((20, 2)) + [[9, 9]]}
    >>> [(r["population"], r["neighbour"], r["share"]) for r in neighbour_rows(apart)]
    [('a', 'a', 1.0), ('a', 'b', 0.0), ('b', 'a', 0.0), ('b', 'b', 1.0)]
    """
    names = [*places]
    points = np.concatenate([*places.values()])
    owner = np.repeat(np.arange(len(names)), [len(part) for part in places.values()])
    k = min(_N_NEIGHBOURS, len(points) - 1)
    _, near = cKDTree(points).query(points, k=k + 1)
    others = [row[row != i][:k] for i, row in enumerate(np.asarray(near))]
    near_owner = owner[np.array(others)]
    return [
        {
            "population": name,
            "neighbour": other,
            "share": round(float((near_owner[owner == i] == j).mean()), 4),
        }
        for i, name in enumerate(names)
        for j, other in enumerate(names)
    ]


def distance_rows(comparison: Comparison) -> Rows:
    """How far each population is from true clients, in units of the noise floor; finite ones only."""
    return [
        {"population": row.name, "measure": measure, "ratio": ratio}
        for measure, ratios in distance_ratios(comparison).items()
        for row, ratio in zip(comparison.rows, ratios, strict=True)
        if math.isfinite(ratio) and ratio > 0
    ]


def floor_rows(comparison: Comparison) -> Rows:
    """The range of 95 % of the splits of true clients, in each distance; finite ones only."""
    return [
        {"measure": measure, "low": floor.low, "high": floor.high, "one": 1}
        for measure, floor in zip(MEASURES, comparison.floors.all, strict=True)
        if math.isfinite(floor.low) and math.isfinite(floor.high)
    ]


def distance_ratios(comparison: Comparison) -> dict[str, list[float]]:
    """The ratios of all populations in each distance."""
    ratios = (
        [row.energy_ratio for row in comparison.rows],
        [row.sliced_wasserstein_ratio for row in comparison.rows],
        [row.size_ratio for row in comparison.rows],
    )
    return dict(zip(MEASURES, ratios, strict=True))


def some_clients(counts: Counts, n: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
    """At most n clients, at random, as a dense table of shape (n, n_categories)."""
    chosen = counts[np.sort(rng.permutation(counts.shape[0])[:n])]
    dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
    return np.asarray(dense, dtype=np.int64)
