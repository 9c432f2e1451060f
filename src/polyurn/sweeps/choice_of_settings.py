"""The settings to use: what a sweep comes to, how sure that is, and what it may cost.

Settings are chosen on simulated clients, as somebody has to who cannot train on the true ones. Where
those were trained too, or other plausible clients, the price of the choice can be read off.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from polyurn.comparison.comparison_results import SIMULATED
from polyurn.comparison.estimates import Estimate, student_estimate
from polyurn.storage.documents import json_bytes
from polyurn.storage.files import write_whole
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.run_scores import AGAIN, direction, score_runs
from polyurn.sweeps.verdict import Wording, has_interval
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import UNKEPT, to_json
from polyurn.wording import counted

_MOST_NAMED = 4  # settings that a sentence lists

# settings as a text → seed → score
_Scores: TypeAlias = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class OtherSettings:
    """Settings beside the chosen ones: those that the sweep varied.

    `apart` is by how much the better of the two are better on this population, seed by seed.
    """

    population: str
    settings: Mapping[str, Any]
    apart: Estimate


@dataclass(frozen=True)
class BestSettings:
    """The settings to use.

    Attributes
    ----------
    metric, population : str
        In what, and on whose clients they are best.
    settings, varied : dict
        All of them, and those that the sweep varied.
    score : float
        The mean over seeds of what runs score, as in `compare_sweeps`.
    n_settings, n_seeds : int
        How many were tried there, and under how many seeds these were.
    rivals : tuple of OtherSettings
        Those that cannot be told from these there, at 95 %; the best first.
    elsewhere : tuple of OtherSettings
        The best on the true clients if they were trained, else on each of the other populations, and
        what these lose against them.
    """

    metric: str
    population: str
    settings: Mapping[str, Any]
    varied: Mapping[str, Any]
    score: float
    n_settings: int
    n_seeds: int
    rivals: tuple[OtherSettings, ...]
    elsewhere: tuple[OtherSettings, ...]
    wording: Wording = field(repr=False, metadata=UNKEPT)

    def sentences(self) -> list[str]:
        """What to use, what is as good, and what it costs elsewhere."""
        score = f"{self.score:.1%}" if self.wording.in_points else f"{self.score:.4g}"
        found = [
            f"use these settings: {as_text(self.varied)}; {self.metric} {score} on {self.population} "
            f"clients, the best of {counted(self.n_settings, 'setting')} over "
            f"{counted(self.n_seeds, 'seed')}"
        ]
        if self.n_seeds < 2:
            found.append("one seed cannot say how sure that is: run more seeds")
        elif self.rivals:
            named = "; ".join(as_text(rival.settings) for rival in self.rivals[:_MOST_NAMED])
            more = len(self.rivals) - _MOST_NAMED
            found.append(f"they cannot be told from {named}{f'; and {more} more' * (more > 0)}")
        elif self.n_settings > 1:
            found.append("every other setting is worse, seed by seed")
        for other in self.elsewhere:
            loses, best = self.wording.estimate(other.apart), as_text(other.settings)
            lost = f"they lose {loses} against the best there, {best}"
            same = other.settings == self.varied
            found.append(f"on {other.population} clients {'they are best, too' if same else lost}")
        return found

    def to_json(self) -> dict[str, Any]:
        """The choice, for `best.json`."""
        return to_json(self) | {"sentences": self.sentences()}

    def to_toml(self) -> str:
        """The settings as a table of TOML, as Flower's `--run-config` reads it."""
        return "".join(f"{line}\n" for line in _toml_lines(self.settings))


