"""Training on true and on simulated clients: what the experiments of section 4.2 share.

Each experiment says what is trained on what; here the populations are made, runs are kept in
results/<name>/ (`sweep` resumes there), and the tables and curves are made from what is kept. What is
found is written in docs/results.md, not here.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

import polyurn as pu
from polyurn.errors import PolyurnError

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import RESULTS

FOLDER = Path(os.environ.get("POLYURN_DATA", Path(__file__).parents[2] / "shared" / "data"))
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
COLOURS = {
    "true": "#222222",
    "again": "#999999",
    "iid": "#d95f02",
    "mdm": "#1b9e77",
    "oracle": "#7570b3",
}
Clients = Callable[[int], pu.Partition]  # of a seed


@dataclass(frozen=True, eq=False)
class Modelled:
    """The feature whose histograms the server learns: its category of each point, by name."""

    name: str
    codes: NDArray[np.int64]
    n_categories: int
    components: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Federation:
    """What is trained on: points, who truly holds which, and which of them the server has.

    A point may stand in `proxy` more than once, if several clients hold it.
    """

    data: pu.Examples
    true: pu.Partition
    proxy: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Experiment:
    """One sweep: what every run shares, what is varied, and the extent of it."""

    name: str
    settings: pu.FedAvg
    grid: Mapping[str, Sequence[Any]]
    model: Any
    seeds: tuple[int, ...] = (0, 1, 2)


def learned(experiment: str, federation: Federation, modelled: Modelled) -> pu.MDM:
    """The MDM of the true clients' histograms, from the file where it is kept."""
    path = RESULTS / f"{experiment}_{modelled.name}_mdm.json"
    if path.exists():
        return pu.load(path)
    counts = federation.true.histograms(modelled.codes, modelled.n_categories)
    choice = pu.select(
        pu.LocalAggregator(counts, rng=1),
        modelled.components,
        n_categories=modelled.n_categories,
        max_size=int(counts.sum(axis=1).max()),
        rng=2,
    )
    pu.save(choice.mdm, path, made={"experiment": experiment, "n_rounds": choice.n_rounds})
    return pu.load(path)


def again(federation: Federation) -> Clients:
    """The true clients in another order, so that other cohorts meet: the noise of training itself."""
    true = federation.true
    return lambda seed: pu.Partition.from_lists(
        true[i] for i in np.random.default_rng([seed, 1]).permutation(len(true))
    )


def iid(federation: Federation, modelled: Modelled) -> Clients:
    """Fully IID: a true client's size each, points from all of the proxy data."""
    marginal = np.bincount(modelled.codes[federation.proxy], minlength=modelled.n_categories)
    return _drawn(federation, modelled, pu.IID(marginal, federation.true.sizes), stream=2)


def mdm(federation: Federation, modelled: Modelled, model: pu.MDM) -> Clients:
    """As many clients as there are true ones, drawn from the MDM.

    One that asks for a category that the server has not is drawn again.
    """
    return _drawn(federation, modelled, model, stream=3, redraw=model)


def oracle(federation: Federation, modelled: Modelled, model: pu.MDM) -> Clients:
    """Conditionally IID: the true clients' own histograms.

    In another order, or the same histograms would meet in each cohort as on the true clients, which no
    other population has. One with a category that the server has not is drawn from the MDM instead.
    """
    counts = federation.true.histograms(modelled.codes, modelled.n_categories)
    return _drawn(federation, modelled, pu.Oracle(counts), stream=4, redraw=model)


def _drawn(
    federation: Federation,
    modelled: Modelled,
    population: pu.Population,
    *,
    stream: int,
    redraw: pu.MDM | None = None,
) -> Clients:
    """As many clients of a population as there are true ones, with points of the proxy data.

    One that asks for a category that the proxy data have not is drawn again from `redraw`.
    """
    codes = modelled.codes[federation.proxy]
    missing = np.bincount(codes, minlength=modelled.n_categories) == 0

    def clients(seed: int) -> pu.Partition:
        rng = np.random.default_rng([seed, stream])
        counts = population.sample(len(federation.true), rng=rng)
        if redraw is not None and (counts[:, missing] > 0).any():
            parts = pu.partition(codes, counts, shortfall="resample", population=redraw, rng=rng)
        else:
            parts = pu.partition(codes, counts, rng=rng)
        return parts.renumbered(federation.proxy)

    return clients


