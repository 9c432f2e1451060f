"""Simulated against true: runs with the same seed and settings side by side, and measures of them.

Scores in, numbers out. `scores.py` says what a run scores, and `verdict.py` what it all means.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.sweeps.scores import Score


@dataclass(frozen=True, eq=False)
class SeedPairs:
    """What two populations scored with the same settings under one seed.

    Attributes
    ----------
    settings : list of str, of length n_settings
    simulated, true : list of Score
    best : float
        What the best of all true runs of the seed scored, also of those without a counterpart.
    """

    settings: list[str]
    simulated: list[Score]
    true: list[Score]
    best: float

    def values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The simulated and the true scores, each of shape (n_settings,)."""
        a, b = ([one.value for one in part] for part in (self.simulated, self.true))
        return np.array(a), np.array(b)


def pair(
    simulated: Mapping[int, Mapping[str, Score]],
    true: Mapping[int, Mapping[str, Score]],
    *,
    sign: int,
) -> tuple[list[SeedPairs], int]:
    """The pairs of each seed that has any, and the number of runs without a counterpart.

    Parameters
    ----------
    simulated, true : mapping of seed to settings to Score
    sign : {1, -1}
        Whether more of the metric is better, or less.
    """
    found, n_missing = [], 0
    for seed in sorted(set(simulated) | set(true)):
        here, there = simulated.get(seed, {}), true.get(seed, {})
        n_missing += len(set(here) ^ set(there))
        common = sorted(set(here) & set(there))
        if common:
            best = sign * max(sign * one.value for one in there.values())
            found.append(
                SeedPairs(common, [here[s] for s in common], [there[s] for s in common], best)
            )
    return found, n_missing


def mean_scores(pairs: list[SeedPairs]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The scores of each setting, averaged over the seeds that both populations have it under.

    Returns
    -------
    float arrays of shape (n_settings,)
        Simulated and true.
    """
    sums: dict[str, list[tuple[float, float]]] = {}
    for one in pairs:
        for key, a, b in zip(one.settings, one.simulated, one.true, strict=True):
            sums.setdefault(key, []).append((a.value, b.value))
    means = np.array([np.mean(values, axis=0) for values in sums.values()]).reshape(-1, 2)
    return means[:, 0], means[:, 1]


def mean_difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The mean over settings of |a - b|; NaN without any.

    Examples
    --------
    >>> mean_difference(np.array([0.5, 0.25]), np.array([0.25, 0.5]))
    0.25
    """
    return float(np.abs(a - b).mean()) if len(a) else math.nan


def rounds_apart(pairs: SeedPairs) -> float:
    """How many rounds apart both reach the target, mean over settings; NaN where never both do."""
    apart = [
        abs(a.reached - b.reached)
        for a, b in zip(pairs.simulated, pairs.true, strict=True)
        if a.reached is not None and b.reached is not None
    ]
    return float(np.mean(apart)) if apart else math.nan


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's rank correlation; NaN where it is not defined."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    from scipy import stats  # half a second, which no other command should wait for

    return float(stats.spearmanr(a, b).statistic)


def regret(
    simulated: NDArray[np.float64], true: NDArray[np.float64], *, best: float | None = None
) -> float:
    """What is lost on the true clients by the choice that looks best on the simulated ones.

    More is better here. Among equal choices the mean counts, as if one were drawn.

    Examples
    --------
    >>> regret(np.array([0.5, 0.9, 0.9]), np.array([0.8, 0.7, 0.5])).__round__(3)
    0.2
    """
    chosen = true[simulated == simulated.max()].mean()
    return float((true.max() if best is None else best) - chosen)
