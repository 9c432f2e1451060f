"""A sweep on the page: the metric against each hyper-parameter, simulated against true, and the verdict.

A run scores as in `polyurn.sweeps.run_scores`: the mean of its last evaluations.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np

from polyurn.comparison.estimates import Estimate, mean_and_error
from polyurn.report.charts import (
    QUIET,
    Column,
    Rows,
    chart,
    measured,
    populations,
    spec_of,
    tooltip,
)
from polyurn.report.material import Material
from polyurn.report.parts import Figure, Panel, Section, Table
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.choice_of_settings import best_settings, varied
from polyurn.sweeps.run_scores import AGAIN, LOSS, direction, score_runs
from polyurn.sweeps.verdict import Verdict
from polyurn.typed.json_form import is_finite
from polyurn.wording import capital


def sweep_section(material: Material) -> Section | None:
    """The sweep, if there are runs."""
    runs, metric = material.runs, material.metric
    if not runs:
        return None
    profiles = {name: profile_rows(runs, name, metric=metric) for name in varied(runs)}
    agreement = agreement_rows(runs, true=material.true, metric=metric)
    verdict = material.verdict
    figures = []
    if profiles:
        figures.append(_profile(metric, profiles))
    if agreement:
        figures.append(_agreement(metric, agreement, wide=len(profiles) != 1))
    if not figures and verdict is None:
        return None
    return Section(
        name="sweep",
        title="The sweep",
        lead=_lead(material),
        figures=tuple(figures),
        tables=() if verdict is None else (_verdict_table(verdict),),
    )


def _lead(material: Material) -> str:
    """The verdict, which settings to use, and what was run."""
    verdict = material.verdict
    sentences = [f"There is no verdict: {material.no_verdict}."] if material.no_verdict else []
    if verdict is not None:
        sentences += [verdict.sentence(), verdict.regret_sentence()]
    best = best_settings(material.runs, metric=material.metric, true=material.true)
    sentences += [] if best is None else [capital(f"{text}.") for text in best.sentences()]
    sentences.append("The same settings were trained on every population; true clients are dotted.")
    if verdict is not None and verdict.floor is not None:
        sentences.append(
            f"“{AGAIN}” are the true clients in other cohorts: what differs there is chance, the noise "
            "floor."
        )
    return " ".join(filter(None, sentences))


def profile_rows(runs: Sequence[FinishedRun], name: str, *, metric: str) -> Rows:
    """The score that each value of a setting reaches, on each population.

    For each seed, the best over the other settings; then the mean over seeds with its standard error.
    A diverged run scores as in `compare_sweeps`.
    """
    best: dict[tuple[str, Any], dict[int, float]] = defaultdict(dict)
    for population, seed, settings, score in _scores(runs, metric):
        by_seed = best[population, _plain(settings.get(name))]
        by_seed[seed] = max(score, by_seed.get(seed, score), key=lambda s: direction(metric) * s)
    rows: Rows = []
    for (population, value), by_seed in best.items():
        mean, error = mean_and_error([*by_seed.values()])
        error = 0.0 if math.isnan(error) else error
        rows.append(
            {
                "population": population, "value": value, "n_seeds": len(by_seed), "metric": mean,
                "low": mean - error, "high": mean + error, "error": error if len(by_seed) > 1 else None,
            }
        )  # fmt: skip
    # Numbers come before texts.
    return sorted(
        rows, key=lambda row: (row["population"], isinstance(row["value"], str), row["value"])
    )


def agreement_rows(runs: Sequence[FinishedRun], *, true: str, metric: str) -> Rows:
    """Each setting's metric on simulated clients beside the same on the true ones, mean over seeds."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    names = varied(runs)
    for population, _, settings, score in _scores(runs, metric):
        scores[population][json.dumps(settings, sort_keys=True)].append(score)
    on_true = scores.pop(true, {})
    return [
        {
            "population": population,
            "simulated": float(np.mean(by_settings[key])),
            "true": float(np.mean(on_true[key])),
            "settings": ", ".join(f"{n} {_plain(json.loads(key).get(n))}" for n in names),
        }
        for population, by_settings in scores.items()
        for key in sorted(set(by_settings) & set(on_true))
    ]


def _scores(
    runs: Sequence[FinishedRun], metric: str
) -> Iterator[tuple[str, int, dict[str, Any], float]]:
    """Population, seed, settings and score of each run that was not cut short."""
    for population, by_seed in score_runs(runs, metric).items():
        for seed, by_settings in by_seed.items():
            for settings, score in by_settings.items():
                yield population, seed, json.loads(settings), score.value