def differences(
    clients: pu.Partition, labels: NDArray[np.int64], features: NDArray[Any]
) -> dict[str, float]:
    """How much clients differ in their labels, and in their features given the label.

    The mean over clients of n ‖x̄_i - x̄‖² / tr Cov(x), with x the label's indicator, or the features less
    their mean over all points with that label: 1 where clients are IID, below 1 where they are more even
    than chance.
    """
    held = clients.indices
    flat = features.reshape(len(features), -1)
    rest = np.empty((len(held), flat.shape[1]))
    for label in np.unique(labels[held]):
        mine = labels[held] == label
        rest[mine] = flat[held[mine]] - flat[held[mine]].mean(axis=0)
    shown = {"labels": np.eye(int(labels.max()) + 1)[labels[held]], "rest": rest}
    return {name: _spread(values, clients.offsets[1:-1]) for name, values in shown.items()}


def _spread(values: NDArray[np.float64], ends: NDArray[np.int64]) -> float:
    centred = values - values.mean(axis=0)
    parts = np.split(centred, ends)
    squares = [len(part) * (part.mean(axis=0) ** 2).sum() for part in parts]
    return float(np.mean(squares) / (centred**2).sum(axis=1).mean())


def run_sweep(
    experiment: Experiment,
    federation: Federation,
    populations: Mapping[str, pu.Partition | Clients],
    *,
    n_jobs: int,
) -> None:
    """Run what is missing, and keep how much the clients of each population differ."""
    path = RESULTS / f"{experiment.name}_clients.json"
    if not path.exists():
        data, seed = federation.data, experiment.seeds[0]
        found = {
            name: differences(
                clients(seed) if callable(clients) else clients, data.labels, data.features
            )
            for name, clients in populations.items()
        }
        path.write_text(json.dumps(found, indent=1) + "\n")
    pu.sweep(
        experiment.settings,
        experiment.model,
        federation.data,
        populations=populations,
        grid=experiment.grid,
        seeds=experiment.seeds,
        folder=RESULTS / experiment.name,
        n_jobs=n_jobs,
        on_run=lambda p: print(f"\r{p.n_done} of {p.n_total} runs", end="", file=sys.stderr),
    )


def print_verdict(name: str, feature: str | None = None) -> None:
    """The table of the verdict, from the records."""
    runs = _runs(name, feature)
    verdict = pu.compare_sweeps(runs)
    kept = json.loads((RESULTS / f"{name}_clients.json").read_text())
    found = {_plain(key, feature): row for key, row in kept.items() if _concerns(key, feature)}
    print(
        "\n| clients | accuracy difference, % | rank correlation | regret, % | mean accuracy, % "
        "| labels | rest |"
    )
    print("|---|---|---|---|---|---|---|")
    print(f"| true | – | – | – | {_last_cells(runs, 'true', found)} |")
    for row in verdict.populations:
        cells = (
            _interval(row.difference, 100),
            _interval(row.rank_correlation),
            _interval(row.regret, 100),
            _last_cells(runs, row.population, found),
        )
        print(f"| {row.population} | {' | '.join(cells)} |")
    print(f"\nmdm is closer than iid by {_closer(runs)} %, paired by seed")


def _closer(runs: Sequence[pu.RunRecord]) -> str:
    """How much smaller the difference of mdm is than that of iid: the seeds' mean, and Student's t."""
    found = []
    for seed in sorted({run.seed for run in runs}):
        verdict = pu.compare_sweeps([run for run in runs if run.seed == seed])
        found.append(100 * (verdict["iid"].difference.value - verdict["mdm"].difference.value))
    reach = stdtrit(len(found) - 1, 0.975) * np.std(found, ddof=1) / np.sqrt(len(found))
    return f"{np.mean(found):.2f} ({np.mean(found) - reach:.2f} to {np.mean(found) + reach:.2f})"


