"""What crossed between a server and its nodes, and what is to be said about the nodes.

Counts and names of nodes only; no number of an answer is here.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass


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
    summed : tuple of int
        Nodes that were in a sum.
    benched : mapping of int to str
        Nodes that are not asked any more, and why.
    refused : mapping of int to mapping of str to int
        For each node whose reply was not used, or was a refusal: the reasons, and how often.
    """

    secure: bool
    n_rounds: int
    n_attempts: int
    n_asks: int
    n_timeouts: int
    bytes_down: int
    bytes_up: int
    summed: tuple[int, ...]
    benched: Mapping[int, str]
    refused: Mapping[int, Mapping[str, int]]


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
        self._summed: set[int] = set()
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

    def refuse(self, node: int, why: str) -> None:
        """A reply is not used."""
        self._refused.setdefault(node, Counter())[why] += 1

    def summed(self, nodes: Collection[int]) -> None:
        """A round has ended with a sum over these."""
        self.n_rounds += 1
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

    def crossed(self, *, secure: bool) -> Crossed:
        """The tally as a value."""
        return Crossed(
            secure, self.n_rounds, self.n_attempts, self.n_asks, self.n_timeouts, self.bytes_down,
            self.bytes_up, tuple(sorted(self._summed)), self.benched, self.refused,
        )  # fmt: skip
