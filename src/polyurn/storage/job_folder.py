"""A run of a federation as files: what is asked for, what happens meanwhile, and what came of it.

The command writes `job.json` and reads the rest; the process that asks the nodes reads `job.json` and
writes the rest: `events.jsonl`, a line for each round, then `result.json` or `failed.json`. What can be
asked for is `federation_job.py`; nothing is fitted here.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyurn.errors import FileError, InputError
from polyurn.storage.atomic import AGAIN, load_record, save_record
from polyurn.storage.federation_job import MixtureJob, StyleJob

_VERSION = 1
_KINDS: dict[str, type[MixtureJob] | type[StyleJob]] = {
    kind.asks: kind for kind in (MixtureJob, StyleJob)
}


class JobFolder:
    """The files of one run.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self.result, self.pid = self.path / "result.json", self.path / "server.pid"
        self._events, self._failed = self.path / "events.jsonl", self.path / "failed.json"

    @classmethod
    def make(cls, runs: Path, job: MixtureJob | StyleJob) -> "JobFolder":
        """The folder of a new run: the next number that is free."""
        try:
            runs.mkdir(parents=True, exist_ok=True)
            number = 1 + max((int(p.name) for p in runs.iterdir() if p.name.isdecimal()), default=0)
            folder = cls(runs / f"{number:04d}")
            folder.path.mkdir()
            folder._events.touch()
        except OSError as error:
            raise FileError(f"cannot write {runs}: {error.strerror}") from error
        record = {"asks": job.asks, **job.to_record()}
        save_record(record, folder.path / "job.json", kind="job", version=_VERSION)
        return folder

    def read(self) -> MixtureJob | StyleJob:
        """What is asked for."""
        place = self.path / "job.json"
        record = load_record(place, kind="job", version=_VERSION)
        kind = _KINDS.get(str(record.get("asks")))
        try:
            if kind is None:
                raise FileError(f"asks: expected {' or '.join(_KINDS)}")
            return kind.from_record(record)
        except (FileError, InputError) as error:
            raise FileError(f"{place} is damaged: {error}; {AGAIN}") from error

    def tell(self, event: Mapping[str, Any]) -> None:
        """One more line about what happens."""
        with open(self._events, "a", encoding="utf-8") as file:
            file.write(json.dumps(dict(event)) + "\n")

    def fail(self, reason: str) -> None:
        """The run has ended without a result."""
        save_record({"reason": reason}, self._failed, kind="failed", version=_VERSION)

    @property
    def failure(self) -> str | None:
        """Why the run has ended without a result; None if it has not."""
        if not self._failed.exists():
            return None
        return str(load_record(self._failed, kind="failed", version=_VERSION).get("reason"))

    def events(self) -> Iterator[dict[str, Any] | None]:
        """The lines so far and those to come, without end; None where there is no new one yet."""
        rest = ""
        with open(self._events, encoding="utf-8") as file:
            while True:
                rest += file.read()
                *lines, rest = rest.split("\n")
                yield from (json.loads(line) for line in lines)
                yield None
