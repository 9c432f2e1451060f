"""A run's record on disk: one small file per round, so that a run that was stopped can go on.

A folder with `settings.json` and `round-0001.npy`, `round-0002.npy`, ...: the sums that clients sent, as
`RecordedAggregator` hands them over. No client's own numbers are ever here.
"""

import json
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError
from polyurn.storage.atomic import write_whole
from polyurn.typed.arguments import Json, checked
from polyurn.typed.arrays import floats

_VERSION = 6  # 1 to 5: other searches, which asked other questions


@checked
class Journal:
    """The answers of a run's rounds, kept in a folder.

    Parameters
    ----------
    folder : path
        Made if it is not there. If it holds a record, that is continued.
    settings : mapping
        What the run depends on, as JSON values. A record made with other settings is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Json) -> None:
        self._folder = Path(folder)
        described = {
            "format": "polyurn.journal",
            "version": _VERSION,
            "settings": dict(settings),
        }
        text = json.dumps(described, indent=1, sort_keys=True) + "\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            place = self._folder / "settings.json"
            if not place.exists():
                if any(self._folder.iterdir()):
                    raise FileError(f"{self._folder} holds something else; take an empty folder")
                write_whole(place, lambda file: file.write(text.encode()))
            earlier = place.read_text()
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"cannot use {self._folder}: {error.strerror}") from error
        if earlier != text:
            raise FileError(
                f"{self._folder} holds a run with other settings; repeat its command, or take an "
                "empty folder"
            )
        self._n = 0
        while self._place(self._n).exists():
            self._n += 1

    def __len__(self) -> int:
        """How many rounds are recorded."""
        return self._n

    def __getitem__(self, i: int) -> NDArray[np.float64]:
        """The answer of round i, counted from 0."""
        try:
            return np.asarray(np.load(self._place(i), allow_pickle=False), dtype=np.float64)
        except (OSError, ValueError, EOFError) as error:
            raise FileError(f"cannot read {self._place(i)}: delete it to ask again") from error

    def append(self, vector: NDArray[np.float64]) -> None:
        """Keep one more round, whole or not at all."""
        write_whole(self._place(self._n), lambda file: np.save(file, floats(vector, "the answer")))
        self._n += 1

    def _place(self, i: int) -> Path:
        return self._folder / f"round-{i + 1:04d}.npy"
