"""Styles on the page: what clients differ in besides their labels.

What directions carry, what they look like in pictures or features, and how the proxy data serve
simulated clients. What training on these promises is in the section of the sweep.
"""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from polyurn.comparison.comparison_results import SIMULATED
from polyurn.comparison.estimates import Estimate
from polyurn.model.style import Style
from polyurn.report import charts
from polyurn.report.charts import (
    Column,
    Rows,
    chart,
    measured,
    spec_of,
    steps,
    tooltip,
)
from polyurn.report.material import Material, ProxyPoints, StyledClients, StyleMaterial
from polyurn.report.parts import Figure, Panel, Pictures, Section, Strip, Table
from polyurn.report.pictures import brightness, is_image, strip
from polyurn.typed.declared import Floats, Ints
from polyurn.wording import capital, counted

# What the three covariances B, V and E are called, and their names in a `Style`.
PARTS = {
    "shared by a client’s labels": "shared",
    "own to a client and label": "by_label",
    "within a client and label": "within",
}
# Where along a direction points are shown, in standard deviations of the proxy data.
POSITIONS = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
# Clients that are pictured, by their quantile: one of 20 lies beyond the first, and one beyond the last.
QUANTILES = {0.05: "at the low end", 0.5: "in the middle", 0.95: "at the high end"}
# Labels whose points are shown, points of a client, features of a direction, and labels of a chart.
N_LABELS, N_POINTS, N_FEATURES, MOST_LABELS = 5, 10, 6, 24
# A normal interval of 95 %.
_NORMAL = 1.96
# Points of a label among which the nearest are looked for: enough to have some everywhere.
_N_SEARCHED = 20_000
_PART_TONES = (1, 2, 8)


def style_section(material: Material) -> Section | None:
    """Styles, if there is one."""
    shown = material.style
    if shown is None:
        return None
    figures = [_directions(shown.style)]
    proxy, styled = shown.proxy, shown.styled
    if proxy is not None and is_image(proxy.features.shape[1:]):
        figures.append(_along(shown, proxy))
        if styled is not None:
            figures.append(_simulated(shown, proxy, styled))
    elif proxy is not None or shown.features is not None:
        figures.append(_loadings(shown))
    if proxy is not None and styled is not None:
        figures.append(_serving(serving_rows(styled, proxy, shown.labels)))
    facts = _facts(shown)
    if forecast := _forecast(material):
        facts["Forecast with and without style"] = forecast
    return Section(
        name="style",
        title="What clients differ in besides their labels",
        lead=_lead(shown.style),
        figures=tuple(figures),
        facts=tuple((term, f"{capital(text)}.") for term, text in facts.items()),
    )


def _lead(style: Style) -> str:
    shared, by_label = float(np.trace(style.shared)), float(np.trace(style.by_label))
    parts = ""
    if shared + by_label > 0:
        parts = (
            f" {shared / (shared + by_label):.0%} of that is a style that all labels of a client share, "
            "the rest is how a client does a single label."
        )
    return (
        f"Of the variance among points of the same label, {style.between:.0%} lies between clients, "
        f"in {counted(style.n_directions, 'direction')}.{parts}"
    )


