"""`polyurn histogram`: records into a table of clients' histograms.

Parses, calls one library function, writes.
"""

from pathlib import Path
from typing import Annotated

import typer

from polyurn.commands._shared.bin_options import Edges, Start, Stop, Width, declared_bins
from polyurn.commands._shared.console import print_data, print_json, say
from polyurn.commands._shared.invocation import check_output, made_by, refuse_options
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Category,
    Client,
    Count,
    Output,
    Seed,
    declared_categories,
)
from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted


def histogram_command(
    context: typer.Context,
    records: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDS", help="CSV or Parquet: one row per point, or with a column of counts."
        ),
    ],
    output: Output = None,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    categories: Categories = None,
    edges: Edges = None,
    width: Width = None,
    start: Start = 0.0,
    stop: Stop = None,
    quantiles: Annotated[
        int | None, typer.Option(help="Number of bins that hold equal shares of these records.")
    ] = None,
    cap: Annotated[
        int | None, typer.Option(help="Largest number of points of a client; drawn at random.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Count each client's points by category: a long table (client, category, count).

    Example: `polyurn histogram records.parquet --category income --width 5000 --stop 200000
    -o clients.parquet`
    """
    import numpy as np

    from polyurn.client.bins import Bins
    from polyurn.client.histogram import cap_sizes
    from polyurn.client.layout import Columns
    from polyurn.client.tables import column_numbers, table_layout
    from polyurn.commands._shared.client_tables import Reading, histograms_of, naming
    from polyurn.counts import client_sizes
    from polyurn.storage.tables import check_table_place, csv_text, read_table, write_histograms

    if width is None:
        refuse_options(context, ["start"], "without --width")
    if cap is None:
        refuse_options(context, ["seed"], "without --cap")
    if output is not None:
        check_output(context, output)
        check_table_place(output)
    table = read_table(records, on_remark=say)
    reading = Reading(say, Columns(client, category, count))
    bins = declared_bins(edges, width, start, stop)
    if quantiles is not None and bins is None:
        with naming(records):
            feature = table_layout(table, reading.asked).category or "category"
            bins = Bins.at_quantiles(column_numbers(table, feature), n_bins=quantiles)
    elif quantiles is not None:
        raise ParameterError("expected one of --edges, --width and --quantiles, got two")
    named = declared_categories(categories)
    if named is not None and bins is not None:
        raise ParameterError("expected --categories or bins, got both")
    declared = bins if named is None else named
    made = histograms_of(table, records, reading, declared)
    counts = made.counts if cap is None else cap_sizes(made.counts, cap, rng=seed)
    names = {"clients": made.clients.tolist(), "categories": made.categories}
    if output is not None:
        write_histograms(counts, output, made=made_by(context, seed), **names)
        n_empty = int((client_sizes(counts) == 0).sum())
        say(f"wrote {counted(len(made.clients) - n_empty, 'client')} to {output}")
        if n_empty:
            hold = counted(n_empty, "client holds", "clients hold")
            say(f"{hold} no points, and a long table has no rows of theirs")
    elif not as_json:
        print_data([csv_text(counts, **names)])
    if as_json:
        rows = counts if isinstance(counts, np.ndarray) else counts.toarray()
        print_json({"n_clients": len(made.clients), **names, "counts": rows.tolist()})
