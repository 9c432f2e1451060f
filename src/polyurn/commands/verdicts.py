"""The verdict of a sweep at the terminal: as a table and in words, or as JSON.

`sweeps/verdict.py` computes it.
"""

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

import polyurn as pu
from polyurn.commands.console import fits, parts_that_fit, print_json, say, show, visible
from polyurn.commands.views import table_of
from polyurn.comparison.estimates import COVERAGE, Estimate
from polyurn.sweeps.choice_of_settings import keep_best
from polyurn.sweeps.run_scores import AGAIN, LAST, LOSS

# population → measure → number, interval
_Cells: TypeAlias = Mapping[str, Mapping[str, tuple[str, str]]]

# Width in columns of a terminal: longer names continue on the next line.
_NAME_WIDTH, _HEAD_WIDTH = 24, 12


def compare_runs(
    folder: Path, *, true: str = "true", metric: str = "accuracy", last: float = LAST,
    target: float | None = None, as_json: bool = False,
) -> None:  # fmt: skip
    """Print the verdict of a sweep's folder."""
    found = pu.compare_sweeps(
        pu.read_runs(folder), true=true, metric=metric, last=last, target=target
    )
    print_verdict(found, as_json=as_json)


def conclude(
    runs: Sequence[pu.FinishedRun], *, true: str = "true", metric: str | None = None, as_json: bool,
    folder: Path,
) -> None:  # fmt: skip
    """Print a sweep's verdict on each metric, and the settings by `metric`, which its folder keeps."""
    whole = [run for run in runs if not run.pruned]
    populations = {run.population for run in whole}
    metrics, verdicts = [*whole[0].metrics] or [LOSS] if whole else [], []
    if true in populations and populations - {true, AGAIN}:
        verdicts = [pu.compare_sweeps(runs, true=true, metric=name) for name in metrics]
    else:
        say(f"no verdict: it takes runs on {true!r} and on another population")
    found = pu.best_settings(runs, true=true, metric=metric or metrics[0]) if metrics else None
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
    """The verdict on each population; differences of a fraction are in points.

    It has one column per population and one line per measure. If that is wider than the terminal, it has
    one line per population, and as many tables as the measures need.
    """
    digits = 2 if verdict.wording.in_points else 3
    cells = {
        found.population: {
            name: _with_interval(measured, digits)
            for name, measured in verdict.measures(found).items()
        }
        for found in verdict.populations
    }
    tables = [_by_column(cells)]
    if not fits(tables[0]):
        parts = parts_that_fit(_names(cells), lambda measures: _by_line(cells, measures))
        tables = [_by_line(cells, measures) for measures in parts]
    unit = ", in points" if verdict.wording.in_points else ""
    tables[0].title = f"{verdict.metric}{unit}: what simulated clients say about {verdict.true!r}"
    if verdict.floor is not None:
        tables[-1].caption = f"{AGAIN}: {verdict.true} clients in other cohorts, the noise floor"
    return tables


def _by_column(cells: _Cells) -> Table:
    rows: list[tuple[str, ...]] = []
    for name in _names(cells):
        numbers, intervals = zip(*(measures[name] for measures in cells.values()), strict=True)
        rows += [(name, *numbers), *([("", *intervals)] if any(intervals) else [])]
    return table_of("", ("", *cells), rows, left=[0])


def _by_line(cells: _Cells, names: Sequence[str]) -> Table:
    table = Table()
    table.add_column("", max_width=_NAME_WIDTH, overflow="fold")
    for name in names:
        head = "\n".join(textwrap.wrap(visible(name), _HEAD_WIDTH))
        table.add_column(Text(head), justify="right", overflow="fold")
    for population, measures in cells.items():
        texts = ("\n".join(filter(None, measures[name])) for name in names)
        table.add_row(population, *map(Text, texts))
    return table


def _names(cells: _Cells) -> list[str]:
    return [*next(iter(cells.values()))]


def verdict_json(verdict: pu.Verdict) -> dict[str, Any]:
    """The verdict, for JSON; what is not defined is null."""
    names = [found.population for found in verdict.populations]
    document = {
        "true": verdict.true,
        "metric": verdict.metric,
        "confidence": COVERAGE,
        "sentence": verdict.sentence(),
        "regret_sentence": verdict.regret_sentence(),
        "populations": [asdict(found) for found in verdict.populations],
        "pairs": [_pair(verdict, *pair) for pair in combinations(names, 2)],
    }
    finite: dict[str, Any] = json.loads(json.dumps(document), parse_constant=lambda _: None)
    return finite


def _pair(verdict: pu.Verdict, first: str, second: str) -> dict[str, Any]:
    """The first less the second, in their differences and regrets."""
    return {
        "first": first,
        "second": second,
        "difference": asdict(verdict.paired(first, second)),
        "regret": asdict(verdict.paired(first, second, of="regret")),
    }


def _with_interval(found: Estimate | str, digits: int) -> tuple[str, str]:
    """A number, and its interval if it has one; or a text."""
    if isinstance(found, str):
        return found, ""
    ends = [] if math.isnan(found.low) else [found.low, found.high]
    return _number(found.value, digits), " to ".join(_number(end, digits) for end in ends)


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"
