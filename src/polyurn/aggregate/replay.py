"""An aggregator that keeps the sum of every round, so that a stopped run resumes without asking twice.

It wraps another aggregator. A server's actions depend only on the answers, so that replaying those of a
stopped run restores its state to the last bit. `storage/journal.py` keeps the sums, and nothing else.
"""

from collections.abc import Callable
from typing import Protocol

from polyurn.errors import FileError
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import floats
from polyurn.typed.declared import Floats
from polyurn.wire import Aggregator, Query, S


class Answers(Protocol):
    """A list of vectors that outlives the process."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int) -> Floats: ...
    def append(self, vector: Floats) -> None: ...


@checked
class ReplayAggregator:
    """Replays the kept answers first, then asks clients and keeps their answers.

    Parameters
    ----------
    aggregator : Aggregator
        If it has a method `skip()`, that is called for each replayed round, so that a
        `LocalAggregator` draws the same later cohorts as if it had played the earlier ones.
    answers : Answers
        E.g. a `polyurn.Journal`, or a list in memory.

    Examples
    --------
    >>> from polyurn import LocalAggregator, SizeBins
    >>> from polyurn.wire import Survey
    >>> kept = []
    >>> clients = ReplayAggregator(LocalAggregator([[1, 2], [3, 0]]), kept)
    >>> _ = clients.aggregate(Survey(2, SizeBins.exact(3), pairs=False), None)
    >>> len(kept)
    1
    """

    def __init__(self, aggregator: Aggregator, answers: Answers) -> None:
        self._aggregator = aggregator
        self._answers = answers
        self.categories = getattr(aggregator, "categories", None)
        self._round = 0

    @property
    def n_clients(self) -> int:
        """The number of clients, if the other aggregator has it (else AttributeError)."""
        return int(self._aggregator.n_clients)  # type: ignore[attr-defined]

    @property
    def guarantee(self) -> Callable[[], object]:
        """The guarantee of the answers, if the other aggregator is private (else AttributeError)."""
        guarantee: Callable[[], object] = self._aggregator.guarantee  # type: ignore[attr-defined]
        return guarantee

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The kept answer of this round, or a new one, which is kept before it is returned."""
        self._round += 1
        if self._round > len(self._answers):
            answer = self._aggregator.aggregate(query, cohort_size)
            self._answers.append(answer.to_vector())
            return answer
        vector = floats(self._answers[self._round - 1], f"round {self._round} of the journal")
        if len(vector) != query.n_numbers:
            raise FileError(
                f"round {self._round} of the journal has {len(vector)} numbers and the question "
                f"{query.n_numbers}: it is of another run; take an empty folder"
            )
        getattr(self._aggregator, "skip", lambda: None)()
        return query.shaped(vector)
