"""Looks at clients over time: weights, sizes, fit and what no component explains, with intervals."""

import altair as alt

from polyurn.report.charts import Column, Rows, chart, keyed, names_of, spec_of, tooltip
from polyurn.report.material import Material
from polyurn.report.parts import Figure, Panel, Section, Table
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
            "value": change.now.value, "low": change.now.low, "high": change.now.high,
            "moved": change.moved,
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
    ends = base.mark_rule().encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    hints = tooltip("name", "clients", ("value", show), ("low", show), ("high", show))
    dots = base.mark_point(size=60, filled=True).encode(y=y, tooltip=hints)
    rings = chart().transform_filter("datum.moved").mark_point(size=180, color="black")
    drawn = lines + ends + dots + rings.encode(x=x, y=y)
    columns = [Column(name, show=show) for name in ("value", "low", "high")]
    table = Table.of(title, rows, [Column("look"), Column("clients"), Column("name"), *columns])
    panel = Panel(spec_of(drawn, rows, height=260))
    return Figure(f"looks-{block}", title, says, table, (panel,))
