"""What a path leads to: a file that can be read to its end, and not a device that has none.

Nothing is written here, and what is in a file is not looked at.
"""

import os
import stat
from typing import BinaryIO

from polyurn.errors import FileError

_OTHERS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse to read what is not a file: a device may never end, and a pipe may never begin.

    Raises
    ------
    FileError
        There is nothing, or something else, at the path.

    Examples
    --------
    >>> check_regular("/dev/zero")
    Traceback (most recent call last):
    ...
    polyurn.errors.FileError: cannot read /dev/zero: expected a file, got a device
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except ValueError as error:  # a zero character, or half a surrogate pair
        raise FileError(
            f"cannot read {str(path)!a}: expected a name that a file can have"
        ) from error
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    if kind == stat.S_IFDIR:
        raise FileError(f"cannot read {path}: Is a directory")
    if kind != stat.S_IFREG:
        other = _OTHERS.get(kind, "something else")
        first = "; write it to a file first" if kind == stat.S_IFIFO else ""
        raise FileError(f"cannot read {path}: expected a file, got {other}{first}")


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file.

    Raises
    ------
    FileError
        It cannot be read, or is not a file.
    """
    with open_regular(path) as file:
        try:
            return file.read()
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror}") from error


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file, open to be read; whoever asks closes it.

    Raises
    ------
    FileError
        It cannot be opened, or is not a file.
    """
    check_regular(path)
    try:
        return open(path, "rb")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
