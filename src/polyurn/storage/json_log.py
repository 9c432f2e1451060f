"""A log of entries, one line of JSON each: `append` writes an entry to disk whole or not at all.

The first line says what the file is: {"format": "polyurn.<kind>", "version": 3, ...}. In a chained log
every other line has "check", a checksum of itself and of all lines before it, so that none can be
changed or taken out from between; with a key, by nobody who does not have it. Nothing is ever
rewritten. A last line that was cut off was never written; that whole lines are gone from the end can be
seen by a `mark` that was kept elsewhere. What an entry says is its class's business.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from polyurn.errors import FileError, InputError
from polyurn.storage.documents import VERSION, check_head, json_bytes, parse_json
from polyurn.storage.files import check_regular, read_regular, refused
from polyurn.typed.json_form import from_json, to_json

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)

Value = TypeVar("Value")


class AppendedFile:
    r"""A file that grows at its end; several processes may use it, one at a time.

    Made if it is not there, for its owner alone unless `mode` says otherwise.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = AppendedFile(Path(folder) / "log")
    ...     with file.turn():
    ...         file.append_bytes(b"whole line\ncut o", after=0)
    ...         file.append_bytes(b"another\n", after=11)
    ...     file.path.read_bytes()
    b'whole line\nanother\n'
    """

    def __init__(self, path: str | os.PathLike[str], *, mode: int = 0o600) -> None:
        self.path, self._mode = Path(path), mode
        if os.path.lexists(self.path):
            check_regular(self.path)
        else:
            with self.opened():
                pass

    @contextmanager
    def opened(self) -> Iterator[int]:
        """The file's descriptor, for reading."""
        with refused(f"cannot use {self.path}"):
            descriptor = os.open(self.path, _FLAGS, self._mode)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def turn(self, *, busy: str | None = None) -> Iterator[None]:
        """Lock the file until the block ends; with `busy`, a locked file is an error with that text."""
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

    With `begin`, a file that does not exist, or whose first line was cut off, is begun. Without it, such
    a file is refused: a reader writes nothing. `kind` names the format, `name` is the same in words, and
    `advice` says what to do about a damaged line. The argument `head` has more fields of the first line,
    as JSON values; a file that differs in them is refused, and `instead` says what to do then. A new
    file also gets those of `fresh`. The attribute `head` has those that the file has.
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
        instead: str = "take another file",
        fresh: Mapping[str, Any] | None = None,
        chained: bool = True,
        begin: bool = True,
        key: bytes = b"",
        mode: int = 0o600,
    ) -> None:
        super().__init__(path, mode=mode)
        self._cls, self._kind, self._name, self._advice = cls, kind, name, advice
        self._chained, self._key = chained, key
        asked = json.loads(json.dumps(dict(head or {})))
        if begin and not self._whole():
            with self.turn():
                if not self._whole():
                    self._begin({**asked, **(fresh or {})})
        line = self._whole().partition(b"\n")[0]
        found: Any = None
        with suppress(ValueError):
            found = parse_json(line)
        check_head(found, kind, f"{self.path} is not {name}", f"{self.path} is damaged")
        self.head = {one: found[one] for one in found if one not in ("format", "version")}
        if names := [one for one in asked if self.head.get(one) != asked[one]]:
            raise FileError(f"{self.path} is {name} that differs in {', '.join(names)}; {instead}")
        # For the first line and each entry: where it ends, and its checksum.
        self._marks = [(len(line) + 1, self._digest("", line))]

    @property
    def mark(self) -> str:
        """The number and the checksum of the entries that were read or written last."""
        return self._mark(len(self._marks) - 1)

    def has(self, mark: str) -> bool:
        """Whether the entries that were read last begin with those of a mark."""
        n, _, _ = mark.partition(":")
        return n.isdecimal() and int(n) < len(self._marks) and mark == self._mark(int(n))

    def _mark(self, n: int) -> str:
        return f"{n}:{self._marks[n][1]}"

    def read(self, *, until_damage: bool = False) -> list[Value]:
        """All entries; or those before a damaged line, which the next entry overwrites."""
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
        """Keep the first `n` entries: the next one overwrites the others."""
        del self._marks[n + 1 :]

    def append(self, *values: Value, consequence: str = "") -> None:
        """Append entries: all of them are on disk when this returns, or none.

        Nobody else may write between the last `read` and this: see `turn`.
        """
        marks, lines = list(self._marks), []
        for value in values:
            entry, (end, check) = to_json(value), marks[-1]
            if self._chained:
                check = self._digest(check, _canonical(entry))
                entry["check"] = check
            line = json_bytes(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")
            lines.append(line)
            marks.append((end + len(line), check))
        # A last line that lacks only its newline gets it here.
        self.append_bytes(
            b"\n" + b"".join(lines), after=self._marks[-1][0] - 1, consequence=consequence
        )
        self._marks = marks

    def _begin(self, head: Mapping[str, Any]) -> None:
        """Write the first line; it may overwrite one that was cut off, and nothing else."""
        first = {"format": f"polyurn.{self._kind}", "version": VERSION, **head}
        line, found = json_bytes(json.dumps(first) + "\n"), read_regular(self.path)
        same = line[: line.index(b",")]  # up to the format: what follows may be another's settings
        if not (found.startswith(same) or same.startswith(found)):
            raise FileError(f"{self.path} is not {self._name}: it holds something else")
        self.append_bytes(line, after=0)

    def _whole(self) -> bytes:
        """All whole lines; the last one may lack its newline."""
        text = read_regular(self.path)
        end = text.rfind(b"\n") + 1
        try:
            json.JSONDecoder().raw_decode(text[end:].decode())
        except (ValueError, RecursionError):  # broken UTF-8 is one: the line was cut off
            return text[:end]
        return text

    def _parsed(self, line: bytes, before: str) -> tuple[Value, str]:
        entry: Any = parse_json(line)
        if self._chained:
            check = entry.pop("check", None) if isinstance(entry, dict) else None
            before = self._digest(before, _canonical(entry))
            if check != before:
                raise ValueError("it is not the line that was written")
        return from_json(self._cls, entry), before

    def _digest(self, before: str, body: bytes) -> str:
        return hashlib.blake2b(before.encode() + body, key=self._key, digest_size=16).hexdigest()


def _canonical(entry: Any) -> bytes:
    return json.dumps(entry, allow_nan=False).encode()


def _sync_folder(folder: Path) -> None:
    """Write the name of a new file to disk too, where folders can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
