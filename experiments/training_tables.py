"""Training on true and on simulated clients: how the experiments of section 4.2 are run and reported.

Each experiment says who the clients are, what is trained and which bars were set before its runs; here
the runs are kept in results/<name>/ (`sweep` resumes there), and tables, bars and curves are made from
what is kept. What is found is written in docs/results.md, not here.

A run scores the mean of the last half of its evaluations. All differences are in points, per cent of
accuracy; intervals are Student's t over seeds, 95 %.
"""

import argparse
import json
import math
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.errors import PolyurnError
from polyurn.training.losses import PerExample, accuracy

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import RESULTS
from training_clients import Clients, differences

FOLDER = Path(os.environ.get("POLYURN_DATA", Path(__file__).parents[2] / "shared" / "data"))
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
FINAL_SEEDS = range(500, 506)  # nothing was tuned on these: the designs and the bars came first
LAST = 0.5  # the share of a run's evaluations that its score is the mean of
POINTS = 100.0
COLOURS = {
    "true": "#222222",
    "again": "#999999",
    "mdm": "#1b9e77",
    "mdm route": "#1b9e77",
    "mdm destination": "#8fd3bd",
    "mdm income": "#1b9e77",
    "mdm race": "#8fd3bd",
    "oracle route": "#7570b3",
    "oracle destination": "#bcb9dc",
    "oracle income": "#7570b3",
    "oracle race": "#bcb9dc",
    "iid": "#d95f02",
    "iid proxy": "#e6ab02",
    "dirichlet 0.1": "#a6761d",
    "dirichlet 0.5": "#e7298a",
}


# ------------------------------------------------------------------------------------ running


@dataclass(frozen=True, eq=False)
class Experiment:
    """One sweep: what every run shares, what is varied, and on whose clients."""

    name: str
    settings: pu.FedAvg
    grid: Mapping[str, Sequence[Any]]
    model: Any
    data: pu.Examples
    populations: Mapping[str, Clients]
    metrics: Mapping[str, PerExample] = field(default_factory=lambda: {"accuracy": accuracy})
    engine: str = "auto"


def run(experiment: Experiment, *, seeds: Sequence[int], out: Path, **facts: Any) -> None:
    """Run what is missing, one run at a time so that processor seconds are those of this process.

    `sweep` trains the true clients again in other cohorts, as the population "again".
    """
    kept = Kept(out, experiment.name)
    data, populations = experiment.data, experiment.populations
    if "differ" not in kept.facts:
        facts["differ"] = {
            name: differences(clients(seeds[0]), data.labels, data.features)
            for name, clients in populations.items()
        }

    def ended(progress: Any) -> None:
        print(f"\r{progress.n_done} of {progress.n_total} runs", end="", file=sys.stderr)
        if progress.run is not None:  # a start that finds nothing to do costs nothing
            kept.write(**facts)

    pu.sweep(
        experiment.settings,
        experiment.model,
        data,
        populations=populations,
        grid=experiment.grid,
        seeds=list(seeds),
        folder=out / experiment.name,
        n_jobs=1,
        metrics=experiment.metrics,
        engine=experiment.engine,
        on_run=ended,
    )
    print(file=sys.stderr)


