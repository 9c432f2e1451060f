"""The verdict of a sweep: does training on simulated clients predict training on the true ones?

Numbers in, numbers out: pairs of runs with the same seed and settings. What a run scores is `scores.py`;
what can be asked of a verdict is `results.py`. Nothing is trained or read here.
"""

import math
from collections.abc import Iterable, Mapping

from polyurn.comparison.estimates import Estimate, student_estimate
from polyurn.errors import ParameterError
from polyurn.storage.run_log import RunRecord
from polyurn.sweeps.pairs import (
    mean_difference,
    mean_scores,
    pair,
    rank_correlation,
    regret,
    rounds_apart,
)
from polyurn.sweeps.results import PopulationVerdict, Verdict
from polyurn.sweeps.scores import AGAIN, LAST, Score, Scores, direction, score_runs
from polyurn.typed.arguments import checked


@checked
def compare_sweeps(
    runs: Iterable[RunRecord],
    *,
    true: str = "true",
    metric: str = "accuracy",
    last: float = LAST,
    target: float | None = None,
    diverged_score: float | None = None,
    confidence: float = 0.95,
) -> Verdict:
    """Say how well each population predicts the true clients.

    Everything is computed per seed, on the settings that both populations were trained with under
    that seed, then averaged; intervals are Student's t over seeds, wide when there are few.

    Parameters
    ----------
    runs : iterable of RunRecord
        Runs that an adaptive search cut short are left out.
    true : str
        The population that the others are compared with.
    metric : str
        A larger one is better. "loss" is the runs' test loss, of which a smaller one is.
    last : float
        A run scores the mean of its last evaluations: this share of them, rounded up. One evaluation
        swings with the cohort before it.
    target : float, optional
        The metric to reach, for `rounds_to_target`. A run that diverged does not reach it.
    diverged_score : float, optional
        The metric of a run that diverged. By default 0; if a run scores less, and for the loss, as far
        beyond the worst run as the best is from it.
    confidence : float

    Examples
    --------
    >>> from polyurn.training.settings import FedAvg
    >>> def run(population, rate, score, seed):
    ...     settings = FedAvg(n_rounds=1, cohort_size=1, local_learning_rate=rate)
    ...     curve = {"accuracy": [score]}
    ...     return RunRecord(population, seed, settings, "workers", [1], [0.0], curve,
    ...                      {"accuracy": score}, None, 0.0)
    >>> table = {"true": [0.80, 0.70, 0.60], "iid": [0.81, 0.84, 0.70], "mdm": [0.79, 0.71, 0.60]}
    >>> verdict = compare_sweeps(
    ...     run(name, rate, score + 0.01 * seed, seed)
    ...     for name, scores in table.items() for seed in (0, 1)
    ...     for rate, score in zip((0.1, 0.2, 0.3), scores)
    ... )
    >>> iid = verdict["iid"]
    >>> round(iid.difference.value, 4), iid.rank_correlation.value, round(iid.regret.value, 4)
    (0.0833, 0.5, 0.1)
    >>> f"{verdict.paired('iid', 'mdm'):.1%}"
    '7.7% (7.7% to 7.7%)'
    """
    _check(last, target, diverged_score, confidence)
    scores = score_runs(runs, metric, last=last, target=target, diverged_score=diverged_score)
    if true not in scores:
        there = f"choose one of {', '.join(scores)}" if scores else "run the sweep first"
        raise ParameterError(f"no runs on the population {true!r}; {there}")
    found = [
        _population(name, scores[name], scores[true], metric, target, confidence)
        for name in scores
        if name != true
    ]
    if not found:
        raise ParameterError(f"only the population {true!r} was trained: nothing to compare")
    if not any(verdict.n_seeds for verdict in found):
        names = ", ".join(repr(verdict.population) for verdict in found)
        raise ParameterError(
            f"{names} has no run with the seed and settings of a true one; "
            "repeat the sweep with the same seeds and settings for both"
        )
    found.sort(key=lambda v: (v.population != AGAIN, v.n_seeds == 0, v.difference.value))
    return Verdict(true, metric, tuple(found), confidence, _values(scores))


def _check(
    last: float, target: float | None, diverged_score: float | None, confidence: float
) -> None:
    if not 0 < last <= 1:
        raise ParameterError(
            f"expected last as a share of the evaluations, above 0 and at most 1, got {last}"
        )
    if not 0 < confidence < 1:
        raise ParameterError(f"expected confidence between 0 and 1, got {confidence}")
    for name, value in (("target", target), ("diverged_score", diverged_score)):
        if value is not None and not math.isfinite(value):
            raise ParameterError(f"expected {name} as a finite number, got {value}")


def _population(
    name: str,
    simulated: Mapping[int, Mapping[str, Score]],
    true: Mapping[int, Mapping[str, Score]],
    metric: str,
    target: float | None,
    confidence: float,
) -> PopulationVerdict:
    sign = direction(metric)
    pairs, n_missing = pair(simulated, true, sign=sign)
    values = [one.values() for one in pairs]
    means = mean_scores(pairs)

    def over_seeds(found: Iterable[float]) -> Estimate:
        said = [value for value in found if not math.isnan(value)]
        return student_estimate(said, confidence=confidence)

    def n_of(what: str, part: str) -> int:
        scores = [one for seed in pairs for one in getattr(seed, part)]
        return sum(getattr(one, what) not in (None, False) for one in scores)

    return PopulationVerdict(
        population=name,
        n_settings=max((len(a) for a, _ in values), default=0),
        n_seeds=len(pairs),
        difference=over_seeds(mean_difference(a, b) for a, b in values),
        difference_of_means=mean_difference(*means),
        signed=over_seeds(float((a - b).mean()) for a, b in values),
        rank_correlation=_within(over_seeds(rank_correlation(a, b) for a, b in values), 1.0),
        rank_correlation_of_means=rank_correlation(*means),
        regret=over_seeds(
            regret(sign * a, sign * b, best=sign * one.best)
            for one, (a, b) in zip(pairs, values, strict=True)
        ),
        n_diverged=n_of("diverged", "simulated"),
        n_diverged_true=n_of("diverged", "true"),
        n_missing=n_missing,
        rounds_to_target=None if target is None else over_seeds(map(rounds_apart, pairs)),
        n_reached=None if target is None else n_of("reached", "simulated"),
        n_reached_true=None if target is None else n_of("reached", "true"),
    )


def _within(found: Estimate, most: float) -> Estimate:
    """The same, with an interval from -most to most at the widest: Student's knows no bounds."""
    return Estimate(found.value, max(found.low, -most), min(found.high, most))


def _values(scores: Scores) -> dict[str, dict[int, dict[str, float]]]:
    """The scores as plain numbers."""
    return {
        name: {seed: {key: one.value for key, one in by.items()} for seed, by in seeds.items()}
        for name, seeds in scores.items()
    }
