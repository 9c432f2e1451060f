"""Progress of a fit, a selection, a sweep or a packing: a bar on a terminal, lines when piped.

Each is a context manager that yields a function to call after every round or run. The command itself
shows the result.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table

import polyurn as pu
from polyurn.wording import counted, ranges

if TYPE_CHECKING:
    from polyurn.storage.packing import Packed
    from polyurn.sweeps.grid import SweepProgress
    from polyurn.sweeps.trainable import EndedRun

_PIPED_LINES = 20  # the most lines of progress without a terminal
_PRIVATE_ROUNDS = 12  # the most rounds of a fit with a guarantee
_STARTING, _NOISED = "looking where to start,", "with noise, about"


@contextlib.contextmanager
def learning_progress(
    console: Console, n_rounds: int, selects: bool, private: bool,
    then: Callable[["pu.Round"], None] | None = None,
) -> Iterator[Callable[["pu.Round"], None]]:  # fmt: skip
    """A function that shows each round of a fit or a selection, and first passes it to `then`."""
    if selects and not private:
        with selection_progress(console) as on_round:
            yield on_round
        return
    previous = float("nan")

    def line(done: "pu.Round") -> str:
        nonlocal previous
        if math.isnan(done.log_likelihood):
            doing = _NOISED if private else _STARTING
            return f"round {done.number}, {doing} {counted(done.n_clients or 0, 'client')}"
        change = done.log_likelihood - previous
        previous = done.log_likelihood
        step = "" if math.isnan(change) else f" ({change:+.2e})"
        return f"round {done.number}, log-likelihood {done.log_likelihood:.4f}{step}"

    columns = MofNCompleteColumn(), _text(), TimeRemainingColumn()
    total = _PRIVATE_ROUNDS if private else n_rounds
    with _shown(console, "asking the clients", total, *columns) as show:

        def on_fitted(done: "pu.Round") -> None:
            if then is not None:
                then(done)  # first, so that Ctrl-C never loses a round that was shown
            text = line(done)
            show(math.isnan(done.log_likelihood), text, advance=1, description=text)

        yield on_fitted


@contextlib.contextmanager
def selection_progress(console: Console) -> Iterator[Callable[["pu.Round"], None]]:
    """A function that shows each round of a selection: all K at once, or a line a stage when piped."""
    show = _by_stage(console)

    def on_round(done: "pu.Round") -> None:
        which = ranges(done.running) if done.running else ""
        climbing = f"climbing: K = {which}" if which else "done"
        what = climbing if done.values else _STARTING[:-1]
        show(what, f"round {done.number}, {what}, {counted(done.n_clients or 0, 'client')}")

    if not console.is_terminal:
        yield on_round
        return

    with Live(console=console, transient=True) as live:

        def on_round_live(done: "pu.Round") -> None:
            clients = counted(done.n_clients or 0, "fitted client")
            table = Table(title=f"round {done.number}, {clients}")
            for heading in ("K", "log-likelihood", ""):
                table.add_column(heading, justify="right")
            for k, value in done.values.items():
                table.add_row(str(k), f"{value:.4f}", "climbing" if k in done.running else "done")
            live.update(table)

        yield on_round_live


@contextlib.contextmanager
def sweep_progress(console: Console) -> Iterator[Callable[["SweepProgress"], None]]:
    """A function that shows each run as it ends, and the time left: a bar, or lines when piped."""
    with _shown(console, "training", None, MofNCompleteColumn(), _text()) as show:

        def on_run(done: "SweepProgress") -> None:
            left = None if done.seconds_left is None else _long(done.seconds_left)
            if done.run is None:
                n_left = counted(done.n_total - done.n_done, "run")
                text = line = "training" if left is None else f"{n_left} will take about {left}"
            else:
                of_left, text = f" ({left} left)" if left else "", _line(done.run)
                line = f"run {done.n_done} of {done.n_total}{of_left}: {text}"
                text += of_left
            show(_part(done.n_done, done.n_total), line, completed=done.n_done, total=done.n_total,
                 description=text)  # fmt: skip

        yield on_run


@contextlib.contextmanager
def packing_progress(console: Console) -> Iterator[Callable[["Packed"], None]]:
    """A function that shows each shard as it is written: a bar of rows, or lines when piped."""
    with _shown(console, "reading", None, _text(), TimeRemainingColumn()) as show:

        def on_shard(done: "Packed") -> None:
            clients, total = counted(done.n_clients, "client"), done.total_rows
            part = _part(done.n_rows, total) if total else done.n_shards // 2
            of = f" of {total:,}" if total else ""
            show(part, f"{done.n_rows:,}{of} rows, {clients}", completed=done.n_rows, total=total,
                 description=f"{clients}, {counted(done.n_shards, 'shard')}")  # fmt: skip

        yield on_shard


@contextlib.contextmanager
def drawing_progress(console: Console, n_clients: int) -> Iterator[Callable[[int], None]]:
    """A function that shows how many clients have been drawn: a bar, or lines when piped."""
    columns = MofNCompleteColumn(), TimeRemainingColumn()
    with _shown(console, "drawing", n_clients, *columns) as show:

        def on_file(n_drawn: int) -> None:
            line = f"{n_drawn:,} of {counted(n_clients, 'client')}"
            show(_part(n_drawn, n_clients), line, completed=n_drawn)

        yield on_file


@contextlib.contextmanager
def _shown(
    console: Console, begin: str, total: int | None, *columns: ProgressColumn
) -> Iterator[Callable[..., None]]:
    """A function of the stage and a line, for a pipe, and of what a bar shows."""
    if not console.is_terminal:
        show = _by_stage(console)
        yield lambda stage, line, **_: show(stage, line)
        return
    with Bar(BarColumn(bar_width=24), *columns, console=console) as bar:
        task = bar.add_task(begin, total=total)
        yield lambda _stage, _line, **shown: bar.update(task, **shown)


def _by_stage(console: Console) -> Callable[[object, str], None]:
    """A function of a stage and a line, which it shows where the stage is not the last one."""
    last: list[object] = []

    def show(stage: object, text: str) -> None:
        if last != [stage]:
            console.out(text, highlight=False)
        last[:] = [stage]

    return show


def _part(n_done: int, n_total: int) -> int:
    """The stage of long work without a terminal: how many of its equal parts are done."""
    return n_done * _PIPED_LINES // n_total


def _text() -> TextColumn:
    return TextColumn("{task.description}", markup=False)


def _long(seconds: float) -> str:
    """A remaining time: hours, minutes and seconds; and days, if any."""
    days = seconds / 86_400
    return f"{days:,.0f} days" if days >= 2 else str(timedelta(seconds=math.ceil(seconds)))


def _line(run: "EndedRun") -> str:
    if isinstance(run, pu.FailedRun):
        return f"{run.population}, seed {run.seed}: failed: {run.error}"
    scores = (f"{name} {value:.4f}" for name, value in run.final.items() if value is not None)
    outcome = f"diverged at round {run.diverged_at}" if run.diverged else ", ".join(scores)
    return f"{run.population}, seed {run.seed}: {outcome}{' (cut short)' if run.pruned else ''}"
