"""`polyurn histogram`, `split` and `pack`: other tables of records and clients, or packed clients."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import polyurn as pu
from polyurn.commands.console import print_data, print_json, say, talk
from polyurn.commands.declare import Needs, also, argument, option, provenance_of
from polyurn.commands.options import (
    AS_JSON,
    BINS,
    CAP,
    CATEGORIES,
    SEED,
    TABLE_OUTPUT,
    THREADS,
    ColumnOptions,
    TableOptions,
    declared_bins,
    declared_categories,
)
from polyurn.errors import ParameterError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.sources.clients import Declared
    from polyurn.storage.shards import Totals


def histogram_command(
    *,
    context: typer.Context,
    records: Path = argument(
        "RECORDS", "CSV or Parquet: one row per point, or with a column of counts."
    ),
    columns: ColumnOptions,
    bins: str | None = BINS,
    output: Path | None = TABLE_OUTPUT,
    categories: str | None = CATEGORIES,
    cap: int | None = CAP,
    seed: int = also(SEED, Needs("cap")),
    as_json: bool = AS_JSON,
) -> None:
    """Count each client's points by category, as a long table (client, category, count).

    Example: `polyurn histogram records.parquet --category income --bins 0:200000:5000
    -o clients.parquet`
    """
    import numpy as np

    from polyurn.client.counting import cap_sizes
    from polyurn.counts import client_sizes
    from polyurn.sources.clients import histograms_of
    from polyurn.storage.table_files import csv_text

    table = pu.read_table(records, on_remark=say)
    declared = _either(declared_categories(categories), declared_bins(bins))
    found = histograms_of(table, records, columns.reading(), declared)
    counts = found.counts if cap is None else cap_sizes(found.counts, cap, rng=seed)
    names = {"clients": found.clients.tolist(), "categories": found.categories}
    if output is not None:
        pu.write_histograms(counts, output, provenance=provenance_of(context, seed), **names)
        n_empty = int((client_sizes(counts) == 0).sum())
        say(f"wrote {counted(len(found.clients) - n_empty, 'client')} to {output}")
        if n_empty:
            hold = counted(n_empty, "client holds", "clients hold")
            say(f"{hold} no points, so that the long table has no rows for them")
    elif not as_json:
        print_data([csv_text(counts, **names)])
    if as_json:
        rows = counts if isinstance(counts, np.ndarray) else counts.toarray()
        print_json({"n_clients": len(found.clients), **names, "counts": rows.tolist()})


def split_command(
    *,
    context: typer.Context,
    tables: tuple[Path, Path, Path] = argument(
        "TABLE FITTED HELD_OUT", "CSV or Parquet: the table to read, and the two to write."
    ),
    held_out: float = option(0.2, "Share of the clients that HELD_OUT gets."),
    client: str = option("client", "Column with the client's id."),
    seed: int = SEED,
) -> None:
    """Split the clients of a table at random: one part to learn from, the other to judge by.

    Rows and columns stay as they are, and every client is whole in one of the two tables.

    Example: `polyurn split records.parquet fitted.parquet held-out.parquet --client plane`
    """
    import numpy as np

    from polyurn.client.columns import column_ids, distinct_values
    from polyurn.comparison.client_splits import split_rows
    from polyurn.storage.table_files import check_table_writable, naming, write_table

    if len(set(map(os.path.realpath, tables))) < 3:
        raise ParameterError("expected three different files: TABLE FITTED HELD_OUT")
    table, *written = tables
    for path in written:
        check_table_writable(path)
    rows = pu.read_table(table, on_remark=say)
    with naming(table):
        clients, owner = distinct_values(column_ids(rows, client))
        parts = split_rows(len(clients), held_out=held_out, rng=seed)
    for path, members in zip(written, parts, strict=True):
        mine = rows.take(np.flatnonzero(np.isin(owner, members)))
        write_table(mine, path, provenance=provenance_of(context, seed))
        say(f"wrote {counted(len(members), 'client')}, {counted(len(mine), 'row')}, to {path}")


def pack_command(
    *,
    context: typer.Context,
    tables: list[Path] = argument(
        "TABLE...",
        "CSV or Parquet files, or folders of them: (client, category, count), or one row per "
        "point.",
    ),
    output: Path = option(..., "Folder to write.", "--output", "-o"),
    columns: TableOptions,
    bins: str | None = BINS,
    cap: int | None = CAP,
    shard_clients: int = option(2**18, "Number of clients in a shard."),
    memory: int = option(1024, "Megabytes of memory for sorting, which uses the disk beyond them."),
    threads: int = also(THREADS, default=2),
    seed: int = also(SEED, Needs("cap")),
    as_json: bool = AS_JSON,
) -> None:
    """Pack tables that are larger than memory into a folder that fit, score and compare read.

    Rows that are sorted by client are packed as they are read; others are sorted first, on disk. A run
    that was stopped goes on when the command is repeated.

    Example: `polyurn pack clients/*.parquet --categories 10 -o packed/`
    """
    from polyurn.commands.progress import packing_progress
    from polyurn.typed.json_form import to_json

    categories = _either(columns.declared(), declared_bins(bins))
    with packing_progress(talk) as on_progress:
        packed = pu.pack_shards(
            tables, output, categories=categories, client=columns.client,
            category=columns.category, count=columns.count, cap=cap, drop_empty=columns.drop_empty,
            drop_missing=columns.drop_missing, clients_per_shard=shard_clients,
            memory=memory * 2**20, n_threads=threads, rng=seed,
            provenance=provenance_of(context, seed), on_remark=say, on_progress=on_progress,
        )  # fmt: skip
    for sentence in _sentences(packed.totals):
        say(sentence)
    say(f"wrote {counted(len(packed.shards), 'shard')} to {output}")
    if as_json:
        print_json({**to_json(packed.totals), "n_shards": len(packed.shards)})


def _either(named: "Declared", cut: "pu.Bins | None") -> "Declared | pu.Bins":
    """The declared categories, or the bins that stand for them."""
    if named is not None and cut is not None:
        raise ParameterError("expected --categories or --bins, got both")
    return cut if named is None else named


def _sentences(totals: "Totals") -> list[str]:
    """Sentences about the tables that were packed."""
    sentences = [
        f"{counted(totals.n_clients, 'client')} with {counted(totals.n_points, 'point')}, "
        f"{totals.min_size:,} to {totals.max_size:,} each"
    ]
    if totals.n_duplicates:
        rows = counted(totals.n_duplicates, "row has", "rows have")
        sentences.append(
            f"{rows} the client and category of an earlier one; their counts were added: if the column "
            "has no counts, and every row is one point, --count 1"
        )
    if totals.n_empty:
        sentences.append(f"left out {counted(totals.n_empty, 'client')} without points")
    if totals.n_capped:
        sentences.append(f"left out points of {counted(totals.n_capped, 'client')} beyond the cap")
    return sentences
