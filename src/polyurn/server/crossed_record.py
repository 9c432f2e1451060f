"""What crossed between a server and the nodes of a federation, as a value that an MDM file keeps.

Counts, names of nodes and reasons only, no number of an answer; written to JSON records and read from
them, field by field. `aggregate/tally.py` counts, and writes the same record.
"""

from dataclasses import dataclass

from polyurn.errors import ParameterError
from polyurn.typed.records import Count, Finite, Record
from polyurn.wording.numbers import counted, in_bytes


@dataclass(frozen=True, kw_only=True)
class RoundCrossed:
    """What crossed in one round, all its attempts together.

    Attributes
    ----------
    number : int
        From 1; rounds of an earlier run, which this one went on from, are counted and not kept.
    kind : str
        What was asked, e.g. "survey" or "batch of 4 expect".
    n_numbers : int
        In one answer.
    n_nodes : int
        That the sum is over; 0 if there was none.
    n_attempts, bytes_down, bytes_up : int
    seconds : float
    """

    number: Count
    kind: str
    n_numbers: Count
    n_nodes: Count
    n_attempts: Count
    bytes_down: Count
    bytes_up: Count
    seconds: Finite


@dataclass(frozen=True, kw_only=True)
class NodeCrossed:
    """What is to be said about one node.

    Attributes
    ----------
    node : int
    name : str
    n_summed : int
        Rounds whose sum it was in.
    benched : str or None
        Why it was not asked any more.
    refused : tuple of (str, int)
        Reasons why a reply of it was not used, its own refusals among them, and how often.
    """

    node: Count
    name: str
    n_summed: Count
    benched: str | None = None
    refused: tuple[tuple[str, Count], ...] = ()

    @property
    def n_refused(self) -> int:
        """Replies that were not used."""
        return sum(times for _, times in self.refused)


@dataclass(frozen=True, kw_only=True)
class CrossedRecord(Record, where="crossed"):
    """All that crossed while a model was fitted.

    Attributes
    ----------
    secure : bool
        Whether the server saw sums only, or every node's answer.
    n_nodes : int
        Of the federation: every one that is known by name, or was ever there.
    clients_per_node : int
        The declared largest number of clients of a node.
    n_rounds, n_attempts : int
        Sums, and how many times one was begun.
    n_asks : int
        Exchanges: a plain sum takes one, a secure one five.
    n_timeouts : int
        Exchanges in which somebody did not reply in time.
    bytes_down, bytes_up : int
        In messages to nodes and in their replies; without what the transport adds.
    seconds : float
        Wall time of all rounds.
    rounds : tuple of RoundCrossed
    nodes : tuple of NodeCrossed
        As many as `n_nodes`.

    Examples
    --------
    >>> asked = RoundCrossed(
    ...     number=1, kind="survey", n_numbers=30, n_nodes=1, n_attempts=1, bytes_down=200,
    ...     bytes_up=300, seconds=0.5)
    >>> crossed = CrossedRecord(
    ...     secure=False, n_nodes=1, clients_per_node=50, n_rounds=1, n_attempts=1, n_asks=1,
    ...     n_timeouts=0, bytes_down=200, bytes_up=300, seconds=0.5, rounds=(asked,),
    ...     nodes=(NodeCrossed(node=7, name="ward 7", n_summed=1),))
    >>> crossed.line
    'plain sums over 1 node: 1 round, 300 B up, 200 B down'
    >>> CrossedRecord.from_record(crossed.to_record()) == crossed
    True
    """

    secure: bool
    n_nodes: Count
    clients_per_node: Count
    n_rounds: Count
    n_attempts: Count
    n_asks: Count
    n_timeouts: Count
    bytes_down: Count
    bytes_up: Count
    seconds: Finite
    rounds: tuple[RoundCrossed, ...]
    nodes: tuple[NodeCrossed, ...]

    def __post_init__(self) -> None:
        n_sums = len(self.sums)
        if len(self.nodes) != self.n_nodes or n_sums != self.n_rounds:
            raise ParameterError(
                f"expected n_nodes={self.n_nodes} nodes and n_rounds={self.n_rounds} rounds with a "
                f"sum, got {len(self.nodes)} and {n_sums}"
            )

    @property
    def sums(self) -> tuple[RoundCrossed, ...]:
        """The rounds that ended in a sum."""
        return tuple(one for one in self.rounds if one.n_nodes > 0)

    @property
    def n_earlier(self) -> int:
        """Rounds that an earlier run had asked, of which nothing is kept here."""
        return max(self.rounds[0].number - 1, 0) if self.rounds else 0

    @property
    def n_numbers(self) -> int:
        """The most numbers that a node sent in all rounds together, one answer in each attempt."""
        return sum(one.n_numbers * one.n_attempts for one in self.rounds)

    @property
    def line(self) -> str:
        """The most of it in a line that fits on a terminal."""
        n_summed = max((one.n_nodes for one in self.sums), default=self.n_nodes)
        of = f"{n_summed} of " if n_summed < self.n_nodes else ""
        return (
            f"{'secure' if self.secure else 'plain'} sums over {of}{counted(self.n_nodes, 'node')}: "
            f"{counted(self.n_rounds, 'round')}, {in_bytes(self.bytes_up)} up, "
            f"{in_bytes(self.bytes_down)} down"
        )
