"""`polyurn datasets`: what a federation to try things on holds, fetched first if that is asked for.

Parses, calls one library function, prints.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import typer

from polyurn.commands.console import INTERRUPTED, print_json, say, show, talk
from polyurn.commands.declare import argument, option, refuse_options
from polyurn.commands.options import AS_JSON
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID
    from rich.table import Table

    from polyurn.datasets import Dataset, Progress

Name: TypeAlias = Literal[
    "digits", "flights", "femnist", "cifar10", "folktables", "mnist_by_writer"
]

# Options of datasets that installed packages carry.
_NOT_NEEDED = {"digits": ("root", "download"), "flights": ("download",)}


def datasets_command(
    *,
    context: typer.Context,
    name: Name = argument("NAME", "Which of the datasets."),
    root: Path | None = option(
        None, "Folder with its files; without it, the one that POLYURN_DATA names."
    ),
    download: bool = option(False, "Fetch the files where there are none.", "--download"),
    as_json: bool = AS_JSON,
) -> None:
    """What a dataset holds: records, clients and categories; with `--download` it is fetched first.

    Example: `polyurn datasets cifar10 --root data --download`
    """
    from polyurn import datasets

    refuse_options(context, _NOT_NEEDED.get(name, ()), f"on {name}, which a package carries")
    read: Callable[..., Dataset] = getattr(datasets, name)
    try:
        with download_progress(talk) as on_progress:
            found = read(root=root, download=download, on_progress=on_progress)
    except KeyboardInterrupt:
        say("interrupted; what was fetched is kept: repeat the command to go on")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(dataset_record(found))
    else:
        show(_dataset_table(found))


@contextlib.contextmanager
def download_progress(console: "Console") -> Iterator[Callable[["Progress"], None]]:
    """A function that shows how far each file is: bars on a terminal, a line per file when piped."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    if not console.is_terminal:
        begun: set[str] = set()

        def on_progress(done: "Progress") -> None:
            if done.name not in begun:
                begun.add(done.name)
                size = "" if done.total is None else f", {done.total:,} bytes"
                console.out(f"downloading {done.name}{size}", highlight=False)

        yield on_progress
        return

    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    with bar:
        tasks: dict[str, TaskID] = {}

        def on_progress_bar(done: "Progress") -> None:
            if done.name not in tasks:
                tasks[done.name] = bar.add_task(done.name, total=done.total)
            bar.update(tasks[done.name], completed=done.n_bytes)

        yield on_progress_bar


def dataset_record(found: "Dataset") -> dict[str, Any]:
    """What a dataset holds, for JSON."""
    splits = {"train": found.train, "test": found.test}
    return {
        "name": found.name,
        "categories": list(found.categories),
        **{
            split: None
            if records is None
            else {
                "n_records": records.n_records,
                "n_clients": records.n_clients,
                "features": None if records.features is None else list(records.features.shape[1:]),
            }
            for split, records in splits.items()
        },
    }


def _dataset_table(found: "Dataset") -> "Table":
    """One row per split."""
    from rich.table import Table

    table = Table(title=f"{found.name}: {counted(found.n_categories, 'category')}")
    for heading in ("split", "records", "clients", "features of a record"):
        table.add_column(heading, justify="left" if heading == "split" else "right")
    for split, records in (("train", found.train), ("test", found.test)):
        if records is not None:
            features = records.features
            shape = () if features is None else features.shape[1:]
            table.add_row(
                split,
                f"{records.n_records:,}",
                f"{records.n_clients:,}" if records.n_clients else "–",
                " x ".join(str(n) for n in shape) or "–",
            )
    return table
