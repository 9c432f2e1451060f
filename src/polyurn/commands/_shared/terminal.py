"""How results look: tables, records and progress for a terminal, a pipe or a machine.

Builds what commands print, and shows progress on the console that it is given; computes nothing that
a user would want from Python.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from polyurn.comparison.results import Comparison
from polyurn.model.mdm import MDM
from polyurn.server.results import Candidate, Fit, Progress, Round, Selection

PIPED_LINES = 20  # of progress, at the most, where there is no terminal


@contextlib.contextmanager
def progress(
    console: Console, n_rounds: int, then: Callable[[Round], None] | None = None
) -> Iterator[Callable[[Round], None]]:
    """A function that shows each round as it ends: a bar on a terminal, lines when piped."""
    previous = float("nan")

    def line(done: Round) -> str:
        nonlocal previous
        if np.isnan(done.log_likelihood):
            return f"round {done.number}, looking where to start, {done.n_clients:,} clients"
        change = done.log_likelihood - previous
        previous = done.log_likelihood
        step = "" if np.isnan(change) else f" ({change:+.2e})"
        return f"round {done.number}, log-likelihood {done.log_likelihood:.4f}{step}"

    if not console.is_terminal:
        every = max(1, n_rounds // PIPED_LINES)

        def on_round(done: Round) -> None:
            if then is not None:
                then(done)  # first, so that Ctrl-C never loses a round that was shown
            text = line(done)
            if done.number % every == 0:
                console.out(text, highlight=False)

        yield on_round
        return

    bar = Bar(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        console=console,
    )
    with bar:
        task = bar.add_task("asking the clients", total=n_rounds)

        def on_round_bar(done: Round) -> None:
            if then is not None:
                then(done)
            bar.update(task, advance=1, description=line(done))

        yield on_round_bar


@contextlib.contextmanager
def selection_progress(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A function that shows each round of a selection: all K at once, or a line when piped."""

    def cells(done: Progress) -> list[tuple[str, str, str]]:
        return [
            (str(k), f"{value:.4f}", "climbing" if k in done.running else "done")
            for k, value in done.values.items()
        ]

    if not console.is_terminal:

        def on_round(done: Progress) -> None:
            values = ", ".join(f"K={k} {value}" for k, value, _ in cells(done))
            what = values or f"looking where to start, {done.n_clients:,} clients"
            console.out(f"round {done.number}: {what}", highlight=False)

        yield on_round
        return

    with Live(console=console, transient=True) as live:

        def on_round_live(done: Progress) -> None:
            table = Table(title=f"round {done.number}, {done.n_clients:,} fitted clients")
            for heading in ("K", "log-likelihood", ""):
                table.add_column(heading, justify="right")
            for row in cells(done):
                table.add_row(*row)
            live.update(table)

        yield on_round_live


def selection_table(choice: Selection) -> Table:
    """One row per number of components; the chosen one is marked."""
    table = Table(title=f"held-out log-likelihood per client ({choice.n_held_out:,} clients)")
    if any(c.outdone for c in choice.candidates):
        table.caption = (
            "outdone: ended early, behind fewer components by more than it could still gain"
        )
    for heading in ("K", "mean ± s.e.", "behind the best ± s.e.", "rounds", "parameters", ""):
        table.add_column(heading, justify="right")
    for c in choice.candidates:
        table.add_row(
            str(c.n_components),
            f"{c.log_likelihood:.4f} ± {c.standard_error:.4f}",
            f"{c.behind:.4f} ± {c.behind_error:.4f}",
            str(c.n_rounds),
            str(c.n_parameters),
            _state(c, choice),
        )
    return table


def _state(candidate: Candidate, choice: Selection) -> str:
    """What became of a candidate, in a word or two."""
    if candidate.outdone:
        return "outdone"
    words = ["chosen"] if candidate.n_components == choice.n_components else []
    return ", ".join(words + ([] if candidate.converged else ["unfinished"]))


def selection_sentences(choice: Selection) -> list[str]:
    """What there is to say about a selection besides its table."""
    said = [f"{choice.n_components} components, by {choice.n_held_out:,} held-out clients"]
    if choice.unfinished:
        said.append(choice.stopped)
    if choice.skipped:
        which = ", ".join(map(str, choice.skipped))
        said.append(f"left out K = {which}: there are not as many clients to fit")
    return said + _component_sentences(choice.chosen)


def fit_sentences(done: Fit) -> list[str]:
    """What there is to say about a fit besides its parameters."""
    return [f"{done.n_rounds} rounds; {done.stopped}", *_component_sentences(done)]


def _component_sentences(done: Fit | Candidate) -> list[str]:
    said = []
    if done.n_dropped:
        said.append(
            f"dropped {done.n_dropped} components that were left with less than half a client"
        )
    if done.multinomial:
        which = ", ".join(str(k + 1) for k in done.multinomial)
        said.append(f"plain multinomials (concentration at the cap): component {which}")
    return said


def mdm_record(mdm: MDM, categories: tuple[str, ...] | None) -> dict[str, Any]:
    """The parameters, for JSON."""
    return {
        "n_components": mdm.n_components,
        "n_categories": mdm.n_categories,
        "n_parameters": mdm.n_parameters,
        "max_size": mdm.max_size,
        "categories": None if categories is None else list(categories),
        "weights": mdm.weights.tolist(),
        "alphas": mdm.alphas.tolist(),
        "mean_sizes": mdm.sizes.mean().tolist(),
    }


def mdm_table(mdm: MDM, categories: tuple[str, ...] | None) -> Table:
    """One row per component."""
    names = categories or tuple(str(j) for j in range(mdm.n_categories))
    table = Table(title=f"{mdm.n_components} components, {mdm.n_categories} categories")
    for heading in ("component", "weight", "concentration α₀", "mean size"):
        table.add_column(heading, justify="right")
    table.add_column("largest categories (expected share)")
    proportions = mdm.alphas / mdm.alphas.sum(axis=1, keepdims=True)
    for k in range(mdm.n_components):
        top = np.argsort(-proportions[k], kind="stable")[:5]
        table.add_row(
            str(k + 1),
            f"{mdm.weights[k]:.3f}",
            f"{mdm.alphas[k].sum():.4g}",
            f"{mdm.sizes.mean()[k]:.1f}",
            ", ".join(f"{names[j]} {proportions[k, j]:.0%}" for j in top),
        )
    return table


def mean_record(name: str, values: np.ndarray) -> dict[str, float]:
    """A mean over clients and its standard error, for JSON."""
    spread = values.std(ddof=1) if len(values) > 1 and np.isfinite(values).all() else np.nan
    return {
        name: float(values.mean()),
        f"{name}_standard_error": float(spread / len(values) ** 0.5),
    }


def comparison_table(verdict: Comparison) -> Table:
    """One column per population, one line per measure."""
    head, *lines = zip(*verdict.table(), strict=True)
    table = Table(title=f"how alike to {verdict.n_clients:,} true clients")
    for position, name in enumerate(head):
        table.add_column(name, justify="right" if position else "left")
    for line in lines:
        table.add_row(*line)
    return table
