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
        table.add_column(found.population, justify="right")
    columns = [_measures(verdict, found) for found in verdict.populations]
    for line, (name, _) in enumerate(columns[0]):
        cells = [column[line][1] for column in columns]
        if any(cells):
            table.add_row(name, *cells)
    if verdict.floor is not None:
        table.caption = f"{AGAIN}: {verdict.true} clients in other cohorts, the noise floor"
    return table


def _measures(verdict: Verdict, found: PopulationVerdict) -> list[tuple[str, str]]:
    """What the table says about one population: lines with their names."""
    scale = 100.0 if verdict.wording.in_points else 1.0
    lines = [
        *_with_interval("difference", found.difference, scale),
        ("… of seed means", _number(found.difference_of_means, scale)),
        *_with_interval("simulated less true", found.signed, scale),
    ]
    reference = verdict.reference
    if reference is not None:
        less = Estimate(math.nan, math.nan, math.nan)
        if found is not reference:
            less = verdict.paired(found.population, reference.population)
        lines += _with_interval(f"difference less {reference.population}'s", less, scale)
    lines += _with_interval("regret", found.regret, scale)
    lines += _with_interval("rank correlation", found.rank_correlation, 1.0)
    if found.rounds_to_target is not None:
        lines += _with_interval("rounds to target", found.rounds_to_target, 1.0)
        lines.append(("reached (here|true)", f"{found.n_reached}|{found.n_reached_true}"))
    lines.append(("settings, seeds", f"{found.n_settings}, {found.n_seeds}"))
    lines.append(("diverged (here|true)", f"{found.n_diverged}|{found.n_diverged_true}"))
    if any(one.n_missing for one in verdict.populations):
        lines.append(("no counterpart", str(found.n_missing)))
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


def _with_interval(name: str, found: Estimate, scale: float) -> list[tuple[str, str]]:
    """A number, and its interval on the line below it."""
    ends = [] if math.isnan(found.low) else [found.low, found.high]
    interval = " to ".join(_number(end, scale) for end in ends)
    return [(name, _number(found.value, scale)), ("", interval)]


def _number(value: float, scale: float) -> str:
    places = 3 if scale == 1 else 2
    return "–" if math.isnan(value) else f"{round(scale * value, places) + 0.0:.{places}f}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
