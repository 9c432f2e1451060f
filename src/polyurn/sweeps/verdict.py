"""The verdict of a sweep: does training on simulated clients predict training on the true ones?

Pairs of runs with the same seed and settings in; a `Verdict` out, which can be asked for numbers, paired
intervals and sentences. Nothing is trained or read here.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Annotated, Any, Literal, Self

import numpy as np

from polyurn.comparison.comparison_results import SIMULATED
from polyurn.comparison.estimates import COVERAGE, Estimate, student_estimate
from polyurn.errors import ParameterError
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.run_scores import (
    AGAIN,
    LAST,
    LOSS,
    RunScore,
    base_of,
    direction,
    mean_difference,
    rank_correlation,
    regret,
    rounds_apart,
    score_runs,
)
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Between, Floats
from polyurn.wording import capital, counted

_OWN_WORDS = ("cannot", "it", "the", "there", "tuning")  # not the name of a population

# A test in which classes have weights is a mean of single-precision products: a perfect run may score
# 1.00000004, which is a fraction still.
_ABOVE_ONE = 1e-6

_SMALL = 0.005  # points below it are 0 for a reader
_ROUNDING = 1e-9  # a difference of 0 comes out as something like 1e-17
# How much of the absolute difference the signed one must be for all of it, or most, to have a direction:
# what is missing are errors that cancelled. Nobody plans by a twentieth of a difference.
_ALL, _MOST = 0.95, 0.5


@dataclass(frozen=True)
class PopulationVerdict:
    """How one population of simulated clients predicts the true ones.

    `n_settings` and `n_seeds` are what both populations were trained with. `difference`, the paper's
    number, is the mean over settings of |metric on these clients - metric on the true ones|, and
    `signed` that of the first less the second. `rank_correlation` is Spearman's, over settings; seeds
    with fewer than two, or where all score the same, have none and are left out; NaN if all are. Those
    `of_means` are the same of the means over seeds, whose noise floor falls with the number of seeds.
    `regret` is the metric lost on the true clients by choosing the settings that won on these.

    `n_diverged` and `n_diverged_true` are diverged runs among them, a metric that is not a finite number
    included. `n_missing` runs on either clients have no counterpart, and are left out.
    `rounds_to_target` is the mean absolute difference in the number of rounds to the target, over
    settings where both reach it, and `n_reached` and `n_reached_true` are the runs that do; None without
    a target.
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
    scores : mapping of population to seed to settings to float
        What the runs scored.
    """

    true: str
    metric: str
    populations: tuple[PopulationVerdict, ...]
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
    def wording(self) -> "Wording":
        """How the verdict's numbers are said; a metric between 0 and 1 in points."""
        return Wording.of(self.metric, self.scores)

    def paired(
        self, first: str, second: str, *, of: Literal["difference", "regret"] = "difference"
    ) -> Estimate:
        """One population's difference, or regret, less another's, seed by seed; "again" may be one of
        them.

        On the settings that both and the true clients were trained with under that seed. Seeds that
        share none are left out; NaN if all are. Above 0, the second is nearer to the true clients, or
        loses less.
        """
        for name in (first, second):
            if name not in self.scores or name == self.true:
                known = ", ".join(v.population for v in self.populations)
                raise ParameterError(
                    f"expected populations to compare from {known}, got {name!r}; choose two of them"
                )
        measured: Callable[[Floats, Floats], float]
        measured = regret if of == "regret" else mean_difference
        sign, values = direction(self.metric), []
        tables = [self.scores[name] for name in (first, second, self.true)]
        for seed, keys in _shared(*tables):
            one, other, true = (
                np.array([sign * table[seed][key] for key in keys]) for table in tables
            )
            values.append(measured(one, true) - measured(other, true))
        return student_estimate(values)

    def measures(self, found: PopulationVerdict) -> dict[str, Estimate | str]:
        """What tables say about a population, in their order; differences of a fraction in points."""
        scale = 100 if self.wording.in_points else 1
        nothing = Estimate(math.nan, math.nan, math.nan)
        cells: dict[str, Estimate | str] = {
            "difference": found.difference.scaled(scale),
            "difference of means": replace(nothing, value=scale * found.difference_of_means),
            "simulated less true": found.signed.scaled(scale),
        }
        if (reference := self.reference) is not None:
            mine = found is reference
            less = nothing if mine else self.paired(found.population, reference.population)
            cells[f"difference less {reference.population}'s"] = less.scaled(scale)
        cells |= {"regret": found.regret.scaled(scale), "rank correlation": found.rank_correlation}
        if found.rounds_to_target is not None:
            cells["rounds to target, apart"] = found.rounds_to_target
            cells["reached (here|true)"] = f"{found.n_reached}|{found.n_reached_true}"
        cells["settings, seeds"] = f"{found.n_settings}, {found.n_seeds}"
        cells["diverged (here|true)"] = f"{found.n_diverged}|{found.n_diverged_true}"
        if any(one.n_missing for one in self.populations):
            cells["no counterpart"] = str(found.n_missing)
        return cells

    def sentence(self) -> str:
        """What training on each population promises, and which is nearer to the true clients."""
        wording, shown = self.wording, self._shown()
        floor = wording.floor(self.floor.difference) if self.floor and self.floor.n_seeds else ""
        if not shown:
            nobody = "there are no simulated clients to judge"
            return _sentences([f"{floor}; {nobody}" if floor else nobody])
        promised = wording.promises({v.population: (v.signed, v.difference) for v in shown})
        parts = [f"{promised}; {floor}" if floor else promised]
        *others, last = shown
        parts += [self.pair_sentence(v.population, last.population) for v in others]
        parts += [self._of_the_fit(v.population) for v in shown]
        return _sentences([part for part in parts if part])

    def pair_sentence(self, first: str, second: str) -> str:
        """Which of two populations is nearer to the true clients, if one can tell."""
        return self.wording.nearer(first, second, self.paired(first, second))

    def regret_sentence(self) -> str:
        """What tuning on each population would lose; empty without simulated clients."""
        loses = self.wording.loses
        parts = [loses(v.population, v.regret, n_seeds=v.n_seeds) for v in self._shown()]
        return _sentences(["; ".join(parts)]) if parts else ""

    def _of_the_fit(self, base: str) -> str:
        """What mixtures as plausible as this one promise, on the settings that both have; "" if none."""
        drawn = [name for name in self.scores if base_of(name) == base != name]
        mine, more = self.scores[base], []
        for table in (self.scores[name] for name in drawn):
            apart = [
                table[s][key] - mine[s][key] for s, keys in _shared(mine, table) for key in keys
            ]
            more += [fmean(apart)] if apart else []
        if not more:
            return ""
        span = f"{self.wording.number(min(more))} to {self.wording.amount(max(more))}"
        mixtures = counted(len(more), "plausible mixture promises", "plausible mixtures promise")
        return f"{mixtures} {span} more than {base}: so much hangs on the fit"

    def _shown(self) -> list[PopulationVerdict]:
        """The populations of a sentence: the farthest first, last the one they are held against."""
        bases = {v: base_of(v.population) for v in self.simulated}
        shown = [v for v, base in bases.items() if base == v.population or base not in self.scores]
        return sorted(shown, key=lambda v: (v is self.reference, -v.difference.value))


