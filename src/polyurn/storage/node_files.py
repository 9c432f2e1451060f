"""What a node keeps: the secret key of its clients' buckets, its policy (TOML), its log of questions.

The key is a file of 32 bytes, drawn once and never overwritten (`client/buckets.py` uses it). The policy
has the names of `client.node_policy.NodePolicy`. The log is a text file to which whole lines are
appended, and nothing is ever rewritten; what a line says is `client/node_log.py`.
"""

import contextlib
import os
import secrets
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import fields
from datetime import datetime
from pathlib import Path

from polyurn.client.node_log import LogEntry
from polyurn.client.node_policy import NodePolicy
from polyurn.errors import FileError
from polyurn.storage.files import read_regular, read_secret, write_secret
from polyurn.storage.record_log import AppendedFile
from polyurn.typed.records import read_record, shown

_N_BYTES = 32
_BLOCK = 2**16  # bytes of a log that are read at a time, from the end


def bucket_key(path: str | os.PathLike[str]) -> bytes:
    """The 32 bytes in a file, which is made with mode 0600 if it is not there.

    Keep a copy: with another key, clients change their buckets.
    """
    place = Path(path)
    if not os.path.lexists(place):
        _draw(place)
    key = read_secret(place)
    if len(key) != _N_BYTES:
        raise FileError(
            f"{place} is no key: expected {_N_BYTES} bytes, got {len(key)}; take your copy of it"
        )
    return key


def _draw(place: Path) -> None:
    """A whole file or none, and that of whoever is first."""
    neighbour = place.with_name(f".polyurn-{secrets.token_hex(8)}")
    try:
        write_secret(neighbour, secrets.token_bytes(_N_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(neighbour, place)
    except OSError as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot write {place}: {reason}") from error
    finally:
        neighbour.unlink(missing_ok=True)


def read_policy(path: str | os.PathLike[str]) -> NodePolicy:
    """The policy in a file; what it does not say is as strict as `NodePolicy` has it.

    A name that no policy has is an error: a limit that is misspelt would not be one.
    """
    try:
        record = tomllib.loads(read_regular(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise FileError(f"{path} is no policy: expected TOML, got {text}") from error
    names = [field.name for field in fields(NodePolicy)]
    for name in record:
        if name not in names:
            raise FileError(f"{path}: expected {', '.join(names)}, got {shown(name)}")
    try:
        return read_record(NodePolicy, record)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


class NodeLogFile:
    """The log of one node; several processes of it may use one file."""

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
        self._file.append_bytes(text.encode(), after=before)

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
