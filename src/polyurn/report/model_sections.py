"""The sections about the model: its components, the choice of K, and the rounds.

What is computed for them is `model_rows.py`; how it looks is `model_charts.py`.
"""

import math

from polyurn.model.mdm import MDM
from polyurn.report import model_charts as charts
from polyurn.report.material import Material
from polyurn.report.model_rows import (
    MOST_CATEGORIES,
    MOST_COMPONENTS,
    candidate_rows,
    path_rows,
    profile_rows,
    size_rows,
    summary_rows,
    telling_rows,
)
from polyurn.report.parts import Figure, Panel, Rows, Section, table_of
from polyurn.server.results import Selection
from polyurn.server.settings import few_held_out
from polyurn.wording.numbers import counted


def components_section(material: Material) -> Section | None:
    """The components, if there is a model."""
    mdm = material.mdm
    if mdm is None:
        return None
    names = material.categories
    summary = summary_rows(mdm, names)
    figures = [_weights(summary), _profiles(mdm, profile_rows(mdm, names))]
    telling = telling_rows(mdm, names)
    if telling:
        figures.append(_telling(mdm, telling))
    figures.append(_sizes(mdm))
    one = mdm.n_components == 1
    return Section(
        name="components",
        title="The components" if not one else "The component",
        lead=(
            f"{'One kind' if one else f'{mdm.n_components} kinds'} of client over "
            f"{counted(mdm.n_categories, 'category')}; a client holds at most "
            f"{counted(mdm.max_size, 'point')}. Components are in order of weight."
        ),
        figures=tuple(figures),
    )


def choice_section(material: Material) -> Section | None:
    """The choice of K and the rounds, if the model's file kept them."""
    record = material.made.rounds
    if record is None:
        return None
    asked = f"Clients were asked in {counted(record.n_rounds, 'round')}."
    rows = path_rows(record.paths)
    if isinstance(record, Selection):
        few = few_held_out(record.n_held_out)
        few = f" But {few}." if few else ""
        paths = [_paths(rows, of=f" of K = {record.n_components}", stopped=record.stopped)]
        return Section(
            name="choice",
            title="The choice of K, and the rounds",
            lead=(
                f"{asked} {counted(record.n_held_out, 'held-out client')} judged every number of "
                f"components; {record.n_components} is the smallest that is not clearly worse than the "
                f"best.{few}"
            ),
            figures=(_candidates(record), *(paths if rows else ())),
        )
    if not rows:
        return None
    figure = _paths(rows, of="", stopped=record.stopped)
    return Section("rounds", "The rounds", f"{asked} {_sentence(record.stopped)}", (figure,))


def _weights(rows: Rows) -> Figure:
    return Figure(
        name="weights",
        title="Weight and concentration",
        says=(
            "Left: the share of clients that each component stands for. Right: its concentration; "
            "far to the left, each client has few categories of its own, far to the right all of "
            "the component’s clients look the same."
        ),
        panels=(
            Panel(charts.weights_chart(rows), "weight"),
            Panel(charts.concentration_chart(rows), "concentration"),
        ),
        table=table_of(
            "The components",
            ("component", "weight", "concentration α₀", "mean size", "largest categories"),
            (
                (
                    row["component"],
                    f"{row['weight']:.1%}",
                    f"{row['concentration']:.4g}",
                    f"{row['mean_size']:,.1f}",
                    row["largest"],
                )
                for row in rows
            ),
        ),
        wide=True,
    )


def _profiles(mdm: MDM, rows: Rows) -> Figure:
    components = [str(k + 1) for k in range(mdm.n_components)]
    by_category: dict[str, dict[str, float]] = {}
    for row in rows:
        by_category.setdefault(row["category"], {})[row["component"]] = row["share"]
    some = mdm.n_categories > MOST_CATEGORIES
    return Figure(
        name="profiles",
        title="What each component holds",
        says=(
            "Expected share of each category in a client of each component; the stronger the "
            "colour, the larger the share."
            + (f" The {MOST_CATEGORIES} most frequent of {mdm.n_categories:,}." if some else "")
        ),
        panels=(Panel(charts.profile_chart(rows)),),
        table=table_of(
            "Expected share of each category",
            ("category", *(f"component {k}" for k in components)),
            (
                (category, *(f"{shares[k]:.1%}" for k in components))
                for category, shares in by_category.items()
            ),
        ),
        wide=True,
    )