@checked
def compare_sweeps(
    runs: Iterable[FinishedRun],
    *,
    true: str = "true",
    metric: str = "accuracy",
    last: Annotated[float, Between(0, 1)] = LAST,
    target: float | None = None,
) -> Verdict:
    """Say how well each population predicts the true clients.

    Everything is computed per seed, on the settings that both populations were trained with under
    that seed, then averaged; intervals are Student's t over seeds, wide when there are few.

    Parameters
    ----------
    runs : iterable of FinishedRun
        Runs that an adaptive search cut short are left out.
    true : str
        The population that the others are compared with.
    metric : str
        A larger one is better. "loss" is the runs' test loss, of which a smaller one is.
    last : float
        A run scores the mean of its last evaluations: this share of them, rounded up, and at least one.
        One evaluation swings with the cohort before it. A run that diverged scores 0; if a run scores
        less, and for the loss, as far beyond the worst run as the best is from it.
    target : float, optional
        The metric to reach, for `rounds_to_target`. A run that diverged does not reach it.

    Examples
    --------
    >>> def run(population, rate, score, seed):
    ...     settings = {"local_learning_rate": rate}
    ...     curve = {"accuracy": [score]}
    ...     return FinishedRun(population, seed, settings, "workers", [1], [0.0], curve,
    ...                      {"accuracy": score}, None, 0.0)
    >>> table = {"true": [0.80, 0.70, 0.60], "iid": [0.81, 0.84, 0.70], "mdm": [0.79, 0.71, 0.60]}
    >>> verdict = compare_sweeps(
    ...     run(name, rate, score + 0.01 * seed, seed)
    ...     for name, scores in table.items() for seed in (0, 1)
    ...     for rate, score in zip((0.1, 0.2, 0.3), scores)
    ... )
    >>> iid = verdict["iid"]
    >>> round(iid.difference.value, 4), iid.rank_correlation.value, round(iid.regret.value, 4)
    (0.0833, 0.5, 0.1)
    >>> f"{verdict.paired('iid', 'mdm'):.1%}"
    '7.7% (7.7% to 7.7%)'
    """
    if target is not None and not math.isfinite(target):
        raise ParameterError(f"expected target as a finite number, got {target}")
    scores = score_runs(runs, metric, last=last, target=target)
    if true not in scores:
        there = f"choose one of {', '.join(scores)}" if scores else "run the sweep first"
        raise ParameterError(f"no runs on the population {true!r}; {there}")
    found = [
        _population(name, scores[name], scores[true], metric, target)
        for name in scores
        if name != true
    ]
    if not any(verdict.n_seeds for verdict in found):
        names = ", ".join(repr(verdict.population) for verdict in found) or "no other population"
        raise ParameterError(
            f"{names} has no run with the seed and settings of a true one; "
            "repeat the sweep with the same seeds and settings for both"
        )
    values = {
        name: {seed: {key: one.value for key, one in by.items()} for seed, by in seeds.items()}
        for name, seeds in scores.items()
    }
    found.sort(key=lambda v: (v.population != AGAIN, v.n_seeds == 0, v.difference.value))
    return Verdict(true, metric, tuple(found), values)


