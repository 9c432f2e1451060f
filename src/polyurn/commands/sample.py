"""`polyurn sample`: draw simulated clients from an MDM file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from polyurn.commands.console import print_data, print_json, say, talk
from polyurn.commands.declare import argument, option, provenance_of
from polyurn.commands.options import AS_JSON, SEED, RelabelOptions, declared_categories
from polyurn.errors import ParameterError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.model.mdm import MDM
    from polyurn.storage.models import Saved


def sample_command(
    *,
    context: typer.Context,
    mdm: Path = argument("MDM", "File that `fit` wrote, or zoo:NAME (`polyurn zoo`)."),
    clients: int = option(..., "Number of clients to draw."),
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
    from polyurn.storage.table_files import check_table_writable, csv_text, write_histograms

    if clients < 1:
        raise ParameterError(f"expected at least one client, got {clients}")
    # A folder, or a name that no kind of file has: `simulated/`.
    if output and (os.path.isdir(output) or not (output.suffix or os.path.exists(output))):
        if as_json:
            raise ParameterError("--json has no effect with a folder: leave it out")
        saved, provenance = _read(mdm, laid, categories, seed), provenance_of(context, seed)
        with drawing_progress(talk, clients) as on_progress:
            n_files = write_drawn(
                saved.model, clients, output, rng=seed, categories=saved.categories,
                provenance=provenance,
                on_progress=on_progress,
            )  # fmt: skip
        say(f"wrote {counted(clients, 'client')} to {counted(n_files, 'file')} in {output}")
        return
    if output is not None:
        check_table_writable(output)
    saved = _read(mdm, laid, categories, seed)
    counts, names = saved.model.sample(clients, rng=seed), saved.categories
    if output is not None:
        write_histograms(counts, output, categories=names, provenance=provenance_of(context, seed))
        say(f"wrote {counted(clients, 'client')} to {output}")
    elif not as_json:
        print_data([csv_text(counts, categories=names)])
    if as_json:
        print_json({"n_clients": clients, "seed": seed, "counts": counts.tolist()})


def _read(path: Path, laid: RelabelOptions, categories: str | None, seed: int) -> "Saved[MDM]":
    """The mixture, with other labels and sizes if they are asked for."""
    from polyurn.commands.views import read_model

    if categories is None and laid.match is not None:
        raise ParameterError("--match has no effect without --categories: leave it out")
    if laid.match == "marginal":
        raise ParameterError("--match marginal needs labels, which `partition` has: use rank")
    saved, labels = read_model(path), declared_categories(categories)
    return laid.resized(saved) if labels is None else laid.relabelled(saved, labels, seed=seed)
