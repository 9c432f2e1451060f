"""Simulated clients as a folder of Parquet files, drawn and written in constant memory.

Each file has its own random stream, which follows from the seed and the file's number, so that the
clients do not depend on the number of threads. One table in one file is `table_files.py`.
"""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np
from numpy.random import SeedSequence

from polyurn.model.mdm import MDM
from polyurn.model.names import check_names
from polyurn.storage.files import own_folder, write_whole
from polyurn.storage.table_files import arrow, long_table
from polyurn.typed.arguments import Json

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

    A table has the columns (client, category, count). The folder is new or empty. Clients are numbered
    0, 1, ... through all files, whose metadata keep `provenance`. `on_progress` is called with the
    number of clients so far.

    >>> import tempfile
    >>> from polyurn.model.paper_truths import truth
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_drawn(truth("low/1"), 250, folder, clients_per_file=100)
    3
    """
    folder = Path(folder)
    own_folder(folder)
    labels = check_names(categories or mdm.categories, mdm.n_categories)
    n_files = -(-n_clients // clients_per_file)
    streams = SeedSequence(rng).spawn(n_files)
    note = json.dumps(dict(provenance or {}))

    def one(i: int) -> int:
        first = i * clients_per_file
        some = range(first, min(first + clients_per_file, n_clients))
        write_whole(
            folder / f"clients-{i:06d}.parquet",
            lambda file: _write(file, mdm, some, streams[i], labels, note),
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
