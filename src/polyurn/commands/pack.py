"""`polyurn pack`: tables of any length into a folder of packed clients.

Parses, calls one library function, writes.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.commands._shared.bin_options import Edges, Start, Stop, Width, declared_bins
from polyurn.commands._shared.console import print_json, say, talk
from polyurn.commands._shared.invocation import made_by, refuse_options
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Category,
    Client,
    Count,
    DropEmpty,
    Seed,
    declared_categories,
)
from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.storage.shards import Totals


def pack_command(
    context: typer.Context,
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...",
            help="CSV or Parquet files, or folders of them: (client, category, count), or one row per "
            "point.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    client: Client = None,
    category: Category = None,
    count: Count = None,
    categories: Categories = None,
    edges: Edges = None,
    width: Width = None,
    start: Start = 0.0,
    stop: Stop = None,
    cap: Annotated[
        int | None, typer.Option(help="Largest number of points of a client; drawn at random.")
    ] = None,
    drop_empty: DropEmpty = False,
    shard_clients: Annotated[int, typer.Option(help="Clients of a shard.")] = 2**18,
    memory: Annotated[
        int, typer.Option(help="Megabytes that sorting may take; the rest of it is on disk.")
    ] = 1024,
    threads: Annotated[int, typer.Option(help="Threads.")] = 2,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Pack tables that are larger than memory: a folder that fit, select, score and compare read.

    Rows that are sorted by client are packed as they are read; others are sorted first, on disk. A run
    that was stopped goes on when the command is repeated.

    Example: `polyurn pack clients/*.parquet --categories 10 -o packed/`
    """
    from polyurn.commands._shared.progress import packing_progress
    from polyurn.storage.packing import pack_shards
    from polyurn.typed.records import to_record

    if width is None:
        refuse_options(context, ["start"], "without --width")
    if cap is None:
        refuse_options(context, ["seed"], "without --cap")
    bins, named = declared_bins(edges, width, start, stop), declared_categories(categories)
    if named is not None and bins is not None:
        raise ParameterError("expected --categories or bins, got both")
    with packing_progress(talk) as on_progress:
        packed = pack_shards(
            tables,
            output,
            categories=bins if named is None else named,
            client=client,
            category=category,
            count=count,
            cap=cap,
            drop_empty=drop_empty,
            clients_per_shard=shard_clients,
            memory=memory * 2**20,
            n_threads=threads,
            rng=seed,
            made=made_by(context, seed),
            on_remark=say,
            on_progress=on_progress,
        )
    for sentence in _sentences(packed.totals):
        say(sentence)
    say(f"wrote {counted(len(packed.shards), 'shard')} to {output}")
    if as_json:
        print_json({**to_record(packed.totals), "n_shards": len(packed.shards)})


def _sentences(totals: "Totals") -> list[str]:
    """What there is to say about the tables."""
    said = [
        f"{counted(totals.n_clients, 'client')} with {counted(totals.n_points, 'point')}, "
        f"{totals.min_size:,} to {totals.max_size:,} each"
    ]
    if totals.n_duplicates:
        rows = counted(totals.n_duplicates, "row has", "rows have")
        said.append(f"{rows} the client and category of an earlier one; their counts were added")
    if totals.n_empty:
        said.append(f"left out {counted(totals.n_empty, 'client')} without points")
    if totals.n_capped:
        said.append(f"left out points of {counted(totals.n_capped, 'client')} beyond the cap")
    return said
