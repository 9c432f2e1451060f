"""`polyurn compare`: how alike populations are to held-out clients, in what they hold or in training.

Parses, calls one library function, writes.
"""

import os
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.commands._shared.console import print_json, say, show
from polyurn.commands._shared.invocation import check_json_place, made_by, refuse_options
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
from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from polyurn.commands._shared.client_tables import ClientTable
    from polyurn.comparison.compare import Compared
    from polyurn.comparison.results import Comparison
    from polyurn.storage.mdm_json import SavedMDM

_KIND, _VERSION = "comparison", 1
_OF_SWEEPS, _OF_BOTH = {"true", "metric", "last", "target"}, {"held_out", "as_json", "quiet"}


def compare_command(
    context: typer.Context,
    held_out: Annotated[
        Path,
        typer.Argument(
            metavar="HELD_OUT",
            help="Table of true clients that were not fitted, or packed ones; or a folder that `sweep` "
            "wrote.",
        ),
    ],
    populations: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=FILE...", help="MDM files (.json) and tables of simulated clients."
        ),
    ] = None,
    output: Output = None,
    fitted: Annotated[
        Path | None,
        typer.Option(help="Table of the clients that were fitted: says how many are in both."),
    ] = None,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    categories: Categories = None,
    clients: Annotated[
        int | None, typer.Option(help="Clients to draw from each MDM; 5 times those held out.")
    ] = None,
    max_clients: Annotated[
        int, typer.Option(help="A larger table is represented by so many clients, drawn at random.")
    ] = 2_000,
    splits: Annotated[int, typer.Option(help="Splits of true clients, for the noise.")] = 1_000,
    folds: Annotated[int, typer.Option(help="Folds of the two-sample test; 0: none.")] = 5,
    style: Annotated[
        Path | None,
        typer.Option(help="Style file: compare styles, too, of clients cut from --proxy."),
    ] = None,
    proxy: Annotated[
        Path | None,
        typer.Option(help="Table of proxy points, with the label and the features of HELD_OUT."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns in which the style is measured, comma-separated, or one with lists; those "
            "that the style file names by default."
        ),
    ] = None,
    drop_empty: DropEmpty = False,
    true: Annotated[str, typer.Option(help="The true clients' name in a sweep.")] = "true",
    metric: Annotated[
        str, typer.Option(help="What a sweep's runs are judged by; loss is their test loss.")
    ] = "accuracy",
    last: Annotated[
        float, typer.Option(help="Share of a run's evaluations, the last ones, that are averaged.")
    ] = 0.5,
    target: Annotated[
        float | None, typer.Option(help="Compare the number of rounds to this metric, too.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """How alike populations are to clients that were held out from fitting.

    With a sweep's folder instead: how well training on each population foretells the true clients'.

    Examples: `polyurn compare held-out.csv mdm=mdm.json iid=iid.parquet -o comparison.json`,
    `polyurn compare runs/`
    """
    from polyurn.storage.shards import is_shard_folder

    packed = is_shard_folder(held_out)
    if os.path.isdir(held_out) and not packed:  # pathlib stops at a name that is too long
        if populations:
            raise ParameterError(f"expected nothing but the folder of a sweep with {held_out}")
        unheard = set(context.params) - _OF_BOTH - _OF_SWEEPS
        refuse_options(context, unheard, f"with the folder of a sweep, {held_out}")
        from polyurn.commands._shared.verdicts import compare_runs

        compare_runs(held_out, true=true, metric=metric, last=last, target=target, as_json=as_json)
        return
    refuse_options(context, _OF_SWEEPS, f"with the table {held_out}")
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.client_tables import Reading
    from polyurn.commands._shared.compared_styles import (
        compared_styles,
        styles_record,
        styles_tables,
    )
    from polyurn.commands._shared.model_files import read_model
    from polyurn.commands._shared.packed_clients import read_some
    from polyurn.comparison.compare import compare
    from polyurn.storage.atomic import save_record

    _check_style(context, style, proxy, of=held_out, packed=packed)
    if not populations:
        raise ParameterError(f"expected populations as NAME=FILE to compare with {held_out}")
    check_json_place(context, output, "the comparison")
    places = _places(populations)
    saved = {name: read_model(path) for name, path in places.items() if _is_mdm(path)}
    if saved:
        refuse_options(context, ["categories"], "with an MDM file, which has its own categories")
    else:
        refuse_options(context, ["clients"], "without an MDM file to draw them from")
    declared = declared_categories(categories) or _categories_of(saved)
    columns, read_later = (
        Columns(client, category, count),
        _style_columns(style, features, held_out),
    )
    asked = Reading(say, columns, drop_empty=drop_empty, elsewhere=read_later)
    reading = reduce(Reading.like, saved.values(), asked)
    read = read_some(held_out, reading, declared, seed=seed)
    others = reading.after(read)
    everything = read.categories or read.shape[1]
    compared: dict[str, Compared] = {
        name: saved[name].mdm
        if name in saved
        else read_some(path, others, everything, seed=seed).counts
        for name, path in places.items()
    }
    known = None if fitted is None else _ids(read_some(fitted, others, everything, seed=seed))
    mdms = {name: one.mdm for name, one in saved.items()}
    rows = compared_styles(
        style, features, proxy, read, mdms, n_clients=clients or read.shape[0], seed=seed
    )
    verdict = compare(
        compared,
        read.counts,
        clients=None if packed and known is None else _ids(read),
        fitted=known,
        n_clients=clients,
        max_clients=max_clients,
        n_splits=splits,
        n_folds=folds,
        rng=seed,
    )
    record = verdict.to_dict() | styles_record(rows)
    if output is not None:
        made = made_by(context, seed)
        save_record(record, output, kind=_KIND, version=_VERSION, made=made)
        say(f"wrote {output}")
    if as_json:
        print_json(record)
    else:
        _show([_table(verdict), *styles_tables(rows)])
    for sentence in verdict.sentences():
        say(sentence)


def _check_style(
    context: typer.Context, style: Path | None, proxy: Path | None, *, of: Path, packed: bool
) -> None:
    if style is None:
        refuse_options(context, ["proxy", "features"], "without --style")
    elif packed:
        raise ParameterError(f"--style needs a table of records, and {of} has histograms only")
    elif proxy is None:
        raise ParameterError("expected --proxy, the points to cut clients from, with --style")


def _style_columns(style: Path | None, features: str | None, of: Path) -> "Sequence[str]":
    """The columns of a table that are read for its clients' styles."""
    from polyurn.commands._shared.point_styles import style_columns

    return () if style is None else style_columns(style, features, of)


def _places(populations: list[str]) -> dict[str, Path]:
    places: dict[str, Path] = {}
    for text in populations:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ParameterError(f"expected a population as NAME=FILE, got {text!r}")
        if name in places:
            raise ParameterError(f"expected a name for each population, got {name!r} twice")
        places[name] = Path(path)
    return places


def _ids(read: "ClientTable") -> list[str]:
    """Ids as texts: 7 in a Parquet file is the 7 of a CSV file."""
    if not read.named:
        raise ParameterError(f"--fitted needs the ids of clients, which {read.path} does not keep")
    return [str(client) for client in read.clients]


def _is_mdm(path: Path) -> bool:
    return path.suffix == ".json"


def _categories_of(saved: dict[str, "SavedMDM"]) -> int | tuple[str, ...] | None:
    """The categories that all the MDM files have; None without any."""
    found = {one.categories or one.mdm.n_categories for one in saved.values()}
    if len(found) > 1:
        raise ParameterError("expected MDM files with the same categories, got different ones")
    return found.pop() if found else None


def _show(tables: "list[Table]") -> None:
    for table in tables:
        show(table)


def _table(verdict: "Comparison") -> "Table":
    """One column per population, one line per measure."""
    from rich.table import Table

    head, *lines = verdict.table()
    table = Table(title=f"how alike to {counted(verdict.n_clients, 'true client')}")
    for position, name in enumerate(head):
        table.add_column(name, justify="right" if position else "left")
    for line in lines:
        table.add_row(*line)
    return table
