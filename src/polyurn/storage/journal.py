"""The log of a run on disk: the sum of every round, so that a run that was stopped can go on.

The folder has `rounds.jsonl`, a chained log. Its first line has the settings of the run; every other
line has one sum over clients, which `ReplayAggregator` passes to it. It has no client's own numbers.
"""

import base64
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyurn.storage.files import own_folder
from polyurn.storage.json_log import JsonLog
from polyurn.typed.arguments import Json, checked
from polyurn.typed.arrays import floats
from polyurn.typed.declared import Floats

_SEARCH = 7  # 1 to 6: other searches, which asked other questions
_FILE = "rounds.jsonl"


@dataclass(frozen=True)
class _Sum:
    """The numbers of a sum, as the base64 of little-endian float64."""

    numbers: str


@checked
class Journal:
    """The answers of a run's rounds, kept in a folder.

    Parameters
    ----------
    folder : path
        Made if it is not there. If it holds a log, that is continued.
    settings : mapping
        What the run depends on, as JSON values. A log with other settings is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Json) -> None:
        self.folder = Path(folder)
        own_folder(self.folder, _FILE)
        self._log = JsonLog(
            self.folder / _FILE, _Sum, kind="journal", name="the log of a run",
            advice="delete it, and the lines after it, to ask again",
            head={"search_version": _SEARCH, "settings": dict(settings)},
            fresh={"name": secrets.token_hex(8)},
            instead="repeat its command, or take an empty folder",
        )  # fmt: skip
        self._sums = self._log.read()

    @property
    def name(self) -> str:
        """The random name of this log, which stays the same if its folder is moved."""
        return str(self._log.head["name"])

    def __len__(self) -> int:
        """How many rounds are recorded."""
        return len(self._sums)

    def __getitem__(self, i: int) -> Floats:
        """The answer of round i, counted from 0."""
        data = base64.b64decode(self._sums[i].numbers)
        return np.frombuffer(data, "<f8").astype(np.float64)

    def append(self, vector: Floats) -> None:
        """Keep one more round, whole or not at all."""
        data = floats(vector, "the answer").astype("<f8").tobytes()
        kept = _Sum(base64.b64encode(data).decode())
        self._log.append(
            kept,
            consequence=f"; the {len(self)} rounds before it are kept: repeat the command, or the "
            "call, when there is space for more",
        )
        self._sums.append(kept)
