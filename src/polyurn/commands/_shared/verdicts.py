"""The verdict of a sweep at the terminal: as a table, or as JSON.

What the verdict is, is `sweeps/verdict.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from polyurn.commands._shared.console import print_json, say, show
from polyurn.storage.run_log import RunRecord, read_runs
from polyurn.sweeps.verdict import Verdict, compare_sweeps


def compare_runs(
    folder: Path, *, true: str = "true", metric: str = "accuracy", as_json: bool = False
) -> None:
    """Print the verdict of a sweep's folder."""
    print_verdict(compare_sweeps(read_runs(folder), true=true, metric=metric), as_json=as_json)


def conclude(
    runs: Sequence[RunRecord], *, true: str = "true", metric: str = "accuracy", as_json: bool
) -> None:
    """Print the verdict of a sweep that just ended; say so if there is nothing to compare."""
    populations = {run.population for run in runs if not run.pruned}
    if true in populations and len(populations) > 1:
        print_verdict(compare_sweeps(runs, true=true, metric=metric), as_json=as_json)
        return
    say(f"no verdict: it takes runs on {true!r} and on another population")
    if as_json:
        print_json(verdict_record(Verdict(true, metric, ())))


def print_verdict(verdict: Verdict, *, as_json: bool) -> None:
    """The verdict as the command's result."""
    if as_json:
        print_json(verdict_record(verdict))
    else:
        show(verdict_table(verdict))


def verdict_table(verdict: Verdict) -> Table:
    """One row per population."""
    table = Table(title=f"{verdict.metric}: what simulated clients say about {verdict.true!r}")
    table.add_column("clients")
    for heading in ("difference", "rank correlation", "regret", "settings", "seeds", "diverged"):
        table.add_column(heading, justify="right")
    for found in verdict.populations:
        table.add_row(
            found.population,
            f"{found.difference:.2%}",
            f"{found.rank_correlation:.3f}",
            f"{found.regret:.2%}",
            str(found.n_settings),
            str(found.n_seeds),
            f"{found.n_diverged} | {found.n_diverged_true}",
        )
    missing = [f"{v.population} {v.n_missing}" for v in verdict.populations if v.n_missing]
    if missing:
        table.caption = f"runs without a counterpart, left out: {', '.join(missing)}"
    return table


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """The verdict, for JSON; what is not defined is null."""
    record: dict[str, Any] = _without_nan(asdict(verdict))
    return record


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
