"""Points of a sweep (.npz, .parquet) and partitions of them that are not as they should be."""

import io
import json
import zipfile

import numpy as np

from damage import damaged
from fuzz.case import Case, chance, one_of
from fuzz.material import arrays, packed

_SWEEP = """\
seeds = [0]
[data]
file = {file!r}
[clients.true]
{true}
[clients.iid]
iid = {iid}
[fedavg]
n_rounds = 1
cohort_size = 2
[grid]
local_learning_rate = [0.1]
"""

_TYPES = ("float32", "float16", "int8", "uint64", "bool", ">f8", ">i4", "complex128", "U5", "S3", "O",
          "datetime64[s]", "V8", "longdouble")  # fmt: skip
_VALUES = (-1, 0, 3, 2**31, 2**62, 10**9, np.nan, np.inf, -np.inf, 0.5, 1e300, -0.0)


def cases(rng: np.random.Generator) -> Case:
    """A sweep over damaged points, or over a damaged partition of whole ones."""
    given = arrays()
    given |= {"test_features": given["features"][:9], "test_labels": given["labels"][:9]}
    true, files = 'column = "client"', {}
    if chance(rng, 0.35):
        name, content = _partition(rng)
        files[name] = content
        true = f'partition = "{name}"'
    else:
        for _ in range(int(rng.integers(1, 3))):
            given = _changed(given, rng)
    if chance(rng, 0.15) and true.startswith("column"):
        file, content = "points.parquet", _as_parquet(given)
    else:
        file, content = "points.npz", _as_npz(given, rng)
    iid = one_of(rng, ('"true"', "5\nn_clients = 3"))
    files |= {file: content, "sweep.toml": _SWEEP.format(file=file, true=true, iid=iid).encode()}
    command = ("sweep", "sweep.toml", "-o", "swept", "--jobs", "1")
    return Case(command, files, keeps=("swept",))


def _changed(given: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The arrays with one of them changed."""
    if not given:
        return given
    name = one_of(rng, [*given])
    array = given[name]
    match int(rng.integers(9)):
        case 0:
            return {other: value for other, value in given.items() if other != name}
        case 1:
            shapes = (
                array[:0],
                array[:1],
                array[:-1],
                array[None],
                array[..., None],
                np.array(3),
                array.T,
            )
            return given | {name: one_of(rng, shapes)}
        case 2:
            with np.errstate(all="ignore"):
                try:
                    return given | {name: array.astype(one_of(rng, _TYPES))}
                except (TypeError, ValueError, RuntimeError):
                    return given | {name: np.full(array.shape, None)}
        case 3 | 4 | 5 if array.size and array.dtype.kind in "iuf":
            value = one_of(rng, _VALUES)
            changed = array.astype(np.float64 if isinstance(value, float) else np.int64)
            if array.dtype.kind == "f":
                changed = array.astype(np.float64)
            changed.flat[int(rng.integers(changed.size))] = value
            return given | {name: changed}
        case 6:
            return given | {name: np.concatenate([array, array]) if array.ndim else array}
        case 7:
            names = ("features", "labels", "client", "test_labels", "x", "", "../x", "a/b", "é")
            return given | {one_of(rng, names): array}
        case _:
            return given | {name: given[one_of(rng, [*given])]}


def _as_npz(given: dict[str, np.ndarray], rng: np.random.Generator) -> bytes:
    given = {name: value for name, value in given.items() if name}
    whole = packed(given)
    match int(rng.integers(20)):
        case 0:
            return whole[: int(rng.integers(len(whole)))]
        case 1:
            return _zipped({"features.npy": b"", "labels.npy": b"x"})
        case 2:
            return _zipped({"features": b"\x93NUMPY\x01\x00\xff\xff", "labels.npy": b"\x80\x04N."})
        case 3:
            one = io.BytesIO()
            np.save(one, np.arange(5))
            return one.getvalue()
    return whole


def _zipped(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without the time of day
    return file.getvalue()


def _as_parquet(given: dict[str, np.ndarray]) -> bytes:
    """What of the arrays can be columns, as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    columns = {}
    for name, array in given.items():
        for j in range(array.shape[1] if array.ndim == 2 else 1):
            column = array[:, j] if array.ndim == 2 else array
            fits = column.dtype.kind in "biufU" and column.dtype != np.longdouble
            if column.ndim == 1 and fits and len(column) == 60:
                native = column.astype(column.dtype.newbyteorder("="))
                columns[f"{name}{j if array.ndim == 2 else ''}"] = pa.array(native)
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def _partition(rng: np.random.Generator) -> tuple[str, bytes]:
    """A partition of the sixty points that is none, or hardly one."""
    import pyarrow as pa
    import pyarrow.parquet

    whole = {f"c{i}": list(range(10 * i, 10 * i + 10)) for i in range(6)}
    if chance(rng, 0.5):
        return "kept.json", json.dumps(damaged(whole, rng=rng)).encode()
    owners = np.repeat([*whole], 10)
    indices = np.arange(60)
    value = one_of(rng, _VALUES)
    match int(rng.integers(6)):
        case 0:
            indices = indices.astype(np.float64 if isinstance(value, float) else np.int64)
            indices[int(rng.integers(60))] = value
        case 1:
            columns = {"client": pa.array([None, *owners[1:]]), "index": indices}
        case 2:
            columns = {"client": owners, "index": pa.array([[i] for i in range(60)])}
        case 3:
            columns = {"client": pa.array([{"a": i} for i in range(60)]), "index": indices}
        case 4:
            columns = {"client": owners, "index": pa.array([str(i) for i in indices])}
        case _:
            columns = {"client": pa.array([float("nan")] * 60), "index": pa.array([True] * 60)}
    if "columns" not in locals():
        columns = {"client": owners, "index": indices}
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return "kept.parquet", file.getvalue()
