"""Parquet tables of clients with columns of every type; the true histograms are known."""

import io
import json
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from fuzz.case import Case, Ran, chance, one_of

_COUNT_TYPES = (
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
    pa.uint64(), pa.float32(),
    pa.float64(), pa.string(), pa.large_string(), pa.decimal128(9, 0), pa.decimal128(9, 2),
    pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.int32(), pa.string()), pa.float16(),
)  # fmt: skip
_NAME_TYPES = (
    pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.binary(), pa.string_view(),
    pa.dictionary(pa.int64(), pa.large_string()), pa.large_binary(), pa.binary_view(),
)  # fmt: skip
_CODE_TYPES = (pa.int8(), pa.int64(), pa.uint64(), pa.float64(), pa.float32(), pa.decimal128(5, 0),
    pa.date32(),
               pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.time32("s"),
               pa.duration("s"))  # fmt: skip


def cases(rng: np.random.Generator) -> Case:
    """A Parquet table, and the command that reads it."""
    names, n_clients = ("a", "b", "c"), int(rng.integers(1, 6))
    counts = rng.integers(0, 5, (n_clients, 3)) + np.array([1, 0, 0])
    cells = [(i, j) for i in range(n_clients) for j in range(3) if counts[i, j]]
    owners, codes = [i for i, _ in cells], [j for _, j in cells]
    truth = Counter({cell: int(counts[cell]) for cell in cells})
    client = _ids(owners, rng)
    category = _ids(codes, rng) if chance(rng, 0.6) else pa.array([names[j] for j in codes])
    count, readable = _counts([truth[cell] for cell in cells], rng)
    if chance(rng, 0.25):
        client, category, readable = _spoiled(client, category, rng)
    columns = {"client": client, "category": category, "count": count}
    if chance(rng, 0.1):
        columns[one_of(rng, ("Count", "n", "opens"))] = columns.pop("count")
    try:
        content = _parquet(pa.table(columns), rng)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a type that Parquet does not have
        content = _parquet(pa.table({"client": owners, "category": codes}), rng)
        truth = Counter(cells)
        readable = True
    oracle = _same(truth, readable, [*columns][-1])
    if chance(rng, 0.8):
        return Case(
            ("histogram", "table.parquet", "--json"), {"table.parquet": content}, oracle=oracle
        )
    command = ("histogram", "table.parquet", "-o", one_of(rng, ("out.csv", "out.parquet")))
    return Case(command, {"table.parquet": content}, outputs=(command[-1],))


def _ids(codes: list[int], rng: np.random.Generator) -> pa.Array:
    """Numbers as a column of some type."""
    try:
        if chance(rng, 0.5):
            return pa.array([f"n{code}" for code in codes]).cast(one_of(rng, _NAME_TYPES))
        kind = one_of(rng, _CODE_TYPES)
        return (
            pa.array([Decimal(c) for c in codes]).cast(kind)
            if "decimal" in str(kind)
            else pa.array(codes).cast(kind)
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array(codes)


def _counts(values: list[int], rng: np.random.Generator) -> tuple[pa.Array, bool]:
    """A column of counts, and whether they are still the true ones."""
    try:
        match int(rng.integers(8)):
            case 0:
                odd = one_of(rng, (float("nan"), float("inf"), -1.0, 0.5, 1e300, 3e9, -0.5))
                return pa.array([odd, *map(float, values[1:])]), False
            case 1:
                return pa.array([None, *values[1:]]), False
            case 2:
                strange = ([[n] for n in values], [{"n": n} for n in values], [True] * len(values))
                return pa.array(one_of(rng, strange)), False
            case 3:
                return pa.array(
                    [one_of(rng, ("x", "", "1,5", "-1", "NaN")), *map(str, values[1:])]
                ), False
        kind = one_of(rng, _COUNT_TYPES)
        if pa.types.is_dictionary(kind):
            return pa.array(values).cast(kind.value_type).dictionary_encode().cast(kind), True
        return pa.array(values).cast(pa.string()).cast(kind) if "decimal" in str(
            kind
        ) else pa.array(values).cast(kind), True
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array(values), True


def _spoiled(
    client: pa.Array, category: pa.Array, rng: np.random.Generator
) -> tuple[pa.Array, pa.Array, bool | None]:
    """A column of ids that are not ids; None where it cannot be said what they mean."""
    n = len(client)
    odd = (
        (pa.array([None] * n), False),
        (pa.nulls(n, pa.string()), False),
        (pa.array([None, *["a"] * (n - 1)]), False),
        (pa.array([float("nan")] * n), False),
        (pa.array([[1]] * n), False),
        (pa.array([{"a": 1}] * n), False),
        (pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())), False),
        (pa.array([True] * n), None),
        (pa.array([1.5] * n), None),
        (pa.array([-1] * n), None),
        (pa.array([2**62] * n), None),
        (pa.array(["9" * 5000] * n), None),
        (pa.array([b"\xff\xfe"] * n), None),
        (pa.array(["\x1b[31m"] * n), None),
        (pa.array(["a\nb"] * n), None),
        (pa.array([""] * n), None),
        (pa.array([-np.inf] * n), None),
    )  # fmt: skip
    column, readable = one_of(rng, odd)
    return (column, category, readable) if chance(rng, 0.5) else (client, column, readable)


def _parquet(table: pa.Table, rng: np.random.Generator) -> bytes:
    file = io.BytesIO()
    pa.parquet.write_table(
        table,
        file,
        row_group_size=one_of(rng, (None, 1)),
        compression=one_of(rng, ("NONE", "snappy", "zstd", "gzip")),
        version=one_of(rng, ("1.0", "2.6")),
    )
    return file.getvalue()


def _same(truth: Counter, readable: bool | None, last: str):
    """Whether as many clients hold as many points as in truth: ids may be spelled in several ways."""

    def oracle(ran: Ran) -> str | None:
        record = json.loads(ran.out)
        if readable is None:
            return None
        rows = sorted(sorted(n for n in row if n) for row in record["counts"])
        n_clients = max(i for i, _ in truth) + 1
        asked = sorted(
            sorted(truth[i, j] for j in range(3) if truth[i, j]) for i in range(n_clients)
        )
        if readable and rows == asked:
            return None
        if not readable and f"not read: column {last}" in ran.err:  # it need not hold counts
            return None
        return f"read {rows}, the truth is {asked if readable else 'spoiled'}"

    return oracle
