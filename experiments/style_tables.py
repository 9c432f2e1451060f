"""Tables of the experiments on style, from what is kept: nothing is trained or drawn here.

Clients are paired by split and seed: the same initial weights and the same draws of cohorts. Differences
are in points, per cent of accuracy. *mean* is the mean over settings, ± its standard error over pairs of
split and seed; *mean abs.* is the mean over settings of the absolute value of a setting's mean
difference, which is what the bars are about; *run by run* that of single runs, noise included.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import polyurn as pu

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import RESULTS

POINTS = 100.0
LEAST_PAIRS = 6  # a population that was trained with fewer is not shown: it was stopped
Setting: TypeAlias = tuple[Any, ...]
Scores: TypeAlias = dict[str, dict[tuple[int, int], dict[Setting, float]]]

# The bars, as they were set before the runs.
MOST_ABSOLUTE, LEAST_ORACLE = 0.15, 0.6
MOST_CHANGE = 0.1
OF_DISPERSION, LEAST_TIE, MORE_THAN_AGAIN = (0.75, 1.25), 0.6, 0.05


def arguments(description: str) -> argparse.Namespace:
    """What every experiment on style is told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--show", action="store_true", help="only the tables, from records")
    return parser.parse_args()


# -------------------------------------------------------------------------------------- scores


