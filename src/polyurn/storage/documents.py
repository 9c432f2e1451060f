"""Values of ours as JSON files: one way to write any of them, and one to read it back, checked.

A file says what it is: {"format": "polyurn.<kind>", "version": 3, "provenance": {...}, ...}. What the
fields mean is the business of the class that is kept; how they become JSON is `typed/json_form.py`.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from polyurn.errors import FileError, InputError
from polyurn.storage.files import AGAIN, read_regular, write_whole
from polyurn.typed.json_form import from_json, shown, to_json

VERSION = 3  # of all our formats
SPLITS_VERSION = (
    4  # of a mixture with splits, which a reader of version 3 would take for one without
)
_LATEST = {"mdm": SPLITS_VERSION}

Value = TypeVar("Value")


def save_document(
    value: Any,
    path: str | os.PathLike[str],
    *,
    kind: str,
    provenance: Mapping[str, Any] | None = None,
    version: int = VERSION,
) -> None:
    """Write a dataclass, or a mapping of what JSON can hold, as a file of the format "polyurn.<kind>".

    `provenance` says how it came about; `version` is the first that can read it.
    """
    from polyurn import __version__

    document = value if isinstance(value, Mapping) else to_json(value)
    head = {"format": f"polyurn.{kind}", "version": version}
    whole = {**head, "provenance": {"polyurn": __version__, **(provenance or {})}, **document}
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(Path(path), lambda file: file.write(json_bytes(text + "\n")))


def load_document(path: str | os.PathLike[str], *, kind: str) -> dict[str, Any]:
    """The document in a file of the format "polyurn.<kind>"."""
    name = "an MDM file" if kind == "mdm" else f"a {kind} file"
    try:
        document = parse_json(read_regular(path))
    except ValueError as error:
        raise FileError(f"{path} is not {name}, or was cut off: {error}; {AGAIN}") from error
    check_head(document, kind, f"{path} is not {name}", f"{path} is damaged")
    return dict(document)


def check_head(document: Any, kind: str, is_other: str, is_damaged: str) -> None:
    """Refuse a document of another format or version; the last two arguments begin the errors."""
    format_ = document.get("format") if isinstance(document, dict) else None
    if format_ != f"polyurn.{kind}":
        got = f"got {shown(format_)}" if isinstance(format_, str) else "and the file names none"
        raise FileError(f"{is_other}: expected format 'polyurn.{kind}', {got}")
    found = document.get("version")
    if type(found) is not int or found < 1:
        raise FileError(f"{is_damaged}: expected a format version, got {shown(found)}; {AGAIN}")
    if found < VERSION:
        raise FileError(
            f"{is_other}: version {found}, and this polyurn reads {VERSION}: make the file again"
        )
    latest = _LATEST.get(kind, VERSION)
    if found > latest:
        raise FileError(f"{is_other}: version {found}, newer than {latest}: upgrade polyurn")


def read_document(
    cls: type[Value], path: str | os.PathLike[str], *, kind: str, document: Any = None
) -> Value:
    """Read what `save_document` wrote; `document` is its content if it was loaded already."""
    document = load_document(path, kind=kind) if document is None else document
    try:
        return from_json(cls, document)
    except (FileError, InputError) as error:
        raise FileError(f"{path} is damaged: {error}; {AGAIN}") from error


def json_bytes(text: str) -> bytes:
    r"""JSON as UTF-8; half a surrogate pair, which UTF-8 cannot hold, becomes a JSON escape.

    Names of files that are not UTF-8 have such halves in Python.

    >>> json_bytes('"caf\xe9 \udcff"')
    b'"caf\xc3\xa9 \\udcff"'
    """
    return text.encode("utf-8", "backslashreplace")


def parse_json(text: bytes | str, *, on_pairs: Callable[[Any], Any] | None = None) -> Any:
    """Parse JSON; `on_pairs` makes an object from its (name, value) pairs, by default a `dict`.

    >>> parse_json("[1, 2")
    Traceback (most recent call last):
    ...
    ValueError: expected JSON, got something else from line 1, character 6 on
    """
    try:
        return json.loads(text, object_pairs_hook=on_pairs)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, character {error.colno}"
        raise ValueError(f"expected JSON, got something else from {where} on") from error
    except UnicodeDecodeError as error:
        raise ValueError("expected JSON, got bytes that are not UTF-8") from error
    except RecursionError as error:
        raise ValueError("expected JSON, got lists in lists without end") from error


def format_of(path: str | os.PathLike[str]) -> str | None:
    """The "format" field of a JSON file; None without that field, or if the file is not JSON."""
    try:
        document = parse_json(read_regular(path))
    except ValueError:
        return None
    return str(document["format"]) if isinstance(document, dict) and "format" in document else None