def _population(
    name: str,
    simulated: Mapping[int, Mapping[str, RunScore]],
    true: Mapping[int, Mapping[str, RunScore]],
    metric: str,
    target: float | None,
) -> PopulationVerdict:
    """The verdict on one population, from scores by seed and settings."""
    sign, best = direction(metric), list[float]()
    pairs: list[list[tuple[RunScore, RunScore]]] = []  # of the settings that both have, by seed
    by_settings: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for seed, keys in _shared(simulated, true):
        here, there = simulated[seed], true[seed]
        pairs.append([(here[key], there[key]) for key in keys])
        best.append(max(sign * one.value for one in there.values()))
        for key in keys:
            by_settings[key].append((here[key].value, there[key].value))
    n_runs = sum(len(by) for table in (simulated, true) for by in table.values())
    values = [np.array([(a.value, b.value) for a, b in one]).T for one in pairs]
    means = np.array([np.mean(one, axis=0) for one in by_settings.values()]).reshape(-1, 2).T

    def over_seeds(found: Iterable[float]) -> Estimate:
        return student_estimate([value for value in found if not math.isnan(value)])

    ranks = over_seeds(rank_correlation(a, b) for a, b in values)

    def n_of(what: str, part: int) -> int:
        scores = [getattr(one[part], what) for seed in pairs for one in seed]
        return sum(score not in (None, False) for score in scores)

    return PopulationVerdict(
        population=name,
        n_settings=max((len(one) for one in pairs), default=0),
        n_seeds=len(pairs),
        difference=over_seeds(mean_difference(a, b) for a, b in values),
        difference_of_means=mean_difference(*means),
        signed=over_seeds(float((a - b).mean()) for a, b in values),
        # Student's interval knows no bounds.
        rank_correlation=replace(ranks, low=max(ranks.low, -1.0), high=min(ranks.high, 1.0)),
        rank_correlation_of_means=rank_correlation(*means),
        regret=over_seeds(
            regret(sign * a, sign * b, best=most) for most, (a, b) in zip(best, values, strict=True)
        ),
        n_diverged=n_of("diverged", 0),
        n_diverged_true=n_of("diverged", 1),
        n_missing=n_runs - 2 * sum(map(len, pairs)),
        rounds_to_target=None if target is None else over_seeds(map(rounds_apart, pairs)),
        n_reached=None if target is None else n_of("reached", 0),
        n_reached_true=None if target is None else n_of("reached", 1),
    )


def _shared(*tables: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[int, list[str]]]:
    """Each seed under which all populations share settings, and these."""
    for seed in sorted(set.intersection(*(set(table) for table in tables))):
        if keys := sorted(set.intersection(*(set(table[seed]) for table in tables))):
            yield seed, keys


def _sentences(parts: Iterable[str]) -> str:
    """Statements as sentences; a population's name stays as it is spelled."""
    return " ".join(
        capital(f"{part}.") if part.split()[0] in _OWN_WORDS else f"{part}." for part in parts
    )


# ------------------------------------------------------------------------ in words


