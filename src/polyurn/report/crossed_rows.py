"""What crossed between a server and its nodes, as rows, and in words.

Counts only; what is drawn of them is `crossed_charts.py`.
"""

import re
from dataclasses import dataclass

from polyurn.report.parts import Rows
from polyurn.wire.crossed import Crossed, NodeCrossed
from polyurn.wording.numbers import counted

# As many as there are shapes that an eye tells apart; further kinds of question are drawn as one.
MOST_KINDS = 6
# Of a larger federation only nodes of whom something is to be said have a row, and so many of these: the
# table fits on a screen with the row of all the others.
MOST_NODES, MOST_ODD = 24, 10
OTHER = "other"


def round_rows(crossed: Crossed) -> Rows:
    """One row per round: what was asked, and what crossed; `asked` is the kind without its numbers."""
    asked = [_asked(one.kind) for one in crossed.rounds]
    names = [*dict.fromkeys(asked)]
    if len(names) > MOST_KINDS:
        asked = [name if name in names[: MOST_KINDS - 1] else OTHER for name in asked]
    return [
        {
            "round": one.number,
            "kind": one.kind,
            "asked": name,
            "n_numbers": one.n_numbers,
            "n_nodes": one.n_nodes,
            "n_attempts": one.n_attempts,
            "down": one.bytes_down,
            "up": one.bytes_up,
            "seconds": one.seconds,
        }
        for name, one in zip(asked, crossed.rounds, strict=True)
    ]


@dataclass(frozen=True)
class ShownNodes:
    """The nodes that have a row of their own, and the others.

    Attributes
    ----------
    own : tuple of NodeCrossed
    alike : tuple of NodeCrossed
        Neither benched nor ever refused.
    more : tuple of NodeCrossed
        Benched or refused, and too many to show.
    """

    own: tuple[NodeCrossed, ...]
    alike: tuple[NodeCrossed, ...]
    more: tuple[NodeCrossed, ...]


def shown_nodes(crossed: Crossed) -> ShownNodes:
    """All nodes of a small federation; of a large one those of whom something is to be said.

    Benched ones come first, then those whose replies were not used most often.
    """
    if len(crossed.nodes) <= MOST_NODES:
        return ShownNodes(crossed.nodes, (), ())
    odd = [node for node in crossed.nodes if node.benched is not None or node.refused]
    odd.sort(key=lambda node: (node.benched is None, -node.n_refused))
    alike = tuple(node for node in crossed.nodes if node.benched is None and not node.refused)
    return ShownNodes(tuple(odd[:MOST_ODD]), alike, tuple(odd[MOST_ODD:]))


def span(numbers: list[int]) -> str:
    """The smallest and the largest of some numbers.

    Examples
    --------
    >>> span([9, 7, 9]), span([9, 9])
    ('7 to 9', '9')
    """
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def what_the_server_saw(crossed: Crossed) -> str:
    """Sums only, or every node's answer."""
    sums = crossed.sums
    if not crossed.secure:
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


def _asked(kind: str) -> str:
    """The kinds inside a question, without how many there are of each.

    Examples
    --------
    >>> _asked("batch of 42 expect, 1 score"), _asked("part of 97 group"), _asked("survey")
    ('expect, score', 'group', 'survey')
    """
    return re.sub(r"^(?:batch|part) of |\b\d+ ", "", kind)
