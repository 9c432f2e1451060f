"""`polyurn partition`: which proxy points the clients of a table, or of an MDM, hold.

Parses, calls one library function, writes.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from warnings import catch_warnings, simplefilter

import typer

from polyurn.commands._shared.console import print_data, print_json, say
from polyurn.commands._shared.invocation import check_output, made_by, refuse_options
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
from polyurn.errors import ParameterError, ShortfallError, StyleWarning
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.commands._shared.client_tables import Reading
    from polyurn.commands._shared.proxy_clients import ProxyClients
    from polyurn.partitioning.result import Partition, PartitionReport


def partition_command(
    context: typer.Context,
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS", help="CSV, Parquet or .npz: the proxy data, one row a point."
        ),
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
        str | None,
        typer.Option(
            help="Column of LABELS with the category; several, with commas between, are crossed. "
            "Without it, that of the MDM file's own table if LABELS has it, else 'label'."
        ),
    ] = None,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    categories: Categories = None,
    replace: Annotated[
        bool, typer.Option(help="Whether a point may serve several clients, as in the paper.")
    ] = True,
    shortfall: Annotated[
        Literal["reuse", "refuse", "resample"],
        typer.Option(help="What happens when a category is used up."),
    ] = "reuse",
    cover_all: Annotated[
        bool, typer.Option("--cover", help="Draw clients until every point is used, once.")
    ] = False,
    population: Annotated[
        Path | None,
        typer.Option(help="MDM file from which `--shortfall resample` draws clients again."),
    ] = None,
    style: Annotated[
        Path | None,
        typer.Option(help="Style file: each client is given points of a style of its own."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns of LABELS in which the style is measured, comma-separated, or one with "
            "lists; those that the style file names by default."
        ),
    ] = None,
    codebook: Annotated[
        Path | None,
        typer.Option(
            help="Codebook file: LABELS is then what `codebook encode` wrote, and the styles of each "
            "client are drawn given its labels."
        ),
    ] = None,
    codes: Annotated[
        Path | None,
        typer.Option(help="With --codebook: MDM file of a fit to codes, which styles come from."),
    ] = None,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Give each client proxy points that have its histogram: (client, index), or {client: [indices]}.

    Example: `polyurn partition labels.parquet clients.parquet -o partition.parquet`
    """
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.client_tables import Reading
    from polyurn.commands._shared.partition_memory import say_memory
    from polyurn.commands._shared.proxy_clients import read_proxy
    from polyurn.model.style import Style
    from polyurn.partitioning.assign import cover, partition
    from polyurn.storage.models import load_saved
    from polyurn.storage.partitions import check_partition_place, partition_json, save_partition

    _check_options(context, clients, cover_all, shortfall, population, style)
    _check_codebook(context, codebook, codes, shortfall)
    if output is not None:
        check_output(context, output)
        check_partition_place(output)
    n_features = 0 if style is None else load_saved(style, Style).model.space.n_features
    say_memory(labels, clients, count, say, n_features=n_features)
    reading = Reading(say, Columns(client, category, count), drop_empty=drop_empty)
    declared = declared_categories(categories)
    if codebook is not None and codes is not None:
        proxy = _read_coded(
            labels, label_column, clients, reading, cover_all, codebook, codes, seed
        )
    else:
        proxy = read_proxy(labels, label_column, clients, reading, declared, cover_all, population)
    styled = None if style is None else proxy.with_style(style, features, labels)
    ids = None if cover_all else proxy.clients
    of_style, measured = styled or (None, None)
    try:
        with catch_warnings():
            simplefilter("ignore", StyleWarning)  # the report has it, and is told
            if cover_all:
                done = cover(
                    proxy.labels, proxy.population, style=of_style, features=measured, rng=seed
                )
            else:
                done = partition(
                    proxy.labels,
                    proxy.counts,
                    replace=replace,
                    shortfall=shortfall,
                    population=proxy.population if shortfall == "resample" else None,
                    style=of_style,
                    features=measured,
                    rng=seed,
                )
    except ShortfallError as error:
        raise error.named(proxy.categories) from None
    done = done.renumbered(proxy.positions)
    if output is not None:
        save_partition(done, output, clients=ids, made=made_by(context, seed))
        say(f"wrote {counted(len(done), 'client')} to {output}")
    elif not as_json:
        print_data(partition_json(done, clients=ids))
    if done.report is not None:
        for sentence in _sentences(done.report):
            say(sentence)
        if as_json:
            print_json({**_record(done, done.report), "seed": seed})


