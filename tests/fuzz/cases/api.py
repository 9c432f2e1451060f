"""Calls of everything public with one or two wrong arguments: they work, or our own error says why not.

The valid calls are those of `tests/api_calls.py`.
"""

import contextlib
import datetime
import decimal
import fractions
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from api_calls import COUNTS, LABELS, VALID_CALLS, mdm, parts, sizes
from fuzz.case import Case, Ran, chance, one_of

# What another value of the right type would start: processes, or more work than is asked for here.
_LEAVE_ALONE = {"n_jobs", "n_workers", "n_threads", "on_round", "on_run"}
_NUMBERS_OF_WORKERS = (0, -(10**20), 2.5, "x", None, [], 1)


def cases(rng: np.random.Generator) -> Case:
    """A call with one or two wrong arguments."""
    name = one_of(rng, [*VALID_CALLS])
    function, arguments = VALID_CALLS[name]()
    replaced = {}
    for _ in range(2 if chance(rng, 0.25) else 1):
        argument = one_of(rng, [*arguments])
        if argument not in _LEAVE_ALONE:
            replaced[argument] = one_of(rng, _foreign_values())
        elif argument.startswith("n_"):
            replaced[argument] = one_of(rng, _NUMBERS_OF_WORKERS)
    title = f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in replaced.items())})"
    before = COUNTS.tobytes() + LABELS.tobytes()

    def oracle(ran: Ran) -> str | None:
        changed = COUNTS.tobytes() + LABELS.tobytes() != before
        return f"{title} changed what it was given" if changed else None

    def call() -> Any:
        # A name that is not there is Python's own KeyError, as in a dict.
        with contextlib.suppress(*[KeyError] if name.endswith("__getitem__") else []):
            function(**(arguments | replaced))

    return Case(call=call, title=title, oracle=oracle)


def _foreign_values() -> list[Any]:
    """What an argument may be and should not; made anew, so that a call cannot change the next one's."""
    return [
        None, True, False, 0, -1, 1, 2, 3, 2.5, -0.5, 0.0, 1.0, 1e300, 1e-320, 10**20, -(10**20), 2**63,
        2**31, float("nan"), float("inf"), -float("inf"), 1j, "", " ", "x", "3", "nothing/x.json",
        "x\x00y",
        "\ud800", "é" * 300, b"x", b"\xff", (), (1,), frozenset({1}), range(3), Ellipsis, NotImplemented,
        Path("nothing"), Path("."), decimal.Decimal("1.5"), fractions.Fraction(1, 3),
        datetime.date(2024, 1, 1),
        [], [1], [0, 1, 2], [[1, 2], [3]], ["x", None], [-1],
        [[[]]], [float("nan")], [2**70], [1.5, 2], [[0, 0, 0]],
        {}, {"a": 1}, {1: "a"}, {None: None},
        {"true": COUNTS.copy()},
        {1, 2}, (n for n in range(3)), object(), bytearray(b"x"),
        memoryview(b"xyz"),
        np.array([]), np.array(3), np.array([1, 2, 3]), np.zeros((3, 3)),
        np.full((2, 3), np.nan), np.array(["a", "b"]), np.array([None, 1]),
        np.array([[1.5, 2.0, 0.0]]), np.array([[-3, 1, 2]]), np.zeros((0, 3), int),
        np.zeros((3, 0), int), np.ones((2, 2, 3), int), COUNTS.astype(">i8"),
        COUNTS.astype(np.float32), COUNTS.astype(np.uint8), COUNTS.astype(object),
        COUNTS.astype(complex), COUNTS.astype(bool), np.asfortranarray(COUNTS),
        COUNTS[::-1, ::-1], np.array([2**62, 2**62, 2**62]), np.array([["a"]]),
        np.datetime64("2024-01-01"), np.float64("nan"), np.int64(-1),
        np.bool_(True),
        np.ma.masked_array([1, 2, 3], [0, 1, 0]), np.array([[1, 2, 3]]).view(np.matrix),
        sparse.csr_array(COUNTS), sparse.coo_array(COUNTS),
        sparse.csc_matrix(COUNTS),
        _broken(columns=[9, 9]), _broken(columns=[-1, 0]), _broken(starts=[0, 5, 9]),
        _broken(starts=[0, -1, 2]), _broken(data=[-1, 2]),
        _broken(data=[np.nan, 0.5]),
        pd.DataFrame(COUNTS), pd.DataFrame(COUNTS).astype("Int64"),
        pd.Series([1, None, 3]),
        pl.DataFrame(COUNTS), pa.table({"a": [1]}), pa.array([1, None]),
        mdm(), sizes(), parts(), np.random.default_rng(0), np.random.RandomState(0),
        "9" * 5000, [[]] * 3, _deep(2000),
    ]  # fmt: skip


def _broken(data: Any = (1, 2), columns: Any = (0, 1), starts: Any = (0, 1, 2)) -> sparse.csr_array:
    """A sparse matrix whose parts do not fit together, which scipy does not look at."""
    matrix = sparse.csr_array(np.array([[1, 0, 0], [0, 2, 0]]))
    matrix.data, matrix.indices = np.asarray(data), np.asarray(columns, np.int32)
    matrix.indptr = np.asarray(starts, np.int32)
    return matrix


def _deep(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


def _shown(value: Any) -> str:
    try:
        return " ".join(repr(value).split())[:80]
    except (ValueError, RecursionError, IndexError):
        return f"<{type(value).__name__}>"