def _facts(shown: StyleMaterial) -> dict[str, str]:
    style, styled = shown.style, shown.styled
    alarm = "none: the clients’ mean is about the proxy data’s, and few of their points lie far off"
    if style.alarm is not None:
        alarm = f"{style.alarm}; take proxy data that are more like the clients"
    mean = f"{np.linalg.norm(style.mean):.2f} standard deviations from the proxy data’s"
    if not np.isnan(style.far_share):
        mean += (
            f"; {style.far_share:.1%} of the clients’ points lie beyond {style.space.radius:.3g}, where "
            f"{style.space.proxy_far_share:.1%} of the proxy points do"
        )
    facts = {"Alarm": alarm, "Mean style of the clients": mean}
    if style.n_clients:
        facts["Learned from"] = f"sums over {counted(style.n_clients, 'client')}, once"
    if style.label_effect is not None and np.trace(style.shared) > 0:
        follows = 1 - float(np.trace(style.untied) / np.trace(style.shared))
        facts["Labels and style"] = (
            f"{follows:.0%} of the shared style follows a client’s label shares"
        )
    if styled is None:
        return facts
    report, served = styled.report, styled.style
    n_proxy = int(report.available.sum())
    facts["Simulated clients"] = (
        f"{counted(len(styled.clients), 'client')} were drawn with this style; they hold "
        f"{counted(report.n_given, 'point')}, {report.n_used:,} of them distinct "
        f"({report.n_used / n_proxy:.0%} of the {n_proxy:,} proxy points)"
    )
    facts["How the proxy data serve them"] = served.remark or (
        f"in {counted(served.n_directions_used, 'direction')}, all of the style’s; {served.served:.1%} "
        "of clients and labels have an effective sample size of the points that they ask for"
    )
    if styled.n_lacking:
        lacking = counted(styled.n_lacking, "point")
        facts["Labels that the proxy data lack"] = (
            f"{lacking} of them were left out of these clients"
        )
    return facts


def _forecast(material: Material) -> str:
    """Whether clients with a style are nearer to the true ones in training than those without; or ""."""
    styled, verdict = {run.population for run in material.runs if run.styled}, material.verdict
    names = [] if verdict is None else [found.population for found in verdict.simulated]
    if verdict is None or SIMULATED not in names or SIMULATED in styled:
        return ""
    pairs = [verdict.pair_sentence(SIMULATED, name) for name in names if name in styled]
    return f"in training, {'; '.join(pairs)}" if pairs else ""


# ------------------------------------------------------------------------ directions


def direction_rows(style: Style) -> Rows:
    """The mean of each direction and its variance in three parts, with intervals if errors are known."""

    def estimate(name: str, *at: int) -> Estimate:
        value, errors = float(getattr(style, name)[at]), style.errors
        half = math.nan if errors is None else _NORMAL * float(getattr(errors, name)[at])
        return Estimate(value, value - half, value + half)

    return [
        {"direction": f"{k + 1}: {carried:.0%}", "mean": estimate("mean", k)}
        | {part: estimate(name, k, k) for part, name in PARTS.items()}
        for k, carried in enumerate(style.carried)
    ]


def _directions(style: Style) -> Figure:
    rows = direction_rows(style)
    variances = [
        {"direction": row["direction"], "part": part, "variance": row[part]}
        for row in rows
        for part in PARTS
    ]
    looks = charts.keyed("part", [*PARTS], tones=_PART_TONES, columns=1)
    y = charts.listed("direction", grid=True).scale(paddingInner=0.4, paddingOuter=0.2)
    base = chart().encode(y=y, color=looks["color"], yOffset=alt.YOffset("part:N", sort=None))
    bars = base.mark_rule(strokeWidth=2).encode(x="variance_low:Q", x2="variance_high:Q")
    dots = base.mark_point(size=70).encode(
        x=measured(alt.X, "variance", "variance (proxy points have 1)"),
        shape=looks["shape"],
        tooltip=tooltip("direction", "part", ("variance", ".3f")),
    )
    intervals = "" if style.errors is None else ", with 95 % intervals"
    return Figure(
        name="style-directions",
        title="What each direction carries",
        says=(
            "A direction is one way in which points of the same label differ; beside its number stands "
            "its share of the clients’ differences. Where clients differ along it, all labels of a "
            "client may do so together, or each label by itself; the rest of the variance is within a "
            f"client and label{intervals}."
        ),
        panels=(Panel(spec_of(bars + dots, variances, height=steps(rows, "direction", 56))),),
        table=Table.of(
            f"Directions{intervals}",
            rows,
            [
                Column("direction", "direction: share of the clients’ differences"),
                Column("mean", "clients’ mean", ".3f"),
                *(Column(part, show=".3f") for part in PARTS),
            ],
        ),
        wide=True,
    )


