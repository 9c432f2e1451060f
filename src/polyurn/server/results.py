"""What a fit and a selection come to: their parameters, their rounds, and what ended them.

Frozen values. How they come about is `fit.py`, `paper.py` and `select.py`; as JSON, `records.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polyurn.model.mdm import MDM
from polyurn.privacy.statement import Guarantee
from polyurn.server.em import multinomial
from polyurn.server.settings import few_clients, few_held_out
from polyurn.typed.arguments import checked
from polyurn.wire import ScoreStatistics

# Wherever a number is shown with ±, it is a 95 % interval: so many standard errors to each side.
HALF_WIDTH = 1.96


@checked
@dataclass(frozen=True)
class Round:
    """What one round of a fit came to.

    Attributes
    ----------
    number : int
        Rounds count from 1; the first ones find where to start.
    mdm : MDM or None
        The best parameters after this round; None while there are none.
    log_likelihood : float
        Mean over the cohort. Of the best parameters judged so far, or of those that were sent in this
        round (`fit_paper`); NaN while there are none.
    n_clients : int
        How many clients judged them. Where there are many, a part of them does at first, and the path
        of log-likelihoods has a step when all of them do; and when clients leave or come.
    n_numbers : int
        How many numbers a client sent, at most.
    starts : dict of int to float
        The mean log-likelihood of every start that is still in the race, by its number.
    """

    number: int
    mdm: MDM | None
    log_likelihood: float
    n_clients: int
    n_numbers: int
    starts: Mapping[int, float] = field(default_factory=dict, repr=False)


@checked
@dataclass(frozen=True)
class Fit:
    """A fitted MDM and how it came about.

    Attributes
    ----------
    mdm : MDM
    rounds : tuple of Round
    converged : bool
        Whether less than `tol` nats per client seem to be left to gain. Never for `fit_paper`, which
        does not look.
    stopped : str
        What ended the rounds, with advice if it was not convergence.
    n_dropped : int
        Components that were left with less than half a client, and dropped.
    n_agreeing : int or None
        How many starts of the search ended at the same optimum (within `tol`, and close in every
        parameter), this one included. None where nothing was counted: `fit_paper`, sampled cohorts.
    guarantee : Guarantee or None
        What the releases of `fit_private` guarantee to a client; None: nothing is guaranteed.
    """

    mdm: MDM
    rounds: tuple[Round, ...] = field(repr=False)
    converged: bool
    stopped: str
    n_dropped: int = 0
    n_agreeing: int | None = None
    guarantee: Guarantee | None = None

    @property
    def n_rounds(self) -> int:
        """How often clients were asked, starts included."""
        return len(self.rounds)

    @property
    def caution(self) -> str:
        """What so few clients cannot say about so many components; empty if there are enough."""
        n_components = self.mdm.n_components + self.n_dropped
        return few_clients(self.rounds[0].n_clients, [n_components]) if self.rounds else ""

    @property
    def log_likelihoods(self) -> NDArray[np.float64]:
        """Mean log-likelihood per client of each round that has one."""
        values = np.array([r.log_likelihood for r in self.rounds])
        return np.asarray(values[~np.isnan(values)])

    @property
    def multinomial(self) -> tuple[int, ...]:
        """Components whose concentration is at its cap of a million, as good as multinomials.

        Clients of n points can tell from about n² = 10⁶ on: the cap costs them some n²/10⁶ nats.
        """
        return multinomial(self.mdm.alphas)


@dataclass(frozen=True)
class Candidate:
    """One number of components: its fit, and what the held-out clients say about it.

    Attributes
    ----------
    n_components : int
        As asked for; `mdm` has fewer if some were left without clients.
    mdm : MDM
    log_likelihood : float
        Mean over the held-out clients.
    standard_error : float
        Of that mean.
    behind : float
        How far it is behind the best candidate, on the same clients.
    behind_error : float
        The standard error of that difference.
    n_rounds : int
        Rounds until its search stopped, the survey included.
    converged : bool
    outdone : bool
        Whether its search stopped early because fewer components do better: held-out clients find them
        likelier by more than it could still gain.
    n_agreeing : int or None
        How many starts of the search ended at the same optimum (within `tol`, and close in every
        parameter), this one included. None where nothing was counted: sampled cohorts.
    """

    n_components: int
    mdm: MDM
    log_likelihood: float
    standard_error: float
    behind: float
    behind_error: float
    n_rounds: int
    converged: bool
    outdone: bool = False
    n_agreeing: int | None = None

    @property
    def n_parameters(self) -> int:
        return self.mdm.n_parameters

    @property
    def n_dropped(self) -> int:
        """Components that were left with less than half a client, and dropped."""
        return self.n_components - self.mdm.n_components

    @property
    def multinomial(self) -> tuple[int, ...]:
        """Components whose concentration is at its cap, as good as multinomials."""
        return multinomial(self.mdm.alphas)


@dataclass(frozen=True)
class Progress:
    """A round of a selection, for whoever watches: the training likelihood of each K so far.

    Attributes
    ----------
    number : int
    values : dict of int to float
        The best mean log-likelihood of each number of components.
    running : tuple of int
        The numbers of components that still climb.
    n_clients, n_numbers : int
        The fewest clients that a sum is over, and how many numbers each client sent at most.
    starts : dict of int to dict of int to float
        For each number of components that climbed in this round, the mean log-likelihood of every start.
    """

    number: int
    values: dict[int, float]
    running: tuple[int, ...]
    n_clients: int
    n_numbers: int
    starts: dict[int, dict[int, float]] = field(default_factory=dict, repr=False)


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
        How often clients were asked, all K together.
    n_held_out : int
        How many clients scored.
    rounds : tuple of Progress
        Every round but those in which clients only scored.
    skipped : tuple of int
        Numbers of components that there were too few clients for.
    """

    n_components: int
    mdm: MDM
    candidates: tuple[Candidate, ...] = field(repr=False)
    n_rounds: int
    n_held_out: int
    rounds: tuple[Progress, ...] = field(default=(), repr=False)
    skipped: tuple[int, ...] = ()

    @property
    def chosen(self) -> Candidate:
        """The candidate that was chosen."""
        return next(c for c in self.candidates if c.n_components == self.n_components)

    @property
    def caution(self) -> str:
        """What so few clients cannot say about the choice; empty if there are enough."""
        fitted = few_clients(self.rounds[0].n_clients, [self.n_components]) if self.rounds else ""
        return "; ".join(filter(None, (few_held_out(self.n_held_out), fitted)))

    @property
    def unfinished(self) -> tuple[int, ...]:
        """Numbers of components that were still climbing when the rounds were over."""
        return tuple(c.n_components for c in self.candidates if not (c.converged or c.outdone))

    @property
    def stopped(self) -> str:
        """What ended the rounds, with advice if it was not convergence."""
        if not self.unfinished:
            return "converged: every K, or a smaller one was already better than it could become"
        which = ", ".join(map(str, self.unfinished))
        return (
            f"stopped at max_rounds before K = {which} converged; allow more rounds: held-out "
            "clients may then find them likelier"
        )


def behind(scores: ScoreStatistics, best: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean difference from the best candidate over the same clients, and its standard error."""
    n = scores.n_clients
    sums, products = scores.log_likelihoods, scores.products
    mean = (sums[best] - sums) / n
    square = (products[best, best] - 2 * products[best] + np.diag(products)) / n
    variance = np.maximum(square - mean**2, 0.0)
    return mean, np.sqrt(variance / max(n - 1, 1))
