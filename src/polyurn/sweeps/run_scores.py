"""The score of a run, and measures of simulated against true scores.

A score is the mean of a run's last evaluations; a run that diverged has a substitute.

A single evaluation depends on the cohort before it. With the mean of the last half, the true clients
differ less from themselves (`experiments/which_score.py`). `verdict.py` interprets the scores.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from polyurn.errors import ParameterError
from polyurn.storage.run_log import FinishedRun
from polyurn.typed.declared import Floats

LOSS = "loss"  # the test loss of the runs, the only metric of which less is better
LAST = 0.5  # the share of the evaluations, the last ones, whose mean is the score
# The population of the noise floor: the true clients in another order, so that cohorts differ.
AGAIN = "again"


def base_of(population: str) -> str:
    """The population whose mixture this one's is as plausible as; itself for all others.

    >>> base_of("mdm~2"), base_of("mdm")
    ('mdm', 'mdm')
    """
    base, _, number = population.rpartition("~")
    return base if base and number.isdecimal() else population


@dataclass(frozen=True)
class RunScore:
    """The score of a run, in the metric's own direction; `reached` is its first round at the target."""

    value: float
    diverged: bool
    reached: int | None = None


# population → seed → settings as a text → score
Scores = dict[str, dict[int, dict[str, RunScore]]]


def score_runs(
    runs: Iterable[FinishedRun],
    metric: str,
    *,
    last: float = LAST,
    target: float | None = None,
) -> Scores:
    """The scores of runs by population, seed and settings; see `compare_sweeps`."""
    whole = [run for run in runs if not run.pruned]
    values = [score(run, metric, last=last) for run in whole]
    worst = worst_score([value for value in values if value is not None], metric)
    scores: Scores = {}
    for run, value in zip(whole, values, strict=True):
        reached = None if target is None else round_reached(run, metric, target)
        by_seed = scores.setdefault(run.population, {}).setdefault(run.seed, {})
        key = json.dumps(dict(run.settings), sort_keys=True)
        by_seed[key] = RunScore(worst if value is None else value, value is None, reached)
    return scores


def score(run: FinishedRun, metric: str, *, last: float = LAST) -> float | None:
    """The mean of a run's last evaluations; None if it diverged.

    A run counts as diverged, too, where one of them is not a finite number. `last` is the share of the
    evaluations, rounded up, and at least one.
    """
    curve = _curve(run, metric)
    # 0.07 of 100 evaluations are seven, not eight, although 0.07 * 100 is a little more.
    n = max(1, math.ceil(last * len(curve) - 1e-9))
    values = [value for value in curve[-n:] if value is not None and math.isfinite(value)]
    if run.diverged or len(values) < n:
        return None
    return math.fsum(values) / n


def worst_score(values: Iterable[float], metric: str) -> float:
    """The score of a run that diverged, beside the others' scores: see `compare_sweeps`."""
    values = [direction(metric) * value for value in values]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if metric != LOSS and low >= 0:
        return 0.0
    return direction(metric) * (low - (high - low or 1.0))


def round_reached(run: FinishedRun, metric: str, target: float) -> int | None:
    """The first evaluated round at the target; None without one, or if the run diverged."""
    sign = direction(metric)
    if run.diverged:
        return None
    for position, value in zip(run.rounds, _curve(run, metric), strict=False):
        if value is not None and sign * value >= sign * target:
            return position
    return None


def direction(metric: str) -> int:
    """1 if more of the metric is better, -1 if less is."""
    return -1 if metric == LOSS else 1


def _curve(run: FinishedRun, metric: str) -> Sequence[float | None]:
    if metric == LOSS:
        return run.loss
    if metric not in run.metrics:
        known = ", ".join([*run.metrics, LOSS])
        raise ParameterError(f"runs have no metric {metric!r}; expected {known}")
    return run.metrics[metric]


# ------------------------------------------------------------------------ simulated against true


def mean_difference(a: Floats, b: Floats) -> float:
    """The mean over settings of |a - b|; NaN without any."""
    return float(np.abs(a - b).mean()) if len(a) else math.nan


def rounds_apart(pairs: Iterable[tuple[RunScore, RunScore]]) -> float:
    """The mean over settings of the rounds between both reaching the target; NaN if both never do."""
    reached = [(a.reached, b.reached) for a, b in pairs]
    apart = [abs(a - b) for a, b in reached if a is not None and b is not None]
    return float(np.mean(apart)) if apart else math.nan


def rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation; NaN where it is not defined."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    from scipy import stats  # half a second, which no other command should wait for

    return float(stats.spearmanr(a, b).statistic)


def regret(simulated: Floats, true: Floats, *, best: float | None = None) -> float:
    """The loss on the true clients from the choice that is best on the simulated ones.

    More is better here. Among equal choices the mean counts, as if one were drawn.
    """
    chosen = true[simulated == simulated.max()].mean()
    return float((true.max() if best is None else best) - chosen)
