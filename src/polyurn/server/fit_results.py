"""The result of a fit: its parameters, its rounds, the candidates it chose from, and the reason to stop.

Frozen values, which a model's file keeps without their parameters, which are the file's own. A file has
two numbers of clients: how many were asked, and the fewest that a sum is over. The number of each round
would show when clients left. `fitting.py` and `paper.py` make the results.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.component_summary import HEADS, component_rows, many_components
from polyurn.model.mdm import MDM
from polyurn.model.trees import MOST_LEARNED
from polyurn.privacy.statement import Guarantee
from polyurn.server.fit_settings import few_clients, few_held_out, largest_won
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Floats
from polyurn.typed.json_form import UNKEPT, Count
from polyurn.typed.plotted import Plotted, data_frame
from polyurn.wire import ScoreStatistics
from polyurn.wording import aligned, counted

_SHOWN = 12  # candidates of a result that is printed, at the most


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
    sent : dict of str to int
        What the numbers were for: "survey" and "starts" to begin with, "steps" and their "curvature".
    values : dict of int to float
        The best mean log-likelihood of each number of components; no file keeps this and the next.
    running : tuple of int
        The numbers of components that still climb.

    While several numbers of components climb, `mdm` is None and `log_likelihood` NaN; in the result
    `log_likelihood` and `starts` are those of the chosen number.
    """

    number: Count
    mdm: MDM | None = field(metadata=UNKEPT)
    log_likelihood: float
    n_clients: Count | None = field(metadata=UNKEPT)
    n_numbers: Count
    starts: Mapping[int, float] = field(default_factory=dict, repr=False)
    sent: Mapping[str, Count] = field(default_factory=dict, repr=False)
    values: Mapping[int, float] = field(default_factory=dict, repr=False, metadata=UNKEPT)
    running: tuple[Count, ...] = field(default=(), repr=False, metadata=UNKEPT)


