"""A run's record on disk: one small file per round, so that a run that was stopped can go on.

A folder with `settings.json` and `round-0001.npy`, `round-0002.npy`, ...: the sums that clients sent, as
`RecordedAggregator` hands them over, each with a checksum behind it. No client's own numbers are here.
"""

import hashlib
import io
import json
import os
import secrets
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError
from polyurn.storage.atomic import others_in, write_whole
from polyurn.storage.places import read_regular
from polyurn.typed.arguments import Json, checked
from polyurn.typed.arrays import floats

_VERSION = 7  # 1 to 5: other searches, which asked other questions; 6: rounds without a checksum
_CHECKSUM = hashlib.sha256().digest_size


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
        head = {"format": "polyurn.journal", "version": _VERSION}
        self._described = _text({**head, "settings": dict(settings)})
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            others = others_in(self._folder)
        except OSError as error:
            raise FileError(f"cannot use {self._folder}: {error.strerror}") from error
        place = self._folder / "settings.json"
        if place.name not in others:
            if others:
                raise FileError(f"{self._folder} holds something else; take an empty folder")
            write_whole(place, lambda file: file.write(self._described))
        self._check_same(read_regular(place))
        self._n = 0
        while self._place(self._n).exists():
            self._n += 1

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self._folder

    @property
    def name(self) -> str:
        """What this record is known by, wherever its folder is: drawn when it is first asked for."""
        place = self._folder / "name.txt"
        if not place.exists():
            text = f"{secrets.token_hex(8)}\n".encode()
            write_whole(place, lambda file: file.write(text))
        return read_regular(place).decode("utf-8", "replace").strip()

    def __len__(self) -> int:
        """How many rounds are recorded."""
        return self._n

    def __getitem__(self, i: int) -> NDArray[np.float64]:
        """The answer of round i, counted from 0."""
        whole = read_regular(self._place(i))
        array, checksum = whole[:-_CHECKSUM], whole[-_CHECKSUM:]
        if self._checksum(i, array) != checksum:
            raise FileError(f"{self._place(i)} is damaged: delete it to ask again")
        return np.asarray(np.load(io.BytesIO(array), allow_pickle=False), dtype=np.float64)

    def append(self, vector: NDArray[np.float64]) -> None:
        """Keep one more round, whole or not at all."""
        stream = io.BytesIO()
        np.save(stream, floats(vector, "the answer"))
        array = stream.getvalue()
        whole = array + self._checksum(self._n, array)
        try:
            write_whole(self._place(self._n), lambda file: file.write(whole))
        except FileError as error:
            raise FileError(
                f"{error}; the {self._n} rounds before it are kept: repeat the command, or the call, "
                "when there is a place for more"
            ) from error
        self._n += 1

    def _place(self, i: int) -> Path:
        return self._folder / f"round-{i + 1:04d}.npy"

    def _checksum(self, i: int, array: bytes) -> bytes:
        """Of a round of this very run: a file from elsewhere, or in another's place, has another."""
        return hashlib.sha256(self._described + str(i).encode() + array).digest()

    def _check_same(self, kept: bytes) -> None:
        if kept == self._described:
            return
        try:
            version = json.loads(kept)["version"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            place = self._folder / "settings.json"
            raise FileError(f"{place} is damaged; take an empty folder") from error
        if version != _VERSION:
            raise FileError(
                f"{self._folder} holds a run of another version of polyurn; take an empty folder"
            )
        raise FileError(
            f"{self._folder} holds a run with other settings; repeat its command, or take an "
            "empty folder"
        )


def _text(record: Json) -> bytes:
    return (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()
