"""`polyurn partition`: which proxy points the clients of a table, or of an MDM, hold.

Parses, calls one library function, writes.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from warnings import catch_warnings, simplefilter

import typer

from polyurn.commands._shared.console import print_data, print_json, say
from polyurn.commands._shared.invocation import check_output, made_by, refuse_options
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Category,
    Client,
    Count,
    DropEmpty,
    Output,
    Seed,
    declared_categories,
)
from polyurn.errors import FileError, ShortfallError, StyleWarning
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from polyurn.commands._shared.client_tables import Declared, Reading, Say
    from polyurn.model.style import Style
    from polyurn.partitioning.result import Partition, PartitionReport
    from polyurn.populations import Population


def partition_command(
    context: typer.Context,
    labels: Annotated[
        Path,
        typer.Argument(metavar="LABELS", help="CSV or Parquet: the proxy data, one row a point."),
    ],
    clients: Annotated[
        Path,
        typer.Argument(
            metavar="CLIENTS",
            help="CSV or Parquet: (client, category, count), or one row per point. With `--cover` "
            "also an MDM file.",
        ),
    ],
    output: Output = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            help="Column of LABELS with the category; several, with commas between, are crossed. "
            "Without it, that of the MDM file's own table if LABELS has it, else 'label'."
        ),
    ] = None,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    categories: Categories = None,
    replace: Annotated[
        bool, typer.Option(help="Whether a point may serve several clients, as in the paper.")
    ] = True,
    shortfall: Annotated[
        Literal["reuse", "refuse", "resample"],
        typer.Option(help="What happens when a category is used up."),
    ] = "reuse",
    cover_all: Annotated[
        bool, typer.Option("--cover", help="Draw clients until every point is used, once.")
    ] = False,
    population: Annotated[
        Path | None,
        typer.Option(help="MDM file from which `--shortfall resample` draws clients again."),
    ] = None,
    style: Annotated[
        Path | None,
        typer.Option(help="Style file: each client is given points of a style of its own."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns of LABELS in which the style is measured, comma-separated, or one with "
            "lists; those that the style file names by default."
        ),
    ] = None,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Give each client proxy points that have its histogram: (client, index), or {client: [indices]}.

    Example: `polyurn partition labels.parquet clients.parquet -o partition.parquet`
    """
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.client_tables import Reading
    from polyurn.partitioning.assign import cover, partition
    from polyurn.storage.partitions import check_partition_place, partition_json, save_partition

    _check_options(context, clients, cover_all, shortfall, population, style)
    if output is not None:
        check_output(context, output)
        check_partition_place(output)
    proxy = _read_proxy(
        labels,
        label_column,
        clients,
        Reading(say, Columns(client, category, count), drop_empty=drop_empty),
        declared_categories(categories),
        cover_all,
        population,
    )
    styled = None if style is None else proxy.with_style(style, features, labels)
    ids = None if cover_all else proxy.clients
    of_style, measured = styled or (None, None)
    try:
        with catch_warnings():
            simplefilter("ignore", StyleWarning)  # the report has it, and is told
            if cover_all:
                done = cover(
                    proxy.labels, proxy.population, style=of_style, features=measured, rng=seed
                )
            else:
                done = partition(
                    proxy.labels,
                    proxy.counts,
                    replace=replace,
                    shortfall=shortfall,
                    population=proxy.population if shortfall == "resample" else None,
                    style=of_style,
                    features=measured,
                    rng=seed,
                )
    except ShortfallError as error:
        raise error.named(proxy.categories) from None
    done = done.renumbered(proxy.positions)
    if output is not None:
        save_partition(done, output, clients=ids, made=made_by(context, seed))
        say(f"wrote {counted(len(done), 'client')} to {output}")
    elif not as_json:
        print_data(partition_json(done, clients=ids))
    if done.report is not None:
        for sentence in _sentences(done.report):
            say(sentence)
        if as_json:
            print_json({**_record(done, done.report), "seed": seed})


