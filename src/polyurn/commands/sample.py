"""`polyurn sample`: draw simulated clients from an MDM file.

Parses, calls one library function, writes.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from polyurn.commands.console import print_data, print_json, say, talk
from polyurn.commands.declare import Needs, argument, made_by, option
from polyurn.commands.options import AsJson, Seed
from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.model.population import Population


def sample_command(
    *,
    context: typer.Context,
    mdm: Path = argument("MDM", "File that `fit` wrote."),
    clients: int = option(..., "How many clients to draw."),
    output: Path | None = option(None, "File, or folder, to write.", "--output", "-o"),
    codebook: Path | None = option(
        None, "Codebook file: MDM is a fit to its codes, which are drawn given labels."
    ),
    labels: Path | None = option(
        None,
        "With --codebook: MDM file of a fit to labels, which totals come from.",
        Needs("codebook"),
    ),
    proxy: Path | None = option(
        None,
        "With --codebook: encoded proxy points; clients hold no code that these lack.",
        Needs("codebook"),
    ),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw simulated clients: a long table (client, category, count).

    To a file, or to a folder of Parquet files, which may have more clients than memory holds.

    With `--codebook`, clients have the label totals of one MDM file, and styles of another given these.

    Examples: `polyurn sample mdm.json --clients 500 -o clients.parquet`,
    `polyurn sample mdm.json --clients 100000000 -o simulated/`
    """
    from polyurn.commands.progress import drawing_progress
    from polyurn.commands.views import read_model
    from polyurn.storage.drawn_clients import write_drawn
    from polyurn.storage.table_files import check_table_place
    from polyurn.storage.tables import csv_text, write_histograms

    if clients < 1:
        raise ParameterError(f"expected at least one client, got {clients}")
    if codebook is not None and labels is None:
        raise ParameterError("expected --labels, the MDM file of a fit to labels, with --codebook")
    if output is not None and _is_folder(output):
        if as_json:
            raise ParameterError("--json has no effect with a folder: leave it out")
        if codebook is not None:
            raise ParameterError(f"expected a file to write to with --codebook, got {output}")
        saved, made = read_model(mdm), made_by(context, seed)
        with drawing_progress(talk, clients) as on_progress:
            n_files = write_drawn(
                saved.mdm, clients, output, rng=seed, categories=saved.categories, made=made,
                on_progress=on_progress,
            )  # fmt: skip
        say(f"wrote {counted(clients, 'client')} to {counted(n_files, 'file')} in {output}")
        return
    if output is not None:
        check_table_place(output)
    population, names = _population(mdm, codebook, labels, proxy)
    counts = population.sample(clients, rng=seed)
    if output is not None:
        write_histograms(counts, output, categories=names, made=made_by(context, seed))
        say(f"wrote {counted(clients, 'client')} to {output}")
    elif not as_json:
        print_data([csv_text(counts, categories=names)])
    if as_json:
        print_json({"n_clients": clients, "seed": seed, "counts": counts.tolist()})


def _population(
    mdm: Path, codebook: Path | None, labels: Path | None, proxy: Path | None
) -> "tuple[Population, tuple[str, ...] | None]":
    """Who draws, and the names of the categories."""
    from polyurn.commands.views import read_model

    if codebook is None or labels is None:
        saved = read_model(mdm)
        return saved.mdm, saved.categories
    from polyurn.client.histogram import category_names
    from polyurn.sources.codes import CodeModel
    from polyurn.sources.points import PointFile

    model, of_labels = CodeModel.of(codebook, mdm, read_model(mdm)), read_model(labels)
    held = None
    if proxy is not None:
        codes = model.codes_of(PointFile.read(proxy, say))
        held = codes[codes >= 0]
    names = category_names(of_labels.declared)
    return model.given_labels(of_labels.mdm, names, held), model.categories


def _is_folder(output: Path) -> bool:
    """Whether a place is a folder, or a name that no kind of file has: `simulated/`."""
    return os.path.isdir(output) or not (output.suffix or os.path.exists(output))
