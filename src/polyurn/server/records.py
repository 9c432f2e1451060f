"""How a fit or a selection came about, as values: what an MDM file keeps, and a report shows.

Sums and settings only, written to JSON records and read from them, field by field. Nothing is fitted
here, and no file is read or written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from polyurn.errors import ParameterError
from polyurn.typed.records import Count, read_record, to_record

if TYPE_CHECKING:  # reading a file does not wait for the search to be loaded
    from polyurn.server.results import Candidate, Fit, Selection

# Paths are for the eye: a millionth of a nat is finer than any tolerance.
_DIGITS = 6


@dataclass(frozen=True)
class StartPath:
    """The path of one start: its likelihood in each round that it was in the race.

    Attributes
    ----------
    start : int
    first_round : int
    values : tuple of float
        The mean log-likelihood in that round and in each one after it; one at least. -inf where a
        client is impossible.
    """

    start: int
    first_round: int
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ParameterError("expected values of at least one round, got none")

    @property
    def last_round(self) -> int:
        return self.first_round + len(self.values) - 1


@dataclass(frozen=True, kw_only=True)
class FitRecord:
    """The rounds of a fit.

    Attributes
    ----------
    n_clients : int
        Of the last round.
    fewest_clients : int or None
        That a sum is over; older files do not say.
    n_rounds : int
    converged : bool
    stopped : str
        What ended the rounds.
    n_dropped : int
    multinomial : tuple of int
        Components that are as good as multinomials.
    n_numbers : int
        The most that a client sent in a round.
    n_numbers_by_round : tuple of int
    log_likelihoods : tuple of float
        Of each round that has one.
    paths : tuple of StartPath
    n_agreeing : int or None
        Starts that ended at this optimum, if they were counted.

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> clients = pu.LocalAggregator(truth("low/1").sample(200, rng=0), rng=1)
    >>> done = pu.fit(clients, n_components=1, n_categories=10, max_size=20, rng=2)
    >>> record = FitRecord.of(done)
    >>> record.converged, len(record.paths)
    (True, 1)
    >>> FitRecord.from_record(record.to_record()) == record
    True
    """

    n_clients: Count
    fewest_clients: Count | None = None
    n_rounds: Count
    converged: bool
    stopped: str
    n_dropped: Count
    multinomial: tuple[Count, ...]
    n_numbers: Count
    n_numbers_by_round: tuple[Count, ...]
    log_likelihoods: tuple[float, ...]
    paths: tuple[StartPath, ...]
    n_agreeing: Count | None = None

    @classmethod
    def of(cls, done: "Fit") -> Self:
        """What an MDM file keeps of a fit."""
        numbers = tuple(r.n_numbers for r in done.rounds)
        return cls(
            n_clients=done.rounds[-1].n_clients,
            fewest_clients=min(r.n_clients for r in done.rounds),
            n_rounds=done.n_rounds,
            converged=done.converged,
            stopped=done.stopped,
            n_dropped=done.n_dropped,
            multinomial=tuple(done.multinomial),
            n_numbers=max(numbers),
            n_numbers_by_round=numbers,
            log_likelihoods=tuple(done.log_likelihoods.tolist()),
            paths=start_paths((r.number, r.starts) for r in done.rounds),
            n_agreeing=done.n_agreeing,
        )

    def to_record(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return to_record(self)

    @classmethod
    def from_record(cls, record: object, *, where: str = "fit") -> Self:
        """What `to_record` wrote, checked."""
        return read_record(cls, record, where=where)


@dataclass(frozen=True, kw_only=True)
class CandidateRecord:
    """One number of components of a selection: as in `Candidate`, its MDM as numbers of parameters."""

    n_components: Count
    log_likelihood: float
    standard_error: float
    behind: float
    behind_error: float
    n_rounds: Count
    n_parameters: Count
    n_dropped: Count
    multinomial: tuple[Count, ...]
    converged: bool
    outdone: bool = False  # older files do not say

    @classmethod
    def of(cls, candidate: "Candidate") -> Self:
        """What an MDM file keeps of a candidate."""
        return cls(
            n_components=candidate.n_components,
            log_likelihood=candidate.log_likelihood,
            standard_error=candidate.standard_error,
            behind=candidate.behind,
            behind_error=candidate.behind_error,
            n_rounds=candidate.n_rounds,
            n_parameters=candidate.n_parameters,
            n_dropped=candidate.n_dropped,
            multinomial=tuple(candidate.multinomial),
            converged=candidate.converged,
            outdone=candidate.outdone,
        )


@dataclass(frozen=True, kw_only=True)
class SelectionRecord:
    """The table of a selection, and the rounds of the chosen number of components.

    Attributes
    ----------
    chosen : int
        The number of components; one of the candidates.
    skipped : tuple of int
        Numbers of components that there were too few clients for.
    stopped : str
        What ended the rounds; empty in older files.
    caution : str
        What so few clients cannot say about the choice; empty if there are enough.
    n_rounds : int
    n_clients : int
        That were fitted.
    fewest_clients, n_numbers, n_numbers_by_round
        As in `FitRecord`.
    n_held_out : int
    candidates : tuple of CandidateRecord
    paths : tuple of StartPath
        Of the chosen number of components.
    """

    chosen: Count
    skipped: tuple[Count, ...] = ()
    stopped: str = ""
    caution: str = ""
    n_rounds: Count
    n_clients: Count
    fewest_clients: Count | None = None
    n_held_out: Count
    n_numbers: Count
    n_numbers_by_round: tuple[Count, ...]
    candidates: tuple[CandidateRecord, ...]
    paths: tuple[StartPath, ...]

    def __post_init__(self) -> None:
        there = [candidate.n_components for candidate in self.candidates]
        if self.chosen not in there:
            raise ParameterError(f"expected chosen among the candidates, got {self.chosen}")

    @property
    def chosen_candidate(self) -> CandidateRecord:
        return next(c for c in self.candidates if c.n_components == self.chosen)

    @classmethod
    def of(cls, choice: "Selection") -> Self:
        """What an MDM file keeps of a selection."""
        numbers = tuple(r.n_numbers for r in choice.rounds)
        chosen = choice.n_components
        return cls(
            chosen=chosen,
            skipped=tuple(choice.skipped),
            stopped=choice.stopped,
            caution=choice.caution,
            n_rounds=choice.n_rounds,
            n_clients=max(r.n_clients for r in choice.rounds),
            fewest_clients=min(r.n_clients for r in choice.rounds),
            n_held_out=choice.n_held_out,
            n_numbers=max(numbers),
            n_numbers_by_round=numbers,
            candidates=tuple(CandidateRecord.of(c) for c in choice.candidates),
            paths=start_paths((r.number, r.starts.get(chosen, {})) for r in choice.rounds),
        )

    def to_record(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return to_record(self)

    @classmethod
    def from_record(cls, record: object, *, where: str = "selection") -> Self:
        """What `to_record` wrote, checked."""
        return read_record(cls, record, where=where)


RoundsRecord: TypeAlias = FitRecord | SelectionRecord


def start_paths(rounds: Iterable[tuple[int, Mapping[int, float]]]) -> tuple[StartPath, ...]:
    """The path of every start; a start that was away for some rounds has two.

    Parameters
    ----------
    rounds : iterable of (round, {start: mean log-likelihood})

    Examples
    --------
    >>> start_paths([(2, {1: -5.0, 2: -6.0}), (3, {1: -4.5})])
    (StartPath(start=1, first_round=2, values=(-5.0, -4.5)),
     StartPath(start=2, first_round=2, values=(-6.0,)))
    >>> [path.first_round for path in start_paths([(2, {1: -5.0}), (4, {1: -4.5})])]
    [2, 4]
    """
    paths: list[tuple[int, int, list[float]]] = []
    last: dict[int, tuple[int, int, list[float]]] = {}
    for number, starts in rounds:
        for start, value in sorted(starts.items()):
            path = last.get(start)
            if path is None or path[1] + len(path[2]) != number:
                path = last[start] = (start, number, [])
                paths.append(path)
            path[2].append(round(float(value), _DIGITS))
    return tuple(StartPath(start, first, tuple(values)) for start, first, values in paths)
