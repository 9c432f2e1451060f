"""The verdict of a sweep: does tuning on simulated clients pick what wins on the true ones?

Numbers in, numbers out. A run that diverged scores 0, since a model whose weights are not numbers
classifies nothing, and below all others where some are negative. Nothing is trained or read here.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from polyurn.comparison.estimates import Estimate
from polyurn.errors import ParameterError
from polyurn.storage.run_log import RunRecord
from polyurn.typed.arguments import checked


@dataclass(frozen=True)
class PopulationVerdict:
    """How one population of simulated clients predicts the true ones.

    Attributes
    ----------
    population : str
    n_settings, n_seeds : int
        What both populations were trained with.
    difference : Estimate
        Mean over settings of |metric on these clients - metric on the true ones|: the paper's number.
    rank_correlation : Estimate
        Spearman's, over settings. Seeds with fewer than two, or where all score the same, have none
        and are left out; NaN if all are.
    regret : Estimate
        Metric lost on the true clients by choosing the settings that won on these.
    n_diverged, n_diverged_true : int
        Diverged runs among them, on these clients and on the true ones. A metric that is not a finite
        number counts as diverged.
    n_missing : int
        Runs on these or on the true clients that have no counterpart, and are left out.
    """

    population: str
    n_settings: int
    n_seeds: int
    difference: Estimate
    rank_correlation: Estimate
    regret: Estimate
    n_diverged: int
    n_diverged_true: int
    n_missing: int


@checked
@dataclass(frozen=True)
class Verdict:
    """The verdict on every population of a sweep.

    Attributes
    ----------
    true, metric : str
    populations : tuple of PopulationVerdict
        The smallest difference first; last those without a run in common with the true clients, whose
        estimates are NaN.
    """

    true: str
    metric: str
    populations: tuple[PopulationVerdict, ...]

    def __getitem__(self, population: str) -> PopulationVerdict:
        for found in self.populations:
            if found.population == population:
                return found
        raise KeyError(population)


@checked
def compare_sweeps(
    runs: Iterable[RunRecord],
    *,
    true: str = "true",
    metric: str = "accuracy",
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
        A larger one is better.
    diverged_score : float, optional
        The metric of a run that diverged. By default 0; if a run scores less, as far below the worst
        run as the best is above it.
    confidence : float

    Examples
    --------
    >>> from polyurn.training.settings import FedAvg
    >>> def run(population, rate, score):
    ...     settings = FedAvg(n_rounds=1, cohort_size=1, local_learning_rate=rate)
    ...     curve = {"accuracy": [score]}
    ...     return RunRecord(population, 0, settings, "workers", [1], [0.0], curve,
    ...                      {"accuracy": score}, None, 0.0)
    >>> verdict = compare_sweeps([
    ...     run("true", 0.1, 0.80), run("true", 0.2, 0.70), run("true", 0.3, 0.60),
    ...     run("iid", 0.1, 0.81), run("iid", 0.2, 0.84), run("iid", 0.3, 0.70),
    ... ])
    >>> iid = verdict["iid"]
    >>> round(iid.difference.value, 4), iid.rank_correlation.value, round(iid.regret.value, 4)
    (0.0833, 0.5, 0.1)
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"expected confidence between 0 and 1, got {confidence}")
    if diverged_score is not None and not math.isfinite(diverged_score):
        raise ParameterError(f"expected diverged_score as a finite number, got {diverged_score}")
    scores = _scores(runs, metric, diverged_score)
    if true not in scores:
        there = f"choose one of {', '.join(scores)}" if scores else "run the sweep first"
        raise ParameterError(f"no runs on the population {true!r}; {there}")
    found = [
        _verdict(name, scores[name], scores[true], confidence) for name in scores if name != true
    ]
    if not found:
        raise ParameterError(f"only the population {true!r} was trained: nothing to compare")
    if not any(verdict.n_seeds for verdict in found):
        names = ", ".join(repr(verdict.population) for verdict in found)
        raise ParameterError(
            f"{names} has no run with the seed and settings of a true one; "
            "repeat the sweep with the same seeds and settings for both"
        )
    return Verdict(
        true, metric, tuple(sorted(found, key=lambda v: (v.n_seeds == 0, v.difference.value)))
    )


# population → seed → settings → (score, whether the run diverged)
_Scores = dict[str, dict[int, dict[str, tuple[float, bool]]]]


def _scores(runs: Iterable[RunRecord], metric: str, diverged_score: float | None) -> _Scores:
    whole = [run for run in runs if not run.pruned]
    worst = lowest_score(whole, metric) if diverged_score is None else diverged_score
    scores: _Scores = {}
    for run in whole:
        value = score(run, metric)
        settings = json.dumps(run.settings.to_record(), sort_keys=True)
        by_seed = scores.setdefault(run.population, {}).setdefault(run.seed, {})
        by_seed[settings] = (worst, True) if value is None else (value, False)
    return scores


def score(run: RunRecord, metric: str) -> float | None:
    """The metric of a run; None if it diverged."""
    if metric not in run.final:
        raise ParameterError(f"runs have no metric {metric!r}; expected {', '.join(run.final)}")
    value = run.final[metric]
    return None if run.diverged or value is None or not math.isfinite(value) else value


def lowest_score(runs: Iterable[RunRecord], metric: str) -> float:
    """What a run that diverged scores among these: see `compare_sweeps`."""
    whole = (run for run in runs if not run.pruned)
    values = [value for run in whole if (value := score(run, metric)) is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    return 0.0 if low >= 0 else low - (high - low or 1.0)


def _verdict(
    name: str,
    simulated: Mapping[int, Mapping[str, tuple[float, bool]]],
    true: Mapping[int, Mapping[str, tuple[float, bool]]],
    confidence: float,
) -> PopulationVerdict:
    pairs, regrets, n_diverged, n_diverged_true, n_missing = [], [], 0, 0, 0
    for seed in sorted(set(simulated) | set(true)):
        n_missing += len(set(simulated.get(seed, {})) ^ set(true.get(seed, {})))
        common = sorted(set(simulated.get(seed, {})) & set(true.get(seed, {})))
        if not common:
            continue
        here, there = ([scores[seed][s] for s in common] for scores in (simulated, true))
        n_diverged += sum(diverged for _, diverged in here)
        n_diverged_true += sum(diverged for _, diverged in there)
        a, b = (np.array([score for score, _ in part]) for part in (here, there))
        pairs.append((a, b))
        best = max(score for score, _ in true[seed].values())
        regrets.append(regret(a, b, best=best))
    return PopulationVerdict(
        population=name,
        n_settings=max((len(a) for a, _ in pairs), default=0),
        n_seeds=len(pairs),
        difference=_over_seeds(pairs, lambda a, b: float(np.abs(a - b).mean()), confidence),
        rank_correlation=_over_seeds(pairs, rank_correlation, confidence),
        regret=_estimate(regrets, confidence),
        n_diverged=n_diverged,
        n_diverged_true=n_diverged_true,
        n_missing=n_missing,
    )


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

    Among equal choices the mean counts, as if one were drawn.

    Examples
    --------
    >>> regret(np.array([0.5, 0.9, 0.9]), np.array([0.8, 0.7, 0.5])).__round__(3)
    0.2
    """
    chosen = true[simulated == simulated.max()].mean()
    return float((true.max() if best is None else best) - chosen)


def _over_seeds(
    pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    statistic: Callable[[NDArray[np.float64], NDArray[np.float64]], float],
    confidence: float,
) -> Estimate:
    values = [statistic(a, b) for a, b in pairs]
    return _estimate([value for value in values if not math.isnan(value)], confidence)


def _estimate(values: Sequence[float], confidence: float) -> Estimate:
    mean = float(np.mean(values)) if values else math.nan
    if len(values) < 2:
        return Estimate(mean, math.nan, math.nan)
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * error
    return Estimate(mean, mean - reach, mean + reach)
