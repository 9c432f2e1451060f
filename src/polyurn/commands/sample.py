"""`polyurn sample`: draw simulated clients from an MDM file.

Parses, calls one library function, writes.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.commands._shared.console import print_data, print_json, say, talk
from polyurn.commands._shared.invocation import check_output, made_by, refuse_options
from polyurn.commands._shared.options import AsJson, Output, Seed
from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.model.populations import Population


def sample_command(
    context: typer.Context,
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    clients: Annotated[int, typer.Option(help="How many clients to draw.")],
    output: Output = None,
    codebook: Annotated[
        Path | None,
        typer.Option(
            help="Codebook file: MDM is a fit to its codes, which are drawn given labels."
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="With --codebook: MDM file of a fit to labels, which totals come from."),
    ] = None,
    proxy: Annotated[
        Path | None,
        typer.Option(
            help="With --codebook: encoded proxy points; clients hold no code that these lack."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw simulated clients: a long table (client, category, count).

    To a file, or to a folder of Parquet files, which may have more clients than memory holds.

    With `--codebook`, clients have the label totals of one MDM file, and styles of another given these.

    Examples: `polyurn sample mdm.json --clients 500 -o clients.parquet`,
    `polyurn sample mdm.json --clients 100000000 -o simulated/`
    """
    from polyurn.commands._shared.model_files import read_model
    from polyurn.commands._shared.progress import drawing_progress
    from polyurn.storage.drawn_clients import write_drawn
    from polyurn.storage.tables import check_table_place, csv_text, write_histograms

    if clients < 1:
        raise ParameterError(f"expected at least one client, got {clients}")
    _check_codebook(context, codebook, labels)
    if output is not None and _is_folder(output):
        if as_json:
            raise ParameterError("--json has no effect with a folder: leave it out")
        if codebook is not None:
            raise ParameterError(f"expected a file to write to with --codebook, got {output}")
        saved, made = read_model(mdm), made_by(context, seed)
        with drawing_progress(talk, clients) as on_progress:
            n_files = write_drawn(
                saved.model, clients, output, rng=seed, categories=saved.categories, made=made,
                on_progress=on_progress,
            )  # fmt: skip
        say(f"wrote {counted(clients, 'client')} to {counted(n_files, 'file')} in {output}")
        return
    if output is not None:
        check_output(context, output)
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


def _check_codebook(context: typer.Context, codebook: Path | None, labels: Path | None) -> None:
    if codebook is None:
        refuse_options(context, ["labels", "proxy"], "without --codebook")
    elif labels is None:
        raise ParameterError("expected --labels, the MDM file of a fit to labels, with --codebook")


def _population(
    mdm: Path, codebook: Path | None, labels: Path | None, proxy: Path | None
) -> "tuple[Population, tuple[str, ...] | None]":
    """Who draws, and the names of the categories."""
    from polyurn.commands._shared.model_files import read_model

    if codebook is None or labels is None:
        saved = read_model(mdm)
        return saved.model, saved.categories
    from polyurn.client.columns import as_arrow
    from polyurn.client.histogram import category_names
    from polyurn.commands._shared.code_models import read_code_model
    from polyurn.storage.tables import read_table

    model, of_labels = read_code_model(codebook, mdm), read_model(labels)
    held = None
    if proxy is not None:
        codes = model.codes_of(as_arrow(read_table(proxy, on_remark=say)), proxy)
        held = codes[codes >= 0]
    names = category_names(of_labels.categories or of_labels.model.n_categories)
    return model.given_labels(of_labels.model, names, held), model.categories


def _is_folder(output: Path) -> bool:
    """Whether a place is a folder, or a name that no kind of file has: `simulated/`."""
    return os.path.isdir(output) or not (output.suffix or os.path.exists(output))
