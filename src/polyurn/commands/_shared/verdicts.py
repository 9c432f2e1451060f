"""The verdict of a sweep at the terminal: as a table and in words, or as JSON.

What the verdict is, is `sweeps/verdict.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from polyurn.commands._shared.console import print_json, say, show
from polyurn.comparison.estimates import Estimate
from polyurn.storage.run_log import RunRecord, read_runs
from polyurn.sweeps.results import PopulationVerdict, Verdict
from polyurn.sweeps.scores import AGAIN, LAST
from polyurn.sweeps.verdict import compare_sweeps


def compare_runs(
    folder: Path,
    *,
    true: str = "true",
    metric: str = "accuracy",
    last: float = LAST,
    target: float | None = None,
    as_json: bool = False,
) -> None:
    """Print the verdict of a sweep's folder."""
    runs = read_runs(folder)
    print_verdict(
        compare_sweeps(runs, true=true, metric=metric, last=last, target=target), as_json=as_json
    )


def conclude(runs: Sequence[RunRecord], *, true: str = "true", as_json: bool) -> None:
    """Print a verdict for each metric of a sweep that just ended; say so if there is none."""
    whole = [run for run in runs if not run.pruned]
    populations = {run.population for run in whole}
    verdicts = []
    if true in populations and populations - {true, AGAIN}:
        verdicts = [compare_sweeps(runs, true=true, metric=name) for name in whole[0].metrics]
    else:
        say(f"no verdict: it takes runs on {true!r} and on another population")
    if as_json:
        print_json({"verdicts": [verdict_record(verdict) for verdict in verdicts]})
        return
    for verdict in verdicts:
        print_verdict(verdict, as_json=False)


def print_verdict(verdict: Verdict, *, as_json: bool) -> None:
    """The verdict as the command's result."""
    if as_json:
        print_json(verdict_record(verdict))
        return
    show(verdict_table(verdict))
    for sentence in (verdict.sentence(), verdict.regret_sentence()):
        if sentence:
            say(sentence)


def verdict_table(verdict: Verdict) -> Table:
    """One column per population, one line per measure; differences of a fraction are in points."""
    unit = ", in points" if verdict.wording.in_points else ""
    table = Table(
        title=f"{verdict.metric}{unit}: what simulated clients say about {verdict.true!r}"
    )
    table.add_column("")
    for found in verdict.populations:
        floor = "\n(noise floor)" if found.population == AGAIN else ""
        table.add_column(f"{found.population}{floor}", justify="right")
    columns = [_measures(verdict, found) for found in verdict.populations]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    return table


def _measures(verdict: Verdict, found: PopulationVerdict) -> dict[str, str]:
    """What the table says about one population, by the name of the line."""
    scale = 100.0 if verdict.wording.in_points else 1.0
    lines = {
        "difference": _two_lines(found.difference, scale),
        "difference of seed means": _number(found.difference_of_means, scale),
        "simulated less true": _two_lines(found.signed, scale, sign="+"),
    }
    reference = verdict.reference
    if reference is not None:
        less = Estimate(math.nan, math.nan, math.nan)
        if found is not reference:
            less = verdict.paired(found.population, reference.population)
        lines[f"difference less {reference.population}'s"] = _two_lines(less, scale, sign="+")
    lines["regret"] = _two_lines(found.regret, scale)
    lines["rank correlation"] = _two_lines(found.rank_correlation, 1.0)
    if found.rounds_to_target is not None:
        lines["rounds to target, apart"] = _two_lines(found.rounds_to_target, 1.0)
        lines["reached it (here | true)"] = f"{found.n_reached} | {found.n_reached_true}"
    lines["settings, seeds"] = f"{found.n_settings}, {found.n_seeds}"
    lines["diverged (here | true)"] = f"{found.n_diverged} | {found.n_diverged_true}"
    if any(one.n_missing for one in verdict.populations):
        lines["without a counterpart"] = str(found.n_missing)
    return lines


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """The verdict, for JSON; what is not defined is null."""
    record: dict[str, Any] = _without_nan(
        {
            "true": verdict.true,
            "metric": verdict.metric,
            "confidence": verdict.confidence,
            "sentence": verdict.sentence(),
            "regret_sentence": verdict.regret_sentence(),
            "populations": [asdict(found) for found in verdict.populations],
            "pairs": [asdict(pair) for pair in verdict.pairs()],
        }
    )
    return record


def _two_lines(found: Estimate, scale: float, *, sign: str = "") -> str:
    """A number, and its interval below it."""
    value = _number(found.value, scale, sign=sign)
    if math.isnan(found.low):
        return value
    low, high = (_number(end, scale) for end in (found.low, found.high))
    return f"{value}\n{low} to {high}"


def _number(value: float, scale: float, *, sign: str = "") -> str:
    return "–" if math.isnan(value) else f"{scale * value:{sign}.2f}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