# ------------------------------------------------------------------------ pictures


def shown_labels(proxy: ProxyPoints, n_labels: int) -> list[int]:
    """The labels that most proxy points have, in their order."""
    frequent = np.argsort(-np.bincount(proxy.labels, minlength=n_labels), kind="stable")
    there = [int(label) for label in frequent[:N_LABELS] if (proxy.labels == label).any()]
    return sorted(there)


def points_along(proxy: ProxyPoints, label: int, direction: int) -> Ints:
    """The points of a label nearest to `POSITIONS` along a direction, and to 0 in the others."""
    mine = np.flatnonzero(proxy.labels == label)
    mine = mine[:: max(1, len(mine) // _N_SEARCHED)]
    targets = np.zeros((len(POSITIONS), proxy.coordinates.shape[1]))
    targets[:, direction] = POSITIONS
    near = proxy.coordinates[mine]
    squared = ((near[None] - targets[:, None]) ** 2).sum(axis=2)
    return np.asarray(mine[squared.argmin(axis=1)])


def _along(shown: StyleMaterial, proxy: ProxyPoints) -> Figure:
    levels = brightness(proxy.features)
    marks = tuple(_signed(at) if at == int(at) else "" for at in POSITIONS)
    blocks: list[Pictures] = []
    rows: Rows = []
    for k, carried in enumerate(shown.style.carried):
        strips = []
        for label in shown_labels(proxy, len(shown.labels)):
            points, name = points_along(proxy, label, k), shown.labels[label]
            says = f"Points of label {name} from −2 to +2 along direction {k + 1}"
            strips.append(Strip(name, strip(proxy.features[points], *levels), says))
            found = zip(POSITIONS, proxy.coordinates[points, k], strict=True)
            rows.append({"direction": str(k + 1), "label": name, **dict(found)})
        title = f"direction {k + 1}: {carried:.0%} of the differences"
        blocks.append(Pictures(title, marks, tuple(strips)))
    places = [Column(position, _signed(position, 1), "+.2f") for position in POSITIONS]
    return Figure(
        name="style-along",
        title="Points along each direction",
        says=(
            "Proxy points, label by label: from two standard deviations on one side of a "
            "direction to two on the other, and as near as there are to 0 in the other directions."
        ),
        table=Table.of(
            "Where the pictured points lie along their direction",
            rows,
            [Column("direction"), Column("label"), *places],
        ),
        wide=True,
        pictures=tuple(blocks),
    )


def clients_along(styled: StyledClients, proxy: ProxyPoints, direction: int) -> Rows:
    """Simulated clients from one end of a direction to the other, with some points of each.

    A client's position is the mean coordinate of its points; a row has the client at a quantile of it,
    and its points of as many labels as there are, in the order of labels.
    """
    parts = styled.clients
    along = proxy.coordinates[parts.indices, direction]
    means = np.bincount(parts.clients, weights=along, minlength=len(parts)) / parts.sizes
    order = np.argsort(means, kind="stable")
    rows: Rows = []
    for quantile in QUANTILES:
        client = int(order[round(quantile * (len(order) - 1))])
        points = _of_many_labels(parts[client], proxy.labels)
        rows.append({"client": client, "position": float(means[client]), "points": points})
    return rows


def _of_many_labels(points: Ints, labels: Ints) -> Ints:
    """Some of a client's points: one of each label first, then a second of each."""
    mine = labels[points]
    order = np.argsort(mine, kind="stable")
    sorted_labels = mine[order]
    starts = np.flatnonzero(np.r_[True, sorted_labels[1:] != sorted_labels[:-1]])
    turn = np.arange(len(points)) - np.repeat(starts, np.diff(np.r_[starts, len(points)]))
    some = order[np.lexsort((sorted_labels, turn))][:N_POINTS]
    return np.asarray(points[some[np.argsort(mine[some], kind="stable")]])


def _simulated(shown: StyleMaterial, proxy: ProxyPoints, styled: StyledClients) -> Figure:
    levels = brightness(proxy.features)
    blocks: list[Pictures] = []
    rows: Rows = []
    for k in range(shown.style.n_directions):
        strips = []
        found = clients_along(styled, proxy, k)
        for where, row in zip(QUANTILES.values(), found, strict=True):
            labels = ", ".join(shown.labels[label] for label in proxy.labels[row["points"]])
            source = strip(proxy.features[row["points"]], *levels)
            says = f"A simulated client {where} of direction {k + 1}: labels {labels}"
            strips.append(Strip(_signed(row["position"], 1), source, says))
            rows.append({**row, "direction": str(k + 1), "where": where, "labels": labels})
        blocks.append(Pictures(f"direction {k + 1}", (), tuple(strips)))
    mean = Column("position", "mean along the direction", lambda row: _signed(row["position"], 2))
    return Figure(
        name="style-clients",
        title="Simulated clients along each direction",
        says=(
            "Each row is one simulated client and some of the points that it was given. Of all of "
            "them, 5 % have a lower mean along the direction than the first row, 5 % a higher one "
            "than the last; before each row stands its mean."
        ),
        table=Table.of(
            "The clients that are pictured",
            rows,
            [
                *map(Column, ("direction", "where", "client")),
                mean,
                Column("labels", "labels of the points"),
            ],
        ),
        wide=True,
        pictures=tuple(blocks),
    )


def _signed(value: float, digits: int = 0) -> str:
    """A number with its sign, as it is set in text.

    >>> _signed(-2.0), _signed(0.0), _signed(1.5, 1)
    ('−2', '0', '+1.5')
    """
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else "0"


# ------------------------------------------------------------------------ features


def loading_rows(style: Style, names: Sequence[str], proxy: ProxyPoints | None) -> Rows:
    """The features that move most along each direction.

    By how much a feature moves for one standard deviation of the direction, the mean over labels: the
    columns of P W_l^(1/2). With proxy points it is in standard deviations of the feature within labels,
    else in the feature's own unit.
    """
    space = style.space
    roots = np.linalg.inv(space.whitening).mean(axis=0)
    moves = space.basis @ roots
    if proxy is not None:
        spread = _spread_within_labels(proxy, space.n_labels)
        moves = moves / np.where(spread > 0, spread, 1.0)[:, None]
    rows: Rows = []
    for k in range(style.n_directions):
        most = np.argsort(-np.abs(moves[:, k]), kind="stable")[:N_FEATURES]
        rows += [
            {"direction": str(k + 1), "feature": names[j], "moves": float(moves[j, k])}
            for j in most
        ]
    return rows


def _spread_within_labels(proxy: ProxyPoints, n_labels: int) -> Floats:
    some = slice(None, None, max(1, len(proxy.features) // _N_SEARCHED))
    rows = proxy.features[some].reshape(len(proxy.features[some]), -1)
    labels = proxy.labels[some]
    sums = np.zeros((n_labels, rows.shape[1]))
    np.add.at(sums, labels, rows)
    means = sums / np.maximum(np.bincount(labels, minlength=n_labels), 1)[:, None]
    residuals = rows - means[labels]
    return np.asarray(np.sqrt((residuals**2).mean(axis=0)))


def _loadings(shown: StyleMaterial) -> Figure:
    names = shown.features or tuple(f"feature {j}" for j in range(shown.style.space.n_features))
    rows = loading_rows(shown.style, names, shown.proxy)
    unit = "in its own unit" if shown.proxy is None else "in standard deviations of the feature"
    columns = [Column("direction"), Column("feature"), Column("moves", f"change, {unit}", "+.3g")]
    drawn = chart().mark_bar(cornerRadiusEnd=2).encode(
        y=charts.listed("feature"),
        x=measured(alt.X, "moves", unit).axis(tickCount=4, format="~g"),
        color=alt.condition("datum.moves >= 0", *map(alt.value, (charts.tone(1), charts.tone(2)))),
        tooltip=tooltip(*columns[1:]),
    )  # fmt: skip
    panels = []
    for k, carried in enumerate(shown.style.carried, start=1):
        mine = [row for row in rows if row["direction"] == str(k)]
        spec = spec_of(drawn, mine, height=steps(mine, "feature", 24))
        panels.append(Panel(spec, f"direction {k}: {carried:.0%} of the differences"))
    return Figure(
        name="style-features",
        title="Which features each direction moves",
        says=(
            "How much a feature changes for one standard deviation of the direction, among points of "
            f"the same label, {unit}; the features that change most."
        ),
        panels=tuple(panels),
        table=Table.of("The features that change most along each direction", rows, columns),
        wide=True,
    )


# ------------------------------------------------------------------------ how the proxy data serve them


def serving_rows(styled: StyledClients, proxy: ProxyPoints, names: Sequence[str]) -> Rows:
    """For each label that clients ask for: how many points, and how many proxy points suit them."""
    parts, served = styled.clients, styled.style
    used = np.bincount(proxy.labels[np.unique(parts.indices)], minlength=len(names))
    held = parts.histograms(proxy.labels, len(names))
    rows: Rows = []
    for label, name in enumerate(names):
        asking = held[held[:, label] > 0, label]
        if len(asking):
            rows.append(
                {
                    "label": name, "asked": float(asking.mean()), "used": int(used[label]),
                    "median": float(served.effective_median[label]),
                    "low": float(served.effective_low[label]),
                    "available": int(styled.report.available[label]),
                }
            )  # fmt: skip
    return rows


def worst_served(rows: Rows) -> Rows:
    """At most 24 labels: those with the fewest points for what is asked, in their own order."""
    known = [row for row in rows if not np.isnan(row["low"])]
    worst = sorted(known, key=lambda row: row["low"] / row["asked"])[:MOST_LABELS]
    return [row for row in known if row in worst]


def _serving(rows: Rows) -> Figure:
    worst = worst_served(rows)
    some = f" The {MOST_LABELS} labels that are served worst." if len(worst) < len(rows) else ""
    columns = [
        Column("label"),
        Column("asked", "points a client asks for, mean", ".1f"),
        Column("low", "effective, 5 % quantile", ",.0f"),
        Column("median", "effective, median", ",.0f"),
        Column("available", "proxy points", ","),
        Column("used", "proxy points in use", ","),
    ]

    def points(field: str) -> Any:
        return measured(
            alt.X, field, "points (logarithmic)", charts.SHORT, type="log", nice=False, padding=12
        )

    base = chart().encode(y=charts.listed("label", "label"), tooltip=tooltip(*columns))
    spans = base.mark_rule(strokeWidth=5, color=charts.LINE, strokeCap="round")
    drawn = (
        spans.encode(x=points("low"), x2="median:Q")
        + base.mark_point(size=70, color=charts.ACCENT, shape="triangle-up").encode(x=points("low"))
        + base.mark_point(size=80, color=charts.ACCENT).encode(x=points("median"))
        + base.mark_tick(thickness=3, size=16, color=charts.tone(2)).encode(x=points("asked"))
    )
    return Figure(
        name="style-served",
        title="How many proxy points there are for a client’s style",
        says=(
            "The effective sample size: so many points a client chooses from, in effect. Dots are "
            "medians over clients, triangles what 19 of 20 clients have at least; the upright tick is "
            "what a client asks for, in the mean. A triangle to the left of its tick: there are too "
            f"few.{some}"
        ),
        panels=(Panel(spec_of(drawn, worst, height=steps(worst, "label", 26))),),
        table=Table.of("Effective sample sizes and points in use, label by label", rows, columns),
        wide=True,
    )
