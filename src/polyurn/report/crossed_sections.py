"""The section about what crossed the wire, of models that were fitted over a federation.

What is counted for it is `crossed_rows.py`; how it looks is `crossed_charts.py`.
"""

from collections import Counter

from polyurn.report.crossed_charts import bytes_chart
from polyurn.report.crossed_rows import (
    round_rows,
    shown_nodes,
    span,
    what_the_server_saw,
)
from polyurn.report.material import Material
from polyurn.report.parts import DataTable, Figure, Panel, Rows, Section, table_of
from polyurn.wire.crossed import Crossed, NodeCrossed
from polyurn.wording.numbers import counted, in_bytes, in_time

# What the kinds of question ask, for readers who know the page and not the code.
_MEANINGS = {
    "survey": "how clients vary",
    "initialise": "moments of clients that joined a component at random",
    "group": "moments of groups of similar clients",
    "update": "the sums of one EM step",
    "expect": "the sums of an EM step under the parameters of each start",
    "score": "likelihoods only",
    "contrast": "how alike a client’s own points are",
}


def crossed_section(material: Material) -> Section | None:
    """What crossed, if the model's file kept it."""
    crossed = material.made.crossed
    if crossed is None:
        return None
    rows = round_rows(crossed)
    return Section(
        name="crossed",
        title="What crossed the wire",
        lead=_lead(crossed),
        figures=(_bytes(crossed, rows),) if rows else (),
        tables=(_nodes(crossed),) if rows else (),
        facts=_facts(crossed),
    )


def _lead(crossed: Crossed) -> str:
    saw = "sums over nodes, and no node’s answer" if crossed.secure else "every node’s answer"
    return (
        f"The clients’ data stayed at the {counted(crossed.n_nodes, 'node')} of a federation. In "
        f"{counted(crossed.n_rounds, 'round')} the server asked the nodes and saw {saw}."
    )


def _facts(crossed: Crossed) -> tuple[tuple[str, str], ...]:
    return (
        ("What the server saw", f"{what_the_server_saw(crossed)}."),
        ("What a node sent at most", _sent(crossed)),
        (
            "What that does not promise",
            "differential privacy: sums are no guarantee of it. Adding numbers up is not adding noise; "
            "whoever knows the others’ numbers, or two sums that differ by one node, can work out that "
            "node’s.",
        ),
        ("Rounds", _rounds(crossed)),
        ("Bytes", _volume(crossed)),
    )


def _sent(crossed: Crossed) -> str:
    most = max((one.n_numbers for one in crossed.rounds), default=0)
    per_node = counted(crossed.clients_per_node, "client")
    return (
        f"{counted(most, 'number')} in one answer, {crossed.n_numbers:,} in all of them together; each "
        f"is a sum over the node’s clients, {per_node} at most. No record of a client, no id."
    )


def _rounds(crossed: Crossed) -> str:
    said = f"{counted(crossed.n_rounds, 'sum')} in {counted(crossed.n_attempts, 'attempt')}"
    if crossed.sums:
        said += f", over {span([one.n_nodes for one in crossed.sums])} nodes each"
    said += f"; {counted(crossed.n_asks, 'exchange')} of messages, {_timeouts(crossed.n_timeouts)}"
    said += f"; {in_time(crossed.seconds)} in all."
    if crossed.n_earlier:
        rounds = counted(crossed.n_earlier, "round was", "rounds were")
        said += f" {rounds} before the run was resumed, and what crossed then is not known here."
    return said


def _timeouts(n: int) -> str:
    ended = counted(n, "of them ended", "of them ended") if n else "none of which ended"
    return f"{ended} at its timeout because some node did not reply"


def _volume(crossed: Crossed) -> str:
    up, down = crossed.bytes_up, crossed.bytes_down
    said = f"{in_bytes(up)} from nodes and {in_bytes(down)} to them"
    n_heard = sum(node.n_summed > 0 for node in crossed.nodes)
    if n_heard:
        each = f"{in_bytes(round(up / n_heard))} and {in_bytes(round(down / n_heard))}"
        said += f"; for each of the {counted(n_heard, 'node')} in some sum {each}, on average"
    return f"{said}. What the transport adds (TLS, acknowledgements) is not counted."


def _bytes(crossed: Crossed, rows: Rows) -> Figure:
    return Figure(
        name="crossed-bytes",
        title="Bytes of each round",
        says=f"Of all nodes together, by what was asked. {_meanings(rows)}".strip(),
        panels=(
            Panel(bytes_chart(rows, way="up", title="bytes from all nodes"), "from nodes"),
            Panel(bytes_chart(rows, way="down", title="bytes to all nodes"), "to nodes"),
        ),
        table=table_of(
            "What crossed in each round",
            ("round", "asked", "numbers per answer", "nodes in the sum", "attempts",
             "from nodes", "to nodes", "time"),
            (
                (
                    str(row["round"]),
                    row["kind"],
                    f"{row['n_numbers']:,}",
                    f"{row['n_nodes']:,}" if row["n_nodes"] else "no sum",
                    str(row["n_attempts"]),
                    in_bytes(row["up"]),
                    in_bytes(row["down"]),
                    in_time(row["seconds"]),
                )
                for row in rows
            ),
        ),
        wide=True,
    )  # fmt: skip


def _meanings(rows: Rows) -> str:
    """What the kinds of question that are drawn stand for."""
    there = dict.fromkeys(name for row in rows for name in row["asked"].split(", "))
    said = [f"“{name}”: {_MEANINGS[name]}" for name in there if name in _MEANINGS]
    text = "; ".join(said)
    return f"{text}." if text else ""


def _nodes(crossed: Crossed) -> DataTable:
    nodes = shown_nodes(crossed)
    rows = [_node_cells(node) for node in nodes.own]
    if nodes.more:
        rows.append(_together(f"{len(nodes.more):,} more of these", nodes.more))
    if nodes.alike:
        rows.append(_together(f"{len(nodes.alike):,} {'others' if rows else 'nodes'}", nodes.alike))
    some = "; a row each for those that were benched, or of whom a reply was not used"
    return table_of(
        f"The {counted(crossed.n_nodes, 'node')}{some if nodes.alike or nodes.more else ''}",
        (
            "node",
            "sums that it was in",
            "benched, because",
            "replies that were not used, or refusals",
        ),
        rows,
    )


def _node_cells(node: NodeCrossed) -> tuple[str, ...]:
    refused = _with_times(Counter(dict(node.refused)))
    return (node.name, f"{node.n_summed:,}", node.benched or "–", refused)


def _together(name: str, nodes: tuple[NodeCrossed, ...]) -> tuple[str, ...]:
    """One row of many nodes."""
    benched = Counter(node.benched for node in nodes if node.benched is not None)
    refused: Counter[str] = Counter()
    for node in nodes:
        refused.update(dict(node.refused))
    sums = span([node.n_summed for node in nodes])
    return (name, sums, _with_times(benched), _with_times(refused))


def _with_times(reasons: Counter[str]) -> str:
    return ", ".join(f"{why} ({times:,}×)" for why, times in reasons.most_common()) or "–"
