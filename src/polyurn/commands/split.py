"""`polyurn split`: the clients of a table, at random, in two tables."""

import os
from pathlib import Path

import typer

from polyurn.commands.console import say
from polyurn.commands.declare import argument, option, provenance_of
from polyurn.commands.options import SEED
from polyurn.errors import ParameterError
from polyurn.wording import counted


def split_command(
    *,
    context: typer.Context,
    tables: tuple[Path, Path, Path] = argument(
        "TABLE FITTED HELD_OUT", "CSV or Parquet: the table to read, and the two to write."
    ),
    held_out: float = option(0.2, "Share of the clients that HELD_OUT gets."),
    client: str = option("client", "Column with the client's id."),
    seed: int = SEED,
) -> None:
    """Split the clients of a table at random: one part to learn from, the other to judge by.

    Rows and columns stay as they are, and every client is whole in one of the two tables.

    Example: `polyurn split records.parquet fitted.parquet held-out.parquet --client plane`
    """
    import numpy as np

    from polyurn.client.columns import column_ids, distinct_values
    from polyurn.comparison.client_splits import split_rows
    from polyurn.storage.table_files import check_table_writable, naming, read_table, write_table

    if len(set(map(os.path.realpath, tables))) < 3:
        raise ParameterError("expected three different files: TABLE FITTED HELD_OUT")
    table, *written = tables
    for path in written:
        check_table_writable(path)
    rows = read_table(table, on_remark=say)
    with naming(table):
        clients, owner = distinct_values(column_ids(rows, client))
        parts = split_rows(len(clients), held_out=held_out, rng=seed)
    for path, members in zip(written, parts, strict=True):
        mine = rows.take(np.flatnonzero(np.isin(owner, members)))
        write_table(mine, path, provenance=provenance_of(context, seed))
        say(f"wrote {counted(len(members), 'client')}, {counted(len(mine), 'row')}, to {path}")
