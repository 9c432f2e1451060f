"""`polyurn partition`: which proxy points the clients of a table, or of an MDM, hold.

Parses, calls one library function, writes.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from polyurn.commands._shared.console import check_output, made_by, print_json, say
from polyurn.commands._shared.inputs import read_proxy
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Category,
    Client,
    Count,
    DropEmpty,
    Output,
    Seed,
    declared_categories,
)
from polyurn.errors import ParameterError, ShortfallError
from polyurn.partitioning.assign import cover, partition
from polyurn.partitioning.result import Partition, PartitionReport, Shortfall
from polyurn.storage.partitions import check_partition_place, partition_text, save_partition


def partition_command(
    context: typer.Context,
    labels: Annotated[
        Path,
        typer.Argument(metavar="LABELS", help="CSV or Parquet: the proxy data, one row a point."),
    ],
    clients: Annotated[
        Path,
        typer.Argument(
            metavar="CLIENTS",
            help="CSV or Parquet: (client, category, count), or one row per point. With `--cover` "
            "also an MDM file.",
        ),
    ],
    output: Output = None,
    label_column: Annotated[
        str, typer.Option(help="Column of LABELS with the category.")
    ] = "label",
    client: Client = "client",
    category: Category = "category",
    count: Count = None,
    categories: Categories = None,
    replace: Annotated[
        bool, typer.Option(help="Whether a point may serve several clients, as in the paper.")
    ] = True,
    shortfall: Annotated[
        Shortfall, typer.Option(help="What happens when a category is used up.")
    ] = "reuse",
    cover_all: Annotated[
        bool, typer.Option("--cover", help="Draw clients until every point is used, once.")
    ] = False,
    population: Annotated[
        Path | None,
        typer.Option(help="MDM file from which `--shortfall resample` draws clients again."),
    ] = None,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Give each client proxy points that have its histogram: (client, index), or {client: [indices]}.

    Example: `polyurn partition labels.parquet clients.parquet -o partition.parquet`
    """
    if cover_all and (shortfall != "reuse" or not replace):
        raise ParameterError(
            "--cover gives each point once: leave out --shortfall and --no-replace"
        )
    if population is not None and (cover_all or shortfall != "resample"):
        raise ParameterError("expected --population with --shortfall resample, and only then")
    if output is not None:
        check_output(context, output)
        check_partition_place(output)
    proxy = read_proxy(
        labels,
        label_column,
        clients,
        client,
        category,
        count,
        declared_categories(categories),
        drop_empty,
        cover_all,
        population,
        say,
    )
    ids = None if cover_all else proxy.clients
    try:
        if cover_all:
            done = cover(proxy.labels, proxy.population, rng=seed)
        else:
            done = partition(
                proxy.labels,
                proxy.counts,
                replace=replace,
                shortfall=shortfall,
                population=proxy.population if shortfall == "resample" else None,
                rng=seed,
            )
    except ShortfallError as error:
        raise error.named(proxy.categories) from None
    if output is not None:
        save_partition(done, output, clients=ids, made=made_by(context, seed))
        say(f"wrote {len(done):,} clients to {output}")
    elif not as_json:
        for line in partition_text(done, clients=ids):
            typer.echo(line, nl=False)
    if done.report is not None:
        for sentence in _sentences(done.report):
            say(sentence)
        if as_json:
            print_json({**_record(done, done.report), "seed": seed})


def _sentences(report: PartitionReport) -> list[str]:
    """What a person wants to know about a partition."""
    told = [
        f"{report.n_given:,} points given, {report.n_used:,} of {report.available.sum():,} proxy "
        "points used"
    ]
    if report.n_repeats:
        told.append(f"{report.n_repeats:,} times a client was given a point that it already holds")
    if len(report.redrawn):
        told.append(f"{len(report.redrawn):,} clients drawn again, because a category was used up")
    if report.cut:
        told.append(f"the last client holds {report.cut:,} points fewer than it asked for")
    return told


def _record(done: Partition, report: PartitionReport) -> dict[str, Any]:
    return {
        "n_clients": len(done),
        "n_given": report.n_given,
        "n_used": report.n_used,
        "n_reused": report.n_reused,
        "n_unused": report.n_unused,
        "n_repeats": report.n_repeats,
        "n_redrawn": len(report.redrawn),
        "cut": report.cut,
        "exact": report.exact,
        "available": report.available.tolist(),
        "asked": report.asked.tolist(),
        "given": report.given.tolist(),
        "replace": report.replace,
        "shortfall": report.shortfall,
    }
