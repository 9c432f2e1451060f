"""Partitions on disk: a Parquet table (client, index), or JSON {client: [indices]}.

Written whole or not at all, and read back equal. What a partition is, is `partitioning/result.py`.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError, ParameterError
from polyurn.partitioning.result import Partition, check_ids
from polyurn.storage.documents import json_bytes, parse_json
from polyurn.storage.files import AGAIN, check_writable, read_regular, write_whole
from polyurn.storage.table_files import arrow, read_table
from polyurn.typed.arguments import Json, checked


@checked
def save_partition(
    partition: Partition,
    path: str | os.PathLike[str],
    *,
    clients: Sequence[Any] | NDArray[Any] | None = None,
    provenance: Json | None = None,
) -> None:
    """Write who holds which points: .parquet is a table (client, index), .json {client: [indices]}.

    Parameters
    ----------
    partition : Partition
    path : path ending in .parquet or .json
    clients : sequence of length n_clients, optional
        Client ids, which also differ as texts; by default the partition's own, or 0, 1, ...
    provenance : mapping, optional
        How it came about; kept in a Parquet file's metadata, with how well the proxy data could serve
        clients' styles if they have some. JSON cannot keep it.
    """
    path = Path(path)
    kind = _kind(path)
    if kind == "json":
        pieces = partition_json(partition, clients=clients)
        write_whole(path, lambda file: file.writelines(pieces))
    else:
        _write_parquet(partition, check_ids(clients, partition), path, provenance)


def partition_json(
    partition: Partition, *, clients: Sequence[Any] | NDArray[Any] | None = None
) -> Iterator[bytes]:
    """Write the JSON {client: [indices]} client by client, so that memory never holds the whole text."""
    ids = check_ids(clients, partition)
    for client, points in enumerate(partition):
        name = json.dumps(str(ids[client]), ensure_ascii=False)
        yield json_bytes(f"{',' if client else '{'}\n{name}: {points.tolist()}")
    yield b"\n}\n"


def check_partition_writable(path: str | os.PathLike[str]) -> None:
    """Raise a `FileError` where `save_partition` cannot write: before the work, not after it."""
    _kind(Path(path))
    check_writable(path)


@checked
def load_partition(path: str | os.PathLike[str]) -> Partition:
    """Read what `save_partition` wrote.

    Returns
    -------
    Partition
        With the clients' ids, which JSON keeps as text, and without a report.

    Raises
    ------
    FileError
        The file cannot be read, is damaged, or is not a partition.
    """
    path = Path(path)
    return _read_json(path) if _kind(path) == "json" else _read_parquet(path)


def _write_parquet(
    partition: Partition, ids: NDArray[Any], path: Path, provenance: Mapping[str, Any] | None
) -> None:
    from polyurn import __version__

    pa = arrow("writing tables")
    columns = {
        "client": pa.array(ids).take(pa.array(partition.clients)),
        "index": partition.indices,
    }
    style = None if partition.report is None else partition.report.style
    served = {} if style is None else {"style": style.to_json()}
    note = json.dumps({"polyurn": __version__, **served, **(provenance or {})})
    table = pa.table(columns).replace_schema_metadata({"polyurn": note})
    write_whole(path, lambda file: pa.parquet.write_table(table, file))


def _read_json(path: Path) -> Partition:
    try:
        document = parse_json(read_regular(path), on_pairs=_distinct_pairs)
    except ValueError as error:
        raise FileError(f"{path} is not a partition, or was cut off: {error}; {AGAIN}") from error
    if not isinstance(document, dict) or not all(isinstance(p, list) for p in document.values()):
        raise FileError(f"{path} is not a partition: expected {{client: [indices]}}")
    if not all(type(index) is int for points in document.values() for index in points):
        raise FileError(f"{path} is not a partition: expected whole numbers as indices")
    with _refused(path):
        parts = Partition.from_lists(document.values())
    return replace(parts, ids=np.array(list(document), dtype=object))


def _read_parquet(path: Path) -> Partition:
    table = read_table(path)
    if not {"client", "index"} <= set(table.column_names):
        raise FileError(f"{path} is not a partition: expected the columns client and index")
    owners, indices = table["client"], table["index"]
    if owners.null_count or indices.null_count:
        raise FileError(f"{path} is damaged: expected no missing values; {AGAIN}")
    if arrow("reading partitions").types.is_nested(owners.type):
        raise FileError(f"{path} is not a partition: expected texts or numbers as clients")
    # Clients in the order in which they are first named: rows may come in any order.
    coded = owners.dictionary_encode().combine_chunks()
    with _refused(path):
        parts = Partition.by_owner(np.asarray(coded.indices)).renumbered(indices.to_numpy())
    return replace(parts, ids=coded.dictionary.to_numpy(zero_copy_only=False)[parts.ids])


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Add the name of the file to an error about its content."""
    try:
        yield
    except ParameterError as error:
        raise FileError(f"{path} is not a partition: {error}") from error


def _distinct_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a name that occurs twice is refused, as the first of the two would be lost."""
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"the client {twice!r} is there more than once")
    return document


def _kind(path: Path) -> str:
    if path.suffix not in (".parquet", ".json"):
        raise FileError(f"expected a .parquet or .json file, got {path.name!r}")
    return path.suffix[1:]
