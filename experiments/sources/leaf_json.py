"""LEAF's JSON, one writer at a time: {"users": …, "num_samples": …, "user_data": {id: {"x", "y"}}}.

A number in a decoded list takes ten times its place in an array, and a file holds some twenty million
of them; so that each client's lists become arrays before the next client's are decoded. What x and y
mean is the sources' business.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_decode = json.JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\r\n]*")


def user_data(text: str) -> list[tuple[str, NDArray[np.float32], NDArray[Any]]]:
    """Id, x and y of every client in the text of a LEAF file that holds anything.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of (str, float array of shape (n, ...), array of shape (n,))

    Raises
    ------
    ValueError
        The text is not LEAF's, or was cut off.

    Examples
    --------
    >>> user_data('{"users": ["f1"], "user_data": {"f1": {"x": [[0.5], [1.0]], "y": [3, 4]}}}')
    [('f1', array([[0.5], [1. ]], dtype=float32), array([3, 4]))]
    """
    clients = []

    def client(name: str, at: int) -> int:
        value, end = _decode(text, at)
        if not isinstance(value, dict) or not {"x", "y"} <= value.keys():
            raise ValueError("expected x and y of every client in user_data")
        if value["y"]:
            clients.append((name, *_arrays(value["x"], value["y"])))
        return end

    seen = []

    def member(name: str, at: int) -> int:
        seen.append(name)
        return _walk(text, at, client) if name == "user_data" else _decode(text, at)[1]

    end = _walk(text, _past_space(text, 0), member)
    if _past_space(text, end) < len(text):
        raise ValueError(f"expected nothing after position {end}")
    if "user_data" not in seen:
        raise ValueError("expected user_data, as LEAF writes it")
    return clients


def _arrays(x: object, y: object) -> tuple[NDArray[np.float32], NDArray[Any]]:
    try:
        return np.array(x, dtype=np.float32), np.array(y)
    except TypeError as error:  # null, or an object, where a number should be
        raise ValueError("expected lists of numbers in user_data") from error


def _walk(text: str, at: int, read: Callable[[str, int], int]) -> int:
    """Have `read` take each member of the object that starts here; returns where the object ends.

    `read` gets a member's name and where its value starts, and returns where the value ends.
    """
    at = _past(text, at, "{")
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        name, at = _decode(text, at)
        if not isinstance(name, str):
            raise ValueError(f"expected a name before position {at}")
        at = _past_space(text, read(name, _past(text, _past_space(text, at), ":")))
        if text[at : at + 1] == "}":
            return at + 1
        at = _past(text, at, ",")


def _past(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise ValueError(f"expected {mark!r} at position {at}")
    return _past_space(text, at + 1)


def _past_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()
