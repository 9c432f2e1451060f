"""The settings to use: what a sweep comes to, how sure that is, and what it may cost.

Settings are chosen on simulated clients, as somebody has to who cannot train on the true ones. Where
those were trained too, or other plausible clients, the price of the choice can be read off.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from polyurn.comparison.comparison_results import SIMULATED
from polyurn.comparison.estimates import Estimate, student_estimate
from polyurn.errors import ParameterError
from polyurn.storage.documents import json_bytes
from polyurn.storage.files import write_whole
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.run_scores import AGAIN, LOSS, RunScore, direction, score_runs
from polyurn.sweeps.verdict import Wording, has_interval
from polyurn.typed.arguments import checked
from polyurn.wording import counted

_CONFIDENCE = 0.95
_MOST_NAMED = 4  # settings that a sentence lists
_BARE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


@dataclass(frozen=True)
class Rival:
    """Settings beside those that are recommended.

    Attributes
    ----------
    settings : dict
        Those that the sweep varied.
    behind : Estimate
        How much worse they are, seed by seed.
    """

    settings: Mapping[str, Any]
    behind: Estimate


@dataclass(frozen=True)
class Price:
    """What the recommended settings lose on other clients.

    Attributes
    ----------
    population : str
    best : dict
        The settings that are best there, of those that the sweep varied.
    loses : Estimate
        How much better they are there than the recommended ones, seed by seed; 0 if they are the same.
    """

    population: str
    best: Mapping[str, Any]
    loses: Estimate


@dataclass(frozen=True)
class Recommendation:
    """The settings to use.

    Attributes
    ----------
    metric, population : str
        In what, and on whose clients they are best.
    settings : dict
        All of them.
    varied : tuple of str
        The names of those that the sweep varied.
    score : float
        The mean over seeds; that of one run as in `compare_sweeps`.
    n_settings, n_seeds : int
        How many were tried there, and under how many seeds these were.
    rivals : tuple of Rival
        Settings that cannot be told from these at 95 %, the best first.
    prices : tuple of Price
        On the true clients if they were trained, else on the other populations.
    """

    metric: str
    population: str
    settings: Mapping[str, Any]
    varied: tuple[str, ...]
    score: float
    n_settings: int
    n_seeds: int
    rivals: tuple[Rival, ...]
    prices: tuple[Price, ...]
    wording: Wording = field(repr=False)

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that the sweep varied."""
        return {name: self.settings[name] for name in self.varied}

    def sentences(self) -> list[str]:
        """What to use, what is as good, and what it costs elsewhere."""
        said, shown = self.wording, as_text(self.chosen)
        score = f"{self.score:.1%}" if said.in_points else f"{self.score:.4g}"
        found = [
            f"use these settings: {shown}; {self.metric} {score} on {self.population} clients, the best "
            f"of {counted(self.n_settings, 'setting')} over {counted(self.n_seeds, 'seed')}"
        ]
        if self.n_seeds < 2:
            found.append("one seed cannot say how sure that is: run more seeds")
        elif self.rivals:
            named = "; ".join(as_text(rival.settings) for rival in self.rivals[:_MOST_NAMED])
            more = len(self.rivals) - _MOST_NAMED
            found.append(f"cannot be told from {named}{f'; and {more} more' if more > 0 else ''}")
        elif self.n_settings > 1:
            found.append("every other setting is worse, seed by seed")
        return found + [self._price(price) for price in self.prices]

    def _price(self, price: Price) -> str:
        whose = f"on {price.population} clients"
        if price.best == self.chosen:
            return f"{whose} they are the best, too"
        loses = self.wording.estimate(price.loses)
        return f"{whose} they lose {loses} against the best there, {as_text(price.best)}"

    def to_json(self) -> dict[str, Any]:
        """The recommendation for `best.json`."""
        return {
            "settings": dict(self.settings),
            "varied": list(self.varied),
            "metric": self.metric,
            "population": self.population,
            "score": self.score,
            "n_settings": self.n_settings,
            "n_seeds": self.n_seeds,
            "cannot_be_told_from": [
                {"settings": dict(rival.settings), "behind": _interval_json(rival.behind)}
                for rival in self.rivals
            ],
            "loses": [
                {
                    "population": price.population,
                    "best": dict(price.best),
                    "against_best": _interval_json(price.loses),
                }
                for price in self.prices
            ],
            "sentences": self.sentences(),
        }

    def to_toml(self) -> str:
        """The settings as a table of TOML, as Flower's `--run-config` reads it."""
        head = f"# {self.sentences()[0]}\n"
        return head + "".join(f"{line}\n" for line in _toml_lines(self.settings))