def _check_options(
    context: typer.Context,
    clients: Path,
    covers: bool,
    shortfall: str,
    population: Path | None,
    style: Path | None,
) -> None:
    """Refuse options that these clients, or this way to serve them, would leave unheard."""
    if style is None:
        refuse_options(context, ["features"], "without --style")
    if covers:
        refuse_options(
            context, ["shortfall", "replace"], "with --cover, which gives each point once"
        )
    if shortfall != "resample":
        refuse_options(context, ["population"], "without --shortfall resample")
    if clients.suffix == ".json":
        of_tables = ["client", "category", "count", "categories", "drop_empty"]
        refuse_options(context, of_tables, f"with the MDM file {clients}")
    elif population is not None:
        refuse_options(context, ["categories"], f"with {population}, which has its own categories")


def _check_codebook(
    context: typer.Context, codebook: Path | None, codes: Path | None, shortfall: str
) -> None:
    """Refuse a codebook without a mixture over its codes, and what does not go with one."""
    if codebook is None:
        refuse_options(context, ["codes"], "without --codebook")
        return
    if codes is None:
        raise ParameterError("expected --codes, the MDM file of a fit to codes, with --codebook")
    refuse_options(
        context, ["style", "features", "categories"], "with --codebook, which has its own styles"
    )
    if shortfall == "resample":
        raise ParameterError(
            "--shortfall resample would change the labels of clients, which --codebook keeps: leave "
            "one of them out"
        )


def _read_coded(
    labels: Path,
    label_column: str | None,
    clients: Path,
    reading: "Reading",
    covers: bool,
    codebook: Path,
    codes: Path,
    seed: int,
) -> "ProxyClients":
    """Encoded proxy points, and clients whose codes are drawn given their labels."""
    import numpy as np

    from polyurn.commands._shared.code_models import read_code_model
    from polyurn.commands._shared.proxy_clients import read_proxy

    model = read_code_model(codebook, codes)
    by_label = read_proxy(labels, label_column, clients, reading, model.labels, covers, None)
    # A stream of its own: the seed's is for the points.
    return by_label.with_codes(model, labels, say, np.random.default_rng(seed).spawn(1)[0])


def _sentences(report: "PartitionReport") -> list[str]:
    """What a person wants to know about a partition."""
    told = [
        f"{counted(report.n_given, 'point')} given, "
        f"{report.n_used:,} of {report.available.sum():,} proxy "
        "points used"
    ]
    if report.n_repeats:
        told.append(f"{report.n_repeats:,} times a client was given a point that it already holds")
    if len(report.redrawn):
        told.append(
            f"{counted(len(report.redrawn), 'client')} drawn again, because a category was used up"
        )
    if report.cut:
        told.append(f"the last client holds {counted(report.cut, 'point')} fewer than it asked for")
    if report.style is not None:
        told.append(
            f"styles along {counted(report.style.n_directions_used, 'direction')}; "
            f"{report.style.served:.0%} of clients and labels find as many points of their style, in "
            "effect, as they ask for"
        )
        if report.style.remark is not None:
            told.append(report.style.remark)
    return told


def _record(done: "Partition", report: "PartitionReport") -> dict[str, Any]:
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
        "style": None if report.style is None else report.style.to_record(),
    }
