"""The section about the sweep: the metric against each hyper-parameter, and the verdict.

What is computed for it is `sweep_rows.py`; how it looks is `sweep_charts.py`.
"""

from typing import Any

from polyurn.report import sweep_charts
from polyurn.report.headline import sweep_verdicts
from polyurn.report.material import Material
from polyurn.report.parts import DataTable, Figure, Panel, Rows, Section, table_of
from polyurn.report.sweep_rows import agreement_rows, profile_rows, varied
from polyurn.sweeps.verdict import PopulationVerdict


def sweep_section(material: Material) -> Section | None:
    """The sweep, if there are runs."""
    runs = material.runs
    if not runs:
        return None
    names = varied(runs)
    panels, rows = [], []
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
    agreement = agreement_rows(runs, true=material.true, metric=material.metric)
    if agreement:
        figures.append(_agreement(material, agreement, wide=len(panels) != 1))
    verdicts = sweep_verdicts(material)
    tables = (_verdict_table(material, verdicts),) if verdicts else ()
    if not figures and not tables:
        return None
    return Section(
        name="sweep",
        title="The sweep",
        lead=(
            "The same settings were trained on every population. What wins on simulated clients "
            "should win on the true ones, whose line is dotted."
        ),
        figures=tuple(figures),
        tables=tables,
    )


def _profile(
    material: Material, panels: tuple[Panel, ...], rows: list[tuple[str, dict[str, Any]]]
) -> Figure:
    others = "; for each value, the best over the other settings" if len(panels) > 1 else ""
    return Figure(
        name="profile",
        title=f"{material.metric.capitalize()} against each hyper-parameter",
        says=(
            f"Mean over seeds with its standard error{others}. True clients are dotted. A run that "
            "diverged counts as 0, and below all others where some are negative."
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
                    f"{row['metric']:.2%}",
                    f"{row['high'] - row['metric']:.2%}" if row["n_seeds"] > 1 else "–",
                    str(row["n_seeds"]),
                )
                for name, row in rows
            ),
        ),
        wide=len(panels) > 1,
    )


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
                    f"{row['simulated']:.2%}",
                    f"{row['true']:.2%}",
                )
                for row in rows
            ),
        ),
        wide=wide,
    )


def _verdict_table(material: Material, verdicts: tuple[PopulationVerdict, ...]) -> DataTable:
    return table_of(
        f"The verdict: what simulated clients say about {material.true} ones, with 95 % intervals",
        ("population", f"difference in {material.metric}", "rank correlation", "regret",
         "settings", "seeds", "diverged (here, true)"),
        (
            (
                v.population,
                f"{v.difference:.2%}",
                f"{v.rank_correlation:.2f}",
                f"{v.regret:.2%}",
                str(v.n_settings),
                str(v.n_seeds),
                f"{v.n_diverged}, {v.n_diverged_true}",
            )
            for v in verdicts
        ),
    )  # fmt: skip
