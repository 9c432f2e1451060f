"""The section about styles: what clients differ in besides their labels.

What is computed for it is `style_rows.py`; how it looks is `style_charts.py` and `pictures.py`.
"""

from collections.abc import Collection

import numpy as np

from polyurn.model.style import Style
from polyurn.report import style_charts
from polyurn.report.headline import sweep_verdict
from polyurn.report.material import Material
from polyurn.report.parts import Figure, Panel, Pictures, Rows, Section, Strip, table_of
from polyurn.report.pictures import brightness, is_image, strip
from polyurn.report.style_material import Pool, StyledClients, StyleMaterial
from polyurn.report.style_rows import (
    MOST_LABELS,
    PARTS,
    PLACES,
    clients_along,
    direction_rows,
    floor_rows,
    forecast_rows,
    loading_rows,
    points_along,
    serving_rows,
    shown_labels,
    worst_served,
)
from polyurn.sweeps.results import SIMULATED, Verdict
from polyurn.wording.numbers import counted

_ENDS = ("low", "middle", "high")


def style_section(material: Material) -> Section | None:
    """Styles, if there is one."""
    shown = material.style
    if shown is None:
        return None
    figures = [_carried(shown.style)]
    pool, styled = shown.pool, shown.styled
    if pool is not None and is_image(pool.features.shape[1:]):
        figures.append(_along(shown, pool))
        if styled is not None:
            figures.append(_simulated(shown, pool, styled))
    elif pool is not None or shown.features is not None:
        figures.append(_loadings(shown))
    if pool is not None and styled is not None:
        figures.append(_serving(shown, pool, styled))
    verdict = sweep_verdict(material)
    styled_names = {run.population for run in material.runs if run.styled}
    if verdict is not None and any(v.population in styled_names for v in verdict.simulated):
        figures.append(_forecast(verdict, styled_names))
    return Section(
        name="style",
        title="What clients differ in besides their labels",
        lead=_lead(shown.style),
        figures=tuple(figures),
        facts=_facts(shown),
    )


def _lead(style: Style) -> str:
    shared, by_label = float(np.trace(style.shared)), float(np.trace(style.by_label))
    parts = ""
    if shared + by_label > 0:
        share = shared / (shared + by_label)
        parts = (
            f" {share:.0%} of that is a style that all labels of a client share, the rest is how a "
            "client does a single label."
        )
    return (
        f"Of the variance among points of the same label, {style.between:.0%} lies between clients, "
        f"in {counted(style.n_directions, 'direction')}.{parts}"
    )


def _facts(shown: StyleMaterial) -> tuple[tuple[str, str], ...]:
    style, styled = shown.style, shown.styled
    facts = [("Alarm", _alarm(style)), ("Mean style of the clients", _mean(style))]
    if style.n_clients:
        facts.append(("Learned from", f"sums over {counted(style.n_clients, 'client')}, once"))
    if style.tie is not None and np.trace(style.shared) > 0:
        follows = 1 - float(np.trace(style.untied) / np.trace(style.shared))
        facts.append(
            (
                "Labels and style",
                f"{follows:.0%} of the shared style follows a client’s label shares",
            )
        )
    if styled is not None:
        report = styled.report
        n_pool = int(report.available.sum())
        facts += [
            (
                "Simulated clients",
                f"{counted(len(styled.clients), 'client')} were drawn with this style; they hold "
                f"{counted(report.n_given, 'point')}, {report.n_used:,} of them distinct "
                f"({report.n_used / n_pool:.0%} of the {n_pool:,} in the pool)",
            ),
            ("How the pool serves them", _served(styled)),
        ]
        if styled.n_lacking:
            lacking = counted(styled.n_lacking, "point")
            facts.append(
                ("Labels that the pool lacks", f"{lacking} of them were left out of these clients")
            )
    return tuple((term, f"{_capital(said)}.") for term, said in facts)


def _alarm(style: Style) -> str:
    if style.alarm is not None:
        return f"{style.alarm}; take proxy data that are more like the clients"
    return "none: the clients’ mean style is about the pool’s, and few of their points lie far off"


def _mean(style: Style) -> str:
    away = float(np.linalg.norm(style.mean))
    said = f"{away:.2f} standard deviations from the pool’s"
    if np.isnan(style.far_share):
        return said
    return (
        f"{said}; {style.far_share:.1%} of the clients’ points lie beyond {style.space.radius:.3g}, "
        f"where {style.space.pool_far_share:.1%} of the pool’s do"
    )


