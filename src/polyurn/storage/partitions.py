"""Partitions on disk: a Parquet table (client, index), or JSON {client: [indices]}; or a folder for each
client, for trainers that read folders.

A file is written whole or not at all, and read back equal. What a partition is, is
`partitioning/result.py`.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError, ParameterError
from polyurn.partitioning.result import Partition, check_ids
from polyurn.storage.documents import json_bytes, parse_json
from polyurn.storage.files import AGAIN, check_writable, own_folder, read_regular, write_whole
from polyurn.storage.table_files import arrow, read_table, write_table
from polyurn.typed.arguments import Json, checked

if TYPE_CHECKING:
    import pyarrow as pa


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
        How it came about; kept in a Parquet file's metadata. JSON cannot keep it.
    """
    path = Path(path)
    kind = _kind(path)
    if kind == "json":
        pieces = partition_json(partition, clients=clients)
        write_whole(path, lambda file: file.writelines(pieces))
        return
    pa = arrow("writing tables")
    owners = pa.array(check_ids(clients, partition)).take(pa.array(partition.clients))
    write_table(
        pa.table({"client": owners, "index": partition.indices}), path, provenance=provenance
    )


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


def write_client_folders(
    partition: Partition,
    folder: Path,
    rows: "pa.Table",
    *,
    files: Sequence[str] | None = None,
    labels: NDArray[Any] | None = None,
) -> None:
    """Write what each client holds into FOLDER/CLIENT, or FOLDER/train/CLIENT and FOLDER/test/CLIENT.

    With `files`, the path of each row's file, a client's folder has a folder for each label, with links
    to the files, or copies where the disk cannot link: what torchvision's `ImageFolder` reads. Without,
    it has `rows.parquet`. A client's name is percent-encoded where a folder's name cannot be like it.
    """
    if files is not None and (missing := [name for name in files if not os.path.isfile(name)]):
        raise FileError(
            f"there is no file {missing[0]!r}, and {len(missing) - 1:,} more are missing"
        )
    own_folder(folder)
    parts = {"": partition}
    if partition.test is not None:
        parts = {"train": partition, "test": partition.test}
    for part, clients in parts.items():
        for name, held in zip(check_ids(None, clients).tolist(), clients, strict=True):
            place = folder / part / _folder_name(str(name))
            place.mkdir(parents=True)
            if files is None:
                table = rows.take(arrow("writing tables").array(held))
                arrow("writing tables").parquet.write_table(table, place / "rows.parquet")
            else:
                assert labels is not None
                _link(place, [files[i] for i in held.tolist()], labels[held])


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


def _link(place: Path, files: Sequence[str], labels: NDArray[Any]) -> None:
    """Link each file in the folder of its label; a number before its name keeps repeats apart."""
    for label in np.unique(labels.astype(str)):
        (place / _folder_name(label)).mkdir()
    for i, (path, label) in enumerate(zip(files, labels.tolist(), strict=True)):
        target = place / _folder_name(str(label)) / f"{i:06d}-{os.path.basename(path)}"
        try:
            os.link(os.path.realpath(path), target)
        except OSError:  # another disk, or one without links
            shutil.copyfile(path, target)


def _folder_name(name: str) -> str:
    """A name that every disk takes, and that leads nowhere else.

    >>> _folder_name("ward 3"), _folder_name("../etc"), _folder_name(".")
    ('ward 3', '..%2Fetc', '%2E')
    """
    encoded = quote(name, safe=" ()+,;=@[]{}!'&~")
    return encoded.replace(".", "%2E") if encoded.strip(".") == "" else encoded
