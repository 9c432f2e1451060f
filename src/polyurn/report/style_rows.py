"""A style as rows: what its directions carry and look like, how a pool serves it, and the forecast.

Numbers only; what is drawn of them is `style_charts.py`, and how they are said `style_sections.py`.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.model.style import Style
from polyurn.report.parts import Rows
from polyurn.report.style_material import Pool, StyledClients
from polyurn.sweeps.results import Verdict

# What the three covariances are called: B, V and E.
PARTS = ("shared by a client’s labels", "own to a client and label", "within a client and label")
# Where along a direction points are shown, in standard deviations of the pool.
PLACES = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
# Clients that are shown: one of 20 lies beyond the first and the last.
QUANTILES = (0.05, 0.5, 0.95)
# Labels whose points are shown, points of a client, features of a direction, and labels of a chart.
N_LABELS, N_POINTS, N_FEATURES, MOST_LABELS = 5, 10, 6, 24
# A normal interval of 95 %.
_NORMAL = 1.96
# Points of a label among which the nearest are looked for: enough to have some everywhere.
_N_SEARCHED = 20_000


def direction_rows(style: Style) -> Rows:
    """The variance of each direction in its three parts, with intervals where errors are known.

    "share" is the part's share of the clients' differences, tr(B + V); 0 for what varies within
    a client and label.
    """
    total = float(np.trace(style.shared + style.by_label))
    kept = style.errors
    errors = (None,) * 3 if kept is None else (kept.shared, kept.by_label, kept.within)
    matrices = (style.shared, style.by_label, style.within)
    rows: Rows = []
    for k in range(style.n_directions):
        for part, matrix, error in zip(PARTS, matrices, errors, strict=True):
            value = float(matrix[k, k])
            spread = None if error is None else float(error[k, k])
            rows.append(
                {
                    "direction": str(k + 1),
                    "part": part,
                    "variance": value,
                    "error": spread,
                    "low": value - _NORMAL * (spread or 0.0),
                    "high": value + _NORMAL * (spread or 0.0),
                    "share": value / total if part != PARTS[-1] and total > 0 else 0.0,
                }
            )
    return rows


def loading_rows(style: Style, names: Sequence[str], pool: Pool | None) -> Rows:
    """The features that move most along each direction.

    By how much a feature moves for one standard deviation of the direction, the mean over labels: the
    columns of P W_l^(1/2). With a pool it is in standard deviations of the feature within labels, else
    in the feature's own unit.
    """
    space = style.space
    roots = np.linalg.inv(space.whitening).mean(axis=0)
    moves = space.basis @ roots
    if pool is not None:
        spread = _spread_within_labels(pool, space.n_labels)
        moves = moves / np.where(spread > 0, spread, 1.0)[:, None]
    rows: Rows = []
    for k in range(style.n_directions):
        most = np.argsort(-np.abs(moves[:, k]), kind="stable")[:N_FEATURES]
        rows += [
            {"direction": str(k + 1), "feature": names[j], "moves": float(moves[j, k])}
            for j in most
        ]
    return rows


def shown_labels(pool: Pool, n_labels: int) -> list[int]:
    """The labels that most of the pool's points have, in their order."""
    frequent = np.argsort(-np.bincount(pool.labels, minlength=n_labels), kind="stable")
    there = [int(label) for label in frequent[:N_LABELS] if (pool.labels == label).any()]
    return sorted(there)


