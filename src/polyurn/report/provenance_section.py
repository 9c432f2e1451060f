"""How a result came about: the traffic of its federation; versions, seeds, commands and data.

Facts from the files, in words and tables; nothing is measured here.
"""

from collections import Counter

from polyurn.report.material import Material
from polyurn.report.parts import Section, Table
from polyurn.server.fit_results import Fit
from polyurn.storage.provenance import DataProvenance, Provenance
from polyurn.wire.traffic import NodeTraffic, Traffic
from polyurn.wording import counted, in_bytes, in_time, span

# Nodes that have a row of their own: the table fits on a screen with the row of all the others.
MOST_NODES = 24
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


def provenance_section(material: Material) -> Section:
    """The last section of a page."""
    from polyurn import __version__

    facts = [("Page", f"written by polyurn {__version__}")]
    facts += _provenance_facts("Model", material.provenance)
    if material.provenance.fit is not None or material.provenance.privacy is not None:
        facts.append(("Privacy: what is guaranteed", material.provenance.privacy_in_words))
    if material.provenance.fit is not None:
        facts += _wire_facts(material.provenance.fit, material.provenance.traffic)
    if material.style is not None:
        facts += _provenance_facts("Style", material.style.provenance)
        if material.style.provenance.privacy is not None:
            facts.append(("Style: what is guaranteed", material.style.provenance.privacy_in_words))
        if (traffic := material.style.provenance.traffic) is not None:
            text = "; ".join([traffic.line, *traffic.absences])
            facts.append(("Style: traffic on the wire", text))
    if material.comparison is not None:
        facts += _provenance_facts("Comparison", material.comparison_provenance)
        facts.append(("Comparison", material.comparison.standing))
    if runs := material.runs:
        minutes = sum(run.seconds for run in runs) / 60
        text = (
            f"{counted(len(runs), 'run')} on {len({run.population for run in runs})} populations, seeds "
            f"{', '.join(map(str, sorted({run.seed for run in runs})))}, engine "
            f"{', '.join(sorted({run.engine for run in runs}))}, {minutes:.1f} minutes of training"
        )
        facts.append(("Sweep", text))
    drawn = [
        f"{name}: {len(table):,} of {material.n_clients[name]:,} drawn"
        for name, table in material.clients.items()
    ]
    if drawn:
        facts.append(("Clients", "; ".join(drawn)))
    return Section(
        name="provenance",
        title="Where this came from",
        lead="Enough to make the same page again, and to say what clients gave away for it.",
        facts=(*facts, *material.notes),
    )


def _provenance_facts(what: str, provenance: Provenance) -> list[tuple[str, str]]:
    data, last = provenance.data, provenance.interrupted_after_round
    if isinstance(data, DataProvenance):
        data = (
            f"{data.file}: {counted(data.n_clients, 'client')}, {counted(data.n_points, 'point')}, "
            f"{counted(data.n_categories, 'category')}"
        )
    facts = {
        "command": provenance.command,
        "seed": provenance.seed,
        "version": provenance.polyurn and f"polyurn {provenance.polyurn}",
        "data": data,
        "rounds": None if last is None else f"interrupted by hand after round {last}",
    }
    return [(f"{what}: {name}", str(fact)) for name, fact in facts.items() if fact is not None]


def _wire_facts(found: Fit, traffic: Traffic | None) -> list[tuple[str, str]]:
    """What a client sent, and how often."""
    most = max(one.n_numbers for one in found.rounds)
    what = (
        "sums over clients of addable statistics, never a client’s records or histogram"
        if traffic is None
        else f"{traffic.line}; the section of that name has the rest"
    )
    crowd = f"{found.n_rounds} with {counted(found.n_clients, 'client')} each"
    if found.fewest_clients != found.n_clients:
        crowd = (
            f"{found.n_rounds} with up to {counted(found.n_clients, 'client')}; the smallest sums are "
            f"over {found.fewest_clients:,} of them"
        )
    per_client = f"at most {most:,} in a round; in all rounds together {found.cost}"
    facts = [
        ("Privacy: traffic on the wire", what),
        ("Privacy: numbers per client", per_client),
        ("Privacy: rounds", crowd),
    ]
    if found.n_held_out:
        facts.append(("Held out", f"{counted(found.n_held_out, 'client')} only scored"))
    return facts


# ------------------------------------------------------------------------ traffic


def traffic_section(material: Material) -> Section | None:
    """The traffic of a federation, if the model's file kept it."""
    traffic = material.provenance.traffic
    if traffic is None:
        return None
    saw = "sums over nodes, and no node’s answer" if traffic.secure else "every node’s answer"
    return Section(
        name="traffic",
        title="Traffic on the wire",
        lead=(
            f"The clients’ data stayed at the {counted(traffic.n_nodes, 'node')} of a federation. In "
            f"{counted(traffic.n_rounds, 'round')} the server asked the nodes and saw {saw}."
        ),
        tables=(_round_table(traffic), _nodes(traffic)) if traffic.rounds else (),
        facts=_facts(traffic),
    )


