"""The verdict of a sweep at the terminal: as a table and in words, or as JSON.

`sweeps/verdict.py` computes it.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.table import Table

import polyurn as pu
from polyurn.commands.console import print_json, say, show
from polyurn.commands.views import population_tables
from polyurn.comparison.estimates import COVERAGE, Estimate
from polyurn.sweeps.choice_of_settings import keep_best
from polyurn.sweeps.run_scores import AGAIN, LOSS
from polyurn.typed.json_form import to_json


def conclude(
    runs: Sequence[pu.FinishedRun], *, metric: str | None, as_json: bool, folder: Path
) -> None:
    """Print a sweep's verdict on each metric, and the settings by `metric`, which its folder keeps."""
    whole = [run for run in runs if not run.pruned]
    populations = {run.population for run in whole}
    metrics, verdicts = [*whole[0].metrics] or [LOSS] if whole else [], []
    if "true" in populations and populations - {"true", AGAIN}:
        verdicts = [pu.compare_sweeps(runs, metric=name) for name in metrics]
    else:
        say("no verdict: it takes runs on 'true' and on another population")
    found = pu.best_settings(runs, metric=metric or metrics[0]) if metrics else None
    if found is not None:
        keep_best(found, folder)
    if as_json:
        best = None if found is None else found.to_json()
        print_json({"verdicts": [verdict_json(verdict) for verdict in verdicts], "best": best})
        return
    for verdict in verdicts:
        print_verdict(verdict, as_json=False)
    if found is not None:
        for sentence in found.sentences():
            say(sentence)
        say(f"the settings are in {folder / 'best.json'}, and for Flower in {folder / 'best.toml'}")


def print_verdict(verdict: pu.Verdict, *, as_json: bool) -> None:
    """The verdict as the command's result."""
    if as_json:
        print_json(verdict_json(verdict))
        return
    for table in verdict_tables(verdict):
        show(table)
    for sentence in (verdict.sentence(), verdict.regret_sentence()):
        if sentence:
            say(sentence)


def verdict_tables(verdict: pu.Verdict) -> list[Table]:
    """The verdict on each population; differences of a fraction are in points."""
    digits = 2 if verdict.wording.in_points else 3
    columns = {
        found.population: {
            name: _with_interval(measured, digits)
            for name, measured in verdict.measures(found).items()
        }
        for found in verdict.populations
    }
    lines: list[tuple[str, ...]] = []
    for name in next(iter(columns.values())):
        numbers, intervals = zip(*(cells[name] for cells in columns.values()), strict=True)
        lines += [(name, *numbers), *([("", *intervals)] if any(intervals) else [])]
    unit = ", in points" if verdict.wording.in_points else ""
    title = f"{verdict.metric}{unit}: what simulated clients say about {verdict.true!r}"
    tables = population_tables(title, ("", *columns), lines)
    if verdict.floor is not None:
        tables[-1].caption = f"{AGAIN}: {verdict.true} clients in other cohorts, the noise floor"
    return tables


def verdict_json(verdict: pu.Verdict) -> dict[str, Any]:
    """The verdict, for JSON; what is not defined is null."""
    names = [found.population for found in verdict.populations]
    return {
        "true": verdict.true,
        "metric": verdict.metric,
        "confidence": COVERAGE,
        "sentence": verdict.sentence(),
        "regret_sentence": verdict.regret_sentence(),
        "populations": [to_json(found) for found in verdict.populations],
        "pairs": [_pair(verdict, *pair) for pair in combinations(names, 2)],
    }


def _pair(verdict: pu.Verdict, first: str, second: str) -> dict[str, Any]:
    """The first less the second, in their differences and regrets."""
    return {
        "first": first,
        "second": second,
        "difference": to_json(verdict.paired(first, second)),
        "regret": to_json(verdict.paired(first, second, of="regret")),
    }


def _with_interval(found: Estimate | str, digits: int) -> tuple[str, str]:
    """A number, and its interval if it has one; or a text."""
    if isinstance(found, str):
        return found, ""
    ends = [] if math.isnan(found.low) else [found.low, found.high]
    return _number(found.value, digits), " to ".join(_number(end, digits) for end in ends)


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"
