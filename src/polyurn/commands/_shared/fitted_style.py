"""What a fitted style looks like: a table for a person, and a record for JSON.

Only shows numbers; where they came from is not asked.
"""

from typing import Any

import numpy as np
from rich.table import Table

from polyurn.model.style import Style
from polyurn.wording.numbers import counted


def style_table(style: Style) -> Table:
    """One row per direction: what it carries, and the variances B, V and E in it with their errors."""
    table = Table(title=f"styles of {counted(style.n_clients, 'client')}")
    table.caption = (
        f"{style.between:.0%} of the variance within labels lies between clients; B eigenvalues "
        + " ".join(f"{value:z.2f}" for value in style.eigenvalues[0])
    )
    headings = ("direction", "carries", "mean", "B: shared", "V: by label", "E: within")
    for heading in headings:
        table.add_column(heading, justify="right")
    for k in range(style.n_directions):
        values = (style.shared[k, k], style.by_label[k, k], style.within[k, k])
        errors = (None,) * 4
        if style.errors is not None:
            of = style.errors
            errors = (of.mean[k], of.shared[k, k], of.by_label[k, k], of.within[k, k])
        cells = [_with_error(v, e) for v, e in zip((style.mean[k], *values), errors, strict=True)]
        table.add_row(str(k + 1), f"{style.carried[k]:.0%}", *cells)
    return table


def style_record(style: Style, categories: tuple[str, ...] | None) -> dict[str, Any]:
    """The same numbers and more, for JSON."""
    names = ("mean", "shared", "by_label", "within")
    errors = style.errors
    return {
        "n_clients": style.n_clients,
        "n_directions": style.n_directions,
        "categories": None if categories is None else list(categories),
        "between": style.between,
        "carried": style.carried.tolist(),
        "eigenvalues": style.eigenvalues.tolist(),
        **{name: getattr(style, name).tolist() for name in names},
        "errors": None if errors is None else {n: getattr(errors, n).tolist() for n in names},
        "far_share": None if np.isnan(style.far_share) else style.far_share,
        "pool_far_share": style.space.pool_far_share,
        "radius": style.space.radius,
        "alarm": style.alarm,
    }


def _with_error(value: float, error: float | None) -> str:
    return f"{value:z.2f}" if error is None else f"{value:z.2f} ± {error:.2f}"