class Kept:
    """What is kept of an experiment beside its runs, in results/<name>.json.

    The processor seconds are those of all starts, up to the last run that each ended.
    """

    def __init__(self, out: Path, name: str) -> None:
        self.path = out / f"{name}.json"
        self.facts: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self._before = self.facts.get("processor_seconds", 0.0)
        self._n_starts = self.facts.get("n_starts", 0)
        self._started = time.process_time()

    def write(self, **facts: Any) -> None:
        """Keep these facts, and the time until now."""
        self.facts |= {
            "made": {"polyurn": pu.__version__, "command": shlex.join(["python", *sys.argv])},
            "n_starts": self._n_starts + 1,
            "processor_seconds": round(self._before + time.process_time() - self._started, 1),
            **facts,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        half = self.path.with_suffix(".half")
        half.write_text(json.dumps(self.facts, indent=1) + "\n")
        half.replace(self.path)


# ---------------------------------------------------------------------------------- reporting


@dataclass(frozen=True)
class Bar:
    """What was asked of a figure before the runs: at least, at most.

    `figure` is a function of the verdict, in the unit in which the bar is set.
    """

    said: str
    figure: Callable[[Any], float]
    least: float = -math.inf
    most: float = math.inf

    @property
    def asked(self) -> str:
        if math.isinf(self.most):
            return f"≥ {self.least:g}"
        if math.isinf(self.least):
            return f"≤ {self.most:g}"
        return f"{self.least:g} to {self.most:g}"

    def row(self, verdict: Any) -> str:
        """The row of the table of bars: met or missed is computed."""
        found = self.figure(verdict)
        met = "met" if self.least <= found <= self.most else "missed"
        return f"| {self.said} | {self.asked} | {found:.2f} | {met} |"


def difference_bar(population: str, **limits: float) -> Bar:
    """Of the mean absolute difference from the true clients."""
    return Bar(
        f"{population}, absolute difference",
        lambda verdict: POINTS * verdict[population].difference.value,
        **limits,
    )


def regret_bar(population: str, **limits: float) -> Bar:
    """Of what is lost by choosing on these clients."""
    return Bar(
        f"{population}, regret", lambda verdict: POINTS * verdict[population].regret.value, **limits
    )


def nearer_bar(first: str, second: str, **limits: float) -> Bar:
    """Of the lower end of how much nearer the second is than the first, paired by seed."""
    return Bar(
        f"{first} − {second}, lower end of the interval",
        lambda verdict: POINTS * verdict.paired(first, second).low,
        **limits,
    )


@dataclass(frozen=True)
class Report:
    """What is printed about an experiment.

    Attributes
    ----------
    name, title : str
    references : tuple of str
        The populations that all others are held against, pair by pair.
    settings : tuple of str
        What the table of signed differences has a row for; it is the mean over all other settings.
    x : str
        The setting along the curves.
    panels : tuple of str
    metrics : mapping of str to str
        The tests, in words.
    bars : tuple of Bar
        About the first of the metrics.
    paper : mapping of str to float
        The paper's differences, in points.
    """

    name: str
    title: str
    references: tuple[str, ...]
    settings: tuple[str, ...] = ("local_epochs", "local_learning_rate")
    x: str = "local_learning_rate"
    panels: tuple[str, ...] = ("local_epochs",)
    metrics: Mapping[str, str] = field(default_factory=lambda: {"accuracy": ""})
    bars: tuple[Bar, ...] = ()
    paper: Mapping[str, float] = field(default_factory=dict)


def lines(report: Report, out: Path = RESULTS) -> Iterator[str]:
    """The tables of an experiment in Markdown, from what is kept."""
    runs = pu.read_runs(out / report.name)
    verdicts = {name: pu.compare_sweeps(runs, metric=name, last=LAST) for name in report.metrics}
    yield from _extent(report, out, verdicts)
    for name, words in report.metrics.items():
        if words:
            yield from ("", f"{words.capitalize()}:")
        yield from _populations(verdicts[name], report.paper if name == "accuracy" else {})
        for reference in report.references:
            yield from _pairs(verdicts[name], reference)
        yield from _signed(verdicts[name], report.settings)
    yield from _bars(report, next(iter(verdicts.values())))


def summary(report: Report, out: Path = RESULTS) -> Iterator[str]:
    """The short form for docs/results.md: the first of the tests, without pairs and single settings."""
    metric = next(iter(report.metrics))
    verdict = pu.compare_sweeps(pu.read_runs(out / report.name), metric=metric, last=LAST)
    seeds = sorted(verdict.scores["true"])
    yield f"{len(seeds)} seeds, {len(verdict.scores['true'][seeds[0]])} settings:"
    yield from ("", "| clients | absolute difference | signed | regret |", "|---|---|---|---|")
    for row in verdict.populations:
        cells = [_points(row.difference), f"{POINTS * row.signed.value:+.2f}"]
        cells.append(f"{POINTS * row.regret.value:.2f}")
        yield f"| {row.population} | {' | '.join(cells)} |"
    yield from _bars(report, verdict)


def _bars(report: Report, verdict: Any) -> Iterator[str]:
    if report.bars:
        yield from ("", "| asked before the runs | bar | found | |", "|---|---|---|---|")
        yield from (bar.row(verdict) for bar in report.bars)


def _extent(report: Report, out: Path, verdicts: Mapping[str, Any]) -> Iterator[str]:
    """How many seeds and settings, how long it took, and how many components were chosen."""
    scores = next(iter(verdicts.values())).scores
    seeds = sorted(scores["true"])
    n_settings = len(scores["true"][seeds[0]])
    facts = json.loads((out / f"{report.name}.json").read_text())
    starts = "one start" if facts["n_starts"] == 1 else f"{facts['n_starts']} starts"
    yield (
        f"{report.title}: {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}), {n_settings} settings, "
        f"{facts['processor_seconds']:.0f} processor seconds in {starts}."
    )
    chosen: dict[str, Counter[int]] = {}
    for path in sorted((out / f"{report.name}_mdm").glob("*.json")):
        feature = path.name.rsplit("_", 1)[0]
        chosen.setdefault(feature, Counter())[pu.load(path).n_components] += 1
    for feature, found in chosen.items():
        counted = ", ".join(f"{k} ({n} of {found.total()})" for k, n in sorted(found.items()))
        yield f"Components chosen for {feature}: {counted}."
    if "embedding_seconds" in facts:
        yield f"The pictures were embedded once, in {facts['embedding_seconds']:.0f} processor seconds."
    yield from ("", "| how much clients differ (1 is IID) | labels | rest |", "|---|---|---|")
    for population, found in facts["differ"].items():
        yield f"| {population} | {found['labels']:.2f} | {found['rest']:.2f} |"


def _populations(verdict: Any, paper: Mapping[str, float]) -> Iterator[str]:
    heading = (
        "| clients | absolute difference | of seed means | signed | regret | rank corr. of means |"
    )
    yield from ("", heading + (" paper |" if paper else ""), "|---" * (7 if paper else 6) + "|")
    for row in verdict.populations:
        cells = [
            _points(row.difference),
            f"{POINTS * row.difference_of_means:.2f}",
            _points(row.signed, "+.2f"),
            _points(row.regret),
            f"{row.rank_correlation_of_means:.2f}",
        ]
        if paper:
            cells.append(f"{paper[row.population]:.1f}" if row.population in paper else "–")
        yield f"| {row.population} | {' | '.join(cells)} |"


def _pairs(verdict: Any, reference: str) -> Iterator[str]:
    yield from ("", "| paired by seed | absolute difference | regret |", "|---|---|---|")
    for row in verdict.populations:
        if row.population != reference:
            cells = [
                _points(verdict.paired(row.population, reference, of=of), "+.2f")
                for of in ("difference", "regret")
            ]
            yield f"| {row.population} − {reference} | {' | '.join(cells)} |"


def _signed(verdict: Any, settings: Sequence[str]) -> Iterator[str]:
    """How far each population is above the true clients, over the other settings and the seeds."""
    means = {name: _means(found, settings) for name, found in verdict.scores.items()}
    true = means.pop("true")
    yield from ("", f"| {', '.join(map(_words, settings))} | true, % | {' | '.join(means)} |")
    yield "|---|---|" + "---|" * len(means)
    for key, score in sorted(true.items()):
        cells = [f"{POINTS * (found[key] - score):+.1f}" for found in means.values()]
        values = ", ".join(f"{value:g}" for value in key)
        yield f"| {values} | {POINTS * score:.1f} | {' | '.join(cells)} |"


def _means(
    scores: Mapping[int, Mapping[str, float]], settings: Sequence[str]
) -> dict[tuple[Any, ...], float]:
    """The mean score over seeds and all other settings, for each combination of these."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for by_settings in scores.values():
        for key, score in by_settings.items():
            record = json.loads(key)
            found.setdefault(tuple(record[name] for name in settings), []).append(score)
    return {key: float(np.mean(values)) for key, values in found.items()}


def _points(estimate: Any, spec: str = ".2f") -> str:
    scaled = (POINTS * value for value in (estimate.value, estimate.low, estimate.high))
    return format(type(estimate)(*scaled), spec)


def _words(setting: str) -> str:
    return setting.removeprefix("local_").replace("_", " ")


def draw(report: Report, out: Path = RESULTS) -> Path:
    """Accuracy against one setting, a panel for each combination of others; means over seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    verdict = pu.compare_sweeps(pu.read_runs(out / report.name), last=LAST)
    means = {
        name: _means(found, (*report.panels, report.x)) for name, found in verdict.scores.items()
    }
    keys = sorted({key[:-1] for key in means["true"]})
    figure, axes = plt.subplots(
        1, len(keys), figsize=(2.6 * len(keys) + 1.6, 3.4), sharey=True, squeeze=False
    )
    for axis, key in zip(axes[0], keys, strict=True):
        for population, found in means.items():
            points = sorted((k[-1], score) for k, score in found.items() if k[:-1] == key)
            style = {"ls": ":", "lw": 2.5, "zorder": 5} if population == "true" else {"lw": 1.4}
            axis.plot(
                *zip(*points, strict=True), marker=".", c=COLOURS.get(population),
                label=population, **style,
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_xlabel(_words(report.x))
        said = (f"{_words(name)} {value:g}" for name, value in zip(report.panels, key, strict=True))
        axis.set_title(", ".join(said), fontsize=9)
    axes[0][0].set_ylabel("test accuracy")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=4, fontsize=8)
    figure.tight_layout(rect=(0, 0.2, 1, 1))
    folder = PICTURES if out == RESULTS else out  # a trial leaves the documentation as it is
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.name}.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def show(report: Report, out: Path) -> None:
    """Print the tables and draw the curves."""
    print("\n".join(lines(report, out)), end="\n\n")
    draw(report, out)


# --------------------------------------------------------------------------- the command line


def arguments(
    description: str, *, seeds: range = FINAL_SEEDS, full: bool = False, cases: Sequence[str] = ()
) -> argparse.Namespace:
    """What every experiment is told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--draw", action="store_true", help="only tables and curves, from records")
    parser.add_argument(
        "--seeds",
        type=_range,
        default=seeds,
        metavar="FIRST:END",
        help=f"by default {seeds.start}:{seeds.stop}, on which nothing was tuned",
    )
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="where records are kept; results/ by default"
    )
    if cases:
        parser.add_argument("--only", choices=cases, nargs="+", default=cases)
    if full:
        parser.add_argument("--full", action="store_true", help="the paper's size; hours or days")
    return parser.parse_args()


def _range(text: str) -> range:
    first, _, end = text.partition(":")
    if not (first.isdecimal() and end.isdecimal() and int(first) < int(end)):
        raise argparse.ArgumentTypeError(f"expected FIRST:END as 500:506, got {text}")
    return range(int(first), int(end))


def or_exit(main: Callable[[], None]) -> None:
    """Run an experiment; a file or a package that is not there is said in one line."""
    try:
        main()
    except PolyurnError as error:
        raise SystemExit(f"error: {error}") from error