def _check_options(
    context: typer.Context,
    clients: Path,
    covers: bool,
    shortfall: str,
    population: Path | None,
    style: Path | None,
) -> None:
    """Refuse options that these clients, or this way to serve them, would leave unheard."""
    if style is None:
        refuse_options(context, ["features"], "without --style")
    if covers:
        refuse_options(
            context, ["shortfall", "replace"], "with --cover, which gives each point once"
        )
    if shortfall != "resample":
        refuse_options(context, ["population"], "without --shortfall resample")
    if clients.suffix == ".json":
        of_tables = ["client", "category", "count", "categories", "drop_empty"]
        refuse_options(context, of_tables, f"with the MDM file {clients}")
    elif population is not None:
        refuse_options(context, ["categories"], f"with {population}, which has its own categories")


@dataclass(frozen=True)
class _Proxy:
    """Proxy data and the clients that are to hold them.

    Attributes
    ----------
    points : pyarrow.Table
        The proxy data.
    labels : int array of shape (n_points,)
    positions : int array of shape (n_points,)
        The rows of the proxy data that they stand in.
    categories : tuple of str
    population : MDM, or function (n_clients, rng) -> counts
        For a table of clients, a random choice of them, unless others are to take their place.
    counts : csr_array of shape (n_clients, n_categories), or None for an MDM
    clients : array of shape (n_clients,), or None for an MDM
        Their ids.
    """

    points: Any
    labels: "NDArray[np.int64]"
    positions: "NDArray[np.int64]"
    categories: tuple[str, ...]
    population: "Population"
    counts: Any = None
    clients: "NDArray[Any] | None" = None

    def with_style(
        self, style: Path, columns: str | None, where: Path
    ) -> "tuple[Style, NDArray[np.float64]]":
        """The style of a file, and the features of the points."""
        from polyurn.commands._shared.point_styles import read_point_styles

        found, features = read_point_styles(style, columns, self.points, where, self.categories)
        return found, features[self.positions]


def _read_proxy(
    labels: Path,
    label_column: str | None,
    clients: Path,
    reading: "Reading",
    declared: "Declared",
    covers: bool,
    redraw_from: Path | None,
) -> _Proxy:
    """The proxy data's labels, and clients with the same categories.

    `clients` may be an MDM file if they are drawn (`covers`); `redraw_from` is one.
    """
    from polyurn.client.columns import as_arrow
    from polyurn.commands._shared.client_tables import naming, read_clients
    from polyurn.commands._shared.model_files import read_model
    from polyurn.populations import Oracle
    from polyurn.storage.tables import read_table

    points = as_arrow(read_table(labels, on_remark=reading.say))
    if clients.suffix == ".json":
        if not covers:
            raise FileError(
                f"{clients} is not a table of clients; draw them with `polyurn sample`, or use --cover"
            )
        return _for_model(points, labels, label_column, clients, reading)
    others: Population | None = None
    naming_columns = reading
    if redraw_from is not None:
        saved = read_model(redraw_from)
        others, declared = saved.mdm, saved.categories or saved.mdm.n_categories
        naming_columns = reading.like(saved)
    with naming(labels):
        column = _label_column(points.column_names, label_column, naming_columns)
    if declared is None:
        declared = _categories_of_both(points, labels, column, clients, reading)
    with naming(labels):
        codes, positions = _held(points, declared, column, reading.say)
    read = read_clients(clients, reading, declared)
    population = Oracle(read.counts) if others is None else others
    return _Proxy(points, codes, positions, read.categories, population, read.counts, read.clients)


def _for_model(
    points: Any, labels: Path, label_column: str | None, model: Path, reading: "Reading"
) -> _Proxy:
    """The labels of the proxy data for clients that are drawn from an MDM file."""
    from polyurn.client.histogram import category_names
    from polyurn.commands._shared.client_tables import naming
    from polyurn.commands._shared.model_files import read_model

    saved = read_model(model)
    known = saved.categories or saved.mdm.n_categories
    with naming(labels):
        column = _label_column(points.column_names, label_column, reading.like(saved))
        codes, positions = _held(points, known, column, reading.say)
    return _Proxy(points, codes, positions, category_names(known), saved.mdm)


