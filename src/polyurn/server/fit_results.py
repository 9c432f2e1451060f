"""The results of a fit and of a selection: their parameters, their rounds, and the reason to stop.

Frozen values, which a model's file keeps without their parameters, which are the file's own. A file has
two numbers of clients: how many were asked, and the fewest that a sum is over. The number of each round
would show when clients left. `fitting.py` and `paper.py` make the results.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.privacy.statement import Guarantee
from polyurn.server.fit_settings import few_clients, few_held_out, largest_won
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import UNKEPT, Count

# A number shown with ± has a 95 % interval: this many standard errors to each side.
HALF_WIDTH = 1.96


@checked
@dataclass(frozen=True)
class Round:
    """The result of one round of a fit.

    Attributes
    ----------
    number : int
        Rounds count from 1; the first ones find where to start.
    mdm : MDM or None
        The best parameters after this round; None before there are any, and in a round from a file.
    log_likelihood : float
        Mean over the cohort: of the best parameters judged so far, or of those that were sent in this
        round (`fit_paper`); NaN before there are any.
    n_clients : int or None
        How many clients judged them; None in a round from a file. If there are many clients, only a
        part of them judges at first; the path of log-likelihoods has a step when all begin to judge,
        and when clients leave or come.
    n_numbers : int
        How many numbers a client sent, at most.
    starts : dict of int to float
        The mean log-likelihood of every start that is still in the race, by its number.
    """

    number: Count
    mdm: MDM | None = field(metadata=UNKEPT)
    log_likelihood: float
    n_clients: Count | None = field(metadata=UNKEPT)
    n_numbers: Count
    starts: Mapping[int, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class StartPath:
    """The path of one start: its likelihood in each round of its race.

    `values` has at least one value: of the first round and of each round after it, -inf if a client has
    probability zero.
    """

    start: int
    first_round: int
    values: tuple[float, ...]

    @property
    def last_round(self) -> int:
        return self.first_round + len(self.values) - 1


@checked
@dataclass(frozen=True)
class Fit:
    """A fitted MDM and how it came about.

    Attributes
    ----------
    mdm : MDM
    rounds : tuple of Round
    converged : bool
        Whether less than `tol` nats per client seem to be left to gain. Always False for `fit_paper`,
        which does not test it.
    stopped : str
        The reason why the rounds ended, with advice unless it is convergence.
    n_dropped : int
        Components that were left with less than half a client, and dropped.
    n_agreeing : int or None
        How many starts of the search ended at the same optimum (within `tol`, and close in every
        parameter), including this one. None if they were not counted (`fit_paper`, sampled cohorts).
    guarantee : Guarantee or None
        What the releases of `fit_private` guarantee to a client; None: nothing is guaranteed.
    n_clients, fewest_clients : int
        Clients of the last round, and the fewest of any round; from the rounds if these have them.
    """

    mdm: MDM = field(metadata=UNKEPT)
    rounds: tuple[Round, ...] = field(repr=False)
    converged: bool
    stopped: str
    n_dropped: Count = 0
    n_agreeing: Count | None = field(default=None, metadata=UNKEPT)
    guarantee: Guarantee | None = field(default=None, metadata=UNKEPT)
    n_clients: Count = 0
    fewest_clients: Count = 0

    def __post_init__(self) -> None:
        if counts := _clients_of(self.rounds):
            self.__dict__.update(n_clients=counts[-1], fewest_clients=min(counts))

    @property
    def n_rounds(self) -> int:
        """How often clients were asked, including the rounds of the starts."""
        return len(self.rounds)

    @property
    def paths(self) -> tuple[StartPath, ...]:
        """The path of every start."""
        return start_paths((r.number, r.starts) for r in self.rounds)

    @property
    def caution(self) -> str:
        """A warning if there are few clients for so many components; else empty."""
        n_components = self.mdm.n_components + self.n_dropped
        return few_clients(self.n_clients, [n_components]) if self.n_clients else ""

    @property
    def log_likelihoods(self) -> NDArray[np.float64]:
        """Mean log-likelihood per client of each round that has one."""
        values = np.array([r.log_likelihood for r in self.rounds])
        return np.asarray(values[~np.isnan(values)])

    @property
    def multinomial(self) -> tuple[int, ...]:
        """Components whose concentration is at its cap of a million, as good as multinomials.

        Clients of n points show it from about n² = 10⁶ on: the cap costs them some n²/10⁶ nats.
        """
        return self.mdm.multinomial


@dataclass(frozen=True)
class Candidate:
    """One number of components: its fit, and its score on the held-out clients.

    Attributes
    ----------
    n_components : int
        The number that was asked for; `mdm` has fewer if some were left without clients.
    mdm : MDM or None
        None in a selection from a file, which has only the chosen one.
    log_likelihood : float
        Mean over the held-out clients.
    standard_error : float
        Of that mean.
    behind : float
        How far its mean is below the best candidate's, on the same clients.
    behind_error : float
        The standard error of that difference.
    n_rounds : int
        Rounds until its search stopped, the survey included.
    converged : bool
    overtaken : bool
        Whether its search stopped early because fewer components do better: their held-out likelihood
        is higher by more than it could still gain.
    n_agreeing : int or None
        How many starts of the search ended at the same optimum (within `tol`, and close in every
        parameter), this one included. None where nothing was counted: sampled cohorts.
    n_parameters, n_dropped : int
        Of the MDM; and components that were left with less than half a client, and dropped.
    multinomial : tuple of int
        Components whose concentration is at its cap, as good as multinomials.
    """

    n_components: Count
    mdm: MDM | None = field(metadata=UNKEPT)
    log_likelihood: float
    standard_error: float
    behind: float
    behind_error: float
    n_rounds: Count
    converged: bool
    overtaken: bool = False
    n_agreeing: Count | None = field(default=None, metadata=UNKEPT)
    n_parameters: Count = 0
    n_dropped: Count = 0
    multinomial: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        if self.mdm is not None:
            values = {
                "n_parameters": self.mdm.n_parameters,
                "n_dropped": self.n_components - self.mdm.n_components,
                "multinomial": self.mdm.multinomial,
            }
            self.__dict__.update(values)


@dataclass(frozen=True)
class SelectionRound:
    """A round of a selection, to show progress: the training likelihood of each K so far.

    Attributes
    ----------
    number : int
    n_clients : int or None
        The fewest clients that a sum is over; None if it comes from a file.
    n_numbers : int
        How many numbers each client sent at most.
    values : dict of int to float
        The best mean log-likelihood of each number of components. No file keeps this or the next two.
    running : tuple of int
        The numbers of components that still climb.
    starts : dict of int to dict of int to float
        For each number of components that climbed in this round, the mean log-likelihood of every start.
    """

    number: Count
    n_clients: Count | None = field(metadata=UNKEPT)
    n_numbers: Count
    values: Mapping[int, float] = field(default_factory=dict, metadata=UNKEPT)
    running: tuple[Count, ...] = field(default=(), metadata=UNKEPT)
    starts: Mapping[int, Mapping[int, float]] = field(
        default_factory=dict, repr=False, metadata=UNKEPT
    )


@checked
@dataclass(frozen=True)
class Selection:
    """The chosen number of components, and the table it was chosen from.

    Attributes
    ----------
    n_components : int
    mdm : MDM
    candidates : tuple of Candidate
        By number of components.
    n_rounds : int
        How often clients were asked, all K together, and after the choice.
    n_held_out : int
        How many clients scored.
    rounds : tuple of SelectionRound
        Every round but those in which clients only scored.
    skipped : tuple of int
        Numbers of components with too few clients to fit them.
    paths : tuple of StartPath
        The path of every start of the chosen number of components.
    n_clients, fewest_clients : int
        The most and the fewest clients that were fitted in a round; counted from the rounds if these
        have them.
    joined : tuple of float
        The mean log-likelihood in each round after the choice, in which the held-out clients were
        fitted as well: `mdm` has learned from all. Empty: it is the one that they scored.
    """

    n_components: Count
    mdm: MDM = field(metadata=UNKEPT)
    candidates: tuple[Candidate, ...] = field(repr=False)
    n_rounds: Count
    n_held_out: Count
    rounds: tuple[SelectionRound, ...] = field(default=(), repr=False)
    skipped: tuple[Count, ...] = ()
    paths: tuple[StartPath, ...] = field(default=(), repr=False)
    n_clients: Count = 0
    fewest_clients: Count = 0
    joined: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if counts := _clients_of(self.rounds):
            self.__dict__.update(n_clients=max(counts), fewest_clients=min(counts))
        if not self.paths:  # only the starts of the chosen K are published
            starts = ((r.number, r.starts.get(self.n_components, {})) for r in self.rounds)
            object.__setattr__(self, "paths", start_paths(starts))
        if self.n_components not in [one.n_components for one in self.candidates]:
            raise ParameterError(
                f"expected n_components among the candidates, got {self.n_components}"
            )

    @property
    def chosen(self) -> Candidate:
        """The candidate that was chosen."""
        return next(c for c in self.candidates if c.n_components == self.n_components)

    @property
    def caution(self) -> str:
        """A warning about what few clients, or the numbers offered, leave open; else empty."""
        fitted = few_clients(self.n_clients, [self.n_components]) if self.n_clients else ""
        largest = largest_won(self.n_components, [c.n_components for c in self.candidates])
        return "; ".join(filter(None, (few_held_out(self.n_held_out), fitted, largest)))

    @property
    def unfinished(self) -> tuple[int, ...]:
        """Numbers of components whose search had not stopped after the last round."""
        return tuple(c.n_components for c in self.candidates if not (c.converged or c.overtaken))

    @property
    def stopped(self) -> str:
        """Why the rounds ended, with advice unless it is convergence."""
        if not self.unfinished:
            return "converged: every K, or a smaller one was already better than it could become"
        which = ", ".join(map(str, self.unfinished))
        return (
            f"stopped at max_rounds before K = {which} converged; allow more rounds: held-out "
            "clients may then find them likelier"
        )


def _clients_of(rounds: Iterable[Round | SelectionRound]) -> list[int]:
    """The numbers of clients of the rounds that have them."""
    return [one.n_clients for one in rounds if one.n_clients is not None]


def start_paths(rounds: Iterable[tuple[int, Mapping[int, float]]]) -> tuple[StartPath, ...]:
    """The path of every start, from (round, {start: mean log-likelihood}); two paths around a gap.

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
            path[2].append(float(value))
    return tuple(StartPath(start, first, tuple(values)) for start, first, values in paths)
