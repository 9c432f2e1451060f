"""`polyurn compare-to-zoo`: which real federations a partition, a table or a mixture resembles."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import argument, option
from polyurn.commands.options import AS_JSON, SEED, ColumnOptions

if TYPE_CHECKING:
    from rich.table import Table

    from polyurn.zoo.neighbours import Neighbours

_SHOWN = 8  # federations; --json has them all


def compare_to_zoo_command(
    *,
    clients: Path = argument(
        "CLIENTS",
        "A partition (.json or .parquet), with --labels; a table of clients; or a mixture, such as one "
        "that was fitted to the sums of a live federation.",
    ),
    labels: Path | None = option(None, "CSV, Parquet or .npz: the data of a partition."),
    columns: ColumnOptions,
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Find the federations of the zoo that clients resemble, and how different the clients are.

    Examples: `polyurn compare-to-zoo partition.json --labels labels.csv`,
    `polyurn compare-to-zoo clients.csv`
    """
    from polyurn.typed.json_form import to_json
    from polyurn.zoo.neighbours import nearest

    found = nearest(_read(clients, labels, columns, seed), rng=seed)
    if as_json:
        print_json(to_json(found))
        return
    show(_table(found))
    profile, own = found.profile, found.profile.heterogeneity
    say(f"{found.n_clients:,} clients, about Dirichlet({own.alpha:.3g}), {profile.in_words}")
    say(
        f"Jensen-Shannon {own.jensen_shannon:.3g}, Hellinger {profile.hellinger:.3g}, effective labels "
        f"{own.effective_categories:.3g}, correlation {profile.correlation:.3g}"
    )


def _read(clients: Path, labels: Path | None, columns: ColumnOptions, seed: int) -> Any:
    """Histograms, or a mixture."""
    from polyurn.commands.views import read_model
    from polyurn.sources.clients import read_all, some_of
    from polyurn.sources.points import PointFile
    from polyurn.storage.models import is_model
    from polyurn.storage.partitions import load_partition

    if labels is not None:
        names, codes = PointFile.read(labels, say).labelled(columns.category)
        n_labels = names if isinstance(names, int) else len(names)
        return load_partition(clients).histograms(codes, n_labels)
    if is_model(clients):
        return read_model(clients).model
    return some_of(read_all(clients, columns.reading()), say, seed=seed).counts


def _table(found: "Neighbours") -> "Table":
    from polyurn.commands.views import table_of
    from polyurn.zoo.federations import card

    rows = [
        (row.name, card(row.name).title, f"{row.labels:.4f}", f"{row.sizes:.1f}")
        for row in found.rows[:_SHOWN]
    ]
    heads = ("federation", "", "labels (energy distance)", "sizes (doublings)")
    return table_of("The nearest federations", heads, rows, left=[0, 1])
