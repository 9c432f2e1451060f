"""The section about the sweep: the metric against each hyper-parameter, and the verdict.

What is computed for it is `sweep_rows.py`; how it looks is `sweep_charts.py`.
"""

import math
from typing import Any

from polyurn.comparison.estimates import Estimate
from polyurn.report import sweep_charts
from polyurn.report.headline import sweep_verdict
from polyurn.report.material import Material
from polyurn.report.parts import DataTable, Figure, Panel, Rows, Section, table_of
from polyurn.report.sweep_rows import agreement_rows, profile_rows, varied
from polyurn.sweeps.results import PopulationVerdict, Verdict
from polyurn.sweeps.scores import AGAIN, LOSS


def sweep_section(material: Material) -> Section | None:
    """The sweep, if there are runs."""
    runs = material.runs
    if not runs:
        return None
    names = varied(runs)
    panels, rows = [], []
    agreement = agreement_rows(runs, true=material.true, metric=material.metric)
    for name in names:
        mine = profile_rows(runs, name, metric=material.metric)
        words = name.replace("_", " ")
        panels.append(
            Panel(sweep_charts.sweep_chart(mine, name=words, metric=material.metric), words)
        )
        rows += [(words, row) for row in mine]
    figures = []
    if panels:
        figures.append(_profile(material, tuple(panels), rows))
    if agreement:
        figures.append(_agreement(material, agreement, wide=len(panels) != 1))
    verdict = sweep_verdict(material)
    tables = () if verdict is None else (_verdict_table(verdict),)
    if not figures and not tables:
        return None
    return Section(
        name="sweep",
        title="The sweep",
        lead=_lead(verdict),
        figures=tuple(figures),
        tables=tables,
    )


def _lead(verdict: Verdict | None) -> str:
    text = "The same settings were trained on every population; true clients are dotted."
    if verdict is None:
        return text
    if verdict.floor is not None:
        text += (
            f" “{AGAIN}” are the true clients in other cohorts: what differs there is chance, the noise "
            "floor."
        )
    return " ".join(part for part in (text, verdict.sentence(), verdict.regret_sentence()) if part)


def _profile(
    material: Material, panels: tuple[Panel, ...], rows: list[tuple[str, dict[str, Any]]]
) -> Figure:
    others = "; for each value, the best over the other settings" if len(panels) > 1 else ""
    return Figure(
        name="profile",
        title=f"{material.metric.capitalize()} against each hyper-parameter",
        says=(
            "The mean of the last half of a run’s evaluations; mean over seeds with its standard "
            f"error{others}. True clients are dotted. {_diverged(material.metric)}"
        ),
        panels=panels,
        table=table_of(
            f"{material.metric.capitalize()} against each hyper-parameter",
            ("setting", "value", "population", material.metric, "standard error", "seeds"),
            (
                (
                    name,
                    f"{row['value']:g}" if not isinstance(row["value"], str) else row["value"],
                    row["population"],
                    _value(material, row["metric"]),
                    _value(material, row["high"] - row["metric"]) if row["n_seeds"] > 1 else "–",
                    str(row["n_seeds"]),
                )
                for name, row in rows
            ),
        ),
        wide=len(panels) > 1,
    )


def _diverged(metric: str) -> str:
    """What a run that diverged counts as: see `worst_score`."""
    if metric == LOSS:
        return "A run that diverged counts as far beyond the worst as the best is from it."
    return "A run that diverged counts as 0, or beyond the worst where some are negative."


def _agreement(material: Material, rows: Rows, *, wide: bool) -> Figure:
    return Figure(
        name="agreement",
        title="Simulated against true",
        says=(
            "One mark per setting and population: on the dashed line, training on simulated clients "
            f"gives the same {material.metric} as training on the true ones."
        ),
        panels=(Panel(sweep_charts.agreement_chart(rows, metric=material.metric)),),
        table=table_of(
            "Simulated against true, by setting",
            ("setting", "population", "on simulated clients", "on true clients"),
            (
                (
                    row["settings"],
                    row["population"],
                    _value(material, row["simulated"]),
                    _value(material, row["true"]),
                )
                for row in rows
            ),
        ),
        wide=wide,
    )


def _verdict_table(verdict: Verdict) -> DataTable:
    reference, in_points = verdict.reference, verdict.wording.in_points
    unit = ", in points" if in_points else ""
    against = [] if reference is None else [f"difference less {reference.population}’s"]
    return table_of(
        f"The verdict: {verdict.metric} on simulated clients beside {verdict.true} ones{unit}, with "
        f"{100 * verdict.confidence:g} % intervals",
        ("population", "difference", "of the means over seeds", "simulated less true", *against,
         "regret", "rank correlation", "settings", "seeds", "diverged (here, true)"),
        (_verdict_cells(verdict, found) for found in verdict.populations),
    )  # fmt: skip


def _verdict_cells(verdict: Verdict, found: PopulationVerdict) -> tuple[str, ...]:
    name, reference = found.population, verdict.reference
    paired = []
    if reference is not None:
        mine = found is reference
        paired = ["–" if mine else _scaled(verdict, verdict.paired(name, reference.population))]
    return (
        f"{name} (noise floor)" if name == AGAIN else name,
        _scaled(verdict, found.difference),
        _scaled(verdict, Estimate(found.difference_of_means, math.nan, math.nan)),
        _scaled(verdict, found.signed),
        *paired,
        _scaled(verdict, found.regret),
        f"{found.rank_correlation:.2f}",
        str(found.n_settings),
        str(found.n_seeds),
        f"{found.n_diverged}, {found.n_diverged_true}",
    )


def _scaled(verdict: Verdict, found: Estimate) -> str:
    """A difference in the metric: in points if that is a fraction."""
    scale = 100 if verdict.wording.in_points else 1
    return f"{Estimate(scale * found.value, scale * found.low, scale * found.high):.2f}"


def _value(material: Material, value: float) -> str:
    return f"{value:.4g}" if material.metric == LOSS else f"{value:.2%}"
