"""A privacy ledger on disk: whole lines are appended to a text file, and nothing is ever rewritten.

The first line is {"format": "polyurn.ledger", "version": 1}; every other is a budget or a charge as JSON
with "check", a checksum of the line and all before it. A charge is on disk before its question is asked.
A last line that was cut off is a charge that was never made: nothing was asked for it. That whole lines
are gone from the end cannot be seen. What entries mean is `privacy/ledger.py`.
"""

import hashlib
import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polyurn.errors import FileError, InputError, ParameterError
from polyurn.privacy.ledger import Budget, Charge, Entry, PrivacyLedger
from polyurn.storage.appended import AppendedFile
from polyurn.storage.atomic import parse_json
from polyurn.storage.places import check_regular
from polyurn.typed.arguments import checked
from polyurn.typed.records import read_record, shown

_FORMAT, _VERSION = "polyurn.ledger", 1
_KINDS: dict[str, type[Entry]] = {"budget": Budget, "charge": Charge}
_HEAD = json.dumps({"format": _FORMAT, "version": _VERSION}).encode() + b"\n"
_DAMAGED = (
    "what was spent is not known: restore a copy that is whole, or take its budget as used up"
)


@checked
def open_ledger(path: str | os.PathLike[str], *, epsilon: float, delta: float) -> PrivacyLedger:
    """The ledger in a file, which is begun if there is none.

    Parameters
    ----------
    path : path
        Beside the model; one for the same clients, whatever is asked of them.
    epsilon, delta : float
        The budget; that of the file, if there is one.

    Raises
    ------
    FileError
        The file cannot be used, is damaged, or something else.
    """
    return PrivacyLedger(epsilon, delta, entries=LedgerFile(path))


def raised_ledger(
    path: str | os.PathLike[str], *, epsilon: float | None, delta: float, first: float
) -> PrivacyLedger:
    """The ledger in a file, with the budget that whoever keeps it has decided on.

    Parameters
    ----------
    path : path
    epsilon : float, optional
        More than the file has raises its budget, and a line of the file says so. None: as it is.
    delta : float
        That of the file, if there is one.
    first : float
        The ε that a new ledger begins with, if none is given.

    Raises
    ------
    ParameterError
        Less than the file has, or another δ.
    """
    entries = LedgerFile(path)
    budgets = [entry for entry in entries.read() if isinstance(entry, Budget)]
    if not budgets:
        return PrivacyLedger(first if epsilon is None else epsilon, delta, entries=entries)
    was = budgets[-1]
    if delta != was.delta:
        raise ParameterError(f"expected delta {was.delta:g}, that of {path}, got {delta:g}")
    ledger = PrivacyLedger(was.epsilon, was.delta, entries=entries)
    if epsilon is not None and epsilon < was.epsilon:
        raise ParameterError(
            f"expected a budget of at least epsilon {was.epsilon:g}, that of {path}, got {epsilon:g}: "
            "a budget is raised, never lowered"
        )
    if epsilon is not None and epsilon > was.epsilon:
        ledger.raise_to(epsilon)
    return ledger


class LedgerFile:
    """The entries of a ledger in a file; several processes may use it.

    Parameters
    ----------
    path : path
        Made with mode 0600 if it is not there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if self._path.exists():
            check_regular(self._path)
        self._file = AppendedFile(path)
        with self.turn():
            self.read()

    def turn(self) -> AbstractContextManager[None]:
        """Keeps other processes waiting until it is left."""
        return self._file.turn()

    def read(self) -> list[Entry]:
        """All entries; a last line that was cut off is none."""
        return [entry for entry, _ in self._parsed(self._whole())]

    def append(self, entry: Entry) -> None:
        """One more line, on disk when this returns."""
        whole = self._whole()
        lines = b"\n" if whole and not whole.endswith(b"\n") else b""
        lines += b"" if whole else _HEAD
        kind = next(name for name, made in _KINDS.items() if isinstance(entry, made))
        body = json.dumps({kind: asdict(entry)}, allow_nan=False)
        check = _check(_last_check(self._parsed(whole)), body)
        lines += json.dumps({**json.loads(body), "check": check}).encode() + b"\n"
        self._file.append(lines, after=len(whole), consequence="; nothing was asked")

    def _whole(self) -> bytes:
        """The lines that have an end, and a last one that lacks nothing else."""
        text = self._file.read()
        end = text.rfind(b"\n") + 1
        return text[:end] if _is_cut_off(text[end:]) else text

    def _parsed(self, text: bytes) -> list[tuple[Entry, str]]:
        """Each entry with its checksum."""
        head, *lines = text.removesuffix(b"\n").split(b"\n")
        if text:
            self._check_head(head)
        entries: list[tuple[Entry, str]] = []
        for number, line in enumerate(lines, start=2):
            try:
                entries.append(_entry(line, _last_check(entries)))
            except (FileError, ValueError) as error:
                raise FileError(f"{self._path}, line {number}, is damaged; {_DAMAGED}") from error
        return entries

    def _check_head(self, line: bytes) -> None:
        try:
            head = parse_json(line)
        except ValueError:
            head = None
        if not isinstance(head, dict) or head.get("format") != _FORMAT:
            raise FileError(f"{self._path} is not a privacy ledger: expected format {_FORMAT!r}")
        version = head.get("version")
        if type(version) is not int or version < 1:
            raise FileError(f"{self._path} is damaged: version {shown(version)}; {_DAMAGED}")
        if version > _VERSION:
            raise FileError(
                f"{self._path} has format version {version}, newer than {_VERSION}: upgrade polyurn"
            )


def _is_cut_off(line: bytes) -> bool:
    """Whether a line without an end is only the beginning of what was to be written."""
    try:
        json.JSONDecoder().raw_decode(line.decode())
    except ValueError:  # broken UTF-8 is one
        return True
    return False


def _entry(line: bytes, before: str) -> tuple[Entry, str]:
    record: Any = parse_json(line)
    if not isinstance(record, dict) or len(record) != 2 or "check" not in record:
        raise ValueError("no entry")
    check = record.pop("check")
    ((name, fields),) = record.items()
    if name not in _KINDS or check != _check(before, json.dumps(record, allow_nan=False)):
        raise ValueError("not the line that was written")
    return _made(_KINDS[name], fields), check


def _made(kind: type[Entry], fields: object) -> Entry:
    try:
        return read_record(kind, fields)
    except InputError as error:
        raise ValueError("out of range") from error


def _check(before: str, body: str) -> str:
    return hashlib.sha256((before + body).encode()).hexdigest()[:32]


def _last_check(entries: list[tuple[Entry, str]]) -> str:
    return entries[-1][1] if entries else ""
