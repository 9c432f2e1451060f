"""What crosses between a server and its nodes, counted, and which nodes are not asked any more.

Counts and names of nodes only; no number of an answer is here. What a model's file keeps of it is
`wire/traffic.py`.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from time import monotonic

from polyurn.wire.traffic import NodeTraffic, RoundTraffic, Traffic


class Tally:
    """What was sent so far, and who is excluded.

    A node that does not reply in time is excluded. It comes back when a late reply of it arrives, or
    when it has left and joins again; the second time it is excluded for good. So is a node that made a
    secure sum fail.
    """

    SILENT, SUSPECT = "it did not reply in time", "its part of a secure sum was false"

    def __init__(self) -> None:
        self.n_attempts = self.n_asks = self.n_timeouts = self.bytes_down = self.bytes_up = 0
        self._summed: Counter[int] = Counter()
        self._rounds: list[RoundTraffic] = []
        self._n_in_sum = 0
        self._excluded: dict[int, str] = {}
        self._for_good: set[int] = set()
        self._was_benched: set[int] = set()
        self._refused: dict[int, Counter[str]] = {}

    @property
    def excluded(self) -> dict[int, str]:
        """Who is not asked, and why."""
        return dict(sorted(self._excluded.items()))

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
                    RoundTraffic(
                        number=number,
                        kind=kind,
                        n_numbers=n_numbers,
                        n_nodes=self._n_in_sum,
                        n_attempts=self.n_attempts - n_attempts,
                        bytes_down=self.bytes_down - down,
                        bytes_up=self.bytes_up - up,
                        seconds=monotonic() - begun,
                    )
                )

    def refuse(self, node: int, why: str) -> None:
        """A reply is not used."""
        self._refused.setdefault(node, Counter())[why] += 1

    def summed(self, nodes: Collection[int]) -> None:
        """A round has ended with a sum over these."""
        self._n_in_sum = len(nodes)
        self._summed.update(nodes)

    def silent(self, nodes: Collection[int]) -> None:
        """They did not reply in time."""
        self.n_timeouts += bool(nodes)
        for node in nodes:
            self._excluded[node] = self.SILENT
            if node in self._was_benched:
                self._for_good.add(node)
            self._was_benched.add(node)

    def suspect(self, node: int) -> None:
        """It made a secure sum fail: excluded for good."""
        self.refuse(node, self.SUSPECT)
        self._excluded[node] = self.SUSPECT
        self._for_good.add(node)

    def alive(self, node: int) -> None:
        """A sign of life of somebody who was excluded."""
        if node not in self._for_good:
            self._excluded.pop(node, None)

    def traffic(self, *, secure: bool, clients_per_node: int, known: Collection[int]) -> Traffic:
        """All of it as a value; nodes are called by their numbers."""
        nodes = sorted({*known, *self._summed, *self._excluded, *self._refused})
        return Traffic(
            secure=secure,
            clients_per_node=clients_per_node,
            n_asks=self.n_asks,
            n_timeouts=self.n_timeouts,
            rounds=tuple(self._rounds),
            nodes=tuple(
                NodeTraffic(
                    node=node,
                    name=str(node),
                    n_summed=self._summed[node],
                    excluded=self._excluded.get(node),
                    refused=tuple(self._refused.get(node, {}).items()),
                )
                for node in nodes
            ),
        )