@dataclass(frozen=True)
class Candidate:
    """One number of components: its fit, and its score on the held-out clients.

    `n_components` is the number that was asked for; `mdm` has fewer if some were left without clients,
    and is None in a fit from a file, which has only the chosen one. `log_likelihood` is a mean over the
    held-out clients, `standard_error` its own; `behind` is how far it is below the best candidate's, on
    the same clients, and `behind_error` the standard error of that difference. `n_rounds` go until its
    search stopped, the survey included. It was `overtaken` if it stopped early because fewer components
    do better: their held-out likelihood is higher by more than it could still gain.
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
    n_parameters: Count = 0  # of `mdm`

    def __post_init__(self) -> None:
        if self.mdm is not None:
            self.__dict__["n_parameters"] = self.mdm.n_parameters


@dataclass(frozen=True)
class PrivateCandidate:
    """One number of components, after the race of a private fit.

    `behind` is how far it is behind the best, in nats per client, less the gain that its number of
    parameters has by chance; `noise` is the standard deviation of the noise in that.
    """

    n_components: int
    behind: float
    noise: float


@dataclass(frozen=True)
class ShapeScore:
    """A shape of the mixture after the choice of K, and how held-out clients judged it.

    `n_components` is the number that these clients found likeliest, of the few that went on.
    `log_likelihood` is their mean; it is above that of what was kept before by `gain`, whose standard
    error is `gain_error`.
    """

    shape: str  # "tree" or "laws"
    n_components: Count
    log_likelihood: float
    gain: float
    gain_error: float
    kept: bool
    penalty: float = 0.0  # λ on laws that are not smooth, which these clients chose
    tree: str = "learned"  # or "declared" or "by share"

    def __str__(self) -> str:
        shape = {"tree": "splits on a tree", "laws": "laws on the splits"}[self.shape]
        found = f"{self.gain:+.4f} ({self.gain_error:.4f}) with K = {self.n_components}"
        return f"{shape}: {found}, {'kept' if self.kept else 'not kept'}"


@checked
@dataclass(frozen=True)
class Fit(Plotted):
    """A fitted MDM and how it came about.

    Attributes
    ----------
    mdm : MDM
    rounds : tuple of Round
    converged : bool
        Whether less than `tol` nats per client seem to be left to gain, of every candidate where there
        are several. Always False for `fit_paper`, which does not test it.
    stopped : str
        The reason why the rounds ended, with advice unless it is convergence.
    n_agreeing : int or None
        How many starts of the search ended at the same optimum (within `tol`, and close in every
        parameter), including this one. None if they were not counted (`fit_paper`, sampled cohorts).
    guarantee : Guarantee or None
        What the releases of `fit_private` guarantee to a client; None: nothing is guaranteed.
    n_clients, fewest_clients : int
        Clients that were fitted in the last round, or the most of any round where there are candidates;
        and the fewest of any round. From the rounds if these have them.
    n_components : int
        The number that was asked for or chosen; those of `mdm` if it is not given.
    candidates : tuple of Candidate
        By number of components: those that held-out clients judged. Empty for a fit of one number.
    n_held_out : int
        How many clients scored.
    skipped : tuple of int
        Numbers of components with too few clients to fit them.
    taken : str
        The bounds that were taken from the table because they were not declared; "" if none were.
    joined : tuple of float
        The mean log-likelihood after each round that followed the choice, in which the held-out clients
        were fitted as well; the last is that of `mdm`. Empty: they were never fitted.
    raced : tuple of PrivateCandidate
        By number of components: those that `fit_private` chose from.
    stages : tuple of ShapeScore
        The tree and the laws that were tried after the choice; the last that was kept is of `mdm`.
    no_errors : str
        Why there are no `mdm.standard_errors`; "" if there are.
    """

    mdm: MDM = field(metadata=UNKEPT)
    rounds: tuple[Round, ...] = field(repr=False)
    converged: bool
    stopped: str
    n_agreeing: Count | None = field(default=None, metadata=UNKEPT)
    guarantee: Guarantee | None = field(default=None, metadata=UNKEPT)
    n_clients: Count = 0
    fewest_clients: Count = 0
    n_components: Count = 0
    candidates: tuple[Candidate, ...] = field(default=(), repr=False)
    n_held_out: Count = 0
    skipped: tuple[Count, ...] = ()
    taken: str = ""
    joined: tuple[float, ...] = field(default=(), repr=False)
    stages: tuple[ShapeScore, ...] = field(default=(), repr=False)
    raced: tuple[PrivateCandidate, ...] = field(default=(), repr=False, metadata=UNKEPT)
    no_errors: str = ""

    def __post_init__(self) -> None:
        if counts := [one.n_clients for one in self.rounds if one.n_clients is not None]:
            last = max(counts) if self.candidates else counts[-1]
            self.__dict__.update(n_clients=last, fewest_clients=min(counts))
        if not self.n_components and self.mdm is not None:
            self.__dict__["n_components"] = self.mdm.n_components
        if self.candidates and self.chosen is None:
            raise ParameterError(
                f"expected n_components among the candidates, got {self.n_components}"
            )

    def named(self, categories: tuple[str, ...] | None) -> "Fit":
        """The same with names for the categories of its mixtures."""

        def with_names(mdm: MDM | None) -> MDM | None:
            return None if mdm is None else replace(mdm, categories=categories)

        rounds = tuple(replace(one, mdm=with_names(one.mdm)) for one in self.rounds)
        tried = tuple(replace(one, mdm=with_names(one.mdm)) for one in self.candidates)
        return replace(
            self, mdm=replace(self.mdm, categories=categories), rounds=rounds, candidates=tried
        )

    def __str__(self) -> str:
        n, lines = self.mdm.n_components, []
        by = f", by {counted(self.n_held_out, 'held-out client')}" if self.candidates else ""
        categories = counted(self.mdm.n_categories, "category")
        lines = [f"{counted(n, 'component')}, {categories}{by}", self.cost, self.stopped]
        lines += [f"caution: {self.caution}"] if self.caution else []
        lines += [one for one in (self.taken, many_components(self.mdm)) if one]
        lines += [f"no standard errors: {self.no_errors}"] if self.no_errors else []
        lines += aligned([HEADS, *component_rows(self.mdm)], left=[4])
        lines += ["± is half of a 95 % interval"] if self.mdm.covariance is not None else []
        if self.candidates:
            tried = [
                (
                    str(c.n_components),
                    f"{c.log_likelihood:.4f}",
                    f"{c.behind:.4f} ({c.behind_error:.4f})",
                )
                for c in self.best_candidates(_SHOWN)
            ]
            lines += aligned([("K", "held-out", "behind (s.e.)"), *tried])
            lines += map(str, self.stages)
        return "\n".join(lines)

    def to_pandas(self) -> Any:
        """A data frame with a row for each candidate; for each round, where there are none."""
        rows = self.candidates or self.rounds
        others = ("mdm", "starts", "sent", "values", "running")
        names = [item.name for item in fields(rows[0]) if item.name not in others]
        return data_frame({name: [getattr(one, name) for one in rows] for name in names})

    @property
    def n_dropped(self) -> int:
        """How many components were left with less than half a client, and dropped."""
        return self.n_components - self.mdm.n_components

    @property
    def n_rounds(self) -> int:
        """How often clients were asked, including the rounds of the starts and of scores."""
        return len(self.rounds)

    @property
    def n_numbers(self) -> int:
        """How many numbers a client sent in all rounds together, at most."""
        return sum(one.n_numbers for one in self.rounds)

    @property
    def sent(self) -> dict[str, int]:
        """What these numbers were for; empty where the rounds do not say it."""
        total: Counter[str] = Counter()
        for one in self.rounds:
            total.update(one.sent)
        return dict(total)

    @property
    def cost(self) -> str:
        """The rounds and the numbers that a client sent, in words."""
        parts = ", ".join(f"{n / self.n_numbers:.0%} {what}" for what, n in self.sent.items())
        numbers = f"{self.n_numbers:,} numbers from a client at most"
        return f"{counted(self.n_rounds, 'round')}, {numbers}{f' ({parts})' if parts else ''}"

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that was chosen; None without candidates."""
        return next((c for c in self.candidates if c.n_components == self.n_components), None)

    def best_candidates(self, most: int) -> tuple[Candidate, ...]:
        """The candidates by number of components: the likeliest, where there are more than so many."""
        ranked = sorted(self.candidates, key=lambda c: (c is not self.chosen, c.behind))[:most]
        return tuple(sorted(ranked, key=lambda c: c.n_components))

    @property
    def caution(self) -> str:
        """A warning about what few clients, or the numbers offered, leave open; else empty."""
        fitted = few_clients(self.n_clients, [self.n_components]) if self.n_clients else ""
        held = few_held_out(self.n_held_out) if self.n_held_out else ""
        largest = largest_won(self.n_components, [c.n_components for c in self.candidates])
        wide = ""
        if any(stage.tree == "by share" for stage in self.stages):
            wide = (
                f"the tree of more than {MOST_LEARNED} categories is not learned but made of their "
                "shares; one can be declared"
            )
        return "; ".join(filter(None, (held, fitted, largest, wide)))

    @property
    def unfinished(self) -> tuple[int, ...]:
        """Numbers of components whose search had not stopped after the last round."""
        return tuple(c.n_components for c in self.candidates if not (c.converged or c.overtaken))

    @property
    def held_out_log_likelihood(self) -> float:
        """Mean over the held-out clients, under the mixture that they chose; NaN without any."""
        judged = [self.chosen, *(stage for stage in self.stages if stage.kept)]
        return float("nan") if judged[-1] is None else judged[-1].log_likelihood

    @property
    def log_likelihoods(self) -> Floats:
        """Mean log-likelihood per client of each round that has one."""
        values = np.array([r.log_likelihood for r in self.rounds])
        return np.asarray(values[~np.isnan(values)])


def behind(scores: ScoreStatistics, best: int) -> tuple[Floats, Floats]:
    """Mean difference from the best candidate over the same clients, and its standard error."""
    n = scores.n_clients
    sums, products = scores.log_likelihoods, scores.products
    mean = (sums[best] - sums) / n
    square = (products[best, best] - 2 * products[best] + np.diag(products)) / n
    variance = np.maximum(square - mean**2, 0.0)
    return mean, np.sqrt(variance / max(n - 1, 1))
