"""A file that bytes are appended to: on disk when that returns, or not there at all.

Several processes may use it, one at a time. What the bytes say is `ledger_file.py` and
`node_log_file.py`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polyurn.errors import FileError

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class AppendedFile:
    r"""A file that grows at its end.

    Parameters
    ----------
    path : path
        Made with mode 0600 if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     file = AppendedFile(Path(place) / "log")
    ...     with file.turn():
    ...         file.append(b"whole line\ncut o", after=0)
    ...         file.append(b"another\n", after=11)
    ...     file.read()
    b'whole line\nanother\n'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self.opened():
            pass

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keeps other processes waiting until it is left."""
        with self.opened() as descriptor:
            _lock(descriptor)
            yield

    @contextmanager
    def opened(self) -> Iterator[int]:
        """The file's descriptor, for reading."""
        try:
            descriptor = os.open(self.path, _FLAGS, 0o600)
        except OSError as error:
            raise FileError(f"cannot use {self.path}: {error.strerror}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self) -> bytes:
        """All of it."""
        with self.opened() as descriptor:
            return os.read(descriptor, os.fstat(descriptor).st_size)

    def append(self, data: bytes, *, after: int, consequence: str = "") -> None:
        """Write bytes after the first so many, which are kept; what a crash left behind them is not.

        Raises
        ------
        FileError
            They cannot be written: the file is then as long as `after`. Its line ends with the
            `consequence`.
        """
        with self.opened() as descriptor:
            os.ftruncate(descriptor, after)
            try:
                if os.write(descriptor, data) != len(data):
                    raise OSError(28, "No space left on device")
                os.fsync(descriptor)
                if not after:
                    _sync_folder(self.path.parent)
            except OSError as error:
                os.ftruncate(descriptor, after)
                raise FileError(
                    f"cannot write {self.path}: {error.strerror}{consequence}"
                ) from error


def _sync_folder(folder: Path) -> None:
    """The name of a new file is on disk too, where folders can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no such lock: two at once may both take the last of a budget
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
