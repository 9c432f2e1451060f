"""`polyurn pack`: tables of any length into a folder of packed clients."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from polyurn.commands.console import print_json, say, talk
from polyurn.commands.declare import Needs, also, argument, option, provenance_of
from polyurn.commands.options import AS_JSON, BINS, CAP, SEED, THREADS, TableOptions, declared_bins
from polyurn.errors import ParameterError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.storage.shards import Totals


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
    from polyurn.storage.packing import pack_shards
    from polyurn.typed.json_form import to_json

    cut, named = declared_bins(bins), columns.declared()
    if isinstance(cut, int):
        raise ParameterError(
            "expected --bins as edges or START:STOP:WIDTH: quantiles need all records"
        )
    if named is not None and cut is not None:
        raise ParameterError("expected --categories or --bins, got both")
    with packing_progress(talk) as on_progress:
        packed = pack_shards(
            tables, output, categories=cut if named is None else named, client=columns.client,
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
