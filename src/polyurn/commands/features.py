"""`polyurn features`: how much clients differ in the label and in other columns, and what to model."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import polyurn as pu
from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import option, refuse_options
from polyurn.commands.options import AS_JSON, CLIENT, COUNT, SEED, TABLE, listed_names
from polyurn.errors import ParameterError
from polyurn.wording import counted

if TYPE_CHECKING:
    from rich.table import Table


def features_command(
    *,
    context: typer.Context,
    table: Path = TABLE,
    label: str = option(
        ..., "Column with the category; several, with commas between, are crossed.", "--category"
    ),
    client: str | None = CLIENT,
    candidates: str | None = option(
        None,
        "Columns to look at, comma-separated; all others by default. Offer only what the "
        "network sees: its inputs, or what decides them.",
    ),
    count: str | None = COUNT,
    proxy: Path | None = option(None, "The server's own table; numbers are cut at its quantiles."),
    bins: int = option(10, "Bins of a column of many different numbers."),
    ranges: list[str] | None = option(
        None, "Declared range of a column of numbers, cut evenly: COLUMN=LOW:HIGH.", "--range"
    ),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Find what to model: how much clients differ in the label, and in other columns given the label.

    It uses sums over clients only. 0: clients are as alike as IID ones. 1: each holds one category.

    Example: `polyurn features flights.csv --client tailnum --category dest --candidates origin,carrier`
    """
    from polyurn.storage.table_files import naming
    from polyurn.typed.json_form import to_json

    edges = _declared_bins(ranges or [], bins)
    read = pu.read_table(table, on_remark=say)
    own = None if proxy is None else pu.read_table(proxy, on_remark=say)
    with naming(table):
        found = pu.table_features(
            read, label=label, client=client, candidates=listed_names(candidates), count=count,
            bins=edges, n_bins=bins, proxy=own, rng=seed,
        )  # fmt: skip
    for name in found.lacking_columns:
        say(f"{proxy} has no column {name!r}")
    for remark in found.remarks:
        say(remark)
    if not found.bins:
        refuse_options(context, ["bins", "ranges"], "without a column of many numbers")
    if as_json:
        features = {name: to_json(of) for name, of in found.differences.items()}
        advice = to_json(found.recommendation)
        print_json({"label": label, "features": features, "recommendation": advice})
    else:
        show(_table(found))
    for sentence in found.sentences:
        say(sentence)
    if found.n_lacking:
        hold = counted(found.n_lacking, "category", "categories")
        say(f"{proxy} has no points of {hold}: no simulated client can hold them")


def _declared_bins(ranges: Sequence[str], n_bins: int) -> "dict[str, pu.Bins]":
    """The bins of each column whose range is declared; the first and the last are open."""
    import numpy as np

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
        if name in declared:
            raise ParameterError(f"expected one --range of column {name!r}, got two")
        inner = np.linspace(low, high, n_bins + 1)[1:-1]
        declared[name] = pu.Bins([-np.inf, *inner, np.inf])
    return declared


def _table(found: "pu.TableFeatures") -> "Table":
    """One row for the label, and one for each candidate, the most different first."""
    from polyurn.commands.views import table_of

    first = next(iter(found.differences.values()))
    heads = ("column", "differs", f"given {found.label}", f"categories × {found.label}")
    rows = [(found.label, f"{first.label:.2f}", "", f"{found.n_labels:,}")] + [
        (name, f"{of.feature:.2f}", f"{of.given_label:.2f}", f"{of.n_categories:,}")
        for name, of in sorted(found.differences.items(), key=_most_given_label)
    ]
    title = f"how much {counted(first.n_clients, 'client')} differ"
    table = table_of(title, heads, rows, left=[0])
    table.caption = "0: as IID clients; 1: one category each (95 % intervals)"
    return table


def _most_given_label(item: "tuple[str, pu.FeatureDifference]") -> float:
    """For sorting: the most different first, unknown values (NaN) last."""
    value = item[1].given_label.value
    return float("inf") if isnan(value) else -value