def _profile(metric: str, profiles: dict[str, Rows]) -> Figure:
    words = {name: name.replace("_", " ") for name in profiles}
    rows = [{"setting": words[name], **row} for name, mine in profiles.items() for row in mine]
    others = "; for each value, the best over the other settings" if len(profiles) > 1 else ""
    diverged = (
        "far beyond the worst as the best is from it"
        if metric == LOSS
        else "0, or beyond the worst where some are negative"
    )
    title = f"{metric.capitalize()} against each hyper-parameter"
    return Figure(
        name="profile",
        title=title,
        says=(
            "The mean of the last half of a run’s evaluations; mean over seeds with its standard "
            f"error{others}. True clients are dotted. A run that diverged counts as {diverged}."
        ),
        panels=tuple(
            Panel(_profile_chart(mine, name=words[name], metric=metric), words[name])
            for name, mine in profiles.items()
        ),
        table=Table.of(
            title,
            rows,
            [
                Column("setting"), Column("value", show="g"), Column("population"),
                Column("metric", metric, _format(metric)),
                Column("error", "standard error", _format(metric)), Column("n_seeds", "seeds"),
            ],
        ),
        wide=len(profiles) > 1,
    )  # fmt: skip


def _profile_chart(rows: Rows, *, name: str, metric: str) -> dict[str, Any]:
    """The metric against a hyper-parameter, the true clients' dotted."""
    values = sorted({row["value"] for row in rows if not isinstance(row["value"], str)})
    wide = len(values) > 2 and values[0] > 0 and values[-1] / values[0] >= 20
    scale = {"type": "log"} if wide else {"zero": False}
    x = measured(alt.X, "value", name, nice=False, padding=10, **scale)
    x = x.axis(values=values, format="~g")
    if any(isinstance(row["value"], str) for row in rows):
        x = alt.X("value:O", sort=None, title=name, axis=alt.Axis(labelAngle=0))
    base = chart(hides=True).encode(x=x, **populations(rows, "color"))
    y = measured(alt.Y, "metric", metric, _ticks(metric), zero=False)
    bands = base.mark_area(opacity=0.14).encode(
        y=measured(alt.Y, "low", metric, zero=False), y2="high:Q"
    )
    lines = base.mark_line(strokeWidth=2.5).encode(y=y, **populations(rows, "strokeDash"))
    dots = base.mark_point(size=70).encode(
        y=y, **populations(rows, "shape"),
        tooltip=tooltip(
            "population", ("value", "", name), ("metric", _format(metric), metric),
            ("n_seeds", "d", "seeds"),
        ),
    )  # fmt: skip
    return spec_of(bands + lines + dots, rows, height=300)


def _agreement(metric: str, rows: Rows, *, wide: bool) -> Figure:
    values = [value for row in rows for value in (row["simulated"], row["true"])]
    ends = [min(values), max(values)]
    scale: Any = {"domain": ends, "nice": True}
    columns = [
        Column("settings", "setting"),
        Column("population"),
        Column("simulated", "on simulated clients", _format(metric)),
        Column("true", "on true clients", _format(metric)),
    ]
    x, y = (
        measured(way, kind, f"{metric} on {kind} clients", _ticks(metric), **scale)
        for way, kind in ((alt.X, "simulated"), (alt.Y, "true"))
    )
    line = chart("ends").mark_line(color=QUIET, strokeDash=[4, 4], strokeWidth=1.5)
    dots = chart(hides=True).mark_point(size=70, opacity=0.85).encode(
        x=x, y=y, tooltip=tooltip(*columns), **populations(rows, "color", "shape")
    )  # fmt: skip
    v = alt.Scale(**scale)
    drawn = line.encode(x=alt.X("v:Q", scale=v), y=alt.Y("v:Q", scale=v)) + dots
    return Figure(
        name="agreement",
        title="Simulated against true",
        says=(
            "One mark per setting and population: on the dashed line, training on simulated clients "
            f"gives the same {metric} as training on the true ones."
        ),
        panels=(Panel(spec_of(drawn, rows, height=300, ends=[{"v": end} for end in ends])),),
        table=Table.of(
            "Simulated against true, by setting",
            rows,
            columns,
        ),
        wide=wide,
    )


def _verdict_table(verdict: Verdict) -> Table:
    found = {one.population: verdict.measures(one) for one in verdict.populations}
    rows = []
    for name in next(iter(found.values())):
        cells = [measures[name] for measures in found.values()]
        rows.append((name, *(f"{one:.2f}" if isinstance(one, Estimate) else one for one in cells)))
    named = {AGAIN: f"{AGAIN} (noise floor)"}
    return Table(
        f"The verdict: {verdict.metric} on simulated clients beside {verdict.true} ones"
        f"{', in points' if verdict.wording.in_points else ''}, with {100 * verdict.confidence:g} % "
        "intervals",
        ("", *(named.get(name, name) for name in found)),
        tuple(rows),
    )


def _ticks(metric: str) -> str:
    return "" if metric == LOSS else "~%"


def _format(metric: str) -> str:
    return ".4g" if metric == LOSS else ".2%"


def _plain(value: Any) -> Any:
    return value if is_finite(value) else str(value)
