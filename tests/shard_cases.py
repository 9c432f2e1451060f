"""Folders of packed clients for tests."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import polyurn as pu
from polyurn.model.paper_truths import truth

MDM = truth("high/3")
COUNTS = MDM.sample(2_000, rng=0)


def packed(folder, counts=COUNTS, *, clients_per_shard=90):
    """A folder of shards of a table that is made there."""
    pu.write_histograms(counts, folder / "clients.parquet")
    n_categories = counts.shape[1]
    return pu.pack_shards(
        folder / "clients.parquet", folder / "packed", categories=n_categories,
        clients_per_shard=clients_per_shard,
    )  # fmt: skip


def unpacked(folder):
    """The histograms of all clients of a folder, in their order."""
    rows = (folder.rows(i) for i in range(len(folder.shards)))
    return np.concatenate(
        [r.counts_of(np.arange(r.n_clients, dtype=np.uint32)).toarray() for r in rows]
    )


def long_file(path, clients, categories, counts):
    """A Parquet file of a long table."""
    pq.write_table(pa.table({"client": clients, "category": categories, "count": counts}), path)
    return path
