"""`polyurn features`: how much clients differ in the label and in other columns, and what to model.

Parses, calls one library function for each column, prints.
"""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyurn.commands._shared.console import print_json, say, show
from polyurn.commands._shared.invocation import refuse_options
from polyurn.commands._shared.options import AsJson, Client, Count, Seed, TableArgument
from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from rich.table import Table

    from polyurn.client.bins import Bins
    from polyurn.client.candidates import Candidate
    from polyurn.server.features import FeatureDifference, Recommendation


def features_command(
    context: typer.Context,
    table: TableArgument,
    label: Annotated[
        str, typer.Option(help="Column with the label; several, with commas between, are crossed.")
    ],
    client: Client = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            help="Columns to look at, comma-separated; all others by default. Offer only what the "
            "network sees: its inputs, or what decides them."
        ),
    ] = None,
    count: Count = None,
    proxy: Annotated[
        Path | None,
        typer.Option(help="The server's own table: numbers are cut at its quantiles."),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of a column of many different numbers.")] = 10,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range", help="Declared range of a column of numbers, cut evenly: COLUMN=LOW:HIGH."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """What to model: how much clients differ in the label, and in other columns given the label.

    From sums over clients only; 0 is as alike as IID clients, 1 is one category for each client.

    Example: `polyurn features flights.csv --client tailnum --label dest --candidates origin,carrier`
    """
    from polyurn.aggregate.local import LocalAggregator
    from polyurn.client.candidates import label_by_column, n_lacking
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.client_tables import Reading, layout_of, naming
    from polyurn.server.features import feature_differences, recommend_feature
    from polyurn.storage.tables import read_table

    edges = _declared_bins(ranges or [], bins)
    names = None if candidates is None else [name.strip() for name in candidates.split(",")]
    read = read_table(table, on_remark=say)
    own = None if proxy is None else read_table(proxy, on_remark=say)
    with naming(table):
        asked = Columns(client, label, count)
        layout = layout_of(read, Reading(lambda _: None, asked))
        offered = label_by_column(read, layout, names, edges=edges, n_bins=bins, proxy=own)
    for remark in offered.remarks:
        say(remark)
    if not any(candidate.bins for candidate in offered.found):
        refuse_options(context, ["bins", "ranges"], "without a column of many numbers")
    differences = {
        candidate.name: feature_differences(
            LocalAggregator(candidate.counts, rng=seed),
            n_labels=candidate.n_labels,
            n_values=candidate.n_values,
        )
        for candidate in offered.found
    }
    parts = layout.category if isinstance(layout.category, tuple) else (str(layout.category),)
    shown = " × ".join(parts)
    advice = recommend_feature(differences, label=shown)
    if as_json:
        print_json(_record(differences, advice, label))
    else:
        show(_table(differences, shown, offered.found[0].n_labels))
    chosen = next((found for found in offered.found if found.name == advice.feature), None)
    for sentence in _sentences(differences, advice, shown, chosen):
        say(sentence)
    if own is not None and chosen is not None and chosen.bins is None:
        n_absent = n_lacking(read, own, (*parts, chosen.name))
        if n_absent:
            hold = counted(n_absent, "category", "categories")
            say(f"{proxy} has no points of {hold}, which no simulated client can hold then")


def _declared_bins(ranges: Sequence[str], n_bins: int) -> "dict[str, Bins]":
    """The bins of each column whose range is declared; the first and the last are open."""
    import numpy as np

    from polyurn.client.bins import Bins

    if not 2 <= n_bins <= 1_000:
        raise ParameterError(f"expected --bins from 2 to 1000, got {n_bins}")
    declared = {}
    for text in ranges:
        name, _, span = text.rpartition("=")
        try:
            low, high = (float(end) for end in span.split(":"))
        except ValueError:
            name = ""
        if not name or not -np.inf < low < high < np.inf:
            raise ParameterError(f"expected --range as COLUMN=LOW:HIGH, got {text!r}")
        inner = np.linspace(low, high, n_bins + 1)[1:-1]
        declared[name] = Bins([-np.inf, *inner, np.inf])
    return declared


def _table(differences: "dict[str, FeatureDifference]", label: str, n_labels: int) -> "Table":
    """One row for the label, and one for each candidate, the most different first."""
    from rich.table import Table

    first = next(iter(differences.values()))
    table = Table(title=f"how much {counted(first.n_clients, 'client')} differ")
    table.caption = "0: as IID clients; 1: one category each (95 % intervals)"
    table.add_column("column")
    for heading in ("differs", f"given {label}", f"categories × {label}"):
        table.add_column(heading, justify="right")
    table.add_row(label, f"{first.label:.2f}", "", f"{n_labels:,}")
    for name, found in sorted(differences.items(), key=_most_given_label):
        n_categories = f"{found.n_categories:,}"
        table.add_row(name, f"{found.feature:.2f}", f"{found.given_label:.2f}", n_categories)
    return table


def _most_given_label(item: "tuple[str, FeatureDifference]") -> float:
    """For sorting: most different first, and last what cannot be told (NaN)."""
    value = item[1].given_label.value
    return float("inf") if isnan(value) else -value


def _sentences(
    differences: "dict[str, FeatureDifference]",
    advice: "Recommendation",
    label: str,
    chosen: "Candidate | None",
) -> list[str]:
    """The recommendation, and what there is to say about it."""
    from polyurn.counts import client_sizes
    from polyurn.server.features import LEAST_CORRELATION, concentration_of, thin_categories

    said = [advice.sentence]
    own = next(iter(differences.values())).label.value
    if own >= LEAST_CORRELATION:
        alike = f"α_0 = {concentration_of(own):.2g}"
        said.insert(0, f"clients differ in {label} about as those of one Dirichlet with {alike}")
    if chosen is None:
        return said
    if chosen.bins is not None:
        said.append(f"{chosen.name} is a number: add a column of its bins to your tables first")
    n_categories, sizes = differences[chosen.name].n_categories, client_sizes(chosen.counts)
    thin = thin_categories(n_categories, float(sizes.mean()))
    return said if thin is None else [*said, thin]


def _record(
    differences: "dict[str, FeatureDifference]", advice: "Recommendation", label: str
) -> dict[str, Any]:
    from polyurn.typed.records import to_record

    return {
        "label": label,
        "features": {name: to_record(found) for name, found in differences.items()},
        "recommendation": to_record(advice),
    }