def _telling(mdm: MDM, rows: Rows) -> Figure:
    components = [*dict.fromkeys(row["component"] for row in rows)]
    by_category: dict[str, Rows] = {}
    for row in rows:
        by_category.setdefault(row["category"], []).append(row)
    return Figure(
        name="telling",
        title="Which categories tell them apart",
        says=(
            "The categories in which the components differ most, the most telling first, with the "
            f"expected share in each component{_first(mdm)}."
        ),
        panels=(Panel(charts.telling_chart(rows)),),
        table=table_of(
            "Categories that tell components apart",
            ("category", "part of the difference", *(f"component {k}" for k in components)),
            (
                (
                    category,
                    f"{mine[0]['part']:.1%}",
                    *(f"{row['share']:.1%}" for row in mine),
                )
                for category, mine in by_category.items()
            ),
        ),
    )


def _sizes(mdm: MDM) -> Figure:
    rows = size_rows(mdm)
    components = [*dict.fromkeys(row["component"] for row in rows)]
    return Figure(
        name="component-sizes",
        title="How much they hold",
        says=f"Share of a component’s clients that hold at most so many points{_first(mdm)}.",
        panels=(Panel(charts.component_sizes_chart(rows)),),
        table=table_of(
            "Sizes: the points that so many of the clients hold at most",
            ("component", "10 %", "25 %", "half", "75 %", "90 %", "mean"),
            (
                (
                    k,
                    *(f"{_reached(rows, k, level):,}" for level in (0.1, 0.25, 0.5, 0.75, 0.9)),
                    f"{mdm.sizes.mean()[int(k) - 1]:,.1f}",
                )
                for k in components
            ),
        ),
    )


def _reached(rows: Rows, component: str, level: float) -> int:
    mine = [row for row in rows if row["component"] == component]
    return next((int(r["size"]) for r in mine if r["share"] >= level), int(mine[-1]["size"]))


def _first(mdm: MDM) -> str:
    more = mdm.n_components > MOST_COMPONENTS
    return f"; the {MOST_COMPONENTS} heaviest of {mdm.n_components} components" if more else ""


def _candidates(selection: Selection) -> Figure:
    rows = candidate_rows(selection)
    drawn = [row for row in rows if all(map(math.isfinite, row.values()))]
    return Figure(
        name="candidates",
        title="How many components",
        says=(
            "Mean log-likelihood of the clients that were held out, with 95 % intervals. The choice "
            "goes by the difference to the best on the same clients, which is known much better "
            "than the likelihood itself; the table has it."
        ),
        panels=(Panel(charts.candidates_chart(drawn)),),
        table=table_of(
            "Held-out log-likelihood by number of components",
            ("K", "log-likelihood", "95 % interval", "behind the best (s.e.)", "rounds",
             "parameters", "converged", "chosen"),
            (
                (
                    str(row["n_components"]),
                    f"{row['log_likelihood']:.4f}",
                    f"{row['low']:.4f} to {row['high']:.4f}",
                    f"{row['behind']:.4f} ({row['behind_error']:.4f})",
                    str(row["n_rounds"]),
                    f"{row['n_parameters']:,}",
                    "yes" if row["converged"] else "stopped early" if row["outdone"] else "no",
                    "yes" if row["chosen"] else "",
                )
                for row in rows
            ),
        ),
    )  # fmt: skip


def _paths(rows: Rows, *, of: str, stopped: str) -> Figure:
    starts: dict[int, Rows] = {}
    for row in rows:
        starts.setdefault(row["start"], []).append(row)
    return Figure(
        name="paths",
        title="The rounds",
        says=(
            f"Mean log-likelihood per client of every start{of}; the one that won is heavy. "
            f"Starts that fall behind leave the race. {_sentence(stopped)}"
        ),
        panels=(Panel(charts.paths_chart(rows)),),
        table=table_of(
            "Every start: when it began and left, and how far it got",
            ("start", "first round", "last round", "first log-likelihood", "last log-likelihood"),
            (
                (
                    f"{start}{' (won)' if mine[0]['winner'] else ''}",
                    str(mine[0]["round"]),
                    str(mine[-1]["round"]),
                    f"{mine[0]['log_likelihood']:.4f}",
                    f"{mine[-1]['log_likelihood']:.4f}",
                )
                for start, mine in starts.items()
            ),
        ),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
