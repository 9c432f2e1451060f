"""`polyurn codebook`: categories of label and style, made of proxy points, and points encoded by them.

Parses, calls the library, writes.
"""

from pathlib import Path
from typing import Annotated

import typer

from polyurn.commands._shared.console import print_data, print_json, say, show
from polyurn.commands._shared.invocation import check_json_place, check_output, made_by
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Client,
    Features,
    Label,
    Output,
    Seed,
    declared_categories,
    listed_names,
)
from polyurn.wording.numbers import counted


def make_command(
    context: typer.Context,
    proxy: Annotated[
        Path,
        typer.Argument(
            metavar="PROXY", help="CSV, Parquet or .npz: the server's own points, one row each."
        ),
    ],
    output: Output = None,
    label: Label = None,
    features: Features = None,
    categories: Categories = None,
    styles: Annotated[int, typer.Option(help="Styles of each label, at most.")] = 16,
    coverage: Annotated[
        float,
        typer.Option(help="Share of a label's points that have a style; the others are 'other'."),
    ] = 0.99,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make a codebook of proxy points: the styles of each label, by k-means on the features as they are.

    Label and style together are then a category, which `polyurn codebook encode` gives to points.

    Example: `polyurn codebook make proxy.csv --styles 8 -o book.json`
    """
    from polyurn.client.histogram import category_names
    from polyurn.commands._shared.made_codebook import book_record, book_table
    from polyurn.commands._shared.record_tables import read_points
    from polyurn.model.codebooks import codebook
    from polyurn.storage.models import Saved, save

    check_json_place(context, output, "the codebook")
    read = read_points(
        proxy, label=label, client=None, features=listed_names(features),
        declared=declared_categories(categories), say=say,
    )  # fmt: skip
    n_labels = len(category_names(read.declared))
    book = codebook(
        read.features, read.labels, styles, n_labels=n_labels, coverage=coverage, rng=seed
    )
    names = read.declared if isinstance(read.declared, tuple) else None
    made = Saved(book, names, features=read.columns)
    if output is not None:
        save(book, output, categories=names, features=read.columns, made=made_by(context, seed))
        say(f"wrote {output}: {counted(book.n_categories, 'category')} of {n_labels:,} labels")
    if as_json:
        print_json(book_record(made))
    elif output is None:
        show(book_table(made))


def encode_command(
    context: typer.Context,
    book: Annotated[
        Path, typer.Argument(metavar="CODEBOOK", help="File that `codebook make` wrote.")
    ],
    points: Annotated[
        Path,
        typer.Argument(
            metavar="POINTS",
            help="CSV, Parquet or .npz: proxy points, or the records of clients, one row each.",
        ),
    ],
    output: Output = None,
    label: Label = None,
    client: Client = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns of numbers, comma-separated, or one with lists; those that the codebook "
            "names by default."
        ),
    ] = None,
) -> None:
    """Encode points: a table of clients, labels and codes, whose rows are those of POINTS.

    A code says label and style, "3 × style 7", or "3 × other" of what the proxy points lack. Features
    are not in the table.

    Example: `polyurn codebook encode book.json records.csv --client writer -o clients.parquet`
    """
    from polyurn.commands._shared.coded_points import encode_file
    from polyurn.storage.tables import check_table_place, table_text, write_table

    if output is not None:
        check_output(context, output)
        check_table_place(output)
    made = encode_file(
        book, points, label=label, client=client, features=listed_names(features), say=say
    )
    if output is not None:
        write_table(made.table, output, made={"command": context.obj})
        say(f"wrote {counted(len(made.table), 'point')} to {output}")
    else:
        print_data([table_text(made.table)])
    say(f"{made.is_other.mean():.1%} of them are 'other', too far from every style of their label")
