"""Looks at clients: what they are like, and over time weights, sizes, fit and the unexplained."""

from collections.abc import Iterable

import altair as alt

from polyurn.comparison.estimates import Estimate
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
from polyurn.report.parts import Figure, Panel, Section, Table
from polyurn.server.describing import QUANTILES, ColumnDescription
from polyurn.server.drift import Block
from polyurn.storage.look_history import LookEntry
from polyurn.wording import counted

# What is drawn, with its title and what it says; the least share of a line that is worth drawing.
_FIGURES: dict[Block, tuple[str, str]] = {
    "component": ("Weights of the components", "The weights under which clients would be as seen."),
    "size": ("Sizes", "The share of clients of each range of sizes."),
    "fit": ("Fit", "Nats per client above what the mixture expects of clients of like size."),
    "unexplained": ("Clients that no component explains", "A share of all clients."),
}
_LEAST = 0.01
# Categories that are drawn; all of them are in the table.
_MOST_CATEGORIES = 30


def description_section(material: Material) -> Section | None:
    """What clients are like, if they were described, or a column of their records."""
    found = material.description
    if found is None:
        return None
    title, lead = "What clients are like", "Intervals are of 95 %, sampling and noise together."
    facts = [("Clients", f"{found.n_clients:,.0f}")]
    if isinstance(found, ColumnDescription):
        says = "The numbers below which these shares of clients' points are, each client counting once."
        ranks = [f"{rank:.3g}" for rank in found.ranks]
        figures = [_estimates("column", found.column, says, ranks, found.quantiles, ",.5~g")]
        facts.append(("Bins", f"--bins={found.bins}"))
    else:
        order = sorted(range(len(found.shares)), key=lambda j: -found.shares[j].value)
        names = [str(j) if found.categories is None else found.categories[j] for j in order]
        of_clients = "The sizes below which these shares of clients are."
        sizes = [f"{q:.0%}" for q in QUANTILES]
        counts_once, holds = (
            "Mean shares, each client counting once.",
            "How many clients hold each.",
        )
        shares, holders = ([each[j] for j in order] for each in (found.shares, found.holders))
        figures = [
            _estimates("described-sizes", "Sizes", of_clients, sizes, found.sizes, ",.0f"),
            _estimates("described-shares", "Categories", counts_once, names, shares, ".1%"),
            _estimates("described-holders", "Who holds them", holds, names, holders, ",.0f"),
        ]
        facts += [
            ("How different they are", f"{found.sentence}."),
            ("Share of variance between clients", f"{found.between:.3f}"),
            ("Effective categories of a client", f"{found.effective_categories:.2f}"),
            ("Best single α", f"{found.alpha:.3g}"),
        ]
    facts.append(("Privacy", found.privacy_in_words))
    return Section("description", title, lead, tuple(figures), facts=tuple(facts))


def _estimates(
    name: str, title: str, says: str, names: Iterable[str], values: Iterable[Estimate], show: str
) -> Figure:
    """Numbers with their intervals, one under the other; an end that is not finite is not drawn."""
    rows = [{"name": one, "value": of} for one, of in zip(names, values, strict=True)]
    drawn = rows[:_MOST_CATEGORIES]
    columns = [Column("name"), Column("value", show=show.replace("~", ""))]
    base = chart().encode(y=listed("name"), tooltip=tooltip(*columns))
    ends = base.mark_rule(color=ACCENT).encode(
        x=measured(alt.X, "value_low", None), x2="value_high:Q"
    )
    dots = base.mark_point(color=ACCENT).encode(x=measured(alt.X, "value", None, show))
    panel = Panel(spec_of(ends + dots, drawn, height=steps(drawn, "name", 22)))
    return Figure(name, title, says, Table.of(title, rows, columns), (panel,))


def looks_section(material: Material) -> Section | None:
    """The looks of a history, if there is one."""
    looks = material.looks
    if not looks:
        return None
    facts = tuple((f"{one.when[:10]}: {one.clients}", f"{one.drift.sentence}.") for one in looks)
    return Section(
        name="looks",
        title="Whether clients still are what the mixture says",
        lead=f"At the last look, {looks[-1].drift.sentence}. {counted(len(looks), 'look')} at clients, "
        "each one round of sums. Intervals are of 95 %; what has moved is farther off than chance would "
        "bring any of the numbers, and ringed in black.",
        figures=tuple(
            figure for block in _FIGURES if (figure := _figure(block, looks)) is not None
        ),
        facts=facts,
    )


def look_rows(block: Block, looks: tuple[LookEntry, ...]) -> Rows:
    """A row for each look and name of a block; of names that hardly occur, none."""
    rows: Rows = [
        {
            "look": i, "clients": one.clients, "when": one.when, "name": change.name,
            "value": change.now, "moved": change.moved,
        }
        for i, one in enumerate(looks, start=1)
        for change in one.drift.changes
        if change.block == block
    ]  # fmt: skip
    shown = {
        change.name
        for one in looks
        for change in one.drift.changes
        if block == "fit" or (change.block == block and change.now.value >= _LEAST)
    }
    return [row for row in rows if row["name"] in shown]


def _figure(block: Block, looks: tuple[LookEntry, ...]) -> Figure | None:
    rows = look_rows(block, looks)
    if not rows:
        return None
    title, says = _FIGURES[block]
    show = ".3f" if block == "fit" else ".1%"
    x = alt.X("look:O", title="look", axis=alt.Axis(labelAngle=0))
    base = chart().encode(x=x, **keyed("name", names_of(rows, "name")))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(format=show))
    lines = base.mark_line(strokeWidth=1.5).encode(y=y)
    ends = base.mark_rule().encode(y=alt.Y("value_low:Q", title=None), y2="value_high:Q")
    columns = [Column("clients"), Column("name"), Column("value", show=show)]
    dots = base.mark_point(size=60, filled=True).encode(y=y, tooltip=tooltip(*columns))
    rings = chart().transform_filter("datum.moved").mark_point(size=180, color="black")
    drawn = lines + ends + dots + rings.encode(x=x, y=y)
    table = Table.of(title, rows, [Column("look"), *columns])
    panel = Panel(spec_of(drawn, rows, height=260))
    return Figure(f"looks-{block}", title, says, table, (panel,))