def kept(name: str) -> list[dict[str, Any]]:
    """The records of an experiment; none if there are none."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def scores(name: str) -> Scores:
    """What each population scores under each split and seed, where all settings were run."""
    found: Scores = defaultdict(lambda: defaultdict(dict))
    for record in kept(name):
        told = record["settings"]
        cell = found[told["population"]][told["split"], told["seed"]]
        for run in record["runs"]:
            cell[told["model"], told["epochs"], run["local_learning_rate"]] = run["score"]
    n_settings = max((len(c) for cells in found.values() for c in cells.values()), default=0)
    return {
        population: whole
        for population, cells in found.items()
        if (whole := {key: cell for key, cell in cells.items() if len(cell) == n_settings})
    }


@dataclass(frozen=True, eq=False)
class Differences:
    """How far a population is above another, in points: shape (n_pairs, n_settings)."""

    settings: list[Setting]
    values: NDArray[np.float64]

    @property
    def by_setting(self) -> NDArray[np.float64]:
        return np.asarray(self.values.mean(axis=0))

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean, pairs of split and seed being independent."""
        n = len(self.values)
        return float(self.values.mean(axis=1).std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    @property
    def absolute(self) -> float:
        return float(np.abs(self.by_setting).mean())

    @property
    def run_by_run(self) -> float:
        return float(np.abs(self.values).mean())


def differences(found: Scores, population: str, reference: str) -> Differences:
    """Over the pairs of split and seed that both were trained with."""
    mine, other = found[population], found[reference]
    pairs = sorted(set(mine) & set(other))
    named = sorted({setting for pair in pairs for setting in other[pair]}, key=_order)
    values = [[POINTS * (mine[pair][s] - other[pair][s]) for s in named] for pair in pairs]
    return Differences(named, np.array(values).reshape(len(pairs), len(named)))


def _order(setting: Setting) -> tuple[bool, Setting]:
    return (setting[0] != "softmax", setting)


def _words(setting: Setting) -> str:
    model, epochs, rate = setting
    return f"{model} {epochs} ep. {rate:g}"


def table(found: Scores, reference: str, names: Mapping[str, str]) -> Iterator[str]:
    """A row for each population: each setting's difference, and what they come to."""
    shown = {
        name: differences(found, name, reference)
        for name in names
        if name in found and name != reference
    }
    settings = next(iter(shown.values())).settings
    heading = " | ".join(map(_words, settings))
    yield f"| clients | {heading} | mean | mean abs. | run by run | pairs |"
    yield "|---" * (len(settings) + 5) + "|"
    for name, each in shown.items():
        if len(each.values) < LEAST_PAIRS:
            continue
        cells = [f"{value:+.2f}" for value in each.by_setting]
        cells += [f"{each.mean:+.2f} ± {each.error:.2f}", f"{each.absolute:.2f}"]
        cells += [f"{each.run_by_run:.2f}", str(len(each.values))]
        yield f"| {names[name]} | {' | '.join(cells)} |"


def extent(found: Scores, reference: str) -> str:
    """How many splits, seeds and settings there are, and where the reference stands."""
    cells = found[reference]
    splits, seeds = sorted({pair[0] for pair in cells}), sorted({pair[1] for pair in cells})
    n_settings = len(next(iter(cells.values())))
    level = POINTS * np.mean([list(cell.values()) for cell in cells.values()])
    return (
        f"Splits {', '.join(map(str, splits))}; seeds {seeds[0]} to {seeds[-1]}; "
        f"{n_settings} settings, in the mean of which {reference} clients have {level:.1f} %."
    )


def bars(rows: Sequence[tuple[str, str, float, bool]]) -> Iterator[str]:
    """What was asked before the runs, what was found, and whether that is enough."""
    yield from ("", "| asked before the runs | bar | found | |", "|---|---|---|---|")
    for said, asked, figure, met in rows:
        yield f"| {said} | {asked} | {figure:.2f} | {'met' if met else 'missed'} |"


def looks(name: str, names: Mapping[str, str], columns: Mapping[str, str]) -> Iterator[str]:
    """How clients differ, means over the splits, under the first seed."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in kept(f"{name}_clients"):
        found[record["settings"]["population"]].append(record)
    yield from ("", f"| clients | {' | '.join(columns.values())} |")
    yield "|---" * (len(columns) + 1) + "|"
    for population, words in names.items():
        if population in found:
            cells = [_mean(found[population], column) for column in columns]
            yield f"| {words} | {' | '.join(cells)} |"


def _mean(records: list[dict[str, Any]], column: str) -> str:
    values = [record[column] for record in records if column in record]
    if not values:
        return "–"
    value = float(np.mean(values))
    return f"{value:.0f}" if column == "effective" else f"{value:.2f}"


# -------------------------------------------------------------------------------- experiments

DIGITS = {
    "again": "natural writers, again",
    "true": "the true writers",
    "iid": "IID",
    "oracle": "**label oracle** (the paper's)",
    "mdm": "label MDM",
    "style": "**label MDM and style**, 4 directions",
    "oracle style": "label oracle and style, 4 directions",
    "style 8": "label MDM and style, 8 directions",
    "private": "label MDM and style, ε = 1, 10,000 clients",
    "not private": "label MDM and style, no noise, the same 10,000 clients",
    "private style": "label MDM and style, ε = 1, other draws",
    "style redrawn": "label MDM and style, drawn again",
}


def digits() -> Iterator[str]:
    """Softmax regression and a perceptron on writers."""
    found = scores("styled_digits")
    yield from (extent(found, "natural"), "")
    yield from table(found, "natural", DIGITS)
    oracle, ours = (differences(found, name, "natural") for name in ("oracle", "style"))
    change, same = (differences(found, "private", name) for name in ("style", "not private"))
    rows = [
        (
            "label oracle, mean abs.",
            f"≥ {LEAST_ORACLE}",
            oracle.absolute,
            oracle.absolute >= LEAST_ORACLE,
        ),
        (
            "label MDM and style, mean abs.",
            f"≤ {MOST_ABSOLUTE}",
            ours.absolute,
            ours.absolute <= MOST_ABSOLUTE,
        ),
        (
            f"ε = 1 and 10,000 clients instead of no noise, mean (± {change.error:.2f})",
            f"within {MOST_CHANGE}",
            change.mean,
            abs(change.mean) < MOST_CHANGE,
        ),
        (
            f"ε = 1 instead of no noise, 10,000 clients, mean (± {same.error:.2f})",
            f"within {MOST_CHANGE}",
            same.mean,
            abs(same.mean) < MOST_CHANGE,
        ),
    ]
    yield from bars(rows)
    yield from _changes(found)
    columns = {
        "labels": "labels", "rest": "features", "by label": "features by label",
        "distinct": "share of the proxy data in use", "effective": "effective sample size",
        "directions": "directions",
    }  # fmt: skip
    named = {"natural": "natural writers", **{k: v for k, v in DIGITS.items() if k != "again"}}
    yield from looks("styled_digits", named, columns)


def _changes(found: Scores) -> Iterator[str]:
    """What noise changes, and what drawing again does, setting by setting."""
    said = {"private": "ε = 1 instead of no noise, the same 10,000 clients"}
    yield ""
    yield from table(found, "not private", said)
    said = {
        "private": "ε = 1 and 10,000 clients instead of no noise",
        "not private": "10,000 clients, no noise: other points, nothing else",
    }
    yield ""
    yield from table(found, "style", said)


CENSUS = {
    "true again": "the true clients, again",
    "natural": "natural clients of the proxy data",
    "iid": "IID",
    "oracle": "**label oracle** (the paper's)",
    "mdm": "label MDM",
    "style": "**label MDM and tied style**, 8 client directions",
    "common style": "the same, of columns that are not rare",
    "principal style": "label MDM and tied style, 8 principal directions",
    "untied style": "label MDM and style that is not tied, 8 client directions",
}


def census() -> Iterator[str]:
    """PUMAs whose label and style go together."""
    found = scores("styled_census")
    yield from (extent(found, "true"), "")
    yield from table(found, "true", CENSUS)
    ours, again = (differences(found, name, "true") for name in ("style", "true again"))
    seen: dict[str, dict[str, float]] = defaultdict(dict)
    for population in ("true", "style"):
        mine = [
            record
            for record in kept("styled_census_clients")
            if record["settings"]["population"] == population
        ]
        for column in ("rest", "tie"):
            seen[population][column] = float(np.mean([record[column] for record in mine]))
    ratio = seen["style"]["rest"] / seen["true"]["rest"]
    low, high = OF_DISPERSION
    most = again.absolute + MORE_THAN_AGAIN
    rows = [
        (
            "dispersion of features, of the true one",
            f"{low} to {high}",
            ratio,
            low <= ratio <= high,
        ),
        (
            "label-style correlation",
            f"≥ {LEAST_TIE}",
            seen["style"]["tie"],
            seen["style"]["tie"] >= LEAST_TIE,
        ),
        ("label MDM and style, mean abs.", f"≤ {most:.2f}", ours.absolute, ours.absolute <= most),
    ]
    yield from bars(rows)
    columns = {
        "labels": "labels", "rest": "features", "by label": "features by label",
        "tie": "label-style correlation", "effective": "effective sample size",
    }  # fmt: skip
    named = {"true": "the true clients", **{k: v for k, v in CENSUS.items() if k != "true again"}}
    yield from looks("styled_census", named, columns)


def network() -> Iterator[str]:
    """A convolutional network on writers."""
    found = scores("styled_network")
    yield from (extent(found, "natural"), "")
    yield from table(found, "natural", DIGITS)
    oracle, ours = (differences(found, name, "natural") for name in ("oracle", "style 8"))
    most = oracle.absolute / 2
    said = "label MDM and style, 8 directions, mean abs."
    yield from bars(
        [(said, f"≤ {most:.2f}, half the oracle's", ours.absolute, ours.absolute <= most)]
    )


FLIGHTS = {
    "again": "the true clients, again",
    "mdm route": "MDM of the route, crossed by hand",
    "oracle route": "oracle of the route",
    "oracle destination": "**label oracle** (the paper's)",
    "mdm destination": "label MDM",
    "style": "label MDM and style of air time and hour, 2 directions",
    "style of all columns": "**label MDM and style of all 62 columns**, 8 directions",
    "iid": "IID",
}


def flights() -> Iterator[str]:
    """Aeroplanes: a style against a feature that was crossed by hand."""
    verdict = flights_verdict()
    yield "| clients | absolute difference | of seed means | signed |"
    yield "|---|---|---|---|"
    for name, words in FLIGHTS.items():
        row = verdict[name]
        cells = (
            _points(row.difference),
            f"{POINTS * row.difference_of_means:.2f}",
            _points(row.signed, "+.2f"),
        )
        yield f"| {words} | {' | '.join(cells)} |"
    by_hand = POINTS * verdict["mdm route"].difference.value
    rows = []
    for name in ("style", "style of all columns"):
        value = POINTS * verdict[name].difference.value
        said = f"{FLIGHTS[name].replace('*', '')}, absolute difference"
        rows.append((said, f"≤ {by_hand:.2f}, the route's", value, value <= by_hand))
    yield from bars(rows)
    yield from ("", "| paired by seed | absolute difference |", "|---|---|")
    for name in ("style", "style of all columns"):
        for other in ("mdm route", "mdm destination"):
            said = f"{name} − {other}"
            yield f"| {said} | {_points(verdict.paired(name, other), '+.2f')} |"


def flights_verdict() -> Any:
    """The runs of `flights_by_plane.py` and those with a style, against the true aeroplanes."""
    runs = [*pu.read_runs(RESULTS / "flights"), *pu.read_runs(RESULTS / "styled_flights")]
    return pu.compare_sweeps(runs, last=0.5)


def _points(estimate: Any, spec: str = ".2f") -> str:
    scaled = (POINTS * value for value in (estimate.value, estimate.low, estimate.high))
    return format(type(estimate)(*scaled), spec)


# ------------------------------------------------------------------------------------- summary


def summary() -> Iterator[str]:
    """The paper's oracle beside ours, mean absolute differences from what each is compared with."""
    yield "| clients and model | compared with | IID | paper's oracle | ours | the same, again |"
    yield "|---|---|---|---|---|---|"
    yield _line("digits by writer, softmax and perceptron", "styled_digits", "natural", "style")
    yield _line("digits by writer, convolutional network", "styled_network", "natural", "style 8")
    yield _line("census persons by PUMA", "styled_census", "true", "style", "true again")
    verdict = flights_verdict()
    names = ("iid", "oracle destination", "style of all columns", "again")
    cells = [f"{POINTS * verdict[name].difference_of_means:.2f}" for name in names]
    yield f"| flights by aeroplane | true clients | {' | '.join(cells)} |"


def _line(words: str, name: str, reference: str, ours: str, again: str = "again") -> str:
    found = scores(name)
    cells = [
        f"{differences(found, one, reference).absolute:.2f}" if one in found else "–"
        for one in ("iid", "oracle", ours, again)
    ]
    said = {"natural": "natural clients of the proxy data", "true": "true clients"}[reference]
    return f"| {words} | {said} | {' | '.join(cells)} |"


def every_bar() -> Iterator[str]:
    """The bars of all four experiments."""
    yield from ("| experiment | asked before the runs | bar | found | |", "|---|---|---|---|---|")
    for words, made in (
        ("digits", digits), ("network", network), ("census", census), ("flights", flights),
    ):  # fmt: skip
        for line in made():
            if line.endswith(("| met |", "| missed |")):
                yield f"| {words} {line}"


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "digits": digits,
    "network": network,
    "census": census,
    "flights": flights,
    "summary": summary,
    "bars": every_bar,
}
