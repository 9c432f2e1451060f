"""Files that are whole or not there: one way to write, and JSON records with a format and a version.

A file is written beside its place and moved there when it is whole. What a record means is the business
of the module that saves it.
"""

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from polyurn.errors import FileError


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
        neighbour = Path(place).with_name(f".polyurn-{secrets.token_hex(8)}")
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
    write_whole(Path(path), lambda file: file.write((text + "\n").encode()))


def load_record(path: str | os.PathLike[str], *, kind: str, version: int) -> dict[str, Any]:
    """Read what `save_record` wrote: a JSON file of the format "polyurn.<kind>".

    Raises
    ------
    FileError
        The file cannot be read, is something else, or was written by a later version.
    """
    name = "an MDM file" if kind == "mdm" else f"a {kind} file"
    try:
        record = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not {name}, or was cut off: {error}") from error
    if not isinstance(record, dict) or record.get("format") != f"polyurn.{kind}":
        raise FileError(f"{path} is not {name}: expected format 'polyurn.{kind}'")
    found = record.get("version")
    if not isinstance(found, int) or found < 1:
        raise FileError(f"{path} has no valid format version")
    if found > version:
        raise FileError(f"{path} has format version {found}, newer than {version}: upgrade polyurn")
    return record


def format_of(path: str | os.PathLike[str]) -> str | None:
    """The "format" that a JSON file says it has; None if it does not say, or is not JSON."""
    try:
        record = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        return None
    return str(record["format"]) if isinstance(record, dict) and "format" in record else None