def _served(styled: StyledClients) -> str:
    report = styled.style
    if report.remark is not None:
        return report.remark
    return (
        f"in {counted(report.n_directions_used, 'direction')}, all of the style’s; {report.served:.1%} "
        "of clients and labels have an effective sample size of the points that they ask for"
    )


def _carried(style: Style) -> Figure:
    rows = direction_rows(style)
    between = [row for row in rows if row["part"] != PARTS[-1]]
    return Figure(
        name="style-directions",
        title="What each direction carries",
        says=(
            "A direction is one way in which points of the same label differ. Where clients differ "
            "along it, all labels of a client may do so together, or each label by itself. The second "
            f"chart has what varies within a client and label as well{_intervals(style)}."
        ),
        panels=(
            Panel(style_charts.carried_chart(between), "clients’ differences"),
            Panel(style_charts.variance_chart(rows), "variance of points"),
        ),
        table=table_of(
            "Directions, with standard errors",
            ("direction", "share of the clients’ differences", "clients’ mean", *PARTS),
            (_direction_cells(style, k, rows[3 * k : 3 * k + 3]) for k in range(len(rows) // 3)),
        ),
        wide=True,
    )


def _intervals(style: Style) -> str:
    return "" if style.errors is None else ", with 95 % intervals"


def _direction_cells(style: Style, k: int, rows: Rows) -> tuple[str, ...]:
    error = None if style.errors is None else float(style.errors.mean[k])
    return (
        str(k + 1),
        f"{style.carried[k]:.1%}",
        _with_error(float(style.mean[k]), error),
        *(_with_error(row["variance"], row["error"]) for row in rows),
    )


def _along(shown: StyleMaterial, pool: Pool) -> Figure:
    levels = brightness(pool.features)
    labels = shown_labels(pool, len(shown.labels))
    blocks, cells = [], []
    for k in range(shown.style.n_directions):
        strips = []
        for label in labels:
            points, name = points_along(pool, label, k), shown.labels[label]
            says = f"Points of label {name} from −2 to +2 along direction {k + 1}"
            source = strip(pool.features[points], black=levels[0], white=levels[1])
            strips.append(Strip(name, source, says))
            found = pool.coordinates[points, k]
            cells.append((str(k + 1), name, *(f"{value:+.2f}" for value in found)))
        marks = tuple(_signed(place) if place == int(place) else "" for place in PLACES)
        title = f"direction {k + 1}: {shown.style.carried[k]:.0%} of the differences"
        blocks.append(Pictures(title, marks, tuple(strips)))
    return Figure(
        name="style-along",
        title="Points along each direction",
        says=(
            "Points of the pool, label by label: from two standard deviations on one side of a "
            "direction to two on the other, and as near as there are to 0 in the other directions."
        ),
        panels=(),
        table=table_of(
            "Where the pictured points lie along their direction",
            ("direction", "label", *(_signed(place, 1) for place in PLACES)),
            cells,
        ),
        wide=True,
        pictures=tuple(blocks),
    )


def _simulated(shown: StyleMaterial, pool: Pool, styled: StyledClients) -> Figure:
    levels = brightness(pool.features)
    blocks, cells = [], []
    for k in range(shown.style.n_directions):
        strips = []
        for end, row in zip(_ENDS, clients_along(styled, pool, k), strict=True):
            names = ", ".join(shown.labels[label] for label in pool.labels[row["points"]])
            says = f"A simulated client at the {end} end of direction {k + 1}: labels {names}"
            if end == _ENDS[1]:
                says = f"A simulated client in the middle of direction {k + 1}: labels {names}"
            source = strip(pool.features[row["points"]], black=levels[0], white=levels[1])
            strips.append(Strip(_signed(row["place"], 1), source, says))
            cells.append((str(k + 1), end, str(row["client"]), _signed(row["place"], 2), names))
        blocks.append(Pictures(f"direction {k + 1}", (), tuple(strips)))
    return Figure(
        name="style-clients",
        title="Simulated clients along each direction",
        says=(
            "Each row is one simulated client and some of the points that it was given. Of all of "
            "them, 5 % have a lower mean along the direction than the first row, 5 % a higher one "
            "than the last; before each row stands its mean."
        ),
        panels=(),
        table=table_of(
            "The clients that are pictured",
            ("direction", "end", "client", "mean along the direction", "labels of the points"),
            cells,
        ),
        wide=True,
        pictures=tuple(blocks),
    )


def _loadings(shown: StyleMaterial) -> Figure:
    n = shown.style.space.n_features
    names = shown.features or tuple(f"feature {j}" for j in range(n))
    rows = loading_rows(shown.style, names, shown.pool)
    unit = "in its own unit" if shown.pool is None else "in standard deviations of the feature"
    panels = tuple(
        Panel(
            style_charts.loadings_chart([row for row in rows if row["direction"] == k], unit=unit),
            f"direction {k}: {shown.style.carried[int(k) - 1]:.0%} of the differences",
        )
        for k in dict.fromkeys(row["direction"] for row in rows)
    )
    return Figure(
        name="style-features",
        title="Which features each direction moves",
        says=(
            "How much a feature changes for one standard deviation of the direction, among points of "
            f"the same label, {unit}; the features that change most."
        ),
        panels=panels,
        table=table_of(
            "The features that change most along each direction",
            ("direction", "feature", f"change, {unit}"),
            ((row["direction"], row["feature"], f"{row['moves']:+.3g}") for row in rows),
        ),
        wide=True,
    )


def _serving(shown: StyleMaterial, pool: Pool, styled: StyledClients) -> Figure:
    rows = serving_rows(styled, pool, shown.labels)
    drawn = worst_served(rows)
    some = f" The {MOST_LABELS} labels that are served worst." if len(drawn) < len(rows) else ""
    return Figure(
        name="style-served",
        title="How many points the pool has for a client’s style",
        says=(
            "The effective sample size: so many points a client chooses from, in effect. Dots are "
            "medians over clients, triangles what 19 of 20 clients have at least; the upright tick is "
            "what a client asks for, in the mean. A triangle to the left of its tick: the pool is too "
            f"small.{some}"
        ),
        panels=(Panel(style_charts.serving_chart(drawn)),),
        table=table_of(
            "Effective sample sizes and points in use, label by label",
            ("label", "points a client asks for, mean", "effective, 5 % quantile",
             "effective, median", "in the pool", "distinct points in use"),
            (
                (
                    row["label"],
                    f"{row['asked']:.1f}",
                    _number(row["low"]),
                    _number(row["median"]),
                    f"{row['available']:,}",
                    f"{row['used']:,} ({row['used'] / max(row['available'], 1):.0%})",
                )
                for row in rows
            ),
        ),
        wide=True,
    )  # fmt: skip


def _forecast(verdict: Verdict, styled: Collection[str]) -> Figure:
    rows, floor = forecast_rows(verdict, styled), floor_rows(verdict)
    unit = "points" if verdict.wording.in_points else verdict.metric
    title = f"simulated less true, {unit}"
    return Figure(
        name="style-forecast",
        title="The forecast with and without style",
        says=(
            f"How much more {verdict.metric} each population promises than the true clients reach. "
            f"{_paired(verdict, styled)} Lines are {100 * verdict.confidence:g} % intervals over seeds."
            + (" The grey band is how far true clients trained again are off." if floor else "")
        ),
        panels=(Panel(style_charts.forecast_chart(rows, floor, title=title)),),
        table=table_of(
            f"What training on each population promises too much, in {unit}",
            ("population", "style", "simulated less true", "interval", "absolute difference"),
            (
                (
                    row["population"],
                    row["style"],
                    f"{row['off']:+.2f}",
                    f"{row['low']:+.2f} to {row['high']:+.2f}",
                    f"{row['difference']:.2f}",
                )
                for row in rows
            ),
        ),
        wide=True,
    )


def _paired(verdict: Verdict, styled: Collection[str]) -> str:
    """Each population with a style, against the one that others are held against, which has none."""
    names = [found.population for found in verdict.simulated]
    is_there = SIMULATED in names and SIMULATED not in styled
    with_style = [name for name in names if name in styled and is_there]
    said = [verdict.pair_sentence(SIMULATED, name) for name in with_style]
    # The name of a population stays as it is spelled.
    return (
        " ".join(f"{_capital(one) if one.startswith('it ') else one}." for one in said)
        or f"No population {SIMULATED!r} without a style was trained beside it."
    )


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"


def _signed(value: float, digits: int = 0) -> str:
    """A number with its sign, as it is set in text.

    Examples
    --------
    >>> _signed(-2.0), _signed(0.0), _signed(1.5, 1)
    ('−2', '0', '+1.5')
    """
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else "0"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:,.0f}"


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
