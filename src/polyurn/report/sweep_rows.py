"""The runs of a sweep as rows: the metric against each hyper-parameter, and simulated against true.

Numbers only. A run scores as in `polyurn.sweeps.scores`: the mean of its last evaluations.
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyurn.report.parts import Rows
from polyurn.storage.run_log import RunRecord
from polyurn.sweeps.scores import direction, score, settings_key, worst_score


def varied(runs: Sequence[RunRecord]) -> dict[str, list[Any]]:
    """The settings that differ between runs, and their values in order.

    Texts stand for values that are not numbers.
    """
    records = [run.settings.to_record() for run in runs]
    values: dict[str, list[Any]] = {}
    for name in records[0] if records else ():
        seen = {json.dumps(r[name], sort_keys=True): _plain(r[name]) for r in records}
        if len(seen) > 1:
            values[name] = sorted(seen.values(), key=lambda v: (isinstance(v, str), v))
    return values


def profile_rows(
    runs: Sequence[RunRecord], name: str, *, metric: str, diverged_score: float | None = None
) -> Rows:
    """The score that each value of a setting reaches, on each population.

    For each seed, the best over the other settings; then the mean over seeds with its standard error.
    With one varied setting there are no others. A diverged run scores `diverged_score`, by default as
    in `compare_sweeps`.
    """
    worst = worst_score(runs, metric) if diverged_score is None else diverged_score
    sign = direction(metric)
    best: dict[tuple[str, Any], dict[int, float]] = defaultdict(dict)
    for run in runs:
        if run.pruned:
            continue
        value = _plain(run.settings.to_record()[name])
        by_seed = best[run.population, value]
        mine = _score(run, metric, worst)
        so_far = by_seed.get(run.seed, mine)
        by_seed[run.seed] = max(mine, so_far, key=lambda found: sign * found)
    rows: Rows = []
    for (population, value), by_seed in best.items():
        mean, error = _mean([*by_seed.values()])
        rows.append(
            {
                "population": population,
                "value": value,
                "metric": mean,
                "low": mean - error,
                "high": mean + error,
                "n_seeds": len(by_seed),
            }
        )
    return sorted(rows, key=lambda r: (r["population"], isinstance(r["value"], str), r["value"]))


def agreement_rows(
    runs: Sequence[RunRecord], *, true: str, metric: str, diverged_score: float | None = None
) -> Rows:
    """Each setting's metric on simulated clients beside the same on the true ones, mean over seeds."""
    worst = worst_score(runs, metric) if diverged_score is None else diverged_score
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if not run.pruned:
            scores[run.population][settings_key(run)].append(_score(run, metric, worst))
    names, on_true = varied(runs), scores.get(true, {})
    rows: Rows = []
    for population, by_settings in scores.items():
        if population == true:
            continue
        for key in sorted(set(by_settings) & set(on_true)):
            settings = json.loads(key)
            rows.append(
                {
                    "population": population,
                    "simulated": float(np.mean(by_settings[key])),
                    "true": float(np.mean(on_true[key])),
                    "settings": ", ".join(f"{n} {_plain(settings[n])}" for n in names),
                }
            )
    return rows


def _score(run: RunRecord, metric: str, worst: float) -> float:
    value = score(run, metric)
    return worst if value is None else value


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float) else str(value)


def _mean(values: list[float]) -> tuple[float, float]:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.mean(values)), error
