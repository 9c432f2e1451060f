"""`polyurn sample`, `score` and `show`: what can be done with an MDM file.

Parses, calls one library function, writes.
"""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from polyurn.commands._shared.console import made_by, print_json, say, show
from polyurn.commands._shared.inputs import read_clients
from polyurn.commands._shared.options import (
    AsJson,
    Category,
    Client,
    Count,
    DropEmpty,
    Output,
    Seed,
    TableArgument,
)
from polyurn.commands._shared.terminal import mdm_record, mdm_table, mean_record
from polyurn.errors import ParameterError
from polyurn.storage import files


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
    if clients < 1:
        raise ParameterError(f"expected at least one client, got {clients}")
    if output is not None:
        files.check_table_place(output)
    saved = files.load_saved(mdm)
    counts = saved.mdm.sample(clients, rng=seed)
    if output is not None:
        files.write_histograms(
            counts, output, categories=saved.categories, made=made_by(context, seed)
        )
        say(f"wrote {clients:,} clients to {output}")
    elif not as_json:
        typer.echo(files.csv_text(counts, categories=saved.categories), nl=False)
    if as_json:
        print_json({"n_clients": clients, "seed": seed, "counts": counts.tolist()})


def score_command(
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    table: TableArgument,
    client: Client = "client",
    category: Category = "category",
    count: Count = None,
    drop_empty: DropEmpty = False,
    as_json: AsJson = False,
) -> None:
    """Mean log-likelihood of a table's clients under an MDM.

    Example: `polyurn score mdm.json held-out.csv`
    """
    saved = files.load_saved(mdm)
    declared = saved.categories or saved.mdm.n_categories
    read = read_clients(table, client, category, count, declared, drop_empty, say)
    result = {
        "n_clients": read.shape[0],
        **mean_record("log_likelihood", saved.mdm.logpmf(read.counts)),
        **mean_record("log_likelihood_given_size", saved.mdm.logpmf_given_size(read.counts)),
    }
    if as_json:
        print_json({name: value if isfinite(value) else None for name, value in result.items()})
        return
    for name, value in result.items():
        typer.echo(f"{name:<42} {value:,}" if name == "n_clients" else f"{name:<42} {value:.4f}")


def show_command(
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    as_json: AsJson = False,
) -> None:
    """The components of an MDM as a table.

    Example: `polyurn show mdm.json`
    """
    saved = files.load_saved(mdm)
    if as_json:
        print_json(mdm_record(saved.mdm, saved.categories))
    else:
        show(mdm_table(saved.mdm, saved.categories))