@dataclass(frozen=True)
class Wording:
    """How the numbers of one verdict are said; `in_points`: a fraction's differences in hundredths."""

    metric: str
    in_points: bool

    @classmethod
    def of(cls, metric: str, scores: Mapping[str, Mapping[Any, Mapping[Any, float]]]) -> Self:
        """The wording of scores by population and what else; those of a fraction are in points."""
        values = [v for by in scores.values() for one in by.values() for v in one.values()]
        fraction = metric != LOSS and all(0 <= value <= 1 + _ABOVE_ONE for value in values)
        return cls(metric, fraction)

    def number(self, value: float) -> str:
        """A difference in the metric, without its unit."""
        if math.isnan(value):
            return "–"
        if not self.in_points:
            return "0" if abs(value) < _ROUNDING else f"{value:.3g}"
        points = 100 * value
        if abs(points) < _SMALL:
            return "0.0"
        return f"{points:.1f}" if abs(points) >= 0.1 else f"{points:.2f}"

    def amount(self, value: float) -> str:
        """A difference in the metric with its unit."""
        return f"{self.number(value)} points" if self.in_points else self.number(value)

    def interval(self, found: Estimate) -> str:
        """The ends of an interval, which one seed does not have."""
        if not has_interval(found):
            return "one seed has no interval"
        return f"{self.number(found.low)} to {self.number(found.high)}"

    def estimate(self, found: Estimate) -> str:
        """A difference with its unit and its interval."""
        return f"{self.amount(found.value)} ({self.interval(found)})"

    def promises(self, found: Mapping[str, tuple[Estimate, Estimate]]) -> str:
        """What the clients of each population promise too much or too little of the metric.

        `found` has two differences of each: the signed one, simulated less true, and the absolute one.
        The number is the absolute difference, as the noise floor's is. Where the signed one is smaller,
        because errors cancel over settings or seeds, nothing is promised: they "are off by" it.
        """
        promise = "promise a loss that is " if self.metric == LOSS else "promise "
        parts, before = [], ""
        for name, (signed, absolute) in found.items():
            one_way = abs(signed.value) >= _ALL * absolute.value
            verb, again = (promise, "") if one_way else ("are off by ", "by ")
            amount, way = self.amount(absolute.value), self._way(signed, absolute)
            parts.append(f"{_clients(name)} {again if verb == before else verb}{amount} {way}")
            before = verb
        return ", ".join(parts)

    def floor(self, difference: Estimate) -> str:
        """How much the true clients themselves differ when they are trained again."""
        return f"the true clients trained again differ by {self.amount(difference.value)}"

    def nearer(self, first: str, second: str, paired: Estimate) -> str:
        """Which of two populations is nearer to the true clients, by their difference."""
        # In the passive: the headline joins it to what clients are, and it is not they who cannot tell.
        unknown = f"it cannot be told which of {_called(second)} and {_clients(first)} are nearer"
        if math.isnan(paired.value):
            return f"{unknown}: they share no run"
        if not excludes_zero(paired):
            return f"{unknown}: {self.estimate(paired)}"
        if paired.value < 0:
            first, second = second, first
            paired = Estimate(-paired.value, -paired.high, -paired.low)
        return (
            f"{_clients(second)} are nearer to the true ones than {_clients(first)} by "
            f"{self._known(paired)}"
        )

    def loses(self, name: str, regret: Estimate, *, n_seeds: int) -> str:
        """What is lost by the settings that win on these clients, if that can be told from nothing.

        Where it was nothing in each of several seeds, that is all that is said: other seeds may differ.
        """
        what = f"tuning on {_clients(name)}"
        if has_interval(regret) and max(abs(regret.low), abs(regret.high)) < _ROUNDING:
            return f"{what} lost nothing in these {counted(n_seeds, 'seed')}"
        if not excludes_zero(regret):
            return f"cannot tell whether {what} loses anything: {self.estimate(regret)}"
        return f"{what} loses {self._known(regret)}"

    def _way(self, signed: Estimate, absolute: Estimate) -> str:
        """In which direction clients mislead, if that can be told."""
        more, less = ("too high", "too low") if self.metric == LOSS else ("too much", "too little")
        way = more if signed.value > 0 else less
        if abs(signed.value) >= _ALL * absolute.value:
            return way if excludes_zero(signed) else f"{way} (cannot be told from 0)"
        mostly = abs(signed.value) >= _MOST * absolute.value and excludes_zero(signed)
        return f"(mostly {way})" if mostly else "(in both directions)"

    def _known(self, found: Estimate) -> str:
        """A difference that is not 0, with what its interval covers."""
        return f"{self.amount(found.value)} ({100 * COVERAGE:g} % interval {self.interval(found)})"


def _clients(name: str) -> str:
    """What the clients of a population are called in a sentence."""
    return f"{_called(name)} clients"


def _called(name: str) -> str:
    """What a population is called in a sentence."""
    return "IID" if name == "iid" else name


def has_interval(found: Estimate) -> bool:
    """Whether there were enough seeds for one."""
    return not math.isnan(found.low)


def excludes_zero(found: Estimate) -> bool:
    """Whether the number can be told from 0; never without an interval."""
    return has_interval(found) and (found.low > 0 or found.high < 0)