def _categories_of_both(
    points: Any, labels: Path, column: str | tuple[str, ...], clients: Path, reading: "Reading"
) -> int | tuple[str, ...]:
    """The categories that the proxy data and the clients show together, which is said."""
    from polyurn.client.tables import observed_categories, table_layout
    from polyurn.commands._shared.client_tables import naming, shown_categories
    from polyurn.storage.tables import read_table

    with naming(labels):
        of_points = observed_categories(points, category=column)
    with naming(clients):
        table = read_table(clients)
        of_clients = shown_categories(table, table_layout(table, reading.asked))
    found = _both(of_points, of_clients)
    n = found if isinstance(found, int) else len(found)
    reading.say(f"{counted(n, 'category')}, from the tables; declare them with --categories")
    return found


def _label_column(
    names: "Sequence[str]", asked: str | None, reading: "Reading"
) -> str | tuple[str, ...]:
    """The column of the proxy data with the category, or those that are crossed.

    Asked for, or remembered by an MDM file, or called "label".
    """
    from polyurn.client.layout import category_columns, column_text
    from polyurn.errors import CountsError

    option = "--label-column"
    if asked is None and reading.remembered.category is not None:
        with suppress(CountsError):
            found = category_columns(names, reading.remembered.category, option=option)
            reading.say(f"the category is in column {column_text(found)!r}")
            return found
    return category_columns(names, "label" if asked is None else asked, option=option)


def _held(
    points: Any, categories: int | tuple[str, ...], column: str | tuple[str, ...], say: "Say"
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """The category of each proxy point that a client can hold, and the rows in which they stand.

    A value that is no category is more likely a mistake, and an error. A combination of crossed columns
    that no client has is not: such points are left out, and that is said.
    """
    import numpy as np

    from polyurn.client.tables import category_codes, known_codes

    if not isinstance(column, tuple):
        codes = category_codes(points, categories, category=column)
        return codes, np.arange(len(codes))
    codes = known_codes(points, categories, category=column)
    positions = np.flatnonzero(codes >= 0)
    if len(positions) == 0:
        category_codes(points, categories, category=column)  # which says why
    if len(positions) < len(codes):
        left_out = counted(len(codes) - len(positions), "proxy point")
        say(f"left out {left_out} of combinations that are no category of the clients")
    return codes[positions], positions


def _both(a: int | tuple[str, ...], b: int | tuple[str, ...]) -> int | tuple[str, ...]:
    """The categories of two tables together: numbers with numbers, names with names."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    names = [names for names in (a, b) if not isinstance(names, int)]
    return tuple(sorted(set().union(*names)))


def _sentences(report: "PartitionReport") -> list[str]:
    """What a person wants to know about a partition."""
    told = [
        f"{counted(report.n_given, 'point')} given, "
        f"{report.n_used:,} of {report.available.sum():,} proxy "
        "points used"
    ]
    if report.n_repeats:
        told.append(f"{report.n_repeats:,} times a client was given a point that it already holds")
    if len(report.redrawn):
        told.append(
            f"{counted(len(report.redrawn), 'client')} drawn again, because a category was used up"
        )
    if report.cut:
        told.append(f"the last client holds {counted(report.cut, 'point')} fewer than it asked for")
    if report.style is not None:
        told.append(
            f"styles along {counted(report.style.n_directions_used, 'direction')}; "
            f"{report.style.served:.0%} of clients and labels find as many points of their style, in "
            "effect, as they ask for"
        )
        if report.style.remark is not None:
            told.append(report.style.remark)
    return told


def _record(done: "Partition", report: "PartitionReport") -> dict[str, Any]:
    return {
        "n_clients": len(done),
        "n_given": report.n_given,
        "n_used": report.n_used,
        "n_reused": report.n_reused,
        "n_unused": report.n_unused,
        "n_repeats": report.n_repeats,
        "n_redrawn": len(report.redrawn),
        "cut": report.cut,
        "exact": report.exact,
        "available": report.available.tolist(),
        "asked": report.asked.tolist(),
        "given": report.given.tolist(),
        "replace": report.replace,
        "shortfall": report.shortfall,
        "style": None if report.style is None else report.style.to_record(),
    }
