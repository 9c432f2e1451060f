"""A model as rows: its components, the choice of K, and the rounds of its fit.

Numbers only; what is drawn of them is `model_charts.py` and `plots.py`.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from polyurn.model.mdm import MDM
from polyurn.model.sizes import SUM_TOLERANCE
from polyurn.report.parts import Rows
from polyurn.server.results import HALF_WIDTH, Selection, StartPath

# More lines than colours that an eye tells apart, and more columns than fit on a page.
MOST_COMPONENTS, MOST_CATEGORIES = 8, 64
_MOST_SIZES = 200
_N_LEVELS = 180  # the tenths and quarters of the table among them
_N_TELLING = 12


def summary_rows(mdm: MDM, categories: Sequence[str]) -> Rows:
    """One row per component: weight, concentration α₀, mean size and the five largest categories."""
    shares = expected_shares(mdm)
    rows = []
    for k in range(mdm.n_components):
        top = np.argsort(-shares[k], kind="stable")[:5]
        rows.append(
            {
                "component": str(k + 1),
                "weight": float(mdm.weights[k]),
                "concentration": float(mdm.alphas[k].sum()),
                "mean_size": float(mdm.sizes.mean()[k]),
                "largest": ", ".join(f"{categories[j]} {shares[k, j]:.0%}" for j in top),
            }
        )
    return rows


def profile_rows(mdm: MDM, categories: Sequence[str]) -> Rows:
    """The expected share of each category in each component, of the most frequent categories.

    Examples
    --------
    >>> from polyurn.model.sizes import Sizes
    >>> rows = profile_rows(MDM([1.0], [[1.0, 3.0]], Sizes.constant(4)), ["a", "b"])
    >>> [(row["category"], row["share"]) for row in rows]
    [('a', 0.25), ('b', 0.75)]
    """
    shares = expected_shares(mdm)
    frequent = np.argsort(-(mdm.weights @ shares), kind="stable")[:MOST_CATEGORIES]
    return [
        {"component": str(k + 1), "category": categories[j], "share": float(shares[k, j])}
        for k in range(mdm.n_components)
        for j in sorted(frequent)
    ]


def telling_rows(mdm: MDM, categories: Sequence[str]) -> Rows:
    """The categories that tell the components apart, the most telling first.

    A category's part is its term of the Jensen-Shannon divergence of the components' expected shares,
    Σ_k τ_k p_kj log(p_kj / p_j), as a share of the whole. No rows for a single component.
    """
    shares = expected_shares(mdm)
    marginal = mdm.weights @ shares
    parts = mdm.weights @ np.asarray(rel_entr(shares, marginal))
    if mdm.n_components == 1 or parts.sum() <= 0:
        return []
    most = np.argsort(-parts, kind="stable")[:_N_TELLING]
    return [
        {
            "category": categories[j],
            "component": str(k + 1),
            "share": float(shares[k, j]),
            "part": float(parts[j] / parts.sum()),
        }
        for j in most
        for k in range(min(mdm.n_components, MOST_COMPONENTS))
    ]


def size_rows(mdm: MDM) -> Rows:
    """The share of a component's clients that hold at most so many points.

    At the ends of the finer bins, so that sizes which many clients have are steps; at most `_MOST_SIZES`
    rows of a component.

    Examples
    --------
    >>> from polyurn.model.sizes import Sizes
    >>> rows = size_rows(MDM([1.0], [[1.0, 3.0]], Sizes.constant(20)))
    >>> [(row["size"], row["share"]) for row in rows]
    [(19, 0.0), (20, 1.0)]
    """
    ends = mdm.sizes.bins.fine[1:] - 1
    reached = np.cumsum(mdm.sizes.fine_masses()[:MOST_COMPONENTS], axis=1)
    return [
        {"component": str(k + 1), "size": int(ends[b]), "share": min(float(share[b]), 1.0)}
        for k, share in enumerate(reached)
        for b in _shown(share)
    ]


def candidate_rows(selection: Selection) -> Rows:
    """One row per number of components: held-out log-likelihood with its 95 % interval."""
    return [
        {
            "n_components": c.n_components,
            "log_likelihood": c.log_likelihood,
            "low": c.log_likelihood - HALF_WIDTH * c.standard_error,
            "high": c.log_likelihood + HALF_WIDTH * c.standard_error,
            "behind": c.behind,
            "behind_low": c.behind - c.behind_error,
            "behind_high": c.behind + c.behind_error,
            "behind_error": c.behind_error,
            "n_rounds": c.n_rounds,
            "n_parameters": c.n_parameters,
            "converged": c.converged,
            "outdone": c.outdone,
            "chosen": c is selection.chosen,
        }
        for c in selection.candidates
    ]


def path_rows(paths: Sequence[StartPath]) -> Rows:
    """The likelihood of every start, round by round, where it is finite.

    `winner` marks the start that ended best.

    Examples
    --------
    >>> paths = [StartPath(1, 3, (-5.0, -4.0)), StartPath(2, 3, (-6.0,))]
    >>> [(r["start"], r["round"], r["winner"]) for r in path_rows(paths)]
    [(1, 3, True), (1, 4, True), (2, 3, False)]
    """
    if not paths:
        return []
    # Likelihoods of a start that left may be those of other clients.
    last = max(path.last_round for path in paths)
    there = [path for path in paths if path.last_round == last]
    winner = max(there, key=lambda path: path.values[-1]).start
    return [
        {
            "start": path.start,
            "round": path.first_round + i,
            "log_likelihood": value,
            "winner": path.start == winner,
        }
        for path in paths
        for i, value in enumerate(path.values)
        if math.isfinite(value)
    ]


def expected_shares(mdm: MDM) -> NDArray[np.float64]:
    """E[p] of each component, shape (n_components, n_categories)."""
    return np.asarray(mdm.alphas / mdm.alphas.sum(axis=1, keepdims=True))


def _shown(reached: NDArray[np.float64]) -> NDArray[np.int64]:
    """The places at which a curve is drawn: where it rises and just before, or at so many of its levels.

    By levels, not evenly, the drawn steps are nowhere lower than the curve by more than one level, and a
    step that many clients make stays where it is.
    """
    rises = np.diff(reached, prepend=0.0) > 0
    first = max(int(np.argmax(rises)) - 1, 0)  # at 0, from where the first step rises
    last = int(np.argmax(reached >= reached[-1] - SUM_TOLERANCE))  # the rest is rounding
    places = np.append(first, np.flatnonzero(rises))
    places = np.unique(places[places <= last])
    if len(places) <= _MOST_SIZES:
        return places
    levels = np.append(np.arange(1, _N_LEVELS) / _N_LEVELS, reached[last])
    return np.unique(np.append(first, np.searchsorted(reached[: last + 1], levels)))
