"""Traffic between a server and the nodes of a federation, as a value that a model's file keeps.

Counts, names of nodes and reasons only, no number of an answer. `federation/aggregator.py` counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyurn.typed.json_form import Count, Finite
from polyurn.wording import counted, in_bytes, listed, span

NOT_THERE = "it was not there"


@dataclass(frozen=True, kw_only=True)
class RoundTraffic:
    """The messages of one round, all its attempts together; a resumed run continues the earlier run's
    numbers.

    `kind` is what was asked: "survey" or "batch of 4 expect", say. `n_numbers` are in one answer,
    `n_nodes` in the sum, 0 if there was none. The bytes are those of messages to nodes and of their
    replies, without what the transport adds; the seconds go from the first message to the sum.
    """

    number: Count
    kind: str
    n_numbers: Count
    n_nodes: Count
    n_attempts: Count
    bytes_down: Count
    bytes_up: Count
    seconds: Finite


@dataclass(frozen=True)
class Absence:
    """Rounds in whose sums a node was not, from `first` to `last`, and why it was not in the first."""

    first: Count
    last: Count
    why: str


@dataclass(frozen=True, kw_only=True)
class NodeTraffic:
    """What one node contributed, and why not more.

    It was in the sums of `n_summed` rounds. `excluded` says why it was excluded from further rounds;
    `refused` are reasons why a reply was not used, its own refusals among them, and how often. `absent`
    are the rounds whose sum it was not in, but for those whose cohort was drawn without it.
    """

    node: Count
    name: str
    n_summed: Count = 0
    excluded: str | None = None
    refused: tuple[tuple[str, Count], ...] = ()
    absent: tuple[Absence, ...] = ()

    @property
    def n_refused(self) -> int:
        """Replies that were not used."""
        return sum(times for _, times in self.refused)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """All messages in the rounds of one aggregator: `rounds` in which a node was asked.

    If `secure`, the server saw sums only, else every node's answer. `clients_per_node` is the declared
    largest number. Of `n_asks` exchanges, one for a plain sum and five for a secure one, `n_timeouts`
    had a node that did not reply in time. `nodes` are all that have a name or ever connected.
    """

    secure: bool
    clients_per_node: Count
    n_asks: Count
    n_timeouts: Count
    rounds: tuple[RoundTraffic, ...]
    nodes: tuple[NodeTraffic, ...]

    def named(self, names: Mapping[int, str]) -> "Traffic":
        """The same with names of nodes, and entries for named nodes that never connected."""
        known = {node.node: node for node in self.nodes}
        sums = [one.number for one in self.sums]
        never = (Absence(sums[0], sums[-1], NOT_THERE),) if sums else ()
        absent = {n: NodeTraffic(node=n, name=name, absent=never) for n, name in names.items()}
        both = sorted({**absent, **known}.items())
        nodes = tuple(replace(one, name=names.get(node, one.name)) for node, one in both)
        return replace(self, nodes=nodes)

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def sums(self) -> tuple[RoundTraffic, ...]:
        """The rounds that ended in a sum."""
        return tuple(one for one in self.rounds if one.n_nodes > 0)

    @property
    def n_rounds(self) -> int:
        return len(self.sums)

    @property
    def n_attempts(self) -> int:
        """The number of sums that were begun."""
        return sum(one.n_attempts for one in self.rounds)

    @property
    def bytes_down(self) -> int:
        return sum(one.bytes_down for one in self.rounds)

    @property
    def bytes_up(self) -> int:
        return sum(one.bytes_up for one in self.rounds)

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.rounds)

    @property
    def n_earlier(self) -> int:
        """The number of rounds of an earlier run, which are not kept here."""
        return max(self.rounds[0].number - 1, 0) if self.rounds else 0

    @property
    def n_numbers(self) -> int:
        """The most numbers that a node sent in all rounds together, one answer in each attempt."""
        return sum(one.n_numbers * one.n_attempts for one in self.rounds)

    @property
    def line(self) -> str:
        """A summary: "plain sums over 1 node: 1 round, 300 B up, 200 B down"."""
        in_sums = [one.n_nodes for one in self.sums] or [self.n_nodes]
        of = f"{span(in_sums)} of " if min(in_sums) < self.n_nodes else ""
        return (
            f"{'secure' if self.secure else 'plain'} sums over {of}{counted(self.n_nodes, 'node')}: "
            f"{counted(self.n_rounds, 'round')}, {in_bytes(self.bytes_up)} up, "
            f"{in_bytes(self.bytes_down)} down"
        )

    @property
    def absences(self) -> list[str]:
        """Sentences that say which nodes were not in all sums, in which rounds, and why."""
        alike: dict[str, list[str]] = {}
        for node in self.nodes:
            for one in node.absent:
                when = f" in round{'s' * (one.first < one.last)} {span([one.first, one.last])}"
                of_all = node.n_summed or self.n_earlier  # or else there is nothing of it
                alike.setdefault(f"{when if of_all else ''}: {one.why}", []).append(node.name)
        return [f"without {listed(names)}{rest}" for rest, names in alike.items()]
