"""`polyurn codebook`: categories of label and style, made of proxy points, and points encoded by them.

Parses, calls the library, writes.
"""

from pathlib import Path

import typer

from polyurn.commands.console import print_data, print_json, say, show
from polyurn.commands.declare import argument, made_by, option
from polyurn.commands.options import (
    AsJson,
    Categories,
    Client,
    Features,
    JsonOutput,
    Label,
    PointsArgument,
    Seed,
    TableOutput,
    declared_categories,
    listed_names,
)
from polyurn.wording.numbers import counted


def make_command(
    *,
    context: typer.Context,
    proxy: PointsArgument,
    output: JsonOutput = None,
    label: Label = None,
    features: Features = None,
    categories: Categories = None,
    styles: int = option(16, "Styles of each label, at most."),
    coverage: float = option(
        0.99, "Share of a label's points that have a style; the others are 'other'."
    ),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make a codebook of proxy points: the styles of each label, by k-means on the features as they are.

    Label and style together are then a category, which `polyurn codebook encode` gives to points.

    Example: `polyurn codebook make proxy.csv --styles 8 -o book.json`
    """
    from polyurn.client.histogram import category_names
    from polyurn.commands.views import book_record, book_table
    from polyurn.model.pool_styles import codebook
    from polyurn.sources.points import read_points
    from polyurn.storage.codebook_json import SavedCodebook, save_codebook

    read = read_points(
        proxy, label=label, features=listed_names(features),
        declared=declared_categories(categories), say=say,
    )  # fmt: skip
    n_labels = len(category_names(read.declared))
    book = codebook(
        read.features, read.labels, styles, n_labels=n_labels, coverage=coverage, rng=seed
    )
    names = read.declared if isinstance(read.declared, tuple) else None
    made = SavedCodebook(book, names, read.columns)
    if output is not None:
        save_codebook(
            book, output, labels=made.labels, features=made.features, made=made_by(context, seed)
        )
        say(f"wrote {output}: {counted(book.n_categories, 'category')} of {n_labels:,} labels")
    if as_json:
        print_json(book_record(made))
    elif output is None:
        show(book_table(made))


def encode_command(
    *,
    context: typer.Context,
    book: Path = argument("CODEBOOK", "File that `codebook make` wrote."),
    points: Path = argument(
        "POINTS", "CSV, Parquet or .npz: proxy points, or the records of clients, one row each."
    ),
    output: TableOutput = None,
    label: Label = None,
    client: Client = None,
    features: str | None = option(
        None,
        "Columns of numbers, comma-separated, or one with lists; those that the codebook "
        "names by default.",
    ),
) -> None:
    """Encode points: a table of clients, labels and codes, whose rows are those of POINTS.

    A code says label and style, "3 × style 7", or "3 × other" of what the proxy points lack. Features
    are not in the table.

    Example: `polyurn codebook encode book.json records.csv --client writer -o clients.parquet`
    """
    from polyurn.sources.codes import encode_file
    from polyurn.storage.table_files import table_text, write_table

    table, is_other = encode_file(
        book, points, label=label, client=client, features=listed_names(features), say=say
    )
    if output is not None:
        write_table(table, output, made={"command": context.obj})
        say(f"wrote {counted(len(table), 'point')} to {output}")
    else:
        print_data([table_text(table)])
    say(f"{is_other.mean():.1%} of them are 'other', too far from every style of their label")
