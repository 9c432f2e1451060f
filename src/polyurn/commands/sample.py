"""`polyurn sample` and `partition`: simulated clients, and the proxy points that clients hold."""

import os
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from warnings import catch_warnings

import typer

import polyurn as pu
from polyurn.commands.console import print_data, print_json, say, talk, warnings_as_sentences
from polyurn.commands.declare import Needs, Unless, argument, option, provenance_of, refuse_options
from polyurn.commands.options import (
    AS_JSON,
    MAP,
    PARTITION_OUTPUT,
    SEED,
    STYLE_FEATURES,
    RelabelOptions,
    TableOptions,
    declared_categories,
    name_map,
)
from polyurn.errors import FileError, ParameterError, ShortfallError, StyleWarning
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.sources.proxy_clients import ProxyClients
    from polyurn.storage.models import Saved


def sample_command(
    *,
    context: typer.Context,
    mdm: Path = argument("MDM", "File that `fit` wrote, or zoo:NAME (`polyurn zoo`)."),
    clients: int = option(..., "Number of clients to draw.", min=1),
    laid: RelabelOptions,
    categories: str | None = option(
        None, "Other labels that the clients have: a number, or names, comma-separated."
    ),
    output: Path | None = option(None, "File, or folder, to write.", "--output", "-o"),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Draw simulated clients as a long table (client, category, count).

    They go to a file, or to a folder of Parquet files, which may have more clients than memory holds.

    Examples: `polyurn sample mdm.json --clients 500 -o clients.parquet`,
    `polyurn sample mdm.json --clients 100000000 -o simulated/`,
    `polyurn sample zoo:flights --clients 500 --categories 10 --mean-size 100`
    """
    from polyurn.commands.progress import drawing_progress
    from polyurn.storage.drawn_clients import write_drawn
    from polyurn.storage.table_files import check_table_writable, csv_text

    # A folder, or a name that no kind of file has: `simulated/`.
    if output and (os.path.isdir(output) or not (output.suffix or os.path.exists(output))):
        if as_json:
            raise ParameterError("--json has no effect with a folder: leave it out")
        saved = _mixture(mdm, laid, categories, seed)
        with drawing_progress(talk, clients) as on_progress:
            n_files = write_drawn(
                saved.model, clients, output, rng=seed, categories=saved.categories,
                provenance=provenance_of(context, seed), on_progress=on_progress,
            )  # fmt: skip
        say(f"wrote {counted(clients, 'client')} to {counted(n_files, 'file')} in {output}")
        return
    if output is not None:
        check_table_writable(output)
    saved = _mixture(mdm, laid, categories, seed)
    counts, names = saved.model.sample(clients, rng=seed), saved.categories
    if output is not None:
        pu.write_histograms(
            counts, output, categories=names, provenance=provenance_of(context, seed)
        )
        say(f"wrote {counted(clients, 'client')} to {output}")
    elif not as_json:
        print_data([csv_text(counts, categories=names)])
    if as_json:
        print_json({"n_clients": clients, "seed": seed, "counts": counts.tolist()})


def _mixture(
    path: Path, laid: RelabelOptions, categories: str | None, seed: int
) -> "Saved[pu.MDM]":
    """The mixture, with other labels and sizes if they are asked for."""
    from polyurn.commands.views import read_model

    if categories is None and laid.match is not None:
        raise ParameterError("--match has no effect without --categories: leave it out")
    if laid.match == "marginal":
        raise ParameterError("--match marginal needs labels, which `partition` has: use rank")
    saved, labels = read_model(path), declared_categories(categories)
    return laid.resized(saved) if labels is None else laid.relabelled(saved, labels, seed=seed)


_ONCE = ", which gives each point once"


def partition_command(
    *,
    context: typer.Context,
    labels: Path = argument("PROXY", "CSV, Parquet or .npz: your table, one row per point."),
    clients: Path = argument(
        "CLIENTS",
        "CSV or Parquet: (client, category, count), or one row per point; or an MDM file or "
        "zoo:NAME (`polyurn zoo`), with `--clients` or `--cover`.",
    ),
    columns: TableOptions,
    laid: RelabelOptions,
    output: Path | None = PARTITION_OUTPUT,
    n_clients: int | None = option(
        None, "Clients to draw from zoo:NAME or an MDM file.", "--clients", Unless("covers"), min=1
    ),
    covers: bool = option(False, "Draw clients until every row is used, once.", "--cover"),
    renamed: str | None = MAP,
    reuses: bool = option(
        True,
        "A row may serve several clients, as in the paper; with --no-replace only once its category is "
        "used up, and with `--shortfall refuse` never.",
        "--replace/--no-replace",
        Unless("covers", because=_ONCE),
    ),
    shortfall: Literal["reuse", "refuse", "resample"] = option(
        "reuse", "What happens when a category is used up.", Unless("covers", because=_ONCE)
    ),
    style: Path | None = option(
        None, "Style file: each client is given points of a style of its own."
    ),
    features: str | None = STYLE_FEATURES,
    test: float | None = option(
        None, "Share of each client's points to test it on: in PARTITION-test, beside --output."
    ),
    folders: Path | None = option(
        None, "Folder to write a folder for each client in: its rows, or links to its files."
    ),
    files: str | None = option(
        None, "Column of PROXY with the path of each point's file.", Needs("folders")
    ),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Divide the rows of a table among simulated clients, like those of a real federation.

    It writes, for each client, the numbers of its rows, counted from 0: (client, index), or {client:
    [indices]}. Each client's rows have its histogram of labels.

    Examples: `polyurn partition labels.csv zoo:celeba_hair --clients 500 -o partition.json`,
    `polyurn partition proxy.csv mdm.json --clients 500 -o partition.json`,
    `polyurn partition proxy.parquet clients.parquet -o partition.parquet`
    """
    from polyurn.commands.views import check_order
    from polyurn.sources.points import styled_features
    from polyurn.storage.partitions import partition_json

    check_order(labels)
    _check_clients(context, clients, n_clients, covers)
    if test is not None and output is None and folders is None:
        raise ParameterError("--test needs --output or --folders: it gives two partitions")
    held = _read(context, columns, laid, labels, clients)
    given: dict[str, Any] = {"rng": seed}
    if style is not None:
        found, rows = styled_features(held.file, style, features, held.categories)
        given |= {"style": found, "features": rows[held.positions]}
    if not covers:
        redrawn = held.population if shortfall == "resample" else None
        given |= {"replace": reuses, "shortfall": shortfall, "population": redrawn}
    done = _partition(held, covers, given, test)
    written = {} if output is None else {output: done}
    if output is not None and done.test is not None:
        written[output.with_stem(f"{output.stem}-test")] = done.test
    for path, part in written.items():
        pu.save_partition(part, path, provenance=provenance_of(context, seed))
        say(f"wrote {counted(len(part), 'client')} to {path}")
    if folders is not None:
        _write_folders(folders, files, held, done)
        say(f"wrote a folder for each of {counted(len(done), 'client')} to {folders}")
    elif output is None and not as_json:
        print_data(partition_json(done))
    assert done.report is not None
    for sentence in replace(done.report, categories=held.categories).sentences():
        say(sentence)
    if as_json:
        print_json({"n_clients": len(done), **done.report.to_json(), "seed": seed})


def _write_folders(
    folders: Path, files: str | None, held: "ProxyClients", done: "pu.Partition"
) -> None:
    import numpy as np

    from polyurn.storage.partitions import write_client_folders

    rows, paths = held.file.rows(), None
    labels = np.full(len(rows), "", dtype=object)
    labels[held.positions] = np.array(held.categories, dtype=object)[held.labels]
    if files is not None:
        beside = held.file.path.parent
        paths = [str(beside / name) for name in held.file.texts(files)]
    write_client_folders(done, folders, rows, files=paths, labels=labels)


def _check_clients(
    context: typer.Context, clients: Path, n_clients: int | None, covers: bool
) -> None:
    """Refuse options that have no effect with these clients."""
    from polyurn.storage.models import is_model

    if not is_model(clients) and not os.path.exists(clients):
        near = get_close_matches(clients.name, pu.zoo.names(), n=1)
        hint = f"did you mean zoo:{near[0]}?" if near else "federations of the zoo are zoo:NAME"
        raise FileError(f"cannot read {clients}: No such file or directory; {hint}")
    if is_model(clients):
        of_tables = ["client", "count", "categories", "drop_empty"]
        refuse_options(context, of_tables, f"with the MDM file {clients}")
        if n_clients is None and not covers:
            raise ParameterError(
                f"expected how many clients of {clients} to draw: --clients 500, say, or --cover"
            )
        return
    refuse_options(
        context, ["n_clients", "match", "mean_size"], f"with {clients}, whose clients are all taken"
    )


def _read(
    context: typer.Context, columns: TableOptions, laid: RelabelOptions, labels: Path, clients: Path
) -> "ProxyClients":
    """The proxy points, and who is to hold them: clients of a table, or drawn from an MDM file."""
    from polyurn.commands.views import read_model
    from polyurn.sources.points import PointFile
    from polyurn.sources.proxy_clients import read_proxy, say_memory
    from polyurn.storage.models import is_model, load_saved

    asked = context.params
    style, n_clients = asked["style"], asked["n_clients"]
    drawn_from = read_model(clients) if is_model(clients) else None
    if drawn_from is not None and not laid.asked(clients):
        drawn_from = laid.resized(drawn_from)
    n_features = 0 if style is None else load_saved(style, pu.Style).model.space.n_features
    n_asked = None
    if drawn_from is not None and n_clients is not None:
        n_asked = round(n_clients * (laid.mean_size or drawn_from.model.mean().sum()))
    say_memory(labels, clients, columns.count, say, n_features=n_features, n_asked=n_asked)
    held = read_proxy(
        PointFile.read(labels, say), drawn_from or clients,
        columns.reading(match=name_map(asked["renamed"])), columns.declared(),
        partial(laid.relabelled, seed=asked["seed"]) if laid.asked(clients) else None,
    )  # fmt: skip
    # As `sample` draws them.
    return held if n_clients is None else held.drawn(n_clients, rng=asked["seed"])


def _partition(
    held: "ProxyClients", covers: bool, given: dict[str, Any], test: float | None
) -> "pu.Partition":
    try:
        with catch_warnings(action="ignore", category=StyleWarning):  # the report has it
            if covers:
                done = pu.cover(held.labels, held.population, **given)
            else:
                done = pu.partition(held.labels, held.counts, **given)
    except ShortfallError as error:
        raise error.named(held.categories) from None
    if not covers:
        done = replace(done, ids=held.clients)
    if test is not None:
        with warnings_as_sentences(UserWarning):
            done = done.with_test(test, held.labels, rng=given["rng"])
    return done.renumbered(held.positions)
