"""A node's secret key for its clients' buckets: a file of 32 bytes, drawn once and never overwritten.

What it is used for is `client/buckets.py`.
"""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from polyurn.errors import FileError
from polyurn.storage.places import read_regular

_N_BYTES = 32


def bucket_key(path: str | os.PathLike[str]) -> bytes:
    """The key in a file, which is made with mode 0600 if it is not there.

    Parameters
    ----------
    path : path
        Keep a copy: with another key, clients change their buckets.

    Returns
    -------
    bytes
        32 of them.

    Raises
    ------
    FileError
        It cannot be read or made, is no key, or others may read it.
    """
    place = Path(path)
    if not os.path.lexists(place):
        _draw(place)
    key = read_regular(place)
    if len(key) != _N_BYTES:
        raise FileError(
            f"{place} is no key: expected {_N_BYTES} bytes, got {len(key)}; take your copy of it"
        )
    if os.name == "posix" and stat.S_IMODE(place.stat().st_mode) & 0o077:
        raise FileError(f"others than its owner may read {place}: run chmod 600 on it")
    return key


def _draw(place: Path) -> None:
    """A whole file or none, and that of whoever is first."""
    neighbour = place.with_name(f".polyurn-{secrets.token_hex(8)}")
    try:
        try:
            with open(
                os.open(neighbour, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as file:
                file.write(secrets.token_bytes(_N_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(neighbour, place)
        finally:
            neighbour.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot write {place}: {error.strerror or error}") from error
