"""Entries appended to a file, a line of JSON each: on disk when that returns, or not there at all.

The first line says what the file is: {"format": "polyurn.<kind>", "version": 3, ...}. In a chained log
every other line has "check", a checksum of itself and of all lines before it, so that none can be
changed or taken out from between. Nothing is ever rewritten. A last line that was cut off was never
written; that whole lines are gone from the end cannot be seen. What an entry says is its class's
business.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from polyurn.errors import FileError, InputError
from polyurn.storage.documents import VERSION, check_head, json_bytes, parse_json
from polyurn.storage.files import check_regular, read_regular
from polyurn.typed.json_form import from_json, to_json

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)

Value = TypeVar("Value")


class AppendedFile:
    r"""A file that grows at its end; several processes may use it, one at a time.

    Made with mode 0600 if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = AppendedFile(Path(folder) / "log")
    ...     with file.turn():
    ...         file.append_bytes(b"whole line\ncut o", after=0)
    ...         file.append_bytes(b"another\n", after=11)
    ...     file.path.read_bytes()
    b'whole line\nanother\n'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if os.path.lexists(self.path):
            check_regular(self.path)
        else:
            with self.opened():
                pass

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

    @contextmanager
    def turn(self, *, busy: str | None = None) -> Iterator[None]:
        """Keeps other processes waiting until it is left; with `busy`, they are told so instead."""
        with self.opened() as descriptor:
            try:
                import fcntl
            except ImportError:  # Windows has no such lock: two may take the same last place
                yield
                return
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
            except BlockingIOError as error:
                raise FileError(str(busy)) from error
            yield

    def append_bytes(
        self, data: bytes, *, after: int, consequence: str = "", keep: bool = True
    ) -> None:
        """Write bytes in place of all after the first so many; without `keep`, only see if they fit."""
        with self.opened() as descriptor:
            os.ftruncate(descriptor, after)
            try:
                if os.write(descriptor, data) != len(data):
                    raise OSError(28, "No space left on device")
                if not keep:
                    return os.ftruncate(descriptor, after)
                os.fsync(descriptor)
                if not after:
                    _sync_folder(self.path.parent)
            except OSError as error:
                os.ftruncate(descriptor, after)
                raise FileError(
                    f"cannot write {self.path}: {error.strerror}{consequence}"
                ) from error


class JsonLog(AppendedFile, Generic[Value]):
    """A file of entries of one dataclass, `cls`.

    It is begun if it is not there, or its first line was cut off; without `begin` it is refused then:
    whoever only reads writes nothing. `kind` and `name` are those of the format, the latter in words,
    and `advice` is what to do about a line that is damaged. `head` is what else the first line of a new
    file says, as JSON values; as an attribute, what that of the file says.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        cls: type[Value],
        *,
        kind: str,
        name: str,
        advice: str,
        head: Mapping[str, Any] | None = None,
        chained: bool = True,
        begin: bool = True,
    ) -> None:
        super().__init__(path)
        self._cls, self._kind, self._name, self._advice = cls, kind, name, advice
        self._chained = chained
        if begin and not self._whole():
            with self.turn():
                if not self._whole():
                    self._begin(head or {})
        line = self._whole().partition(b"\n")[0]
        self.head = self._checked_head(line)
        # For the first line and each entry: where it ends, and its checksum.
        self._marks = [(len(line) + 1, _digest("", line))]

    def read(self, *, until_damage: bool = False) -> list[Value]:
        """All entries; or those ahead of a damaged line, which the next one is written in place of."""
        values, marks = [], self._marks[:1]
        lines = self._whole().removesuffix(b"\n").split(b"\n")[1:]
        for number, line in enumerate(lines, start=2):
            end, before = marks[-1]
            try:
                value, check = self._parsed(line, before)
            except (FileError, InputError, ValueError) as error:
                if until_damage:
                    break
                raise FileError(
                    f"{self.path}, line {number}, is damaged: {error}; {self._advice}"
                ) from error
            values.append(value)
            marks.append((end + len(line) + 1, check))
        self._marks = marks
        return values

    def keep(self, n: int) -> None:
        """Forget all but the first so many entries: the next one is written in the place of others."""
        del self._marks[n + 1 :]

    def append(self, *values: Value, consequence: str = "") -> None:
        """More entries, all of them on disk when this returns, or none.

        Nobody else may write between the last `read` and this: see `turn`.
        """
        marks, lines = list(self._marks), []
        for value in values:
            entry, (end, check) = to_json(value), marks[-1]
            if self._chained:
                check = _digest(check, _canonical(entry))
                entry["check"] = check
            line = json_bytes(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")
            lines.append(line)
            marks.append((end + len(line), check))
        # The end of a last line that lacks nothing else is written with what follows.
        self.append_bytes(
            b"\n" + b"".join(lines), after=self._marks[-1][0] - 1, consequence=consequence
        )
        self._marks = marks

    def _begin(self, head: Mapping[str, Any]) -> None:
        """Write the first line, in the place of one that was cut off, and of nothing else."""
        first = {"format": f"polyurn.{self._kind}", "version": VERSION, **head}
        line, found = json_bytes(json.dumps(first) + "\n"), read_regular(self.path)
        same = line[: line.index(b",")]  # up to the format: what follows may be another's settings
        if not (found.startswith(same) or same.startswith(found)):
            raise FileError(f"{self.path} is not {self._name}: it holds something else")
        self.append_bytes(line, after=0)

    def _whole(self) -> bytes:
        """The lines that have an end, and a last one that lacks nothing else."""
        text = read_regular(self.path)
        end = text.rfind(b"\n") + 1
        try:
            json.JSONDecoder().raw_decode(text[end:].decode())
        except (ValueError, RecursionError):  # broken UTF-8 is one: the line was cut off
            return text[:end]
        return text

    def _checked_head(self, line: bytes) -> dict[str, Any]:
        try:
            head = parse_json(line)
        except ValueError:
            head = None
        check_head(head, self._kind, f"{self.path} is not {self._name}", f"{self.path} is damaged")
        return {name: head[name] for name in head if name not in ("format", "version")}

    def _parsed(self, line: bytes, before: str) -> tuple[Value, str]:
        entry: Any = parse_json(line)
        if self._chained:
            check = entry.pop("check", None) if isinstance(entry, dict) else None
            before = _digest(before, _canonical(entry))
            if check != before:
                raise ValueError("it is not the line that was written")
        return from_json(self._cls, entry), before


def _canonical(entry: Any) -> bytes:
    return json.dumps(entry, allow_nan=False).encode()


def _digest(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()[:32]


def _sync_folder(folder: Path) -> None:
    """The name of a new file is on disk too, where folders can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
