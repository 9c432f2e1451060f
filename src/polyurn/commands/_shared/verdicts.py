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
    """One row per population; differences of a fraction are in points."""
    unit = ", in points" if verdict.wording.in_points else ""
    table = Table(
        title=f"{verdict.metric}{unit}: what simulated clients say about {verdict.true!r}"
    )
    table.add_column("clients")
    reference = verdict.reference
    headings = ["difference", "of means", "signed"]
    headings += [f"less {reference.population}'s"] if reference else []
    headings += ["regret", "rank corr."]
    headings += ["rounds to target"] if verdict.populations[0].rounds_to_target else []
    for heading in (*headings, "settings", "seeds", "diverged"):
        table.add_column(heading, justify="right")
    for found in verdict.populations:
        table.add_row(*_cells(verdict, found))
    missing = [f"{v.population} {v.n_missing}" for v in verdict.populations if v.n_missing]
    if missing:
        table.caption = f"runs without a counterpart, left out: {', '.join(missing)}"
    return table


def _cells(verdict: Verdict, found: PopulationVerdict) -> list[str]:
    """What the table says about one population."""
    name, reference = found.population, verdict.reference
    scale = 100.0 if verdict.wording.in_points else 1.0
    cells = [
        f"{name}\n(noise floor)" if name == AGAIN else name,
        _two_lines(found.difference, scale),
        _number(found.difference_of_means, scale),
        _two_lines(found.signed, scale, sign="+"),
    ]
    if reference is not None:
        less = Estimate(math.nan, math.nan, math.nan)
        if found is not reference:
            less = verdict.paired(name, reference.population)
        cells.append(_two_lines(less, scale, sign="+"))
    cells += [_two_lines(found.regret, scale), _two_lines(found.rank_correlation, 1.0)]
    if found.rounds_to_target is not None:
        apart = _two_lines(found.rounds_to_target, 1.0)
        cells.append(f"{apart}\nreached {found.n_reached} | {found.n_reached_true}")
    diverged = f"{found.n_diverged} | {found.n_diverged_true}"
    return [*cells, str(found.n_settings), str(found.n_seeds), diverged]


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
    return f"{value}\n({low} to {high})"


def _number(value: float, scale: float, *, sign: str = "") -> str:
    return "–" if math.isnan(value) else f"{scale * value:{sign}.2f}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
