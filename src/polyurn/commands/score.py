"""`polyurn score`: the mean log-likelihood of a table's clients under an MDM file.

Parses, calls one library function, prints.
"""

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.commands._shared.console import print_data, print_json, say
from polyurn.commands._shared.options import (
    AsJson,
    Category,
    Client,
    Count,
    DropEmpty,
    TableArgument,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def score_command(
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    table: TableArgument,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    drop_empty: DropEmpty = False,
    as_json: AsJson = False,
) -> None:
    """Mean log-likelihood of a table's clients under an MDM.

    Example: `polyurn score mdm.json held-out.csv`
    """
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.client_tables import Reading, read_clients
    from polyurn.commands._shared.model_files import read_model

    saved = read_model(mdm)
    declared = saved.categories or saved.mdm.n_categories
    reading = Reading(say, Columns(client, category, count), drop_empty=drop_empty).like(saved)
    read = read_clients(table, reading, declared)
    result = {
        "n_clients": read.shape[0],
        **_mean_record("log_likelihood", saved.mdm.logpmf(read.counts)),
        **_mean_record("log_likelihood_given_size", saved.mdm.logpmf_given_size(read.counts)),
    }
    if as_json:
        print_json({name: value if isfinite(value) else None for name, value in result.items()})
        return
    for name, value in result.items():
        text = f"{value:,}" if name == "n_clients" else f"{value:.4f}"
        print_data([f"{name:<42} {text}\n".encode()])


def _mean_record(name: str, values: "NDArray[np.float64]") -> dict[str, float]:
    """A mean over clients and its standard error, for JSON."""
    import numpy as np

    spread = values.std(ddof=1) if len(values) > 1 and np.isfinite(values).all() else np.nan
    return {
        name: float(values.mean()),
        f"{name}_standard_error": float(spread / len(values) ** 0.5),
    }
