"""A model on the page: its components, the choice of K, and the rounds of its fit.

Rows first, which are numbers only, then the figures that are drawn of them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from scipy.special import rel_entr

from polyurn.comparison.estimates import Estimate
from polyurn.model.component_summary import FEW, HALF_WIDTH, many_components
from polyurn.model.mdm import MDM
from polyurn.report import charts
from polyurn.report.charts import (
    ACCENT,
    Column,
    Rows,
    chart,
    keyed,
    listed,
    measured,
    names_of,
    spec_of,
    steps,
    tooltip,
)
from polyurn.report.material import Material
from polyurn.report.parts import Figure, Panel, Section, Table, pivot_table
from polyurn.report.population_section import SizeCurve, sizes_figure
from polyurn.server.fit_results import Fit, Round
from polyurn.wording import capital, counted

# More lines than colours that an eye tells apart, and more columns than fit on a page.
MOST_COMPONENTS, MOST_CATEGORIES = 8, 64
_N_DISTINCTIVE = 12  # categories, at most
_SHARE_SHOWN = 0.99  # of the difference between components
_SHARES = Column("share", "component {}", ".1%")
_OF_WEIGHTS = (
    "Left: the share of clients that each component stands for. Right: its concentration; "
    "far to the left, each client has few categories of its own, far to the right all of "
    "the component’s clients look the same."
)
_TREE_HAS_MORE = (
    "The share of clients that each component stands for. The tree has the concentrations."
)


def components_section(material: Material) -> Section | None:
    """The components, if there is a model."""
    mdm, names = material.mdm, material.categories
    if mdm is None:
        return None
    one = mdm.n_components == 1
    distinctive = distinctive_rows(mdm, names)
    order = "Components are in order of weight."
    if mdm.as_given:
        order = "Components have the numbers of the mixture that the fit began at."
    fit = material.provenance.fit
    missing = f"No standard errors: {fit.no_errors}." if fit and fit.no_errors else ""
    most = ", ".join(names_of(distinctive, "category")[:3])
    differ = f"They differ most in {most}. {order}" if most else order
    return Section(
        name="components",
        title="The component" if one else "The components",
        lead=(
            f"{_called(mdm)} over {counted(mdm.n_categories, 'category')}; a client holds at most "
            f"{counted(mdm.max_size, 'point')}. {'' if one else differ} {many_components(mdm)} "
            f"{missing}"
        ).strip(),
        figures=(
            _weights(summary_rows(mdm, names), with_splits=mdm.splits is not None),
            _profiles(mdm, profile_rows(mdm, names)),
            *([_distinctive(mdm, distinctive)] if distinctive else []),
            sizes_figure("component", size_curves(mdm), height=240, some=_first(mdm)),
        ),
    )


def _called(mdm: MDM) -> str:
    """A few components are kinds of client; many only describe how clients differ."""
    if mdm.n_components == 1:
        return "One kind of client"
    if mdm.n_components <= FEW:
        return f"{mdm.n_components} kinds of client"
    return f"A mixture of {mdm.n_components} components"


def choice_section(material: Material) -> Section | None:
    """The choice of K and the rounds, if the model's file kept them."""
    found = material.provenance.fit
    if found is None:
        return None
    asked = f"Clients were asked in {counted(found.n_rounds, 'round')}."
    rows, stopped = path_rows(found.rounds), capital(f"{found.stopped}.")
    of = f" of K = {found.n_components}" if found.candidates else ""
    paths = (_paths(rows, of=of, stopped=stopped),) if rows else ()
    if not found.candidates:
        return Section("rounds", "The rounds", f"{asked} {stopped}", paths) if rows else None
    return Section(
        name="choice",
        title="The choice of K, and the rounds",
        lead=(
            f"{asked} {counted(found.n_held_out, 'held-out client')} judged every number of "
            f"components; {found.n_components} is the smallest that is not clearly worse than the "
            f"best.{f' But {found.caution}.' if found.caution else ''}"
        ),
        figures=(_candidates(candidate_rows(found)), *paths),
    )


# ------------------------------------------------------------------------ the components


