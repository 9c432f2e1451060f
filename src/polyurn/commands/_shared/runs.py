"""The runs of a sweep at the terminal: progress while they go on, and the verdict.

What the verdict is, is `training/verdict.py`.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from polyurn.commands._shared.console import print_json, say, show
from polyurn.commands._shared.terminal import PIPED_LINES
from polyurn.storage.run_log import RunRecord, read_runs
from polyurn.sweeps.verdict import Verdict, compare_sweeps

if TYPE_CHECKING:
    from polyurn.sweeps.grid import Progress


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


@contextlib.contextmanager
def sweep_progress(console: Console) -> Iterator[Callable[["Progress"], None]]:
    """A function that shows each run as it ends, and the time left: a bar, or lines when piped."""
    if not console.is_terminal:

        def on_run(done: "Progress") -> None:
            every = max(1, done.n_total // PIPED_LINES)
            if done.run is not None and (done.n_done % every == 0 or done.n_done == done.n_total):
                left = "" if done.seconds_left is None else f" ({_clock(done.seconds_left)} left)"
                console.out(f"run {done.n_done} of {done.n_total}{left}: {_line(done.run)}")

        yield on_run
        return

    bar = Bar(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        _TimeLeft(),
        TextColumn("{task.description}"),
        console=console,
    )
    with bar:
        task = bar.add_task("training", total=None, ends=None)

        def on_run_bar(done: "Progress") -> None:
            if done.run is None:  # runs of an earlier start say nothing about the speed of this one
                bar.reset(task, total=done.n_total, completed=done.n_done)
            else:
                left = done.seconds_left
                ends = None if left is None else time.monotonic() + left
                bar.update(task, completed=done.n_done, description=_line(done.run), ends=ends)

        yield on_run_bar


class _TimeLeft(ProgressColumn):
    """Counts down to the end that the last run foretold, however long runs take."""

    def render(self, task: Task) -> Text:
        ends = task.fields["ends"]
        left = "-:--:--" if ends is None else _clock(max(0.0, ends - time.monotonic()))
        return Text(left, style="progress.remaining")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=math.ceil(seconds)))


def run_sentence(runs: Sequence[RunRecord], folder: Path) -> str:
    """How many runs there are, and how many of them diverged or were cut short."""
    text = f"{len(runs)} runs in {folder}"
    for name, n in (
        ("diverged", sum(run.diverged for run in runs)),
        ("cut short by the search", sum(run.pruned for run in runs)),
    ):
        text += f"; {n} {name}" if n else ""
    return text


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


def _line(run: RunRecord) -> str:
    scores = ", ".join(
        f"{name} {value:.4f}" for name, value in run.final.items() if value is not None
    )
    outcome = f"diverged at round {run.diverged_at}" if run.diverged else scores
    return f"{run.population}, seed {run.seed}: {outcome}{' (cut short)' if run.pruned else ''}"
