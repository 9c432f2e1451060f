"""Calls of everything public with one or two arguments replaced: they work, or our own error says why not.

The valid calls are those of `tests/api_calls.py`.
"""

import contextlib
import datetime
import decimal
import fractions
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from api_calls import COUNTS, LABELS, VALID_CALLS, mdm, parts, sizes
from fuzz.case import Case, Ran, chance, one_of

# Made anew for each case: a call must not change them for the next one.
_FOREIGN: tuple[Callable[[], Any], ...] = tuple(
    (lambda value=value: value)
    for value in (
        None, True, False, 0, -1, 1, 2, 3, 2.5, -0.5, 0.0, 1.0, 1e300, 1e-320, 10**20, -(10**20), 2**63,
        2**31, float("nan"), float("inf"), -float("inf"), 1j, "", " ", "x", "3", "nothing/x.json", "x\x00y",
        "\ud800", "é" * 300, b"x", b"\xff", (), (1,), frozenset({1}), range(3), Ellipsis, NotImplemented,
        Path("nothing"), Path("."), decimal.Decimal("1.5"), fractions.Fraction(1, 3), datetime.date(2024, 1, 1),
    )
) + (
    lambda: [], lambda: [1], lambda: [0, 1, 2], lambda: [[1, 2], [3]], lambda: ["x", None], lambda: [-1],
    lambda: [[[]]], lambda: [float("nan")], lambda: [2**70], lambda: [1.5, 2], lambda: [[0, 0, 0]],
    lambda: {}, lambda: {"a": 1}, lambda: {1: "a"}, lambda: {None: None}, lambda: {"true": COUNTS.copy()},
    lambda: {1, 2}, lambda: (n for n in range(3)), object, lambda: bytearray(b"x"), lambda: memoryview(b"xyz"),
    lambda: np.array([]), lambda: np.array(3), lambda: np.array([1, 2, 3]), lambda: np.zeros((3, 3)),
    lambda: np.full((2, 3), np.nan), lambda: np.array(["a", "b"]), lambda: np.array([None, 1]),
    lambda: np.array([[1.5, 2.0, 0.0]]), lambda: np.array([[-3, 1, 2]]), lambda: np.zeros((0, 3), int),
    lambda: np.zeros((3, 0), int), lambda: np.ones((2, 2, 3), int), lambda: COUNTS.astype(">i8"),
    lambda: COUNTS.astype(np.float32), lambda: COUNTS.astype(np.uint8), lambda: COUNTS.astype(object),
    lambda: COUNTS.astype(complex), lambda: COUNTS.astype(bool), lambda: np.asfortranarray(COUNTS),
    lambda: COUNTS[::-1, ::-1], lambda: np.array([2**62, 2**62, 2**62]), lambda: np.array([["a"]]),
    lambda: np.datetime64("2024-01-01"), lambda: np.float64("nan"), lambda: np.int64(-1), lambda: np.bool_(True),
    lambda: np.ma.masked_array([1, 2, 3], [0, 1, 0]), lambda: np.matrix([[1, 2, 3]]),
    lambda: sparse.csr_array(COUNTS), lambda: sparse.coo_array(COUNTS), lambda: sparse.csc_matrix(COUNTS),
    lambda: _broken(columns=[9, 9]), lambda: _broken(columns=[-1, 0]), lambda: _broken(starts=[0, 5, 9]),
    lambda: _broken(starts=[0, -1, 2]), lambda: _broken(data=[-1, 2]), lambda: _broken(data=[np.nan, 0.5]),
    lambda: pd.DataFrame(COUNTS), lambda: pd.DataFrame(COUNTS).astype("Int64"), lambda: pd.Series([1, None, 3]),
    lambda: pl.DataFrame(COUNTS), lambda: pa.table({"a": [1]}), lambda: pa.array([1, None]),
    mdm, sizes, parts, lambda: np.random.default_rng(0), lambda: np.random.RandomState(0),
    lambda: "9" * 5000, lambda: [[]] * 3, lambda: _deep(2000),
)  # fmt: skip

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
            replaced[argument] = one_of(rng, _FOREIGN)()
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


def _broken(
    data: Any = (1, 2), columns: Any = (0, 1), starts: Any = (0, 1, 2)
) -> sparse.csr_array:
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