def _facts(traffic: Traffic) -> tuple[tuple[str, str], ...]:
    most = max((one.n_numbers for one in traffic.rounds), default=0)
    asked = " ".join(one.kind for one in traffic.rounds).replace(",", "").split()
    meanings = [f"“{name}”: {what}" for name, what in _MEANINGS.items() if name in asked]
    per_node = counted(traffic.clients_per_node, "client")
    return (
        ("What the server saw", f"{what_the_server_saw(traffic)}."),
        (
            "What a node sent at most",
            f"{counted(most, 'number')} in one answer, {traffic.n_numbers:,} in all of them together; "
            f"each is a sum over the node’s clients, {per_node} at most. No record of a client, no id.",
        ),
        (
            "What that does not promise",
            "differential privacy: sums are no guarantee of it. Adding numbers up is not adding noise; "
            "whoever knows the others’ numbers, or two sums that differ by one node, can work out that "
            "node’s.",
        ),
        ("What nodes were asked", f"{'; '.join(meanings) or 'nothing'}."),
        ("Rounds", _rounds(traffic)),
        ("Nodes that were not in every sum", f"{'; '.join(traffic.absences) or 'none'}."),
        ("Bytes", _volume(traffic)),
    )


def _rounds(traffic: Traffic) -> str:
    text, n_late = counted(traffic.n_rounds, "sum"), traffic.n_timeouts
    text += f" in {counted(traffic.n_attempts, 'attempt')}"
    if traffic.sums:
        text += f", over {span([one.n_nodes for one in traffic.sums])} nodes each"
    late = counted(n_late, "of them ended", "of them ended") if n_late else "none of which ended"
    text += (
        f"; {counted(traffic.n_asks, 'exchange')} of messages, {late} at its timeout because some node "
        f"did not reply; {in_time(traffic.seconds)} in all."
    )
    if traffic.n_earlier:
        rounds = counted(traffic.n_earlier, "round was", "rounds were")
        text += f" {rounds} before the run was resumed; what clients sent in them was not kept."
    return text


def _volume(traffic: Traffic) -> str:
    up, down = traffic.bytes_up, traffic.bytes_down
    text = f"{in_bytes(up)} from nodes and {in_bytes(down)} to them"
    n_heard = sum(node.n_summed > 0 for node in traffic.nodes)
    if n_heard:
        each = f"{in_bytes(round(up / n_heard))} and {in_bytes(round(down / n_heard))}"
        text += f"; for each of the {counted(n_heard, 'node')} in some sum {each}, on average"
    return f"{text}. What the transport adds (TLS, acknowledgements) is not counted."


# ------------------------------------------------------------------------ rounds


def _round_table(traffic: Traffic) -> Table:
    """A row for each round: what was asked, and what was sent."""
    rows = [
        (
            str(one.number),
            one.kind,
            f"{one.n_numbers:,}",
            f"{one.n_nodes:,}" if one.n_nodes else "no sum",
            str(one.n_attempts),
            in_bytes(one.bytes_up),
            in_bytes(one.bytes_down),
            in_time(one.seconds),
        )
        for one in traffic.rounds
    ]
    return Table(
        "Traffic of each round",
        (
            "round", "asked", "numbers per answer", "nodes in the sum", "attempts", "from nodes",
            "to nodes", "time",
        ),
        tuple(rows),
    )  # fmt: skip


# ------------------------------------------------------------------------ nodes


def _nodes(traffic: Traffic) -> Table:
    """A row for each node; of a large federation, for those that were excluded, refused or absent."""
    own, some = list(traffic.nodes), ""
    if len(own) > MOST_NODES:
        odd = [node for node in own if node.excluded or node.refused or node.absent]
        own = sorted(odd, key=lambda node: (node.excluded is None, -node.n_refused))[:MOST_NODES]
        some = (
            "; a row each for those that were excluded or absent, or of whom a reply was not used"
        )
    rows = [_row(one.name, one) for one in own]
    if others := [node for node in traffic.nodes if node not in own]:
        rows.append(_row(f"{len(others):,} {'others' if own else 'nodes'}", *others))
    return Table(
        f"The {counted(traffic.n_nodes, 'node')}{some}",
        (
            "node",
            "sums that it was in",
            "excluded, because",
            "replies that were not used, or refusals",
        ),
        tuple(rows),
    )


def _row(name: str, *nodes: NodeTraffic) -> tuple[str, ...]:
    """The row of a node, or of many together."""
    excluded = Counter(node.excluded for node in nodes if node.excluded is not None)
    why = _with_times(excluded) if len(nodes) > 1 else nodes[0].excluded or "–"
    refused: Counter[str] = Counter()
    for node in nodes:
        refused.update(dict(node.refused))
    return (name, span([node.n_summed for node in nodes]), why, _with_times(refused))


def _with_times(reasons: Counter[str]) -> str:
    return ", ".join(f"{why} ({times:,}×)" for why, times in reasons.most_common()) or "–"


def what_the_server_saw(traffic: Traffic) -> str:
    """Sums only, or every node's answer."""
    sums = traffic.sums
    if not traffic.secure:
        return (
            "every node’s answer: numbers that the node had summed over its clients. Of a node that "
            "holds one client they are that client’s own, and its histogram can be read off them"
        )
    fewest = min((one.n_nodes for one in sums), default=0)
    over = f", over {counted(fewest, 'node')} at least" if sums else ""
    return (
        f"sums only{over}: each node’s numbers came behind masks, which cancel when all are added. "
        "A single node’s answer can be read only if so many other nodes help the server that they "
        "reach the protocol’s threshold; no outside cryptographer has reviewed the protocol"
    )
