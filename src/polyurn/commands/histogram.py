"""`polyurn histogram`: records into a table of clients' histograms."""

from pathlib import Path

import typer

from polyurn.commands.console import print_data, print_json, say
from polyurn.commands.declare import Needs, also, argument, provenance_of
from polyurn.commands.options import (
    AS_JSON,
    BINS,
    CAP,
    CATEGORIES,
    SEED,
    TABLE_OUTPUT,
    ColumnOptions,
    declared_bins,
    declared_categories,
)
from polyurn.errors import ParameterError
from polyurn.wording import counted


def histogram_command(
    *,
    context: typer.Context,
    records: Path = argument(
        "RECORDS", "CSV or Parquet: one row per point, or with a column of counts."
    ),
    columns: ColumnOptions,
    bins: str | None = BINS,
    output: Path | None = TABLE_OUTPUT,
    categories: str | None = CATEGORIES,
    cap: int | None = CAP,
    seed: int = also(SEED, Needs("cap")),
    as_json: bool = AS_JSON,
) -> None:
    """Count each client's points by category, as a long table (client, category, count).

    Example: `polyurn histogram records.parquet --category income --bins 0:200000:5000
    -o clients.parquet`
    """
    import numpy as np

    from polyurn.client.bins import Bins
    from polyurn.client.counting import cap_sizes
    from polyurn.client.tables import column_numbers, table_layout
    from polyurn.counts import client_sizes
    from polyurn.sources.clients import histograms_of
    from polyurn.storage.table_files import csv_text, naming, read_table, write_histograms

    table = read_table(records, on_remark=say)
    reading, cut = columns.reading(), declared_bins(bins)
    if isinstance(cut, int):
        with naming(records):
            feature = table_layout(table, reading.asked).category or "category"
            cut = Bins.at_quantiles(column_numbers(table, feature), n_bins=cut)
    named = declared_categories(categories)
    if named is not None and cut is not None:
        raise ParameterError("expected --categories or --bins, got both")
    declared = cut if named is None else named
    found = histograms_of(table, records, reading, declared)
    counts = found.counts if cap is None else cap_sizes(found.counts, cap, rng=seed)
    names = {"clients": found.clients.tolist(), "categories": found.categories}
    if output is not None:
        write_histograms(counts, output, provenance=provenance_of(context, seed), **names)
        n_empty = int((client_sizes(counts) == 0).sum())
        say(f"wrote {counted(len(found.clients) - n_empty, 'client')} to {output}")
        if n_empty:
            hold = counted(n_empty, "client holds", "clients hold")
            say(f"{hold} no points, so that the long table has no rows for them")
    elif not as_json:
        print_data([csv_text(counts, **names)])
    if as_json:
        rows = counts if isinstance(counts, np.ndarray) else counts.toarray()
        print_json({"n_clients": len(found.clients), **names, "counts": rows.tolist()})
