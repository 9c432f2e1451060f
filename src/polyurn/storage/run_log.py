"""The log of a sweep on disk: one line of JSON per finished run, appended when it ends.

The first line of `runs.jsonl` says what was asked; every other line is the result of a run. Each line
is forced to disk. A line that a crash cut off is dropped and its run repeated; a line that lacks only
its newline is whole. `sweeps/verdict.py` says what runs mean.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from polyurn.storage.files import check_regular, own_folder, write_whole
from polyurn.storage.json_log import JsonLog
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import Finite, is_finite

_FILE = "runs.jsonl"
_FAILED = "failed"


@checked
@dataclass(frozen=True)
class FinishedRun:
    """One finished run of a sweep.

    Attributes
    ----------
    population : str
        Whose clients they were: "true", "mdm", ...
    seed : int
    settings : dict
        Names and values: the fields of `FedAvg`, or what a trainer of the user's was given.
    engine : str
    rounds : list of int
        The rounds that were evaluated.
    loss : list of float
        The test loss after each of them; None where it was not a finite number.
    metrics : dict of str to list of float
    final : dict of str to float
        The metrics after the last round; None if the run diverged.
    diverged_at : int or None
    seconds : float
    pruned : bool
        Stopped before its last round by an adaptive search.
    trial : int or None
    styled : bool
        Whether the clients have styles, and were given points that suit them.
    """

    population: str
    seed: int
    settings: Mapping[str, Any]
    engine: str
    rounds: Sequence[int]
    loss: Sequence[Finite | None]
    metrics: Mapping[str, Sequence[Finite | None]]
    final: Mapping[str, Finite | None]
    diverged_at: int | None
    seconds: Finite
    pruned: bool = False
    trial: int | None = None
    styled: bool = False

    @property
    def diverged(self) -> bool:
        return self.diverged_at is not None

    @property
    def key(self) -> str:
        """What identifies the run: its population, seed, settings and trial."""
        return run_key(self.population, self.seed, self.settings, self.trial)


def run_key(
    population: str, seed: int, settings: Mapping[str, Any], trial: int | None = None
) -> str:
    """A text that identifies a run."""
    return json.dumps([population, seed, dict(settings), trial], sort_keys=True)


def finite(values: Iterable[float]) -> list[float | None]:
    """The values for JSON: None for those that are not finite, or too large to be summed."""
    return [value if is_finite(value) else None for value in values]


@checked
def read_runs(folder: str | os.PathLike[str]) -> list[FinishedRun]:
    """The finished runs of a sweep's folder; a last line that was cut off is left out.

    Raises
    ------
    FileError
        There is no sweep, or a line is damaged.
    """
    check_regular(Path(folder) / _FILE)
    return _log(Path(folder)).read()


class RunLog:
    """The folder of a sweep, opened for more runs; no two sweeps have it open at once.

    `described` is what was asked, as JSON values. A folder with another sweep is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], described: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        own_folder(self.folder, _FILE)
        self._log = _log(self.folder, described)
        with ExitStack() as stack:
            stack.enter_context(self._log.turn(busy=f"another sweep is running in {folder}"))
            self.runs = self._log.read()
            self._held = stack.pop_all()

    def append(self, runs: Sequence[FinishedRun]) -> None:
        """Keep more runs: whole lines, on disk when this returns."""
        self._log.append(
            *runs,
            consequence=f"; the {len(self.runs)} finished runs are kept: make space and start the "
            "sweep again",
        )
        self.runs.extend(runs)

    def keep_output(self, name: str, text: str) -> Path:
        """Keep what a failed run printed, as `failed/NAME.txt`."""
        path = self.folder / _FAILED / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        write_whole(path, lambda file: file.write(text.encode(errors="replace")))
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()


def _log(folder: Path, asked: Mapping[str, Any] | None = None) -> JsonLog[FinishedRun]:
    return JsonLog(
        folder / _FILE, FinishedRun, kind="runs", name="the log of a sweep", head=asked,
        instead="ask for the same, or take an empty folder", chained=False,
        advice="delete the line and repeat the sweep", begin=asked is not None,
    )  # fmt: skip
