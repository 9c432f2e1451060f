"""What crossed between a server and its nodes, and what is to be said about the nodes.

Counts and names of nodes only; no number of an answer is here.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from polyurn.typed.records import to_record


@dataclass(frozen=True)
class RoundTally:
    """What crossed in one round, all its attempts together.

    Attributes
    ----------
    number : int
        Rounds that were left out, because an earlier run had asked them, have numbers too.
    kind : str
        What was asked, as `Query.text` says it.
    n_numbers : int
        In one answer.
    n_nodes : int
        That the sum is over; 0 if there was none.
    n_attempts, bytes_down, bytes_up : int
    seconds : float
        From the first message to the sum.
    """

    number: int
    kind: str
    n_numbers: int
    n_nodes: int
    n_attempts: int
    bytes_down: int
    bytes_up: int
    seconds: float


@dataclass(frozen=True)
class Crossed:
    """All that crossed in the rounds of one aggregator so far.

    Attributes
    ----------
    secure : bool
        Whether the server saw sums only.
    n_rounds, n_attempts : int
        Sums, and how many times one was begun.
    n_asks : int
        Calls of `Exchange.ask`; a plain sum has one, a secure one has five.
    n_timeouts : int
        Those in which somebody did not reply.
    bytes_down, bytes_up : int
        In messages to nodes, and in all their replies; without what the transport adds.
    n_summed : mapping of int to int
        For each node that was in a sum: how many it was in.
    benched : mapping of int to str
        Nodes that are not asked any more, and why.
    refused : mapping of int to mapping of str to int
        For each node whose reply was not used, or was a refusal: the reasons, and how often.
    rounds : tuple of RoundTally
        Those in which somebody was asked.
    clients_per_node : int
        The declared largest number of clients of a node.
    known : tuple of int
        Nodes that were ever there and could have been asked.
    """

    secure: bool
    n_rounds: int
    n_attempts: int
    n_asks: int
    n_timeouts: int
    bytes_down: int
    bytes_up: int
    n_summed: Mapping[int, int]
    benched: Mapping[int, str]
    refused: Mapping[int, Mapping[str, int]]
    rounds: tuple[RoundTally, ...]
    clients_per_node: int
    known: tuple[int, ...]

    @property
    def summed(self) -> tuple[int, ...]:
        """Nodes that were in a sum."""
        return tuple(self.n_summed)

    def to_record(self, *, names: Mapping[int, str] | None = None) -> dict[str, Any]:
        """What an MDM file keeps under "crossed", for JSON: `server.crossed_record` reads it.

        Parameters
        ----------
        names : mapping of int to str, optional
            What nodes are called. Nodes in it that never came are in the record too; others are
            called by their numbers.
        """
        names = names or {}
        nodes = sorted({*names, *self.known, *self.n_summed, *self.benched, *self.refused})
        return {
            "secure": self.secure,
            "n_nodes": len(nodes),
            "clients_per_node": self.clients_per_node,
            "n_rounds": self.n_rounds,
            "n_attempts": self.n_attempts,
            "n_asks": self.n_asks,
            "n_timeouts": self.n_timeouts,
            "bytes_down": self.bytes_down,
            "bytes_up": self.bytes_up,
            "seconds": sum(one.seconds for one in self.rounds),
            "rounds": [to_record(one) for one in self.rounds],
            "nodes": [
                {
                    "node": node,
                    "name": names.get(node, str(node)),
                    "n_summed": self.n_summed.get(node, 0),
                    "benched": self.benched.get(node),
                    "refused": [[why, n] for why, n in self.refused.get(node, {}).items()],
                }
                for node in nodes
            ],
        }


class Tally:
    """What has crossed so far, and who is benched.

    A node that does not reply in time is benched. It comes back when a late reply of it arrives, or when
    it has left and joins again; the second time it is benched for good. So is a node that made a secure
    sum fail.
    """

    SILENT, SUSPECT = "it did not reply in time", "its part of a secure sum was false"

    def __init__(self) -> None:
        self.n_rounds = self.n_attempts = self.n_asks = self.n_timeouts = 0
        self.bytes_down = self.bytes_up = 0
        self._summed: Counter[int] = Counter()
        self._rounds: list[RoundTally] = []
        self._n_in_sum = 0
        self._benched: dict[int, str] = {}
        self._for_good: set[int] = set()
        self._was_benched: set[int] = set()
        self._refused: dict[int, Counter[str]] = {}

    @property
    def benched(self) -> dict[int, str]:
        """Who is not asked, and why."""
        return dict(sorted(self._benched.items()))

    @property
    def refused(self) -> dict[int, dict[str, int]]:
        """Whose replies were not used: how often, by reason."""
        return {node: dict(why) for node, why in sorted(self._refused.items())}

    @contextmanager
    def round(self, number: int, *, kind: str, n_numbers: int) -> Iterator[None]:
        """All that crosses inside belongs to one round, which ends in a sum or an error."""
        n_attempts, down, up = self.n_attempts, self.bytes_down, self.bytes_up
        self._n_in_sum, begun = 0, monotonic()
        try:
            yield
        finally:
            if self.n_attempts > n_attempts:
                self._rounds.append(
                    RoundTally(
                        number, kind, n_numbers, self._n_in_sum, self.n_attempts - n_attempts,
                        self.bytes_down - down, self.bytes_up - up, monotonic() - begun,
                    )
                )  # fmt: skip

    def refuse(self, node: int, why: str) -> None:
        """A reply is not used."""
        self._refused.setdefault(node, Counter())[why] += 1

    def summed(self, nodes: Collection[int]) -> None:
        """A round has ended with a sum over these."""
        self.n_rounds += 1
        self._n_in_sum = len(nodes)
        self._summed.update(nodes)

    def silent(self, nodes: Collection[int]) -> None:
        """They did not reply in time."""
        self.n_timeouts += bool(nodes)
        for node in nodes:
            self._benched[node] = self.SILENT
            if node in self._was_benched:
                self._for_good.add(node)
            self._was_benched.add(node)

    def suspect(self, node: int) -> None:
        """It made a secure sum fail: benched for good."""
        self.refuse(node, self.SUSPECT)
        self._benched[node] = self.SUSPECT
        self._for_good.add(node)

    def alive(self, node: int) -> None:
        """A sign of life of somebody who was benched."""
        if node not in self._for_good:
            self._benched.pop(node, None)

    def crossed(self, *, secure: bool, clients_per_node: int, known: Collection[int]) -> Crossed:
        """The tally as a value."""
        return Crossed(
            secure, self.n_rounds, self.n_attempts, self.n_asks, self.n_timeouts, self.bytes_down,
            self.bytes_up, dict(sorted(self._summed.items())), self.benched, self.refused,
            tuple(self._rounds), clients_per_node, tuple(sorted(known)),
        )  # fmt: skip
