"""`polyurn report`: one page about models, styles, comparisons and sweeps."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import polyurn as pu
from polyurn.commands.console import print_json, say, warn
from polyurn.commands.declare import Needs, also, argument, option, provenance_of, refuse_options
from polyurn.commands.options import (
    AS_JSON,
    SEED,
    STYLE_FEATURES,
    TableOptions,
    listed_names,
    named_file,
)
from polyurn.errors import FileError, ParameterError

if TYPE_CHECKING:
    from polyurn.report.material import SavedComparison
    from polyurn.server.describing import ColumnDescription, Description
    from polyurn.storage.look_history import LookEntry
    from polyurn.storage.models import Saved


def report_command(
    *,
    context: typer.Context,
    things: list[str] = argument(
        "FILE|NAME=TABLE...",
        "Tables of clients, with a name unless they are the true ones; MDM, style, comparison and "
        "description files, histories of looks (.jsonl), folders of sweeps.",
    ),
    columns: TableOptions,
    output: Path = option(Path("report.html"), "HTML file to write.", "--output", "-o"),
    title: str = option("What this federation looks like", "Title of the page."),
    true: str = option("true", "The name of the true clients."),
    metric: str = option("accuracy", "The metric of the sweep to show."),
    proxy: Path | None = option(
        None,
        "CSV, Parquet or .npz: proxy points in which a style is shown; pictures in an .npz file.",
    ),
    features: str | None = also(STYLE_FEATURES, Needs("proxy")),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Write one self-contained page about a model, a style, a comparison, a sweep, or all of them.

    Each file says what it is. With true clients (`held-out.csv`) populations are
    shown side by side; clients of the model and IID ones are drawn unless they are given. A style is
    shown by proxy points along its directions, as pictures if they are pictures.

    Example: `polyurn report held-out.csv mdm.json comparison.json runs/ -o report.html`
    """
    from polyurn.sources.points import read_pictures
    from polyurn.storage.files import check_writable, write_whole

    check_writable(output)
    given = _read(things, true)
    _check_options(context, given, proxy)
    points = labels = None
    if proxy is not None:
        if given.style is None:
            raise ParameterError(
                "--proxy has no effect without a style file: add one, or leave it out"
            )
        points, labels = read_pictures(
            proxy, given.style, label=columns.category, features=listed_names(features)
        )
    clients, names = _read_tables(given, columns, true)
    page = pu.report_on(
        given.model, categories=names, comparison=given.comparison, runs=given.runs,
        looks=given.looks, description=given.description, clients=clients, style=given.style,
        features=points, labels=labels,
        true=true, metric=metric, title=title,
        notes=[*given.notes, ("Page: command", provenance_of(context, seed)["command"])], rng=seed,
    ).html()  # fmt: skip
    write_whole(output, lambda file: file.write(page.encode()))
    size = len(page.encode())
    say(f"wrote {output} ({size / 1e6:.1f} MB): open {output.resolve().as_uri()}")
    if as_json:
        print_json({"file": str(output), "bytes": size})


@dataclass
class _Given:
    """What the arguments stand for."""

    model: "Saved[pu.MDM] | None" = None
    comparison: "SavedComparison | None" = None
    style: "Saved[pu.Style] | None" = None
    runs: "list[pu.FinishedRun]" = field(default_factory=list)
    looks: "list[LookEntry]" = field(default_factory=list)
    description: "Description | ColumnDescription | None" = None
    tables: dict[str, Path] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)


def _read(things: list[str], true: str) -> _Given:
    """Read all files but the tables, which may need the categories of the others."""
    from polyurn.commands.looks import read_description
    from polyurn.commands.views import read_model
    from polyurn.storage.look_history import LookHistory
    from polyurn.storage.models import load_saved

    given = _Given()
    for thing in things:
        match _kind(thing):
            case "mdm" if given.model is None:
                given.model = read_model(Path(thing))
            case "comparison" if given.comparison is None:
                given.comparison = _comparison(thing, alone=len(things) == 1)
            case "style" if given.style is None:
                given.style = load_saved(thing, pu.Style)
            case "runs":
                given.runs += pu.read_runs(thing)
            case "looks" if not given.looks:
                given.looks = LookHistory(thing).read()
            case "description" if given.description is None:
                given.description = read_description(thing)
            case "clients":
                name, path = named_file(thing)
                name = true if path == thing else name
                if name in given.tables:
                    raise ParameterError(f"expected a name for each population, got {name!r} twice")
                given.tables[name] = Path(path)
            case kind:
                raise ParameterError(f"expected one {kind} file, got {thing!r} as well")
    return given


def _read_tables(
    given: _Given, columns: TableOptions, true: str
) -> "tuple[dict[str, object], tuple[str, ...] | None]":
    """Histograms of all tables, of true clients those not fitted; and the names of their categories."""
    from polyurn.sources.clients import read_clients, true_clients

    clients: dict[str, object] = {}
    names = columns.declared() or (given.model and given.model.declared)
    reading = columns.reading()
    if given.model is not None:
        reading = reading.like(given.model)
    for name, table in given.tables.items():
        read = read_clients(table, reading, names or None)
        reading = reading.after(read)
        clients[name], names = read, read.categories or read.shape[1]
        if name == true and given.model is not None:
            found, _, standing = true_clients(read, [given.model], say=say)
            clients[name] = found
            given.notes.append((f"Clients: {name}", standing))
            say(standing)
    return clients, names if isinstance(names, tuple) else None


def _check_options(context: typer.Context, given: _Given, proxy: Path | None) -> None:
    """Refuse options that have no effect with these files."""
    if not given.tables:
        of_tables = ["client", "count", "categories", "drop_empty", "drop_missing"]
        # With proxy points, clients with styles are drawn; those of a table have a category.
        of_tables += ["seed"] if proxy is None else []
        of_tables += ["category"] if proxy is None or proxy.suffix == ".npz" else []
        refuse_options(context, of_tables, "without a table of clients")
    if given.model is not None:
        refuse_options(context, ["categories"], "with an MDM file, which has its own categories")
    if not given.runs:
        refuse_options(context, ["metric"], "without the folder of a sweep")
    if not given.runs and not given.tables:
        refuse_options(context, ["true"], "without a table of clients or the folder of a sweep")


def _comparison(path: str, *, alone: bool) -> "SavedComparison | None":
    """Read a comparison file; a damaged one is left out, or an error if the page has nothing else."""
    from polyurn.report.material import SavedComparison
    from polyurn.storage.documents import load_document

    document = load_document(path, kind="comparison")
    try:
        found = SavedComparison.from_json(document)
    except FileError as error:
        if alone:
            raise FileError(f"{path} is damaged: {error}") from error
        warn(f"left out, because it is damaged: {path}: {error}")
        return None
    for line in found.provenance.left_out:
        warn(f"left out of {path}: {line}")
    return found


def _kind(thing: str) -> str:
    """What an argument stands for."""
    from polyurn.storage.documents import format_of
    from polyurn.storage.models import model_path
    from polyurn.storage.table_files import is_table

    path = Path(model_path(thing))
    # For a name that is too long, os.path says that there is no file; pathlib raises.
    if os.path.isdir(path):
        return "runs"
    if path.suffix == ".jsonl" and os.path.exists(path):
        return "looks"
    if is_table(path) or (not os.path.exists(path) and "=" in thing):
        return "clients"
    found = format_of(path)
    if found in ("polyurn.mdm", "polyurn.comparison", "polyurn.style", "polyurn.description"):
        return found.removeprefix("polyurn.")
    raise FileError(
        f"expected a table of clients, or an MDM, style, comparison or description file, got {path}"
    )
