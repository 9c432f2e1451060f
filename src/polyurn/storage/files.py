"""Files on disk: regular files are read whole, and files are written whole or not at all.

A file is written under a temporary name in its folder and renamed when it is whole. What a file means
is known only to the module that reads or writes it.
"""

import contextlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO

from polyurn.errors import FileError

AGAIN = "write it again, or take a copy that is whole"  # what to do about a damaged file

_PREFIX = ".polyurn-"  # of a file that is being written
_LEFT = re.compile(re.escape(_PREFIX) + "[0-9a-f]{16}")
_OLD = 3600.0  # seconds
_OTHERS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@contextlib.contextmanager
def refused(what: str) -> Iterator[None]:
    """One line for what the operating system refuses: "cannot read table.csv: Permission denied"."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{what}: {error.strerror or error}") from error


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a temporary file and rename it to `path`, so that nobody sees a half-written file.

    A link is followed to its file; a pipe or a device is written to directly.
    """
    with refused(f"cannot write {path}"):
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                write(file)
            return
        target = Path(os.path.realpath(path))
        with _beside(target, 0o666) as file:
            write(file)
            if target.exists():
                shutil.copymode(target, file.name)


@contextlib.contextmanager
def _beside(place: Path, mode: int) -> Iterator[IO[bytes]]:
    """A new file beside a place, moved there when it is whole; a link that is there is replaced."""
    neighbour = place.with_name(f"{_PREFIX}{secrets.token_hex(8)}")
    try:
        with open(neighbour, "xb", opener=partial(os.open, mode=mode)) as file:
            yield file
        os.replace(neighbour, place)
    finally:
        neighbour.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise a `FileError` where nothing can be written: before the work, not after it."""
    if os.path.isdir(path):
        raise FileError(f"cannot write {path}: Is a directory")
    with refused(f"cannot write {path}"):
        if os.path.isfile(path) or not os.path.exists(path):  # a pipe or device is there already
            TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()


def others_in(folder: str | os.PathLike[str]) -> list[str]:
    """The names in a folder of ours, without temporary files.

    Temporary files older than an hour are removed: a killed process left them, nobody writes them now.
    """
    others = []
    for name in os.listdir(folder):
        if not _LEFT.fullmatch(name):
            others.append(name)
            continue
        with contextlib.suppress(FileNotFoundError):  # its writer has renamed it meanwhile
            path = os.path.join(folder, name)
            if time.time() - os.lstat(path).st_mtime > _OLD:
                os.unlink(path)
    return others


def own_folder(path: Path, mark: str = "") -> None:
    """Make a folder of ours; one that is there must have the file `mark`, or be empty."""
    with refused(f"cannot use {path}"):
        path.mkdir(parents=True, exist_ok=True)
        others = others_in(path)
    if others and mark not in others:
        raise FileError(f"{path} holds something else; take an empty folder")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse to read what is not a file: a device may never end, and a pipe may never begin.

    >>> check_regular("/dev/zero")
    Traceback (most recent call last):
    ...
    polyurn.errors.FileError: cannot read /dev/zero: expected a file, got a device
    """
    try:
        with refused(f"cannot read {path}"):
            kind = stat.S_IFMT(os.stat(path).st_mode)
    except ValueError as error:  # a zero character, or half a surrogate pair
        raise FileError(
            f"cannot read {str(path)!a}: expected a name that a file can have"
        ) from error
    if kind == stat.S_IFDIR:
        raise FileError(f"cannot read {path}: Is a directory")
    if kind != stat.S_IFREG:
        other = _OTHERS.get(kind, "something else")
        first = "; write it to a file first" if kind == stat.S_IFIFO else ""
        raise FileError(f"cannot read {path}: expected a file, got {other}{first}")


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file."""
    with refused(f"cannot read {path}"), open_regular(path) as file:
        data = file.read()
    return data  # noqa: RET504 - for mypy the block above may end early


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; the caller closes it."""
    check_regular(path)
    with refused(f"cannot read {path}"):
        file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    return file  # noqa: RET504 - as above


def read_secret(path: Path) -> bytes:
    """The bytes of a file that only its owner may read."""
    data = read_regular(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise FileError(f"users other than its owner may read {path}: run chmod 600 on it")
    return data


def write_secret(path: Path, data: bytes) -> None:
    """Write a file that nobody but its owner may read; the one that is there is kept until then."""
    with refused(f"cannot write {path}"), _beside(path, 0o600) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