def summary_rows(mdm: MDM, categories: Sequence[str]) -> Rows:
    """One row per component: weight, concentration α₀, mean size and the five largest categories.

    Weight and α₀ have 95 % intervals if there are standard errors, that of α₀ on its logarithm.
    """
    shares, errors, alpha_0 = mdm.shares, mdm.standard_errors, mdm.alphas.sum(axis=1)
    largest = np.argsort(-shares, axis=1, kind="stable")[:, :5]
    within, times = np.full((2, mdm.n_components), np.nan)
    if errors is not None:
        within = HALF_WIDTH * errors.weights
        times = np.exp(HALF_WIDTH * errors.concentrations / alpha_0)
    weights = np.stack([mdm.weights, mdm.weights - within, mdm.weights + within], axis=1)
    concentrations = np.stack([alpha_0, alpha_0 / times, alpha_0 * times], axis=1)
    return [
        {
            "component": str(k + 1),
            "weight": Estimate(*weights[k].tolist()),
            "concentration": Estimate(*concentrations[k].tolist()),
            "mean_size": float(mean_size),
            "largest": ", ".join(f"{categories[j]} {shares[k, j]:.0%}" for j in largest[k]),
        }
        for k, mean_size in enumerate(mdm.sizes.mean())
    ]


def _weights(rows: Rows, *, with_splits: bool) -> Figure:
    height = steps(rows, "component", 34 if len(rows) <= 8 else 21)  # many stand closer together
    columns = [
        Column("component"),
        Column("weight", show=".1%"),
        Column("concentration", f"concentration {'of the root' * with_splits or 'α₀'}", ".4g"),
        Column("mean_size", show=",.1f"),
    ]
    base = chart().encode(y=listed("component"), tooltip=tooltip(*columns))
    rule = base.mark_rule(color=charts.INK, strokeWidth=2)
    weights = base.mark_bar(color=ACCENT, cornerRadiusEnd=2).encode(
        x=measured(alt.X, "weight", "share of the clients", "%")
    )
    title = "concentration α₀ (further right: clients more alike)"
    x = measured(alt.X, "concentration", title, type="log", nice=True)
    concentrations = base.mark_point(size=110, color=ACCENT).encode(
        x=x.axis(format=",~g", tickCount=4)
    )
    panels = [
        Panel(
            spec_of(
                drawn + rule.encode(x=f"{name}_low:Q", x2=f"{name}_high:Q"), rows, height=height
            ),
            name,
        )
        for name, drawn in (("weight", weights), ("concentration", concentrations))
    ]
    known = not math.isnan(rows[0]["weight"].low)
    return Figure(
        name="weights",
        title="Weight" if with_splits else "Weight and concentration",
        says=(_TREE_HAS_MORE if with_splits else _OF_WEIGHTS)
        + (" Lines are 95 % intervals." if known else ""),
        panels=tuple(panels[:1] if with_splits else panels),
        table=Table.of(
            f"The components{', with 95 % intervals' if known else ''}",
            rows,
            [*columns, Column("largest", "largest categories")],
        ),
        wide=True,
    )


def profile_rows(mdm: MDM, categories: Sequence[str]) -> Rows:
    """The expected share of each category in each component, of the most frequent categories.

    >>> from polyurn.model.sizes import Sizes
    >>> rows = profile_rows(MDM([1.0], [[1.0, 3.0]], Sizes.constant(4)), ["a", "b"])
    >>> [(row["category"], row["share"]) for row in rows]
    [('a', 0.25), ('b', 0.75)]
    """
    shares, errors = mdm.shares, mdm.standard_errors
    frequent = np.argsort(-(mdm.weights @ shares), kind="stable")[:MOST_CATEGORIES]
    within = HALF_WIDTH * (np.zeros(shares.shape) if errors is None else errors.shares)
    return [
        {
            "component": str(k + 1),
            "category": categories[j],
            "share": float(shares[k, j]),
            "within": float(within[k, j]),
        }
        for k in range(mdm.n_components)
        for j in sorted(frequent)
    ]


def _profiles(mdm: MDM, rows: Rows) -> Figure:
    components, categories = names_of(rows, "component"), names_of(rows, "category")
    # Each category has its name: short ones upright, others on a slant, and many one below the other.
    upright, many = len(categories) <= 20 and max(map(len, categories)) <= 2, len(categories) > 20
    over, down = ("component", "category") if many else ("category", "component")
    within = [("within", ".1%", "± 95 %")] if mdm.standard_errors else []
    axis = alt.Axis(labelAngle=0 if upright or many else -45, labelOverlap=many)
    drawn = chart().mark_rect(color=ACCENT).encode(
        x=alt.X(f"{over}:O", sort=None, title=over if many else None, axis=axis),
        y=listed(down, labelOverlap=False),
        opacity=alt.Opacity("share:Q", scale=alt.Scale(range=[0.04, 1], zero=True), legend=None),
        tooltip=tooltip("component", "category", ("share", ".1%"), *within),
    )  # fmt: skip
    height = steps(rows, down, 15 if many else 26 if len(components) <= 8 else 20)
    some = mdm.n_categories > MOST_CATEGORIES
    return Figure(
        name="profiles",
        title="What each component holds",
        says=(
            "Expected share of each category in a client of each component; the stronger the "
            "colour, the larger the share."
            + (f" The {MOST_CATEGORIES} most frequent of {mdm.n_categories:,}." if some else "")
        ),
        panels=(Panel(spec_of(drawn, rows, height=height)),),
        table=pivot_table(
            "Expected share of each category", rows, Column("category"), "component", _SHARES
        ),
        wide=True,
    )


