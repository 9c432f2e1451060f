"""`polyurn datasets`: what a federation to try things on holds."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from polyurn.commands.console import print_json, show
from polyurn.commands.declare import argument
from polyurn.commands.options import AS_JSON
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
