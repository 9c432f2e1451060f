"""`polyurn features`: how much clients differ in the label and in other columns, and what to model."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

import polyurn as pu
from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import Needs, Unless, also, option, refuse_options
from polyurn.commands.options import (
    AS_JSON,
    CATEGORIES,
    CLIENT,
    COUNT,
    SEED,
    TABLE,
    VALUES,
    PrivacyOptions,
    declared_categories,
    declared_values,
    listed_names,
)
from polyurn.errors import ParameterError
from polyurn.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from polyurn.server.feature_choice import FeatureChoice


RANGE_BINS = option(10, "Bins of a column of many different numbers.")
RANGES = option(
    None,
    "Declared range of a column of numbers, cut evenly: COLUMN=LOW:HIGH; or its edges, which `describe "
    "--column` finds: COLUMN=-inf,0,10,inf.",
    "--range",
)


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
        "Columns to look at, comma-separated; all others by default, with --epsilon all that are "
        "declared. Offer only what the network sees: its inputs, or what decides them.",
    ),
    count: str | None = COUNT,
    proxy: Path | None = option(
        None, "The server's own table; numbers are cut at its quantiles.", Unless("epsilon")
    ),
    bins: int = RANGE_BINS,
    ranges: list[str] | None = RANGES,
    categories: str | None = also(CATEGORIES, Needs("epsilon")),
    values: list[str] | None = also(VALUES, Needs("epsilon")),
    privacy: PrivacyOptions,
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Find what to model: how much clients differ in the label, and in other columns given the label.

    It uses sums over clients only. 0: clients are as alike as IID ones. 1: each holds one category. With
    `--epsilon` the sums have noise, and categories, values and ranges are declared.

    Example: `polyurn features flights.csv --client tailnum --category dest --candidates origin,carrier`
    """
    from polyurn.storage.table_files import naming

    edges = declared_ranges(ranges or [], bins)
    read = pu.read_table(table, on_remark=say)
    own = None if proxy is None else pu.read_table(proxy, on_remark=say)
    with naming(table):
        found = pu.table_features(
            read, label=label, client=client, candidates=listed_names(candidates), count=count,
            bins=edges, n_bins=bins, proxy=own, rng=seed, through=privacy.asked,
            categories=declared_categories(categories),
            values=None if values is None else declared_values(values), **privacy.budget(),
        )  # fmt: skip
    for name in found.lacking_columns:
        say(f"{proxy} has no column {name!r}")
    for remark in found.remarks:
        say(remark)
    if not found.bins:
        refuse_options(context, ["bins", "ranges"], "without a column of many numbers")
    put_choice(found, as_json=as_json, statement=found.guarantee is not None)
    if found.n_lacking:
        hold = counted(found.n_lacking, "category", "categories")
        say(f"{proxy} has no points of {hold}: no simulated client can hold them")


def put_choice(found: "FeatureChoice", *, as_json: bool, statement: bool = False) -> None:
    """What to model, as the command's result."""
    from polyurn.typed.json_form import to_json

    if as_json:
        features = {name: to_json(of) for name, of in found.differences.items()}
        advice = to_json(found.recommendation)
        guarantee = {"guarantee": to_json(found)["guarantee"]} if statement else {}
        print_json(
            {"label": found.label, "features": features, "recommendation": advice, **guarantee}
        )
    else:
        show(_table(found))
        if statement:
            show(Text(f"privacy: {found.privacy_in_words}"))
    for sentence in found.sentences:
        say(sentence)


def declared_ranges(ranges: Sequence[str], n_bins: int) -> "dict[str, pu.Bins]":
    """The bins of each column whose range or edges are declared; the first and the last are open."""
    import numpy as np

    if not 2 <= n_bins <= 1_000:
        raise ParameterError(f"expected --bins from 2 to 1000, got {n_bins}")
    declared = {}
    for text in ranges:
        name, _, span = text.rpartition("=")
        try:
            ends = [float(end) for end in re.split("[:,]", span)]
        except ValueError:
            name, ends = "", []
        ordered = len(ends) > 1 and all(low < high for low, high in pairwise(ends))
        if (
            not name
            or not ordered
            or (":" in span and not (np.isfinite(ends).all() and len(ends) == 2))
        ):
            raise ParameterError(
                f"expected --range as COLUMN=LOW:HIGH or COLUMN=-inf,0,10,inf, got {text!r}"
            )
        if name in declared:
            raise ParameterError(f"expected one --range of column {name!r}, got two")
        inner = np.linspace(ends[0], ends[1], n_bins + 1)[1:-1] if ":" in span else ends
        declared[name] = pu.Bins([-np.inf, *(edge for edge in inner if np.isfinite(edge)), np.inf])
    return declared


def _table(found: "FeatureChoice") -> "Table":
    """One row for the label, and one for each candidate, the most different first, unknown ones last."""
    from numpy import nan_to_num

    from polyurn.commands.views import table_of

    first = next(iter(found.differences.values()))
    heads = ("column", "differs", f"given {found.label}", f"categories × {found.label}")
    rows = [(found.label, f"{first.label:.2f}", "", f"{found.n_labels:,}")] + [
        (name, f"{of.feature:.2f}", f"{of.given_label:.2f}", f"{of.n_categories:,}")
        for name, of in sorted(
            found.differences.items(),
            key=lambda item: -nan_to_num(item[1].given_label.value, nan=-2.0),
        )
    ]
    title = f"how much {counted(first.n_clients, 'client')} differ"
    table = table_of(title, heads, rows, left=[0])
    table.caption = "0: as IID clients; 1: one category each (95 % intervals)"
    return table
