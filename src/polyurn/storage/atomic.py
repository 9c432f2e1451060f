"""Files that are whole or not there: one way to write, and JSON records with a format and a version.

A file is written beside its place and moved there when it is whole. What a record means is the business
of the module that saves it.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from polyurn.errors import FileError
from polyurn.storage.places import read_regular
from polyurn.typed.records import shown

AGAIN = "write it again, or take a copy that is whole"  # what to do about a damaged file

_PREFIX = ".polyurn-"  # of a file that is being written
_LEFT = re.compile(re.escape(_PREFIX) + "[0-9a-f]{16}")
_OLD = 3600.0  # seconds


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a neighbour and move it into place, so that nothing half-written is ever seen.

    A link is followed to its file; a pipe or a device is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                write(file)
            return
        place = os.path.realpath(path)
        neighbour = Path(place).with_name(f"{_PREFIX}{secrets.token_hex(8)}")
        try:
            with open(neighbour, "xb") as file:
                write(file)
            if os.path.exists(place):
                shutil.copymode(place, neighbour)
            os.replace(neighbour, place)
        finally:
            neighbour.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise a `FileError` where nothing can be written: before the work, not after it."""
    if os.path.isdir(path):
        raise FileError(f"cannot write {path}: Is a directory")
    try:
        if os.path.isfile(path) or not os.path.exists(path):  # a pipe or device is there already
            TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from error


def others_in(folder: str | os.PathLike[str]) -> list[str]:
    """What is in a folder of ours besides files that a killed process left half-written.

    Those that are older than an hour, so that nobody can be writing them, are removed.
    """
    others = []
    for name in os.listdir(folder):
        if not _LEFT.fullmatch(name):
            others.append(name)
            continue
        with contextlib.suppress(
            FileNotFoundError
        ):  # it was being written, and is in its place now
            path = os.path.join(folder, name)
            if time.time() - os.lstat(path).st_mtime > _OLD:
                os.unlink(path)
    return others


def save_record(
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    made: Mapping[str, Any] | None = None,
) -> None:
    """Write a result as versioned JSON, of the format "polyurn.<kind>".

    Parameters
    ----------
    record : mapping
        What JSON can hold; no infinities.
    path : path
    kind : str
    version : int
    made : mapping, optional
        How it came about, as for `save`.
    """
    from polyurn import __version__

    head = {"format": f"polyurn.{kind}", "version": version}
    whole = {**head, "made": {"polyurn": __version__, **(made or {})}, **record}
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(Path(path), lambda file: file.write(json_bytes(text + "\n")))


def json_bytes(text: str) -> bytes:
    r"""JSON as UTF-8; half a surrogate pair, which UTF-8 cannot hold, as the escape that JSON has.

    Names of files that are not UTF-8 have such halves in Python.

    Examples
    --------
    >>> json_bytes('"caf\xe9 \udcff"')
    b'"caf\xc3\xa9 \\udcff"'
    """
    return text.encode("utf-8", "backslashreplace")


def parse_json(text: bytes | str, *, on_pairs: Callable[[Any], Any] | None = None) -> Any:
    """What JSON text stands for.

    Parameters
    ----------
    text : bytes or str
    on_pairs : function of (name, value) pairs, optional
        Makes an object of them; a `dict` by default.

    Raises
    ------
    ValueError
        It is no JSON; a few words say why.

    Examples
    --------
    >>> parse_json("[1, 2")
    Traceback (most recent call last):
    ...
    ValueError: expected JSON, got something else from line 1, character 6 on
    """
    try:
        return json.loads(text, object_pairs_hook=on_pairs)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, character {error.colno}"
        raise ValueError(f"expected JSON, got something else from {place} on") from error
    except UnicodeDecodeError as error:
        raise ValueError("expected JSON, got bytes that are not UTF-8") from error
    except RecursionError as error:
        raise ValueError("expected JSON, got lists in lists without end") from error


def load_record(path: str | os.PathLike[str], *, kind: str, version: int) -> dict[str, Any]:
    """Read what `save_record` wrote: a JSON file of the format "polyurn.<kind>".

    Raises
    ------
    FileError
        The file cannot be read, is something else, or was written by a later version.
    """
    name = "an MDM file" if kind == "mdm" else f"a {kind} file"
    try:
        record = parse_json(read_regular(path))
    except ValueError as error:
        raise FileError(f"{path} is not {name}, or was cut off: {error}; {AGAIN}") from error
    if not isinstance(record, dict) or record.get("format") != f"polyurn.{kind}":
        said = record.get("format") if isinstance(record, dict) else None
        got = f"got {shown(said)}" if isinstance(said, str) else "and the file names none"
        raise FileError(f"{path} is not {name}: expected format 'polyurn.{kind}', {got}")
    found = record.get("version")
    if not isinstance(found, int) or found < 1:
        raise FileError(
            f"{path} is damaged: expected a format version, got {shown(found)}; {AGAIN}"
        )
    if found > version:
        raise FileError(f"{path} has format version {found}, newer than {version}: upgrade polyurn")
    return record


def format_of(path: str | os.PathLike[str]) -> str | None:
    """The "format" that a JSON file says it has; None if it does not say, or is not JSON."""
    try:
        record = parse_json(read_regular(path))
    except ValueError:
        return None
    return str(record["format"]) if isinstance(record, dict) and "format" in record else None
