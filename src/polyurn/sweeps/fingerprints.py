"""Functions as texts: whether a sweep's folder was made with the same loss, metrics and trainer."""

import hashlib
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any


def function_fingerprint(function: Callable[..., Any]) -> str:
    """A text that changes with a function's name, its instructions, or what they were given.

    >>> one, other = (lambda x: x + 1), (lambda x: x + 2)
    >>> function_fingerprint(one) == function_fingerprint(other)
    False
    """
    inner = getattr(function, "func", function)  # of functools.partial
    called = inner if hasattr(inner, "__code__") else type(inner).__call__
    name = f"{getattr(called, '__module__', '')}.{getattr(called, '__qualname__', '')}"
    given = [getattr(function, "args", ()), getattr(function, "keywords", {})]
    given += [getattr(called, "__defaults__", None), getattr(called, "__kwdefaults__", None)]
    given += [cell.cell_contents for cell in getattr(called, "__closure__", None) or ()]
    if called is not inner:
        given.append(getattr(inner, "__dict__", {}))
    text = f"{_code_text(getattr(called, '__code__', None))}{[_plain(value) for value in given]}"
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _code_text(code: CodeType | None) -> str:
    """Instructions and constants, without file names and line numbers."""
    if code is None:
        return ""
    constants = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _plain(value: Any) -> str:
    """Numbers, texts and tables of them as they are; of all else the kind, without an address."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, Mapping):
        return str({str(name): _plain(part) for name, part in value.items()})
    if isinstance(value, list | tuple | set | frozenset):
        return str([_plain(part) for part in value])
    if callable(value) and hasattr(value, "__code__"):
        return function_fingerprint(value)
    return type(value).__qualname__