def _last_cells(
    runs: Sequence[pu.RunRecord], population: str, found: Mapping[str, Mapping[str, float]]
) -> str:
    """The mean accuracy over settings and seeds, and how much the clients differ."""
    mean = np.mean([run.final["accuracy"] or 0.0 for run in runs if run.population == population])
    differ = found[population]
    return f"{100 * mean:.2f} | {differ['labels']:.2f} | {differ['rest']:.2f}"


def _interval(estimate: Any, scale: float = 1.0) -> str:
    mean, low, high = (scale * value for value in (estimate.value, estimate.low, estimate.high))
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def print_signed(name: str, settings: Sequence[str], feature: str | None = None) -> None:
    """How far each population is above the true clients, over the other settings and the seeds."""
    runs = _runs(name, feature)
    scores: dict[str, dict[tuple[Any, ...], list[float]]] = {}
    for run in runs:
        mine = scores.setdefault(run.population, {})
        mine.setdefault(_values(run, settings), []).append(100 * (run.final["accuracy"] or 0.0))
    means = {
        population: {key: float(np.mean(values)) for key, values in sorted(found.items())}
        for population, found in scores.items()
    }
    true = means.pop("true")
    print(f"\n| {', '.join(map(_words, settings))} | true, % | {' | '.join(means)} |")
    print("|---|---|" + "---|" * len(means))
    for key, score in true.items():
        cells = [f"{found[key] - score:+.2f}" if key in found else "–" for found in means.values()]
        print(f"| {', '.join(map(str, key))} | {score:.2f} | {' | '.join(cells)} |")


def _runs(name: str, feature: str | None) -> list[pu.RunRecord]:
    return [
        replace(run, population=_plain(run.population, feature))
        for run in pu.read_runs(RESULTS / name)
        if _concerns(run.population, feature)
    ]


def _concerns(population: str, feature: str | None) -> bool:
    """Whether a population is compared for a modelled feature: "mdm race" only for race."""
    return " " not in population or population.endswith(f" {feature}")


def _plain(population: str, feature: str | None) -> str:
    return population.removesuffix(f" {feature}")


def draw(name: str, *, x: str, panels: Sequence[str], feature: str | None = None) -> Path:
    """Accuracy against one setting, a panel for each combination of others; means over seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    runs = _runs(name, feature)
    keys = sorted({_values(run, panels) for run in runs})
    figure, axes = plt.subplots(
        1, len(keys), figsize=(2.6 * len(keys) + 0.4, 2.9), sharey=True, squeeze=False
    )
    for axis, key in zip(axes[0], keys, strict=True):
        mine = [run for run in runs if _values(run, panels) == key]
        for population, colour in COLOURS.items():
            points = _means([run for run in mine if run.population == population], x)
            if points:
                style = {"ls": ":", "lw": 2.5, "zorder": 5} if population == "true" else {"lw": 1.4}
                axis.plot(
                    *zip(*points, strict=True), marker=".", c=colour, label=population, **style
                )
        axis.set_xscale("log")
        axis.set_xlabel(_words(x))
        said = (f"{_words(panel)} {value}" for panel, value in zip(panels, key, strict=True))
        axis.set_title(", ".join(said), fontsize=9)
    axes[0][0].set_ylabel("test accuracy")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=5)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{name}{f'_{feature}' if feature else ''}.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def _values(run: pu.RunRecord, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(run.settings, name) for name in names)


def _means(runs: Sequence[pu.RunRecord], x: str) -> list[tuple[float, float]]:
    scores: dict[float, list[float]] = {}
    for run in runs:
        score = run.final["accuracy"]
        scores.setdefault(getattr(run.settings, x), []).append(0.0 if score is None else score)
    return [(value, float(np.mean(scores[value]))) for value in sorted(scores)]


def _words(setting: str) -> str:
    return setting.removeprefix("local_").replace("_", " ")


def arguments(description: str) -> argparse.Namespace:
    """What every experiment is told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--full", action="store_true", help="the paper's size; hours or days")
    parser.add_argument("--draw", action="store_true", help="only tables and curves, from records")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    return parser.parse_args()


def or_exit(main: Callable[[], None]) -> None:
    """Run an experiment; a file that is not there is said in one line."""
    try:
        main()
    except PolyurnError as error:
        raise SystemExit(f"error: {error}") from error