@checked
def best_settings(
    runs: Iterable[FinishedRun],
    *,
    metric: str = "accuracy",
    true: str = "true",
) -> BestSettings | None:
    """The settings to use after a sweep; None without runs.

    They are chosen on the clients of "mdm", or else of the first population that was trained.

    Parameters
    ----------
    runs : iterable of FinishedRun
    metric : str
        A larger one is better. "loss" is the runs' test loss, of which a smaller one is.
    true : str
        The true clients' population, on which nothing is chosen unless it is the only one.

    Examples
    --------
    >>> def run(lr, seed, score):
    ...     return FinishedRun("mdm", seed, {"lr": lr, "rounds": 9}, "trainer", [9], [None],
    ...                        {"accuracy": [score]}, {"accuracy": score}, None, 1.0)
    >>> runs = [run(0.1, 0, 0.7), run(0.2, 0, 0.6), run(0.1, 1, 0.7), run(0.2, 1, 0.6)]
    >>> found = best_settings(runs)
    >>> found.varied, found.sentences()[1]
    ({'lr': 0.1}, 'every other setting is worse, seed by seed')
    """
    whole = [run for run in runs if not run.pruned]
    names = [name for name in dict.fromkeys(run.population for run in whole) if name != AGAIN]
    simulated = [name for name in names if name != true] or names
    if not simulated:
        return None
    population = SIMULATED if SIMULATED in simulated else simulated[0]
    sign, names_varied = direction(metric), varied(whole)
    scores = {name: _by_settings(found) for name, found in score_runs(whole, metric).items()}
    here = scores[population]
    best, *others = _ranked(here, sign)

    def varied_in(key: str) -> dict[str, Any]:
        settings = json.loads(key)
        return {name: settings.get(name) for name in names_varied}

    def beside(name: str, key: str, *, better: str, worse: str) -> OtherSettings:
        one, other = scores[name][better], scores[name][worse]
        both = sorted(set(one) & set(other))
        apart = student_estimate([sign * (one[seed] - other[seed]) for seed in both])
        return OtherSettings(name, varied_in(key), apart)

    behind = [beside(population, key, better=best, worse=key) for key in others]
    elsewhere = [true] if true in names else [name for name in names if name != population]
    tops = {name: _ranked(scores[name], sign)[0] for name in elsewhere if best in scores[name]}
    return BestSettings(
        metric=metric,
        population=population,
        settings=json.loads(best),
        varied=varied_in(best),
        score=float(np.mean([*here[best].values()])),
        n_settings=len(here),
        n_seeds=len(here[best]),
        rivals=tuple(one for one in behind if has_interval(one.apart) and one.apart.low <= 0),
        elsewhere=tuple(beside(name, top, better=top, worse=best) for name, top in tops.items()),
        wording=Wording.of(metric, scores),
    )


def keep_best(found: BestSettings, folder: Path) -> None:
    """Write `best.json`, and `best.toml` for a Flower app's run-config."""
    text = json_bytes(json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n")
    write_whole(folder / "best.json", lambda file: file.write(text))
    write_whole(folder / "best.toml", lambda file: file.write(json_bytes(found.to_toml())))


def as_text(settings: Mapping[str, Any]) -> str:
    """Settings in a sentence."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "as they are"


def _by_settings(scores: Mapping[int, Mapping[str, Any]]) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for seed, by_settings in scores.items():
        for key, one in by_settings.items():
            found.setdefault(key, {})[seed] = one.value
    return found


def _ranked(here: _Scores, sign: int) -> list[str]:
    """Settings from the best down, by their mean; those with fewer seeds come after all others."""
    return sorted(here, key=lambda key: (-len(here[key]), -sign * np.mean([*here[key].values()])))


def varied(runs: Sequence[FinishedRun]) -> list[str]:
    """The settings that differ between runs."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    texts = {
        name: {json.dumps(run.settings.get(name), sort_keys=True) for run in runs} for name in names
    }
    return [name for name in names if len(texts[name]) > 1]


def _toml_lines(settings: Mapping[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for name, value in settings.items():
        key = prefix + json.dumps(name)
        if isinstance(value, Mapping):
            lines += _toml_lines(value, f"{key}.")
        elif value is not None:  # which TOML does not have
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return lines