def points_along(pool: Pool, label: int, direction: int) -> NDArray[np.int64]:
    """The points of a label nearest to places along a direction, and to 0 in the others.

    Returns
    -------
    int array of shape (n_places,)
    """
    mine = np.flatnonzero(pool.labels == label)
    mine = mine[:: max(1, len(mine) // _N_SEARCHED)]
    targets = np.zeros((len(PLACES), pool.coordinates.shape[1]))
    targets[:, direction] = PLACES
    near = pool.coordinates[mine]
    squared = ((near[None] - targets[:, None]) ** 2).sum(axis=2)
    return np.asarray(mine[squared.argmin(axis=1)])


def clients_along(styled: StyledClients, pool: Pool, direction: int) -> Rows:
    """Simulated clients from one end of a direction to the other, with some points of each.

    A client's place is the mean coordinate of its points; a row has the client at a quantile of these,
    and its points of as many labels as there are, in the order of labels.
    """
    parts = styled.clients
    along = pool.coordinates[parts.indices, direction]
    means = np.bincount(parts.clients, weights=along, minlength=len(parts)) / parts.sizes
    order = np.argsort(means, kind="stable")
    rows: Rows = []
    for quantile in QUANTILES:
        client = int(order[round(quantile * (len(order) - 1))])
        rows.append(
            {
                "client": client,
                "place": float(means[client]),
                "points": _of_many_labels(parts[client], pool.labels),
            }
        )
    return rows


def serving_rows(styled: StyledClients, pool: Pool, names: Sequence[str]) -> Rows:
    """For each label that clients ask for: what they ask for, and what the pool has in their style."""
    parts, served = styled.clients, styled.style
    used = np.bincount(pool.labels[np.unique(parts.indices)], minlength=len(names))
    held = parts.histograms(pool.labels, len(names))
    rows: Rows = []
    for label, name in enumerate(names):
        asking = held[held[:, label] > 0, label]
        if len(asking):
            rows.append(
                {
                    "label": name,
                    "asked": float(asking.mean()),
                    "median": float(served.effective_median[label]),
                    "low": float(served.effective_low[label]),
                    "available": int(styled.report.available[label]),
                    "used": int(used[label]),
                }
            )
    return rows


def worst_served(rows: Rows) -> Rows:
    """At most 24 labels: those with the fewest points for what is asked, in their own order."""
    known = [row for row in rows if not np.isnan(row["low"])]
    worst = sorted(known, key=lambda row: row["low"] / row["asked"])[:MOST_LABELS]
    return [row for row in known if row in worst]


def forecast_rows(verdict: Verdict, styled: Collection[str]) -> Rows:
    """How much each population's clients promise too much, with its interval over seeds.

    `styled` are the populations whose clients have a style.
    """
    scale = 100 if verdict.wording.in_points else 1
    rows: list[dict[str, Any]] = []
    for found in verdict.populations:
        if not found.n_seeds:
            continue
        signed = found.signed
        known = not np.isnan([signed.low, signed.high]).any()
        low, high = (signed.low, signed.high) if known else (signed.value, signed.value)
        rows.append(
            {
                "population": found.population,
                "style": "with style" if found.population in styled else "without style",
                "off": scale * signed.value,
                "low": scale * low,
                "high": scale * high,
                "difference": scale * found.difference.value,
            }
        )
    return rows


def floor_rows(verdict: Verdict) -> Rows:
    """How far the true clients trained again are from themselves, on either side of 0."""
    if verdict.floor is None or not verdict.floor.n_seeds:
        return []
    size = verdict.floor.difference.value * (100 if verdict.wording.in_points else 1)
    return [{"low": -size, "high": size}]


def _of_many_labels(points: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Some of a client's points: one of each label first, then a second of each."""
    mine = labels[points]
    order = np.argsort(mine, kind="stable")
    sorted_labels = mine[order]
    starts = np.flatnonzero(np.r_[True, sorted_labels[1:] != sorted_labels[:-1]])
    turn = np.arange(len(points)) - np.repeat(starts, np.diff(np.r_[starts, len(points)]))
    some = order[np.lexsort((sorted_labels, turn))][:N_POINTS]
    return np.asarray(points[some[np.argsort(mine[some], kind="stable")]])


def _spread_within_labels(pool: Pool, n_labels: int) -> NDArray[np.float64]:
    some = slice(None, None, max(1, len(pool.features) // _N_SEARCHED))
    rows = pool.features[some].reshape(len(pool.features[some]), -1)
    labels = pool.labels[some]
    sums = np.zeros((n_labels, rows.shape[1]))
    np.add.at(sums, labels, rows)
    means = sums / np.maximum(np.bincount(labels, minlength=n_labels), 1)[:, None]
    residuals = rows - means[labels]
    return np.asarray(np.sqrt((residuals**2).mean(axis=0)))
