"""`polyurn sample`: draw simulated clients from an MDM file.

Parses, calls one library function, writes.
"""

import os
from pathlib import Path

import typer

from polyurn.commands.console import print_data, print_json, say, talk
from polyurn.commands.declare import argument, option, provenance_of
from polyurn.commands.options import AS_JSON, SEED
from polyurn.errors import ParameterError
from polyurn.wording import counted


def sample_command(
    *,
    context: typer.Context,
    mdm: Path = argument("MDM", "File that `fit` wrote."),
    clients: int = option(..., "How many clients to draw."),
    output: Path | None = option(None, "File, or folder, to write.", "--output", "-o"),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Draw simulated clients: a long table (client, category, count).

    To a file, or to a folder of Parquet files, which may have more clients than memory holds.

    Examples: `polyurn sample mdm.json --clients 500 -o clients.parquet`,
    `polyurn sample mdm.json --clients 100000000 -o simulated/`
    """
    from polyurn.commands.progress import drawing_progress
    from polyurn.commands.views import read_model
    from polyurn.storage.drawn_clients import write_drawn
    from polyurn.storage.table_files import check_table_writable, csv_text, write_histograms

    if clients < 1:
        raise ParameterError(f"expected at least one client, got {clients}")
    if output is not None and _is_folder(output):
        if as_json:
            raise ParameterError("--json has no effect with a folder: leave it out")
        saved, provenance = read_model(mdm), provenance_of(context, seed)
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
    saved = read_model(mdm)
    counts, names = saved.model.sample(clients, rng=seed), saved.categories
    if output is not None:
        write_histograms(counts, output, categories=names, provenance=provenance_of(context, seed))
        say(f"wrote {counted(clients, 'client')} to {output}")
    elif not as_json:
        print_data([csv_text(counts, categories=names)])
    if as_json:
        print_json({"n_clients": clients, "seed": seed, "counts": counts.tolist()})


def _is_folder(output: Path) -> bool:
    """Whether a path is a folder, or a name that no kind of file has: `simulated/`."""
    return os.path.isdir(output) or not (output.suffix or os.path.exists(output))
