"""What a fitted MDM looks like: a table for a person, a record for JSON, and what is odd about it.

Only shows parameters; where they came from is not asked.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from polyurn.model.mdm import MDM
from polyurn.wording.numbers import counted

if TYPE_CHECKING:  # showing a file does not wait for the search to be loaded
    from polyurn.server.results import Candidate, Fit


def mdm_table(mdm: MDM, categories: tuple[str, ...] | None) -> Table:
    """One row per component."""
    names = categories or tuple(str(j) for j in range(mdm.n_categories))
    table = Table(
        title=f"{counted(mdm.n_components, 'component')}, {counted(mdm.n_categories, 'category')}"
    )
    for heading in ("component", "weight", "concentration α₀", "mean size"):
        table.add_column(heading, justify="right")
    table.add_column("largest categories (expected share)")
    proportions = mdm.alphas / mdm.alphas.sum(axis=1, keepdims=True)
    for k in range(mdm.n_components):
        top = np.argsort(-proportions[k], kind="stable")[:5]
        table.add_row(
            str(k + 1),
            f"{mdm.weights[k]:.3f}",
            f"{mdm.alphas[k].sum():.4g}",
            f"{mdm.sizes.mean()[k]:.1f}",
            ", ".join(f"{names[j]} {proportions[k, j]:.0%}" for j in top),
        )
    return table


def mdm_record(mdm: MDM, categories: tuple[str, ...] | None) -> dict[str, Any]:
    """The parameters, for JSON."""
    return {
        "n_components": mdm.n_components,
        "n_categories": mdm.n_categories,
        "n_parameters": mdm.n_parameters,
        "max_size": mdm.max_size,
        "categories": None if categories is None else list(categories),
        "weights": mdm.weights.tolist(),
        "alphas": mdm.alphas.tolist(),
        "mean_sizes": mdm.sizes.mean().tolist(),
    }


def component_sentences(done: "Fit | Candidate") -> list[str]:
    """What there is to say about the components besides their parameters."""
    said = []
    if done.n_dropped:
        said.append(
            f"dropped {counted(done.n_dropped, 'component that was', 'components that were')} left with "
            "less than half a client"
        )
    if done.multinomial:
        which = ", ".join(str(k + 1) for k in done.multinomial)
        said.append(f"plain multinomials (concentration at the cap): component {which}")
    return said