def distinctive_rows(mdm: MDM, categories: Sequence[str]) -> Rows:
    """The categories that tell the components on the page apart, the most distinctive first.

    A category's part is its term of the Jensen-Shannon divergence of the components' expected shares,
    Σ_k τ_k p_kj log(p_kj / p_j), as a share of the whole. The fewest categories are taken that have 99 %
    of it together, and none whose shares read the same. No rows for a single component.
    """
    shares, weights = mdm.shares[:MOST_COMPONENTS], mdm.weights[:MOST_COMPONENTS]
    weights = weights / weights.sum()
    parts = weights @ np.asarray(rel_entr(shares, weights @ shares))
    if mdm.n_components == 1 or parts.sum() <= 0:
        return []
    most = np.argsort(-parts, kind="stable")[:_N_DISTINCTIVE]
    before = np.cumsum(parts[most]) - parts[most]
    read = shares[:, most].round(3)
    most = most[(before < _SHARE_SHOWN * parts.sum()) & (read.min(axis=0) < read.max(axis=0))]
    return [
        {
            "category": categories[j], "component": str(k + 1), "share": float(shares[k, j]),
            "part": float(parts[j] / parts.sum()),
        }
        for j in most
        for k in range(len(weights))
    ]  # fmt: skip


def _distinctive(mdm: MDM, rows: Rows) -> Figure:
    components = names_of(rows, "component")
    base = chart().encode(
        y=listed("category", grid=True),
        x=measured(
            alt.X, "share", "expected share of a client's points", "~%", padding=8, nice=False
        ),
    )
    spans = base.mark_line(color=charts.LINE, strokeWidth=3).encode(detail="category:N")
    dots = base.mark_point(size=90).encode(
        **keyed("component", components, title="component"),
        tooltip=tooltip(
            "category", "component", ("share", ".1%"), ("part", ".0%", "part of the difference")
        ),
    )
    return Figure(
        name="distinctive",
        title="Which categories tell them apart",
        says=(
            "The categories in which the components differ most, the most distinctive first, with the "
            f"expected share in each component{_first(mdm)}."
        ),
        panels=(Panel(spec_of(spans + dots, rows, height=steps(rows, "category", 24))),),
        table=pivot_table(
            "Categories that tell components apart",
            rows,
            Column("category"),
            "component",
            _SHARES,
            Column("part", "part of the difference", ".1%"),
        ),
    )


def size_curves(mdm: MDM) -> dict[str, SizeCurve]:
    """The sizes of each component on the page, at the ends of the finer bins."""
    reached = np.cumsum(mdm.sizes.fine_masses()[:MOST_COMPONENTS], axis=1)
    ends, means = mdm.sizes.bins.fine[1:] - 1, mdm.sizes.mean()
    return {str(k + 1): SizeCurve(ends, one, float(means[k])) for k, one in enumerate(reached)}


def _first(mdm: MDM) -> str:
    more = mdm.n_components > MOST_COMPONENTS
    return f"; the {MOST_COMPONENTS} heaviest of {mdm.n_components} components" if more else ""


# ------------------------------------------------------------------------ the choice, the rounds


def candidate_rows(fit: Fit) -> Rows:
    """One row per number of components: held-out log-likelihood, and how far behind the best it is."""
    return [
        {
            "n_components": c.n_components,
            "log_likelihood": Estimate.around(c.log_likelihood, HALF_WIDTH * c.standard_error),
            "behind": Estimate.around(c.behind, HALF_WIDTH * c.behind_error),
            "n_rounds": c.n_rounds, "n_parameters": c.n_parameters,
            "converged": "yes" if c.converged else "stopped early" if c.overtaken else "no",
            "chosen": c is fit.chosen,
        }
        for c in fit.candidates
    ]  # fmt: skip


