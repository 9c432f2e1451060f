"""Simulated clients as a folder of Parquet files, drawn and written in constant memory.

Each file has its own random stream, which follows from the seed and the file's number, so that files can
be drawn in any order and a run that was stopped goes on with those that are missing. One table in one
file is `table_files.py`.
"""

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.random import SeedSequence

from polyurn.errors import FileError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.names import check_names
from polyurn.storage.files import others_in, refused, write_whole
from polyurn.storage.table_files import arrow, long_table
from polyurn.typed.arguments import Json
from polyurn.typed.json_form import to_json

# Clients of a file, and cells (clients x categories) that are drawn at once.
CLIENTS_PER_FILE = 2**19
_CELLS = 2**22


def write_drawn(
    mdm: MDM,
    n_clients: int,
    folder: str | os.PathLike[str],
    *,
    rng: int = 0,
    categories: tuple[str, ...] | None = None,
    n_threads: int = 2,
    clients_per_file: int = CLIENTS_PER_FILE,
    provenance: Json | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Draw clients from an MDM into a folder of long tables; return the number of files.

    A table has the columns (client, category, count). The folder is new, empty, or what a stopped run
    with the same arguments has left. Clients are numbered 0, 1, ... through all files, whose metadata
    keep `provenance`. `on_progress` is called with the number of clients so far.

    >>> import tempfile
    >>> from polyurn.model.paper_truths import truth
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_drawn(truth("low/1"), 250, folder, clients_per_file=100)
    3
    """
    if n_clients < 1:
        raise ParameterError(f"expected at least one client, got {n_clients}")
    folder = Path(folder)
    labels = check_names(categories or mdm.categories, mdm.n_categories)
    n_files = -(-n_clients // clients_per_file)
    names = [f"clients-{i:06d}.parquet" for i in range(n_files)]
    drawn = {
        "n_clients": n_clients, "rng": rng, "per_file": clients_per_file,
        "mdm": hashlib.sha256(json.dumps(to_json(mdm)).encode()).hexdigest(),
        "categories": None if labels is None else list(labels),
    }  # fmt: skip
    done = _begin(folder, names, drawn)
    streams = SeedSequence(rng).spawn(n_files)

    def one(i: int) -> int:
        first = i * clients_per_file
        some = range(first, min(first + clients_per_file, n_clients))
        if names[i] not in done:
            note = json.dumps({"drawn": drawn, **(provenance or {})})
            write_whole(
                folder / names[i], lambda file: _write(file, mdm, some, streams[i], labels, note)
            )
        return len(some)

    with ThreadPoolExecutor(n_threads) as workers:
        try:
            for n_drawn in accumulate(workers.map(one, range(n_files))):
                if on_progress is not None:
                    on_progress(n_drawn)
        except BaseException:
            workers.shutdown(wait=True, cancel_futures=True)
            raise
    return n_files


def _write(
    file: IO[bytes],
    mdm: MDM,
    clients: range,
    stream: SeedSequence,
    labels: tuple[str, ...] | None,
    note: str,
) -> None:
    """Draw some clients at a time, and add them to a Parquet file."""
    pa = arrow("writing tables")
    rng = np.random.default_rng(stream)
    step = max(1, _CELLS // mdm.n_categories)
    kind = pa.int32() if labels is None else pa.string()
    columns = {"client": pa.int64(), "category": kind, "count": pa.int64()}
    with pa.parquet.ParquetWriter(file, pa.schema(columns, {"polyurn": note})) as writer:
        for start in range(clients.start, clients.stop, step):
            ids = np.arange(start, min(start + step, clients.stop))
            drawn = mdm.sample(len(ids), rng=rng)
            writer.write_table(long_table(drawn, clients=ids.tolist(), categories=labels))


def _begin(folder: Path, names: list[str], drawn: dict[str, Any]) -> set[str]:
    """The files that an earlier run of the same has left; refuse a folder with anything else."""
    pa = arrow("writing tables")
    with refused(f"cannot use {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        there = others_in(folder)
    wanted = set(names)
    for name in there:
        try:
            known = pa.parquet.read_metadata(folder / name).metadata if name in wanted else None
            if not known or json.loads(known[b"polyurn"])["drawn"] != drawn:
                raise ValueError
        except (pa.ArrowException, ValueError, KeyError, OSError):
            raise FileError(
                f"{folder} holds something else, {name}; take an empty folder"
            ) from None
    return set(there)
