"""What a verdict is: how each population predicts the true clients, paired intervals, and sentences.

Frozen values and what can be asked of them. They are made by `verdict.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.comparison.estimates import Estimate, student_estimate
from polyurn.errors import ParameterError
from polyurn.sweeps.pairs import mean_difference, regret
from polyurn.sweeps.scores import AGAIN, LOSS, direction
from polyurn.sweeps.words import Wording
from polyurn.typed.arguments import checked

SIMULATED = "mdm"  # the population that the others are held against, where it is among them
_OWN_WORDS = ("cannot", "it", "the", "there", "tuning")  # not the name of a population

# A test in which classes have weights is a mean of single-precision products: a perfect run may score
# 1.00000004, which is a fraction still.
_ABOVE_ONE = 1e-6

_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class PopulationVerdict:
    """How one population of simulated clients predicts the true ones.

    Attributes
    ----------
    population : str
    n_settings, n_seeds : int
        What both populations were trained with.
    difference : Estimate
        Mean over settings of |metric on these clients - metric on the true ones|: the paper's number.
    difference_of_means : float
        The same of the means over seeds, whose noise floor falls with the number of seeds.
    signed : Estimate
        Mean over settings of the metric on these clients less that on the true ones.
    rank_correlation : Estimate
        Spearman's, over settings. Seeds with fewer than two, or where all score the same, have none
        and are left out; NaN if all are.
    rank_correlation_of_means : float
        The same of the means over seeds.
    regret : Estimate
        Metric lost on the true clients by choosing the settings that won on these.
    n_diverged, n_diverged_true : int
        Diverged runs among them, on these clients and on the true ones. A metric that is not a finite
        number counts as diverged.
    n_missing : int
        Runs on these or on the true clients that have no counterpart, and are left out.
    rounds_to_target : Estimate or None
        Mean absolute difference in the number of rounds to the target, over settings where both reach
        it; None without a target.
    n_reached, n_reached_true : int or None
        Runs among them that reach it.
    """

    population: str
    n_settings: int
    n_seeds: int
    difference: Estimate
    difference_of_means: float
    signed: Estimate
    rank_correlation: Estimate
    rank_correlation_of_means: float
    regret: Estimate
    n_diverged: int
    n_diverged_true: int
    n_missing: int
    rounds_to_target: Estimate | None = None
    n_reached: int | None = None
    n_reached_true: int | None = None


@dataclass(frozen=True)
class PairVerdict:
    """Two populations against each other, seed by seed.

    Attributes
    ----------
    first, second : str
    difference, regret : Estimate
        Those of the first less those of the second: above 0, the second is nearer, or loses less.
    """

    first: str
    second: str
    difference: Estimate
    regret: Estimate


@checked
@dataclass(frozen=True)
class Verdict:
    """The verdict on every population of a sweep.

    Attributes
    ----------
    true, metric : str
    populations : tuple of PopulationVerdict
        The noise floor "again" first, if there is one, then the smallest difference first; last those
        without a run in common with the true clients, whose estimates are NaN.
    confidence : float
        What intervals cover.
    scores : mapping of population to seed to settings to float
        What the runs scored.
    """

    true: str
    metric: str
    populations: tuple[PopulationVerdict, ...]
    confidence: float = 0.95
    scores: Mapping[str, Mapping[int, Mapping[str, float]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __getitem__(self, population: str) -> PopulationVerdict:
        for found in self.populations:
            if found.population == population:
                return found
        raise KeyError(population)

    @property
    def floor(self) -> PopulationVerdict | None:
        """The true clients trained again in other cohorts: how much chance alone makes."""
        return next((v for v in self.populations if v.population == AGAIN), None)

    @property
    def simulated(self) -> tuple[PopulationVerdict, ...]:
        """The populations without the noise floor, and without those that share no run."""
        return tuple(v for v in self.populations if v.population != AGAIN and v.n_seeds)

    @property
    def reference(self) -> PopulationVerdict | None:
        """The simulated population that others are held against: "mdm", or else the nearest."""
        named = [v for v in self.simulated if v.population == SIMULATED]
        return next(iter([*named, *self.simulated]), None)

    @property
    def wording(self) -> Wording:
        """How the verdict's numbers are said; a metric between 0 and 1 in points."""
        values = [v for by in self.scores.values() for one in by.values() for v in one.values()]
        fraction = self.metric != LOSS and all(0 <= value <= 1 + _ABOVE_ONE for value in values)
        return Wording(self.metric, fraction, self.confidence)

    def paired(
        self, first: str, second: str, *, of: Literal["difference", "regret"] = "difference"
    ) -> Estimate:
        """One population's difference, or regret, less another's, seed by seed.

        On the settings that both and the true clients were trained with under that seed. Seeds that
        share none are left out; NaN if all are.

        Parameters
        ----------
        first, second : str
            "again" may be one of them.
        of : {"difference", "regret"}

        Returns
        -------
        Estimate
            Above 0, the second is nearer to the true clients, or loses less.
        """
        for name in (first, second):
            if name not in self.scores or name == self.true:
                known = ", ".join(v.population for v in self.populations)
                raise ParameterError(
                    f"expected populations to compare from {known}, got {name!r}; choose two of them"
                )
        measured: Callable[[_Floats, _Floats], float]
        measured = regret if of == "regret" else mean_difference
        sign, values = direction(self.metric), []
        tables = [self.scores[name] for name in (first, second, self.true)]
        for seed in sorted(set.intersection(*(set(table) for table in tables))):
            common = sorted(set.intersection(*(set(table[seed]) for table in tables)))
            if common:
                one, other, true = (
                    np.array([sign * table[seed][key] for key in common]) for table in tables
                )
                values.append(measured(one, true) - measured(other, true))
        return student_estimate(values, confidence=self.confidence)

    def pairs(self) -> tuple[PairVerdict, ...]:
        """Every two populations against each other."""
        names = [v.population for v in self.populations]
        return tuple(
            PairVerdict(
                first, second, self.paired(first, second), self.paired(first, second, of="regret")
            )
            for first, second in combinations(names, 2)
        )

    def sentence(self, *, about: Sequence[str] | None = None) -> str:
        """What training on each population promises, and which is nearer to the true clients.

        Parameters
        ----------
        about : sequence of str, optional
            Populations to speak of; all of them by default. The noise floor is always said.
        """
        say, told = self.wording, self._told(about)
        floor = say.floor(self.floor.difference) if self.floor and self.floor.n_seeds else ""
        if not told:
            nobody = "there are no simulated clients to judge"
            return _sentences([f"{floor}; {nobody}" if floor else nobody])
        promised = say.promises({v.population: (v.signed, v.difference) for v in told})
        said = [f"{promised}; {floor}" if floor else promised]
        *others, last = told
        said += [self.pair_sentence(v.population, last.population) for v in others]
        return _sentences(said)

    def pair_sentence(
        self, first: str, second: str, *, of: Literal["difference", "regret"] = "difference"
    ) -> str:
        """Which of two populations is nearer to the true clients, or loses less, if one can tell."""
        paired = self.paired(first, second, of=of)
        if of == "regret":
            return self.wording.loses_more(first, second, paired)
        return self.wording.nearer(first, second, paired)

    def regret_sentence(self, *, about: Sequence[str] | None = None) -> str:
        """What tuning on each population would lose; empty without simulated clients."""
        say = self.wording
        said = [say.loses(v.population, v.regret, n_seeds=v.n_seeds) for v in self._told(about)]
        return _sentences(["; ".join(said)]) if said else ""

    def _told(self, about: Sequence[str] | None) -> list[PopulationVerdict]:
        """The populations of a sentence: the farthest first, last the one they are held against."""
        told = [v for v in self.simulated if about is None or v.population in about]
        return sorted(told, key=lambda v: (v is self.reference, -v.difference.value))


def _sentences(parts: Iterable[str]) -> str:
    """Statements as sentences; a population's name stays as it is spelled."""
    return " ".join(
        f"{part[0].upper()}{part[1:]}." if part.split()[0] in _OWN_WORDS else f"{part}."
        for part in parts
    )
