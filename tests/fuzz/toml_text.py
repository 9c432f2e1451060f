"""TOML as text: the standard library only reads it."""

import json
import math
from typing import Any


def toml_text(table: Any) -> bytes:
    """A table as TOML, the tables in it on one line each; what TOML cannot say is Python's word for it.

    Examples
    --------
    >>> toml_text({"seeds": [0], "data": {"file": "x"}}).decode()
    'seeds = [0]\\ndata = {file = "x"}\\n'
    """
    if not isinstance(table, dict):
        return _value(table).encode(errors="surrogatepass")
    lines = [f"{_key(name)} = {_value(value)}\n" for name, value in table.items()]
    return "".join(lines).encode(errors="surrogatepass")


def _key(name: Any) -> str:
    text = str(name)
    plain = text.isascii() and text.replace("_", "a").replace("-", "a").isalnum()
    return text if plain else _quoted(text)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case float() if math.isnan(value) or math.isinf(value):
            return str(value)
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case dict():
            inner = (f"{_key(name)} = {_value(part)}" for name, part in value.items())
            return "{" + ", ".join(inner) + "}"
    return repr(value) if isinstance(value, float) else _digits(value)


def _digits(value: Any) -> str:
    """A whole number of any length: Python refuses to write long ones."""
    return f"1{'0' * 400}" if isinstance(value, int) and value > 10**300 else str(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
