"""The record of a sweep on disk: one line of JSON per finished run, appended when it ends.

A folder holds `sweep.json` (what was asked) and `runs.jsonl` (what came of it). A line is written at
once and forced to disk; one that was cut off by a crash is dropped, and its run is done again. What
runs mean is `sweeps/verdict.py`.

A line has "format" ("polyurn.run"), "version" (1), "population", "seed", "settings" (those of
`FedAvg`), "engine", "rounds", "loss" and "metrics" (the learning curve: one value per evaluated round,
null where it was not a finite number), "final" (the metrics after the last round, null if it
diverged), "diverged_at" (a round or null), "pruned" (stopped early by an adaptive search), "trial" (its
number in that search, or null) and "seconds".
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from polyurn.errors import FileError, InputError
from polyurn.storage.atomic import json_bytes, others_in, parse_json, write_whole
from polyurn.storage.places import check_regular, read_regular
from polyurn.training.settings import FedAvg
from polyurn.typed.arguments import checked
from polyurn.typed.records import Finite, is_finite, read_record, shown

_FORMAT, _SWEEP_FORMAT, _VERSION = "polyurn.run", "polyurn.sweep", 1


@checked
@dataclass(frozen=True)
class RunRecord:
    """One finished run of a sweep.

    Attributes
    ----------
    population : str
        Whose clients they were: "true", "mdm", ...
    seed : int
    settings : FedAvg
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
        Whether the clients were given points that suit a style of theirs.
    """

    population: str
    seed: int
    settings: FedAvg
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
        """What the run is known by: its population, seed, settings and trial."""
        return run_key(self.population, self.seed, self.settings, self.trial)

    def to_json(self) -> str:
        """The run as one line, without its end."""
        record = asdict(self) | {"settings": self.settings.to_record()}
        return json.dumps(
            {"format": _FORMAT, "version": _VERSION, **record}, allow_nan=False, ensure_ascii=False
        )

    @classmethod
    def from_json(cls, line: str) -> Self:
        """The run that `to_json` wrote.

        Raises
        ------
        FileError
            It is something else, or was written by a later version.
        """
        try:
            record = parse_json(line)
        except ValueError as error:
            raise FileError(f"not a run: {error}") from error
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise FileError(f"not a run: expected format {_FORMAT!r}")
        version = record.get("version")
        if type(version) is not int or version < 1:
            raise FileError(f"not a run: expected a format version, got {shown(version)}")
        if version > _VERSION:
            raise FileError("written by a later version: upgrade polyurn")
        try:
            settings = _settings(record.get("settings"))
            return read_record(cls, record, parsed={"settings": settings})
        except FileError as error:
            raise FileError(f"not a run: {error}") from error


def _settings(record: object) -> FedAvg:
    if not isinstance(record, dict):
        raise FileError(f"settings: expected an object, got {shown(record)}")
    try:
        return FedAvg.from_record(record)
    except InputError as error:
        raise FileError(f"settings: {error}") from error


def run_key(population: str, seed: int, settings: FedAvg, trial: int | None = None) -> str:
    """A text that tells runs apart."""
    return json.dumps([population, seed, settings.to_record(), trial], sort_keys=True)


def finite(values: Iterable[float]) -> list[float | None]:
    """The values as JSON has them: None where they are not finite, or so large that a sum may not be."""
    return [value if is_finite(value) else None for value in values]


@checked
def read_runs(folder: str | os.PathLike[str]) -> list[RunRecord]:
    """The finished runs of a sweep's folder; a last line that was cut off is left out.

    Raises
    ------
    FileError
        There is no sweep, or a line is damaged.
    """
    place = Path(folder) / "runs.jsonl"
    text = read_regular(place)
    return _parsed(place, text[: _whole(text)])


class RunLog:
    """The folder of a sweep, opened for more runs; no two sweeps have it open at once.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    described : mapping
        What was asked, as JSON values. A folder with another sweep is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], described: Mapping[str, Any]) -> None:
        from polyurn import __version__

        self.folder = Path(folder)
        self._place = self.folder / "runs.jsonl"
        asked = {"format": _SWEEP_FORMAT, "version": _VERSION, **_as_json(described)}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            sheet = self.folder / "sweep.json"
            others = others_in(self.folder)
            if sheet.name not in others:
                if others:
                    raise FileError(f"{folder} holds something else; take an empty folder")
                text = json.dumps({**asked, "made": {"polyurn": __version__}}, indent=1)
                write_whole(sheet, lambda file: file.write((text + "\n").encode()))
            _check_same(sheet, asked)
            if self._place.exists():
                check_regular(self._place)
            self._file: IO[bytes] = open(self._place, "a+b", buffering=0)  # noqa: SIM115
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"cannot use {folder}: {error.strerror}") from error
        try:
            _lock(self._file, self.folder)
            self._file.seek(0)
            lines = self._file.read()
            self._file.truncate(_whole(lines))
            self.runs = _parsed(self._place, lines[: _whole(lines)])
        except FileError:
            self._file.close()
            raise

    def append(self, runs: Sequence[RunRecord]) -> None:
        """Keep more runs: whole lines, on disk when this returns."""
        before = os.fstat(self._file.fileno()).st_size
        lines = json_bytes("".join(run.to_json() + "\n" for run in runs))
        try:
            written = self._file.write(lines)
            if written != len(lines):
                raise OSError(28, "No space left on device")
            os.fsync(self._file.fileno())
        except OSError as error:
            os.ftruncate(self._file.fileno(), before)
            raise FileError(
                f"cannot write {self._place}: {error.strerror}; the {len(self.runs)} finished "
                "runs are kept: make space and start the sweep again"
            ) from error
        self.runs.extend(runs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _whole(text: bytes) -> int:
    """The length of the lines that have an end."""
    return text.rfind(b"\n") + 1


def _parsed(place: Path, text: bytes) -> list[RunRecord]:
    runs = []
    lines = text.decode(errors="replace").split("\n")[:-1]  # other ends of lines may be in names
    for number, line in enumerate(lines, start=1):
        try:
            runs.append(RunRecord.from_json(line))
        except FileError as error:
            raise FileError(
                f"{place}, line {number}: {error}; delete the line and repeat the sweep"
            ) from error
    return runs


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they come back from JSON, so that what was asked can be compared."""
    return dict(json.loads(json.dumps(values)))


def _check_same(sheet: Path, asked: Mapping[str, Any]) -> None:
    try:
        kept = parse_json(read_regular(sheet))
    except ValueError as error:
        raise FileError(f"{sheet} is damaged: {error}; take an empty folder") from error
    if not isinstance(kept, dict):
        raise FileError(
            f"{sheet} is damaged: expected an object, got {shown(kept)}; take an empty folder"
        )
    # Sheets of earlier versions do not say all of it.
    names = [name for name in asked if name in kept and kept[name] != asked[name]]
    names += [name for name in ("format", "version") if name not in kept]
    if names:
        raise FileError(
            f"{sheet.parent} holds a sweep with other {', '.join(names)}; ask for the same, or "
            "take an empty folder"
        )


def _lock(file: IO[bytes], folder: Path) -> None:
    """Keep other sweeps out, until this process ends or closes the file."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock; two sweeps would only repeat each other's runs
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise FileError(f"another sweep is running in {folder}") from error
