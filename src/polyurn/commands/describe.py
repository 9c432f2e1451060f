"""`polyurn describe`: what a table's clients are like, before anything is modelled.

Parses, calls one library function, writes.
"""

from pathlib import Path

import typer

from polyurn.commands.declare import option
from polyurn.commands.options import (
    AS_JSON,
    JSON_OUTPUT,
    TABLE,
    THREADS,
    PrivacyOptions,
    TableOptions,
)
from polyurn.errors import ParameterError

# The default of --max-size: the last of twenty bins.
LARGEST = 2**20 - 1


def describe_command(
    *,
    context: typer.Context,
    table: Path = TABLE,
    columns: TableOptions,
    privacy: PrivacyOptions,
    max_size: int = option(
        LARGEST, "Declared largest size; a larger client answers for that many of its points."
    ),
    output: Path | None = JSON_OUTPUT,
    threads: int = THREADS,
    as_json: bool = AS_JSON,
) -> None:
    """Describe clients: how many there are, how large, what they hold, and how different they are.

    One round of sums, exact or with noise (`--epsilon`). Sizes are counted in bins that double.

    Example: `polyurn describe clients.csv`
    """
    from polyurn.commands.looks import put_description
    from polyurn.server.describing import describe
    from polyurn.sources.clients import read_all

    budget = privacy.budget()
    if budget and columns.categories is None:
        raise ParameterError(
            "expected --categories with --epsilon: what is taken from the table would be released "
            "without noise"
        )
    read = read_all(table, columns.reading(), columns.declared())
    clients = read.aggregator(seed=0, sampling="fixed", threads=threads)
    found = describe(
        privacy.asked(clients), n_categories=read.shape[1], max_size=max_size, **budget
    )
    names = read.categories or tuple(str(j) for j in range(read.shape[1]))
    provenance = {"command": context.obj, "data": table.name}
    put_description(found, names, output, as_json=as_json, provenance=provenance)