def _candidates(rows: Rows) -> Figure:
    def for_the_chosen(this: object, other: object) -> Any:
        return alt.condition("datum.chosen", alt.value(this), alt.value(other))

    columns = [
        Column("n_components", "K", "d"),
        Column("log_likelihood", "log-likelihood", ".4f"),
        Column("behind", "behind the best", ".4f"),
        Column("n_rounds", "rounds"),
        Column("n_parameters", "parameters", ","),
        Column("converged"),
        Column("chosen", show=lambda row: "yes" if row["chosen"] else ""),
    ]
    base = chart().encode(
        x=alt.X("n_components:O", title="components, K", axis=alt.Axis(labelAngle=0)),
        tooltip=tooltip(*columns[:3]),
    )
    bars = base.mark_rule(strokeWidth=2, color=charts.QUIET).encode(
        y=measured(alt.Y, "log_likelihood_low", "held-out log-likelihood per client", zero=False),
        y2="log_likelihood_high:Q",
    )
    dots = base.mark_point().encode(
        y="log_likelihood:Q",
        color=for_the_chosen(charts.tone(2), charts.tone(1)),
        size=for_the_chosen(190, 80),
        shape=for_the_chosen("diamond", "circle"),
    )
    label = base.mark_text(dy=-14, fontWeight="bold", color=charts.INK).encode(
        y="log_likelihood_high:Q", text=alt.value("chosen")
    )
    finite = [row for row in rows if math.isfinite(row["log_likelihood"].value)]
    drawn = bars + dots + label.transform_filter("datum.chosen")
    return Figure(
        name="candidates",
        title="How many components",
        says=(
            "Mean log-likelihood of the clients that were held out, with 95 % intervals. The choice "
            "goes by the difference to the best on the same clients, which is known much better "
            "than the likelihood itself; the table has it."
        ),
        panels=(Panel(spec_of(drawn, finite, height=260)),),
        table=Table.of(
            "Held-out log-likelihood by number of components, with 95 % intervals", rows, columns
        ),
    )


def path_rows(rounds: Sequence[Round]) -> Rows:
    """The likelihood of every start, round by round, where it is finite.

    `winner` marks the start that is best in the last round: likelihoods of a start that left earlier may
    be those of other clients.

    >>> rounds = [Round(1, None, -5.0, 9, 4, {1: -5.0, 2: -6.0}), Round(2, None, -4.0, 9, 4, {1: -4.0})]
    >>> [(r["start"], r["round"], r["winner"]) for r in path_rows(rounds)]
    [(1, 1, True), (2, 1, False), (1, 2, True)]
    """
    last: Mapping[int, float] = next((r.starts for r in reversed(rounds) if r.starts), {})
    winner = max(last, key=last.__getitem__, default=0)
    return [
        {
            "start": start, "round": one.number, "log_likelihood": value, "winner": start == winner,
        }
        for one in rounds
        for start, value in sorted(one.starts.items())
        if math.isfinite(value)
    ]  # fmt: skip


def _paths(rows: Rows, *, of: str, stopped: str) -> Figure:
    scale = alt.Scale(zero=False, nice=False, padding=6)
    base = chart().encode(
        x=alt.X("round:Q", scale=scale, axis=alt.Axis(tickMinStep=1, format="d")),
        y=measured(alt.Y, "log_likelihood", "log-likelihood per client", zero=False),
        tooltip=tooltip("start", ("round", "d"), ("log_likelihood", ".5f")),
    )
    others = base.mark_line(strokeWidth=1, opacity=0.5, color=charts.QUIET, point={"size": 12})
    winner = base.mark_line(strokeWidth=3, color=ACCENT, point={"size": 36, "color": ACCENT})
    drawn = others.encode(detail="start:N").transform_filter("!datum.winner")
    drawn += winner.transform_filter("datum.winner")
    starts = {start: [r for r in rows if r["start"] == start] for start in names_of(rows, "start")}
    ends = [
        {
            "start": f"{start}{' (won)' if mine[0]['winner'] else ''}",
            "first round": mine[0]["round"], "last round": mine[-1]["round"],
            "first log-likelihood": mine[0]["log_likelihood"],
            "last log-likelihood": mine[-1]["log_likelihood"],
        }
        for start, mine in starts.items()
    ]  # fmt: skip
    return Figure(
        name="paths",
        title="The rounds",
        says=(
            f"Mean log-likelihood per client of every start{of}; the one that won is heavy. "
            f"Starts that fall behind leave the race. {stopped}"
        ),
        panels=(Panel(spec_of(drawn, rows, height=260)),),
        table=Table.of(
            "Every start: when it began and left, and how far it got",
            ends,
            [
                *map(Column, ("start", "first round", "last round")),
                Column("first log-likelihood", show=".4f"),
                Column("last log-likelihood", show=".4f"),
            ],
        ),
    )
