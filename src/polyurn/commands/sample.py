"""`polyurn sample`: draw simulated clients from an MDM file.

Parses, calls one library function, writes.
"""

from pathlib import Path
from typing import Annotated

import typer

from polyurn.commands._shared.console import print_data, print_json, say
from polyurn.commands._shared.invocation import made_by
from polyurn.commands._shared.options import AsJson, Output, Seed
from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted


def sample_command(
    context: typer.Context,
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    clients: Annotated[int, typer.Option(help="How many clients to draw.")],
    output: Output = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw simulated clients: a long table (client, category, count).

    Example: `polyurn sample mdm.json --clients 500 -o clients.parquet`
    """
    from polyurn.commands._shared.model_files import read_model
    from polyurn.storage.tables import check_table_place, csv_text, write_histograms

    if clients < 1:
        raise ParameterError(f"expected at least one client, got {clients}")
    if output is not None:
        check_table_place(output)
    saved = read_model(mdm)
    counts = saved.mdm.sample(clients, rng=seed)
    if output is not None:
        write_histograms(counts, output, categories=saved.categories, made=made_by(context, seed))
        say(f"wrote {counted(clients, 'client')} to {output}")
    elif not as_json:
        print_data([csv_text(counts, categories=saved.categories)])
    if as_json:
        print_json({"n_clients": clients, "seed": seed, "counts": counts.tolist()})