@checked
def recommend(
    runs: Iterable[FinishedRun],
    *,
    metric: str = "accuracy",
    true: str = "true",
    population: str | None = None,
) -> Recommendation | None:
    """The settings to use after a sweep; None if no run says anything of them.

    Parameters
    ----------
    runs : iterable of FinishedRun
    metric : str
        A larger one is better. "loss" is the runs' test loss, of which a smaller one is.
    true : str
        The true clients' population, on which nothing is chosen.
    population : str, optional
        On whose clients the settings are chosen: by default "mdm", or else the first that was trained.

    Examples
    --------
    >>> def run(lr, seed, score):
    ...     return FinishedRun("mdm", seed, {"lr": lr, "rounds": 9}, "trainer", [9], [None],
    ...                        {"accuracy": [score]}, {"accuracy": score}, None, 1.0)
    >>> found = recommend([run(0.1, 0, 0.7), run(0.2, 0, 0.6), run(0.1, 1, 0.7), run(0.2, 1, 0.6)])
    >>> found.chosen, found.sentences()[1]
    ({'lr': 0.1}, 'every other setting is worse, seed by seed')
    """
    whole = [run for run in runs if not run.pruned]
    names = [name for name in dict.fromkeys(run.population for run in whole) if name != AGAIN]
    simulated = [name for name in names if name != true] or names
    if not simulated:
        return None
    if population is None:
        population = SIMULATED if SIMULATED in simulated else simulated[0]
    if population not in names:
        raise ParameterError(
            f"no runs on the population {population!r}; expected one of {', '.join(names)}"
        )
    scores = {name: _by_settings(found) for name, found in score_runs(whole, metric).items()}
    varied = _varied(whole)
    sign, here = direction(metric), scores[population]
    ranked = _ranked(here, sign)
    best = ranked[0]
    others = [true] if true in names else [name for name in names if name != population]
    values = [one for by in scores.values() for seeds in by.values() for one in seeds.values()]
    fraction = metric != LOSS and all(0 <= value <= 1 for value in values)
    return Recommendation(
        metric=metric,
        population=population,
        settings=json.loads(best),
        varied=varied,
        score=float(np.mean([*here[best].values()])),
        n_settings=len(here),
        n_seeds=len(here[best]),
        rivals=_rivals(here, ranked, sign, varied),
        prices=tuple(
            price
            for name in others
            if (price := _price(name, scores[name], best, sign, varied)) is not None
        ),
        wording=Wording(metric, fraction, _CONFIDENCE),
    )


def keep_recommendation(found: Recommendation, folder: Path) -> None:
    """Write `best.json`, and `best.toml` for a Flower app's run-config."""
    text = json_bytes(json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n")
    write_whole(folder / "best.json", lambda file: file.write(text))
    write_whole(folder / "best.toml", lambda file: file.write(json_bytes(found.to_toml())))


def as_text(settings: Mapping[str, Any]) -> str:
    """Settings in a sentence.

    Examples
    --------
    >>> as_text({"local_epochs": 2, "weighting": "uniform"})
    'local_epochs 2, weighting uniform'
    """
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "as they are"


def _by_settings(
    scores: Mapping[int, Mapping[str, RunScore]],
) -> dict[str, dict[int, float]]:
    """Settings to seeds to scores."""
    found: dict[str, dict[int, float]] = {}
    for seed, by_settings in scores.items():
        for key, one in by_settings.items():
            found.setdefault(key, {})[seed] = one.value
    return found


def _ranked(here: Mapping[str, Mapping[int, float]], sign: int) -> list[str]:
    """Settings from the best down: of those with the most seeds first, by their mean."""
    return sorted(here, key=lambda key: (-len(here[key]), -sign * np.mean([*here[key].values()])))


def _varied(runs: Sequence[FinishedRun]) -> tuple[str, ...]:
    """The settings that differ between runs."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    return tuple(
        name
        for name in names
        if len({json.dumps(run.settings.get(name), sort_keys=True) for run in runs}) > 1
    )


def _less(one: Mapping[int, float], other: Mapping[int, float], sign: int) -> Estimate:
    """How much better one's scores are than the other's, over the seeds that both have."""
    both = sorted(set(one) & set(other))
    return student_estimate(
        [sign * (one[seed] - other[seed]) for seed in both], confidence=_CONFIDENCE
    )


def _rivals(
    here: Mapping[str, Mapping[int, float]],
    ranked: Sequence[str],
    sign: int,
    varied: Sequence[str],
) -> tuple[Rival, ...]:
    best, *others = ranked
    found = []
    for key in others:
        behind = _less(here[best], here[key], sign)
        if has_interval(behind) and behind.low <= 0:
            found.append(Rival(_only(key, varied), behind))
    return tuple(sorted(found, key=lambda rival: rival.behind.value))


def _price(
    name: str,
    scores: Mapping[str, Mapping[int, float]],
    chosen: str,
    sign: int,
    varied: Sequence[str],
) -> Price | None:
    """What the chosen settings lose on a population; None where they were not trained there."""
    if chosen not in scores:
        return None
    best = _ranked(scores, sign)[0]
    return Price(name, _only(best, varied), _less(scores[best], scores[chosen], sign))


def _only(key: str, varied: Sequence[str]) -> dict[str, Any]:
    settings = json.loads(key)
    return {name: settings.get(name) for name in varied}


def _interval_json(found: Estimate) -> dict[str, float | None]:
    ends = {"value": found.value, "low": found.low, "high": found.high}
    return {name: None if math.isnan(end) else end for name, end in ends.items()}


def _toml_lines(settings: Mapping[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for name, value in settings.items():
        key = prefix + (name if set(name) <= set(_BARE) and name else json.dumps(name))
        if isinstance(value, Mapping):
            lines += _toml_lines(value, f"{key}.")
        elif value is not None:  # which TOML does not have
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return lines
