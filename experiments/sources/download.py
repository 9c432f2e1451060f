"""Fetch one file over HTTP: with progress, from where it was cut off, checked, whole or not at all.

Bytes go to a neighbour, `<name>.part`, which is moved into place once its checksum is right. A cut
connection leaves the neighbour there, and the next call goes on from its end. Which files there are
is each source's business.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TypeAlias
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from polyurn.errors import FileError

_CHUNK = 1 << 20
_TIMEOUT = 60.0  # seconds without a byte
_RANGE_NOT_SATISFIABLE = 416


@dataclass(frozen=True)
class RemoteFile:
    """A file with a stable address.

    Attributes
    ----------
    url : str
    checksum : str
        "sha256:..." or, where the publisher gives nothing better, "md5:...".
    name : str
        Its name on disk.
    """

    url: str
    checksum: str

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Progress:
    """How far a download is.

    Attributes
    ----------
    name : str
        The file's name.
    n_bytes : int
        On disk by now, those of an earlier attempt included.
    total : int or None
        All of them, where the server says.
    """

    name: str
    n_bytes: int
    total: int | None


OnProgress: TypeAlias = Callable[[Progress], None]


def fetch(remote: RemoteFile, folder: Path, *, on_progress: OnProgress | None = None) -> Path:
    """The file in its folder, downloaded unless it is there.

    Parameters
    ----------
    remote : RemoteFile
    folder : Path
        Made where it is missing.
    on_progress : callable, optional
        Called with a `Progress` after each piece.

    Raises
    ------
    FileError
        The server cannot be reached, the connection was cut (call again to go on), or what came is
        not the file.
    """
    place = folder / remote.name
    if place.exists():
        return place
    part = place.with_name(f"{place.name}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _receive(remote, part, on_progress)
        _check(remote, part)
        os.replace(part, place)
    except FileError:
        raise
    except (OSError, HTTPException) as error:
        raise FileError(
            f"cannot download {remote.url}: {error}; try again, or put the file at {place} yourself"
        ) from error
    return place


def _receive(remote: RemoteFile, part: Path, on_progress: OnProgress | None) -> None:
    """Append to `part` what it lacks."""
    have = part.stat().st_size if part.exists() else 0
    request = Request(remote.url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response: HTTPResponse = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == _RANGE_NOT_SATISFIABLE and have:
            return  # nothing is missing; the checksum will tell whether it is right
        raise
    with response:
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if resumed else 0  # a server without ranges starts again, and so do we
        length = response.headers.get("Content-Length")
        total = None if length is None else have + int(length)
        with open(part, "ab" if resumed else "wb") as file:
            while piece := response.read(_CHUNK):
                file.write(piece)
                have += len(piece)
                if on_progress is not None:
                    on_progress(Progress(remote.name, have, total))
    if total is not None and have < total:
        raise FileError(
            f"the connection to {remote.url} was cut after {have} of {total} bytes; "
            "call again to go on from there"
        )


def _check(remote: RemoteFile, part: Path) -> None:
    algorithm = remote.checksum.partition(":")[0]
    with open(part, "rb") as file:
        found = f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"
    if found != remote.checksum:
        part.unlink()
        raise FileError(
            f"{remote.url} is not the expected file: expected {remote.checksum}, got {found}; "
            "what came was deleted"
        )
