"""The score of a run: the mean of its last evaluations, and what one that diverged scores instead.

A single evaluation swings with the cohort before it; by the mean of the last half, the true clients
differ less from themselves (`experiments/which_score.py`). What scores mean is `verdict.py`.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polyurn.errors import ParameterError
from polyurn.storage.run_log import RunRecord

LOSS = "loss"  # the test loss of the runs, the one metric of which less is better
LAST = 0.5  # the share of the evaluations, the last ones, that a score is the mean of
# The population of the noise floor: the true clients in another order, so that other cohorts meet.
AGAIN = "again"


@dataclass(frozen=True)
class Score:
    """What one run came to.

    Attributes
    ----------
    value : float
        In the metric's own direction.
    diverged : bool
    reached : int or None
        The first evaluated round at which it reached the target.
    """

    value: float
    diverged: bool
    reached: int | None = None


# population → seed → settings as a text → score
Scores = dict[str, dict[int, dict[str, Score]]]


def score_runs(
    runs: Iterable[RunRecord],
    metric: str,
    *,
    last: float = LAST,
    target: float | None = None,
    diverged_score: float | None = None,
) -> Scores:
    """The scores of runs by population, seed and settings; see `compare_sweeps`."""
    whole = [run for run in runs if not run.pruned]
    worst = worst_score(whole, metric, last=last) if diverged_score is None else diverged_score
    scores: Scores = {}
    for run in whole:
        value = score(run, metric, last=last)
        reached = None if target is None else round_reached(run, metric, target)
        by_seed = scores.setdefault(run.population, {}).setdefault(run.seed, {})
        by_seed[settings_key(run)] = Score(
            worst if value is None else value, value is None, reached
        )
    return scores


def settings_key(run: RunRecord) -> str:
    """The settings of a run as a text."""
    return json.dumps(run.settings.to_record(), sort_keys=True)


def score(run: RunRecord, metric: str, *, last: float = LAST) -> float | None:
    """The mean of a run's last evaluations; None if it diverged.

    A run counts as diverged, too, where one of them is not a finite number.

    Parameters
    ----------
    run : RunRecord
    metric : str
    last : float
        The share of the evaluations, rounded up, and at least one.

    Examples
    --------
    >>> from polyurn.training.settings import FedAvg
    >>> settings = FedAvg(n_rounds=3, cohort_size=1)
    >>> curve = {"accuracy": [0.2, 0.5, 0.7]}
    >>> run = RunRecord("true", 0, settings, "workers", [1, 2, 3], [3.0, 2.0, 1.0], curve,
    ...                 {"accuracy": 0.7}, None, 0.0)
    >>> score(run, "accuracy"), score(run, "loss", last=1.0)
    (0.6, 2.0)
    """
    curve = _curve(run, metric)
    # 0.07 of 100 evaluations are seven, not eight, although 0.07 * 100 is a little more.
    n = max(1, math.ceil(last * len(curve) - 1e-9))
    values = [value for value in curve[-n:] if value is not None and math.isfinite(value)]
    if run.diverged or len(values) < n:
        return None
    return math.fsum(values) / n


def worst_score(runs: Iterable[RunRecord], metric: str, *, last: float = LAST) -> float:
    """What a run that diverged scores among these: see `compare_sweeps`."""
    whole = (run for run in runs if not run.pruned)
    found = (score(run, metric, last=last) for run in whole)
    values = [direction(metric) * value for value in found if value is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if metric != LOSS and low >= 0:
        return 0.0
    return direction(metric) * (low - (high - low or 1.0))


def round_reached(run: RunRecord, metric: str, target: float) -> int | None:
    """The first evaluated round whose metric reaches the target; None if none does, or if it diverged.

    Examples
    --------
    >>> from polyurn.training.settings import FedAvg
    >>> settings = FedAvg(n_rounds=30, cohort_size=1)
    >>> curve = {"accuracy": [0.2, 0.5, 0.7]}
    >>> run = RunRecord("true", 0, settings, "workers", [10, 20, 30], [3.0, 2.0, 1.0], curve,
    ...                 {"accuracy": 0.7}, None, 0.0)
    >>> round_reached(run, "accuracy", 0.5), round_reached(run, "loss", 1.5)
    (20, 30)
    """
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


def _curve(run: RunRecord, metric: str) -> Sequence[float | None]:
    if metric == LOSS:
        return run.loss
    if metric not in run.metrics:
        known = ", ".join([*run.metrics, LOSS])
        raise ParameterError(f"runs have no metric {metric!r}; expected {known}")
    return run.metrics[metric]
