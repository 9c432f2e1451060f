"""A node's log on disk: a text file to which whole lines are appended, and nothing is ever rewritten.

What a line says is `client/node_log.py`.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime

from polyurn.client.node_log import LogEntry
from polyurn.storage.appended import AppendedFile

_BLOCK = 2**16  # bytes that are read at a time, from the end


class NodeLogFile:
    """The log of one node; several processes of it may use one file.

    Parameters
    ----------
    path : path
        Made with mode 0600 if it is not there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = AppendedFile(path)

    def turn(self) -> AbstractContextManager[None]:
        """Keeps other processes waiting until it is left."""
        return self._file.turn()

    def n_rounds_since(self, when: datetime) -> int:
        """How many rounds there were; read from the end, up to the first line that is older."""
        n_rounds = 0
        for line in self._backwards():
            entry = LogEntry.parse(line)
            if entry is not None and entry.when < when:
                break
            n_rounds += entry is not None and entry.is_round
        return n_rounds

    def has_answered(self, stage: str, round_name: str, *, since: datetime) -> bool:
        """Whether a line says so; read from the end, up to the first line that is older."""
        # Lines begin with their time, so that hardly any of them has to be parsed.
        oldest = LogEntry(since, "", "").line()
        for line in self._backwards():
            if line < oldest or round_name in line:
                entry = LogEntry.parse(line)
                if entry is None:
                    continue
                if entry.when < since:
                    return False
                if (entry.stage, entry.round_name, entry.refusal) == (stage, round_name, None):
                    return True
        return False

    def append(self, entry: LogEntry) -> None:
        """One more line, on disk when this returns; a line that a crash cut off is ended first."""
        with self._file.opened() as descriptor:
            before = os.fstat(descriptor).st_size
            cut_off = before > 0 and _read(descriptor, 1, before - 1) != b"\n"
        text = ("\n" if cut_off else "") + entry.line() + "\n"
        self._file.append(text.encode(), after=before)

    def _backwards(self) -> Iterator[str]:
        with self._file.opened() as descriptor:
            at, tail = os.fstat(descriptor).st_size, b""
            while at:
                start = max(0, at - _BLOCK)
                tail = _read(descriptor, at - start, start) + tail
                first, *lines = tail.split(b"\n")
                yield from (line.decode(errors="replace") for line in reversed(lines))
                at, tail = start, first
            yield tail.decode(errors="replace")


def _read(descriptor: int, n_bytes: int, start: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, n_bytes)
